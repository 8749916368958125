"""
The end of a loop as a part of it, a session in a few lines, and earlier results that can be given back.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Duplicates, MemorySink, Policy, Session, Tool
from guardrails.session.final_answer import SILENT_CODE, FinalAnswer
from guardrails.session.results import MAX_ARGUMENTS, MAX_RESULT, OVERHEAD, Earlier, Results
from tests.core.guards.calls import gives, make
from tests.tables import table


CALLS = ["c1"]


def limited(max_calls: int | None = None, **options: Any) -> Session:
    return Policy(guards=[] if max_calls is None else [Budget(max_calls=max_calls)]).session("s", **options)


def spend(session: Session) -> None:
    session.call("look", {}, lambda tool, arguments: "seen")


@table(("text", "calls"), [(None, CALLS), ("text", CALLS), ("", []), (" \n", 0), (None, 2)])
def test_a_model_that_does_not_answer_is_asked_once_more_and_then_the_digest_is_the_answer(
    text: Any, calls: Any
) -> None:
    session = limited(1)
    spend(session)
    final = FinalAnswer(session)
    assert final.forced
    assert final.take(text, calls) == "again"
    assert (final.forced, final.ended, final.answer) == (True, None, None)
    assert final.take(text, calls) == "digest"
    assert (final.ended, final.code, final.answer) == ("digest", "budget.max_calls", session.digest())


def test_a_model_that_says_nothing_is_asked_for_its_answer_with_tools_off() -> None:
    final = FinalAnswer(limited())
    assert final.take(None) == "again"
    assert (final.forced, final.code) == (True, SILENT_CODE)
    assert final.take("done") == "answered"
    assert (final.ended, final.answer) == ("forced", "done")


def test_c1_a_forced_choice_holds_for_the_first_request_and_none_stands_above_it() -> None:
    session = limited(1)
    final = FinalAnswer(session)
    assert final.tool_choice("required") == "required"
    final.take(None, CALLS)
    assert final.tool_choice("required") is None
    spend(session)
    assert final.tool_choice("required") == "none"
    # The next loop of the same session.
    session.extend(max_calls=5)
    assert FinalAnswer(session).tool_choice("required") == "required"


def test_a_call_made_against_none_reads_what_exhausted_the_session_and_is_recorded() -> None:
    sink = MemorySink()
    session = limited(1, records=sink)
    spend(session)
    final = FinalAnswer(session)
    assert final.forced
    final.take(None, CALLS)
    envelope = final.refusal("look", {"a": 1}, id="c2")
    assert (envelope.status, envelope.code) == ("limit_reached", "budget.max_calls")
    session.close()
    assert [one["id"] for one in sink.records if one.get("code") == "budget.max_calls"] == ["c2"]


turns = st.lists(st.tuples(st.sampled_from([None, "", "text"]), st.integers(0, 3)), max_size=20)


@given(turns=turns, limit=st.integers(1, 5))
def test_any_model_is_stopped_two_requests_after_its_session_is_exhausted(turns: Any, limit: int) -> None:
    session, forced = limited(limit), 0
    final = FinalAnswer(session)
    for text, calls in [*turns, *[(None, 1)] * (limit + 2)]:
        off = final.forced
        forced += off
        meaning = final.take(text, calls)
        assert not (off and meaning == "run")
        if meaning in {"answered", "digest"}:
            break
        for _ in range(calls if meaning == "run" else 0):
            spend(session)
    assert final.ended is not None
    assert forced <= 2
    assert final.answer


# Digests


def test_a8_a_digest_says_what_was_asked_what_came_back_and_what_is_left(clock: Any) -> None:
    session = make(clock, Budget(max_calls=3))
    session.call("search", {"q": "hotels"}, gives([{"id": 1}]))
    session.call("book", {"id": 1}, gives(TimeoutError("too slow")))
    session.decide("pay", {"id": 1}, id="call_3")
    assert session.digest().splitlines() == [
        "3 tool calls were made:",
        '- search {"q":"hotels"} done: [{"id":1}]',
        '- book {"id":1} failed (timeout): {"error_type":"timeout","error_message":"too slow"}',
        "- pay still running",
        "Progress: calls used: 3, calls left: 0.",
        "Tool call limit reached (3). Stopping tool loop. The user can resume or raise the limit.",
    ]


def test_a_digest_shows_no_result_of_another_call_and_cuts_between_characters(clock: Any) -> None:
    session = make(clock, tools=[Tool(name="t", timeout=1)])
    session.call("t", {}, gives("old"))
    session.decide("t", {}, id="call_2")
    clock.advance(2)
    session.call("u", {"text": "é" * 1_000}, gives("ü" * 1_000))
    _, _, lost, long, *_ = session.digest().splitlines()
    assert lost == "- t {} no result: it may have happened"
    assert len(long) < MAX_ARGUMENTS + MAX_RESULT + 30
    assert ("�" in long, long.endswith("ü...")) == (False, True)


def test_only_the_last_20_are_shown_and_denied_calls_not_at_all(clock: Any) -> None:
    session = make(clock, Duplicates())
    for number in [number for number in range(25) for _ in range(2)]:
        session.call("t", {"n": number}, gives(number))
    lines = session.digest().splitlines()
    assert (lines[0], lines[1], len(lines)) == ("25 tool calls were made; the last 20:", '- t {"n":5} done: 5', 22)


# Results


def earlier(size: int, mark: str = "x") -> Earlier:
    return Earlier(b"{}", mark.encode() * size)


def test_the_latest_result_of_a_signature_is_found_in_its_own_session_only() -> None:
    results = Results()
    results.keep("a", 1, *earlier(3, "x"))
    results.keep("a", 1, *earlier(5, "y"))
    found = [results.find(*key) for key in (("a", 1), ("b", 1), ("a", 2), ("a", None))]
    assert found == [earlier(5, "y"), None, None, None]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 500)), max_size=60))
def test_what_is_found_is_the_latest_and_what_fits_in_half_of_the_room_is_found(story: list[tuple[int, int]]) -> None:
    results = Results(max_bytes=4_000)
    for number, (sig, size) in enumerate(story):
        results.keep("s", sig, *earlier(size, str(number % 10)))
    latest = {sig: earlier(size, str(number % 10)) for number, (sig, size) in enumerate(story)}
    assert all(results.find("s", sig) in (None, kept) for sig, kept in latest.items())
    room = 2_000
    for sig, size in reversed(story):
        room -= size + 2 + OVERHEAD
        if room >= 0:
            assert results.find("s", sig) == latest[sig]
