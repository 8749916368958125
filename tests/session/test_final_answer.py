"""
The end of a loop as a part of it, a session in a few lines, and earlier results that can be given back.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Duplicates, MemorySink, Policy, Session, Tool
from guardrails.session.final_answer import SILENT_CODE, FinalAnswer
from guardrails.session.results import MAX_ARGUMENTS, MAX_RESULT, OVERHEAD, Earlier, Results
from tests.core.guards.calls import gives, make, ok
from tests.tables import table


def limited(max_calls: int | None, *, spent: bool = False, **options: Any) -> tuple[Session, FinalAnswer]:
    session = Policy([Budget(max_calls=max_calls)]).session("s", **options)
    if spent:
        session.call("look", {}, ok)
    return session, FinalAnswer(session)


@table(("text", "calls"), [(None, ["c1"]), ("text", ["c1"]), ("", []), (" \n", 0), (None, 2)])
def test_a_model_that_does_not_answer_is_asked_once_more_and_then_the_digest_is_the_answer(
    text: Any, calls: Any
) -> None:
    session, final = limited(1, spent=True)
    assert final.forced
    assert final.take(text, calls) == "again"
    assert (final.forced, final.ended, final.answer) == (True, None, None)
    assert final.take(text, calls) == "digest"
    assert (final.ended, final.code, final.answer) == ("digest", "budget.max_calls", session.digest())
    _, silent = limited(None)
    assert silent.take(None) == "again"
    assert (silent.forced, silent.code) == (True, SILENT_CODE)
    assert silent.take("done") == "answered"
    assert (silent.ended, silent.answer) == ("forced", "done")


def test_c1_a_forced_choice_holds_for_the_first_request_and_none_stands_above_it() -> None:
    session, final = limited(1)
    assert final.tool_choice("required") == "required"
    final.take(None, 1)
    assert final.tool_choice("required") is None
    session.call("look", {}, ok)
    assert final.tool_choice("required") == "none"
    # The next loop of the same session.
    session.extend(max_calls=5)
    assert FinalAnswer(session).tool_choice("required") == "required"


def test_a_call_made_against_none_reads_what_exhausted_the_session_and_is_recorded() -> None:
    sink = MemorySink()
    _, final = limited(1, spent=True, records=sink)
    assert final.forced
    final.take(None, 1)
    envelope = final.refusal("look", {"a": 1}, id="c2")
    assert (envelope.status, envelope.code) == ("limit_reached", "budget.max_calls")
    assert [one["id"] for one in sink.records if one.get("code") == "budget.max_calls"] == ["c2"]


turns = st.lists(st.tuples(st.sampled_from([None, "", "text"]), st.integers(0, 3)), max_size=20)


@given(turns=turns, limit=st.integers(1, 5))
def test_any_model_is_stopped_two_requests_after_its_session_is_exhausted(turns: Any, limit: int) -> None:
    (session, final), forced = limited(limit), 0
    for text, calls in [*turns, *[(None, 1)] * (limit + 2)]:
        off = final.forced
        forced += off
        meaning = final.take(text, calls)
        assert not (off and meaning == "run")
        if meaning in {"answered", "digest"}:
            break
        for _ in range(calls if meaning == "run" else 0):
            session.call("look", {}, ok)
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


def test_a_digest_shows_the_last_20_calls_that_ran_and_no_result_of_another(clock: Any) -> None:
    session = make(clock, Duplicates(), tools=[Tool(name="lost", timeout=1, repeats="allow")])
    for number in [number for number in range(22) for _ in range(2)]:
        session.call("t", {"n": number}, gives(number))
    session.call("lost", {}, gives("old"))
    session.decide("lost", {}, id="call_2")
    clock.advance(2)
    session.call("u", {"text": "é" * 1_000}, gives("ü" * 1_000))
    head, first, *_, lost, long, _ = lines = session.digest().splitlines()
    assert (head, first, len(lines)) == ("25 tool calls were made; the last 20:", '- t {"n":5} done: 5', 22)
    assert lost == "- lost {} no result: it may have happened"
    assert len(long) < MAX_ARGUMENTS + MAX_RESULT + 30
    assert ("�" in long, long.endswith("ü...")) == (False, True)


# Results


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 500)), max_size=60))
def test_what_is_found_is_the_latest_and_what_fits_in_half_of_the_room_is_found(story: list[tuple[int, int]]) -> None:
    results, room = Results(max_bytes=4_000), 2_000
    kept = [(sig, Earlier(b"{}", str(number % 10).encode() * size)) for number, (sig, size) in enumerate(story)]
    for sig, one in kept:
        results.keep("s", sig, *one)
    latest = dict(kept)
    assert all(results.find("s", sig) in (None, one) for sig, one in latest.items())
    assert all(results.find(*key) is None for key in (("another", 1), ("s", None), ("s", 6)))
    for sig, size in reversed(story):
        room -= size + 2 + OVERHEAD
        if room >= 0:
            assert results.find("s", sig) == latest[sig]
