"""
Calls whose answer is already there.
"""

import json

from dataclasses import replace
from typing import Any

import pytest

from guardrails import Budget, Denial, Duplicates, Loops, Policy, Retryable, Tool
from guardrails.core.guards.limits.budget_words import FINISH
from guardrails.core.guards.repeats.duplicates import still_failing
from tests.tables import table


MESSAGE = (
    "This exact search_hotels call was already made earlier in this conversation. "
    "Use the previous result instead of calling again."
)


def gives(value: Any) -> Any:
    def execute(tool: str, arguments: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return execute


def make(clock: Any, *guards: Any, **settings: Any) -> Any:
    return Policy(guards, **settings).session("s", clock=clock)


def codes(session: Any, story: list[tuple[str, Any]]) -> list[str | None]:
    """
    The code of each call, all with the same arguments: None where it ran.
    """
    return [session.call(tool, {}, gives(value)).code for tool, value in story]


def test_a6_an_exact_repeat_is_blocked_with_the_exact_message_and_the_earlier_result(clock: Any) -> None:
    session = make(clock, Duplicates(window=5))
    session.call("search_hotels", {"city": "Shibuya", "max_price": 150}, gives([{"id": "h_1234"}]))
    blocked = session.call("search_hotels", {"max_price": 150.0, "city": "Shibuya"}, gives([]))
    read = json.loads(blocked.to_json())
    assert (read["status"], read["message"], read["retryable"]) == ("duplicate_call_blocked", MESSAGE, False)
    assert read["previous_result"] == [{"id": "h_1234"}]
    assert read["next_action_hint"]


@table(
    ("one", "other"),
    [
        ({"n": 1}, {"n": True}),
        ({"n": 1}, {"n": "1"}),
        ({"n": 1}, {"n": 1, "m": None}),
        ({"q": "a"}, {"q": "A"}),
        ({"q": ["a", "b"]}, {"q": ["b", "a"]}),
    ],
)
def test_a6_other_arguments_are_another_call(one: Any, other: Any, clock: Any) -> None:
    session = make(clock, Duplicates())
    assert session.call("t", one, gives(1)).ok
    assert session.call("t", other, gives(1)).ok
    assert session.call("u", one, gives(1)).ok


@table("window", [1, 5, 20, 50])
def test_a6_only_the_last_calls_count(window: int, clock: Any) -> None:
    session = make(clock, Duplicates(window=window))
    session.call("t", {"n": "first"}, gives(1))
    for number in range(window - 1):
        assert session.call("t", {"n": number}, gives(1)).ok
    assert session.call("t", {"n": "first"}, gives(1)).code == "duplicates.window"
    assert session.call("t", {"n": "one more"}, gives(1)).ok
    assert session.call("t", {"n": "first"}, gives(1)).ok


def test_a6_a_result_that_was_cut_is_given_back_as_it_was_read(clock: Any) -> None:
    from guardrails import Truncate

    session = make(clock, Duplicates(), Truncate(max_bytes=300))
    first = session.call("t", {}, gives(list(range(1_000))))
    blocked = session.call("t", {}, gives(1))
    assert json.loads(blocked.to_json())["previous_result"] == json.loads(first.to_json())["results"]


# Evidence


def test_evidence_lets_polling_with_changing_numbers_go_on(clock: Any) -> None:
    session = Policy.load("default").session("s", clock=clock)
    for percent in range(60):
        assert session.call("job_status", {"id": 7}, gives({"progress": percent})).ok
        clock.advance(5)


def test_evidence_lets_an_edit_test_cycle_go_on(clock: Any) -> None:
    session = Policy.load("default").session("s", clock=clock)
    for failed in range(30, 0, -1):
        assert session.call("run_tests", {}, gives(f"{failed} failed")).ok
        assert session.call("edit", {"line": failed}, gives("done")).ok
        clock.advance(30)


def test_evidence_stops_a_third_call_after_two_equal_results(clock: Any) -> None:
    session = make(clock, Duplicates(rule="evidence", window=20))
    assert codes(session, [("t", "same")] * 4) == [None, None, "duplicates.evidence", "duplicates.evidence"]


def test_evidence_takes_the_last_two_results_and_not_older_ones(clock: Any) -> None:
    session = make(clock, Duplicates(rule="evidence", window=20))
    story = [("t", "a"), ("t", "b"), ("t", "a"), ("t", "b"), ("t", "b"), ("t", "c")]
    assert codes(session, story) == [None, None, None, None, None, "duplicates.evidence"]


def test_a_digit_is_news_in_a_success_and_none_in_an_error(clock: Any) -> None:
    guard = Duplicates(rule="evidence", window=20)
    assert codes(make(clock, guard), [("t", f"{n} failed") for n in range(4)]) == [None] * 4
    errors = [("t", ValueError(f"bad line {n}")) for n in range(9, 12)]
    assert codes(make(clock, guard), errors) == [None, None, "duplicates.evidence"]


def test_an_error_and_a_success_that_read_alike_are_no_evidence(clock: Any) -> None:
    session = make(clock, Duplicates(rule="evidence", window=20))
    assert codes(session, [("t", "no"), ("t", ValueError("no")), ("t", "no"), ("t", "x")]) == [None] * 4


def test_two_equal_results_further_apart_than_the_window_are_no_evidence(clock: Any) -> None:
    session = make(clock, Duplicates(rule="evidence", window=3))
    other = [("u", "x"), ("v", "x"), ("w", "x")]
    assert codes(session, [("t", "same"), *other[:1], ("t", "same"), *other[1:2], ("t", "same")])[-1] is None
    assert codes(session, [("t", "same"), ("t", "same")])[-1] == "duplicates.evidence"


def test_a_large_result_that_differs_after_the_cut_is_news(clock: Any) -> None:
    from guardrails import Truncate

    session = make(clock, Duplicates(rule="evidence", window=20), Truncate())
    texts = ["x" * 100_000 + end for end in ("a", "bb", "ccc", "dddd")]
    assert codes(session, [("t", text) for text in texts]) == [None] * 4


def test_a_stable_tool_is_not_called_again_until_something_may_have_changed(clock: Any) -> None:
    tools = [Tool(name="read", stable=True), Tool(name="look", read_only=True), Tool(name="edit")]
    session = make(clock, Duplicates(rule="evidence", window=20), tools=tools)
    story = [("read", "a"), ("look", "x"), ("read", "a"), ("edit", "y"), ("read", "b"), ("read", "b")]
    assert codes(session, story) == [None, None, "duplicates.stable", None, None, "duplicates.stable"]


def test_a_failure_of_a_stable_tool_is_no_answer(clock: Any) -> None:
    session = make(clock, Duplicates(rule="evidence"), tools=[Tool(name="read", stable=True)])
    assert codes(session, [("read", ValueError("no")), ("read", "a"), ("read", "a")]) == [
        None,
        None,
        "duplicates.stable",
    ]


# Exemptions


@table("rule", ["always", "evidence"])
def test_polling_tools_are_exempt_under_both_rules(rule: Any, clock: Any) -> None:
    session = make(clock, Duplicates(rule=rule), tools=[Tool(name="t", polling=True, stable=True)])
    assert codes(session, [("t", "same")] * 5) == [None] * 5


@table("rule", ["always", "evidence"])
def test_a_retry_that_was_offered_is_no_duplicate(rule: Any, clock: Any) -> None:
    session = make(clock, Duplicates(rule=rule, window=20), Retryable(max_retries=2))
    seen = []
    for _ in range(5):
        seen.append(codes(session, [("t", ConnectionResetError("reset"))])[0])
        clock.advance(20)
    refused = "duplicates.window" if rule == "always" else "duplicates.evidence"
    assert seen == [None, None, None, refused, refused]


@table("rule", ["always", "evidence"])
@table("polling", [True, False])
def test_an_identical_call_that_still_runs_is_refused_under_both_rules(rule: Any, polling: bool, clock: Any) -> None:
    session = make(clock, Duplicates(rule=rule), Budget(max_calls=9), tools=[Tool(name="t", polling=polling)])
    seen = []

    def execute(tool: str, arguments: Any) -> str:
        seen.append(session.call("t", {}, gives(1)))
        return "done"

    assert session.call("t", {}, execute).ok
    assert (seen[0].code, seen[0].status) == ("duplicates.in_flight", "duplicate_call_blocked")
    assert session.progress["calls_used"] == 1


def test_a_call_that_expired_may_be_made_again(clock: Any) -> None:
    session = make(clock, Duplicates(), tools=[Tool(name="t", timeout=5)])
    session.decide("t", {}, id="call_1")
    clock.advance(5.1)
    assert session.call("t", {}, gives(1)).ok


def test_calls_that_cannot_be_signed_are_never_duplicates(clock: Any) -> None:
    endless: list[Any] = []
    endless.append(endless)
    session = make(clock, Duplicates())
    assert [session.call("t", {"a": endless}, gives(1)).ok for _ in range(3)] == [True] * 3


def test_children_share_no_window_with_their_parent(clock: Any) -> None:
    session = make(clock, Duplicates(), Budget(max_calls=9))
    assert session.call("t", {}, gives(1)).ok
    assert session.child("c", max_calls=2).call("t", {}, gives(1)).ok


EMPTY = "build ok"


@table("result", [EMPTY, "All tests passed", None])
def test_an_edit_test_cycle_with_the_same_passing_result_runs_on_under_default(result: Any, clock: Any) -> None:
    session = Policy.load("default").session("s", clock=clock)
    for n in range(8):
        assert session.call("edit_file", {"n": n}, gives("edited")).ok
        assert session.call("run_tests", {}, gives(result)).ok
    assert session.call("run_tests", {}, gives(result)).ok is False


def test_an_edit_test_cycle_whose_tests_fail_by_exception_runs_on_under_default(clock: Any) -> None:
    import subprocess

    session = Policy.load("default").session("s", clock=clock)
    for failed in (5, 4, 3, 2):
        error = subprocess.CalledProcessError(1, "make test", stderr=f"{failed} failed")
        assert session.call("make_test", {}, gives(error)).status == "error"
        assert session.call("edit_file", {"n": failed}, gives("edited")).ok


def test_reading_in_between_is_no_work_so_the_evidence_stands(clock: Any) -> None:
    session = Policy.load("default").session("s", clock=clock)
    told = codes(session, [("run_tests", EMPTY), ("read_file", "x"), ("run_tests", EMPTY), ("get_user", "y")])
    assert told == [None, None, None, None]
    assert session.call("run_tests", {}, gives(EMPTY)).code == "duplicates.evidence"


def test_under_always_what_failed_for_a_repairable_cause_may_be_repeated_after_another_call(clock: Any) -> None:
    from guardrails.core.tools.failure_rules import FailureRule, ResultClassifier

    stale = ResultClassifier(error_when=(FailureRule(field="error", present=True, error_type="precondition"),))
    session = make(clock, Duplicates(), Retryable(), tools=[Tool(name="edit", result=stale), Tool(name="read")])
    failed = session.call("edit", {}, gives({"error": "read the file first"}))
    assert failed.next_action == "fix_precondition"
    assert session.call("edit", {}, gives("done")).code == "duplicates.window"
    assert session.call("read", {}, gives("text")).ok
    assert session.call("edit", {}, gives("done")).ok


def test_a_cancelled_call_has_no_answer_to_give_back_and_may_be_made_again(clock: Any) -> None:
    class CancelledError(Exception):
        pass

    session = make(clock, Duplicates())
    assert session.call("t", {}, gives(CancelledError("stopped"))).error_type == "cancelled"
    assert session.call("t", {}, gives("ok")).ok


PASSING: dict[str, Any] = {
    "503": {"status": 503, "error": "Service Unavailable"},
    "timeout": TimeoutError("no answer within 5 s"),
    "connection": ConnectionResetError("reset by peer"),
    "rate limit": RuntimeError("HTTP 429: Too Many Requests"),
    "500": RuntimeError("HTTP 500: Internal Server Error"),
}
ALONE: Any = pytest.mark.parametrize("rule", ["always", "evidence"])


@ALONE
@table("name", PASSING)
def test_a_failure_that_may_pass_is_tried_again_without_a_guard_that_judges_it(
    rule: Any, name: str, clock: Any
) -> None:
    session = make(clock, Duplicates(rule=rule))
    failed = PASSING[name] if isinstance(PASSING[name], Exception) else RuntimeError(f"HTTP {name}")
    assert codes(session, [("t", failed)] * 3 + [("t", "an answer")]) == [None] * 4


@ALONE
@table("name", PASSING)
def test_a_failure_that_does_not_pass_is_refused_and_never_called_a_result(rule: Any, name: str, clock: Any) -> None:
    session = make(clock, Duplicates(rule=rule))
    failed = PASSING[name] if isinstance(PASSING[name], Exception) else RuntimeError(f"HTTP {name}")
    assert codes(session, [("t", failed)] * 4) == [None] * 4
    refused = session.call("t", {}, gives("an answer"))
    read = refused.to_json()
    assert (refused.code, refused.status) == (f"duplicates.{'window' if rule == 'always' else rule}", "denied")
    assert "previous" not in read.lower()
    assert "try again later" in read
    clock.advance(61)
    assert codes(session, [("t", "an answer")]) == [None]


@table("name", PASSING)
def test_loops_alone_let_such_a_failure_be_tried_again_later_too(name: str, clock: Any) -> None:
    session = make(clock, Loops())
    failed = PASSING[name] if isinstance(PASSING[name], Exception) else RuntimeError(f"HTTP {name}")
    for _ in range(3):
        assert codes(session, [("t", failed)] * 4)[0] is None
        assert session.call("t", {}, gives("an answer")).code == "loops.identical"
        clock.advance(61)
    assert codes(session, [("t", "an answer")]) == [None]


@ALONE
def test_what_a_guard_says_of_a_failure_stands_above_that(rule: Any, clock: Any) -> None:
    pay = Tool(name="t", idempotent=False)
    session = make(clock, Duplicates(rule=rule), Retryable(), tools=[pay])
    first = session.call("t", {}, gives(TimeoutError("no answer")))
    assert first.retryable is False
    clock.advance(3_600)
    again = session.call("t", {}, gives(TimeoutError("no answer")))
    assert again.code == ("duplicates.window" if rule == "always" else None)
    assert "previous" not in again.to_json().lower()


def test_retries_that_no_guard_judged_are_the_agents_own(clock: Any) -> None:
    from guardrails.sinks import MemorySink

    sink = MemorySink()
    session = Policy([Duplicates()]).session("s", clock=clock, records=sink)
    codes(session, [("t", TimeoutError("no answer"))] * 3)
    sources = [record["retry_source"] for record in sink.records if record["event"] == "call"]
    assert sources == [None, "agent", "agent"]


def test_a_failure_that_lasts_is_a_repeat_as_before(clock: Any) -> None:
    session = make(clock, Duplicates())
    assert codes(session, [("t", FileNotFoundError("no such file"))] * 2) == [None, "duplicates.window"]
    session = make(clock, Duplicates())
    assert codes(session, [("t", PermissionError("no"))] * 2) == [None, "duplicates.window"]


def test_a_refusal_that_ends_the_session_says_why_and_still_ends_it() -> None:
    """
    A cause that may pass is no reason to go on once everything was refused.
    """
    ends = Denial(code="c", message="said", status="limit_reached", hint=FINISH, ends_session=True)
    message = "This exact read call failed again and again for a cause that may pass, so it was not made."
    assert still_failing(ends, "read") == replace(ends, message=message)
