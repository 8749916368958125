"""
The end of a loop as a part of it.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, FinalAnswer, MemorySink, Policy, Session
from guardrails.session.final_answer import SILENT_CODE
from tests.tables import table


CALLS = ["c1"]


def session(max_calls: int | None = None, **options: Any) -> Session:
    return Policy(guards=[] if max_calls is None else [Budget(max_calls=max_calls)]).session("s", **options)


def spend(guarded: Session) -> None:
    guarded.call("look", {}, lambda tool, arguments: "seen")


@table("waste", [(None, CALLS), ("text", CALLS), ("", []), (" \n", 0), (None, 2)])
def test_a_model_that_does_not_answer_is_asked_once_more_and_then_the_digest_is_the_answer(
    waste: tuple[str | None, Any],
) -> None:
    guarded = session(1)
    spend(guarded)
    final = FinalAnswer(guarded)
    assert final.forced
    assert final.take(*waste) == "again"
    assert (final.forced, final.ended, final.answer) == (True, None, None)
    assert final.take(*waste) == "digest"
    assert (final.ended, final.code) == ("digest", "budget.max_calls")
    assert final.answer == guarded.digest()


def test_a_model_that_says_nothing_is_asked_for_its_answer_with_tools_off() -> None:
    final = FinalAnswer(session())
    assert final.take(None) == "again"
    assert (final.forced, final.code) == (True, SILENT_CODE)
    assert final.take("done") == "answered"
    assert (final.ended, final.answer) == ("forced", "done")


def test_c1_a_forced_choice_holds_for_the_first_request_and_none_stands_above_it() -> None:
    guarded = session(1)
    final = FinalAnswer(guarded)
    assert final.tool_choice("required") == "required"
    final.take(None, CALLS)
    assert final.tool_choice("required") is None
    spend(guarded)
    assert final.tool_choice("required") == "none"
    # The next loop of the same session.
    guarded.extend(max_calls=5)
    assert FinalAnswer(guarded).tool_choice("required") == "required"


def test_a_call_made_against_none_reads_what_exhausted_the_session_and_is_recorded() -> None:
    sink = MemorySink()
    guarded = session(1, records=sink)
    spend(guarded)
    final = FinalAnswer(guarded)
    assert final.forced
    final.take(None, CALLS)
    envelope = final.refusal("look", {"a": 1}, id="c2")
    assert (envelope.status, envelope.code) == ("limit_reached", "budget.max_calls")
    guarded.close()
    assert [one["id"] for one in sink.records if one.get("code") == "budget.max_calls"] == ["c2"]


turns = st.lists(st.tuples(st.sampled_from([None, "", "text"]), st.integers(0, 3)), max_size=20)


@given(turns=turns, limit=st.integers(1, 5))
def test_any_model_is_stopped_two_requests_after_its_session_is_exhausted(
    turns: list[tuple[str | None, int]], limit: int
) -> None:
    guarded = session(limit)
    final = FinalAnswer(guarded)
    forced = 0
    for text, calls in [*turns, *[(None, 1)] * (limit + 2)]:
        off = final.forced
        forced += off
        meaning = final.take(text, calls)
        assert not (off and meaning == "run")
        if meaning in {"answered", "digest"}:
            break
        for _ in range(calls if meaning == "run" else 0):
            spend(guarded)
    assert final.ended is not None
    assert forced <= 2
    assert final.answer
