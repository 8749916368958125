"""
Whether a failure is worth another try.
"""

from typing import Any

from guardrails import Budget, Duplicates, Envelope, Policy, Retryable, Tool
from guardrails.core.values.errors import INSTEAD, NEVER_AGAIN, TRANSIENT
from guardrails.core.values.types import ERROR_TYPES
from tests.core.guards.calls import Busy, gives, make, said
from tests.tables import table


ADVICE = ("retryable", "retry_after_ms", "max_retries_remaining", "next_action")
RESET, SLOW = ConnectionResetError("reset"), TimeoutError("slow")
QUICK = {"max_same_error": 99}


def session(clock: Any, *guards: Any, tool: Tool | None = None, **settings: Any) -> Any:
    return make(clock, Retryable(**settings), *guards, tools=[tool] if tool else ())


@table(("between", "retryable"), [
    ([], False), ([("search", 1)], True), ([("search", RESET)], True),
    # Another tool's calls neither break nor extend the run.
    ([("read", 1), ("write", Busy())], False),
])  # fmt: skip
def test_a9_the_fourth_failure_of_one_kind_in_a_row_is_not_retryable(between: Any, retryable: bool, clock: Any) -> None:
    busy = session(clock)
    for number in range(3):
        busy.call("search", {"q": number}, gives(Busy()))
    for tool, value in between:
        busy.call(tool, {"q": "x"}, gives(value))
    assert busy.call("search", {"q": "y"}, gives(Busy())).retryable is retryable


@table(("settings", "error", "wait", "seen"), [
    ({"max_retries": 3, **QUICK, "backoff": 1.5}, SLOW, 60, [
        (True, 1_500, 3, "retry"), (True, 3_000, 2, "retry"), (True, 6_000, 1, "retry"), (False, None, 0, "give_up"),
    ]),
    ({"max_wait": 30, "backoff": 20, **QUICK}, Busy(), 20.1, [(True, 20_000, 3, "retry"), (True, 30_000, 2, "retry")]),
    ({"max_wait": 30}, Busy(7), 0, [(True, 7_000, 3, "retry")]),
    ({"max_wait": 30}, Busy(31), 0, [(False, 31_000, 0, "give_up")]),
    # A tool's own claims hold until evidence is against them.
    (
        {"max_retries": 2, **QUICK},
        Envelope.error("other", "warming up", retryable=True, retry_after_ms=500, max_retries_remaining=1), 1,
        [(True, 500, 1, "retry"), (True, 500, 1, "retry"), (False, None, 0, "give_up")],
    ),
])  # fmt: skip
def test_a3_the_same_call_is_retryable_so_many_times_after_waits_that_double_or_are_named(
    settings: Any, error: Any, wait: float, seen: list[Any], clock: Any
) -> None:
    flaky = session(clock, **settings)
    for advice in seen:
        assert said(flaky.call("get", {}, gives(error)), *ADVICE) == advice
        clock.advance(wait)


def test_a_call_before_its_wait_is_over_is_refused_with_the_rest_of_it(clock: Any) -> None:
    flaky = session(clock, Duplicates(), Budget(max_calls=5), max_retries=1)
    flaky.call("get", {}, gives(Busy(10)))
    clock.advance(4)
    early = flaky.call("get", {}, gives(1))
    told = ("denied", "retryable.wait", True, 6_000)
    assert said(early, "status", "code", "retryable", "retry_after_ms") == told
    assert flaky.call("get", {"other": 1}, gives(1)).ok
    clock.advance(6)
    assert flaky.call("get", {}, gives(1)).ok
    assert flaky.ledger.progress["calls_used"] == 3


@table(("gone", "shown"), [(0.0, "20 s"), (0.001, "20 s"), (0.25, "19.8 s"), (19.999, "0.1 s")])
def test_a_wait_is_told_in_tenths_that_are_never_too_short(gone: float, shown: str, clock: Any) -> None:
    busy = session(clock)
    busy.call("search", {"q": 1}, gives(Busy(20)))
    clock.advance(gone)
    refused = busy.call("search", {"q": 1}, gives(Busy()))
    assert f"makes sense in {shown}." in refused.message
    assert refused.next_action_hint.startswith(f"Wait {shown}, then repeat")
    assert said(refused, "code", "retry_after_ms") == ("retryable.wait", 20_000 - round(gone * 1000))


@table(("kind", "declared"), [
    (kind, word) for kind in ERROR_TYPES for word in (None, True, False) if (kind, word) != ("other", None)
])  # fmt: skip
def test_a3_each_kind_of_failure_says_one_next_action_and_what_follows_from_it(
    kind: Any, declared: bool | None, clock: Any
) -> None:
    envelope = session(clock, tool=Tool(name="t", retryable=declared)).call("t", {}, gives(Envelope.error(kind, "x")))
    passing = kind in TRANSIENT if declared is None else declared and kind not in NEVER_AGAIN
    expected = "retry" if passing else INSTEAD.get(kind, "give_up")
    assert said(envelope, "retryable", "next_action") == (passing, expected)
    assert envelope.next_action_hint
    assert bool(envelope.retryable_after_correction) is (expected in ("fix_arguments", "fix_precondition"))


@table("error", [PermissionError("no"), FileNotFoundError("gone"), *(Envelope.error(k, "4") for k in ("auth", "validation"))])  # fmt: skip
def test_a3_auth_permission_and_input_errors_are_never_retryable_whatever_is_declared(error: Any, clock: Any) -> None:
    assert session(clock, tool=Tool(name="t", retryable=True)).call("t", {}, gives(error)).retryable is False


@table(("declared", "passing"), [
    ({"idempotent": False}, False), ({"idempotent": False, "read_only": True}, True), ({"idempotent": True}, True),
    ({"read_only": False}, False), ({}, True),
])  # fmt: skip
def test_a_call_that_may_have_taken_effect_is_not_repeated_where_that_would_do_it_twice(
    declared: Any, passing: bool, clock: Any
) -> None:
    envelope = session(clock, tool=Tool(name="pay", **declared)).call("pay", {}, gives(SLOW))
    assert said(envelope, "retryable", "next_action") == (passing, "retry" if passing else "ask_user")


def test_a_tools_own_word_on_the_next_step_stays(clock: Any) -> None:
    own = Envelope.error("timeout", "locked", next_action="ask_user", next_action_hint="Ask for the PIN.")
    envelope = session(clock).call("t", {}, gives(own))
    assert said(envelope, "retryable", "next_action", "next_action_hint") == (False, "ask_user", "Ask for the PIN.")


@table(("error", "codes"), [(RESET, [None, None, "duplicates.window"]), (PermissionError("no"), [None, "duplicates.window"])])  # fmt: skip
def test_a_retry_is_no_duplicate_while_retries_are_left(error: Exception, codes: list[Any], clock: Any) -> None:
    flaky = session(clock, Duplicates(window=5), max_retries=1)
    for code in codes:
        assert flaky.call("get", {}, gives(error)).code == code
        clock.advance(60)


@table("shared", [False, True])
@table("form", ["nested", "merged"])
def test_no_repeat_is_advised_after_the_call_that_used_up_a_limit(clock: Any, *, shared: bool, form: Any) -> None:
    budget = [Budget(max_calls=2)]
    policy = Policy(
        [Retryable(), *([] if shared else budget)], scopes={"tenant": budget} if shared else {}, envelope=form
    )
    one = policy.session("s", clock=clock, scopes={"tenant": "acme"} if shared else {})
    first, last = (one.call("t", {"n": n}, gives(RESET)) for n in range(2))
    assert said(first, "retryable", "next_action", "limit_message") == (True, "retry", None)
    assert said(last, *ADVICE, "error_type") == (False, None, 0, "give_up", "connection")
    assert last.next_action_hint == "Write the final answer from what you have."


@table(("text", "hint"), [
    ("rate limit: try again in 5 minutes", "It passes in 300 s at the earliest."), ("daily quota exceeded", "It does not pass by waiting."),
])  # fmt: skip
def test_a_wait_too_long_is_no_failure_that_does_not_pass(text: str, hint: str) -> None:
    envelope = Policy.load("default").session("s").call("get_x", {"q": "z"}, gives(f"Error: {text}"))
    assert (envelope.next_action, (envelope.next_action_hint or "").startswith(hint)) == ("give_up", True)
