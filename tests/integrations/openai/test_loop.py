"""
The agent loop as a state machine.
"""

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.values.errors import SessionError
from guardrails.integrations.openai.loop import LIMIT_CODE, Loop, RequestedCall, Turn
from tests.tables import table


CALL = RequestedCall("c1", "grep", "{}")
CALLS = Turn(calls=(CALL,))
CHATTY = Turn(texts=("let me look",), calls=(CALL,))
TEXT = Turn(texts=("done",))
NOTHING = Turn()
BLANK = Turn(texts=(" \n",))


def play(loop: Loop, turns: list[Turn], exhausted_after: int | None = None) -> list[Any]:
    """
    What *loop* says to *turns* of a model, in a session that is exhausted once so many calls ran.
    """
    said: list[Any] = []
    ran = 0
    for turn in turns:
        if not loop.next():
            break
        spent = exhausted_after is not None and ran >= exhausted_after
        forced = loop.ask("budget.max_calls" if spent else None)
        meaning = loop.take(turn.text, turn.calls)
        ran += len(turn.calls) if meaning == "run" else 0
        said.append((forced, meaning))
    return said


def end(loop: Loop) -> tuple[Any, ...]:
    return loop.ended, loop.text, loop.code


def test_d1_calls_are_run_until_the_model_answers() -> None:
    loop = Loop()
    said = play(loop, [CALLS, CHATTY, TEXT])
    assert said == [(False, "run"), (False, "run"), (False, "answered")]
    assert end(loop) == ("answered", "done", None)
    assert not loop.next()
    assert (loop.requests, loop.iterations) == (3, 2)


def test_a_response_that_was_cut_is_asked_for_once_more_and_so_is_that_of_each_turn() -> None:
    loop = Loop()
    for turn in (CALLS, CHATTY):
        loop.ask(None)
        # A choice that forces a tool holds for the first response.
        assert (loop.first, loop.cut(), loop.first) == (turn is CALLS, True, turn is CALLS)
        loop.ask(None)
        assert loop.take(turn.text, turn.calls) == "run"
    loop.ask(None)
    assert [loop.cut(), loop.cut()] == [True, False]
    assert (loop.requests, loop.iterations, loop.ended) == (5, 2, None)


def test_d1_text_blocks_are_joined() -> None:
    loop = Loop()
    play(loop, [Turn(texts=("I found ", "two", " errors"))])
    assert end(loop) == ("answered", "I found two errors", None)


def test_calls_made_against_none_are_refused_with_the_code() -> None:
    loop = Loop()
    said = play(loop, [CALLS, CALLS], exhausted_after=1)
    assert loop.over().code == "budget.max_calls"
    assert said[1] == (True, "again")


def test_d1_a_model_that_calls_beyond_the_limit_runs_nothing_more() -> None:
    loop = Loop(max_tool_iterations=1)
    said = play(loop, [CALLS, CALLS, CALLS])
    assert said[1:] == [(True, "again"), (True, "digest")]
    assert end(loop) == ("digest", None, LIMIT_CODE)


@table("limit", [0, -1])
def test_d1_the_limit_is_at_least_one(limit: int) -> None:
    with pytest.raises(SessionError, match=f"at least 1, not {limit}"):
        Loop(max_tool_iterations=limit)


turns = st.lists(st.sampled_from([CALLS, CHATTY, TEXT, NOTHING, BLANK]), max_size=30)


@given(turns=turns, limit=st.integers(1, 8), exhausted_after=st.none() | st.integers(0, 8))
def test_any_model_is_stopped(turns: list[Turn], limit: int, exhausted_after: int | None) -> None:
    loop = Loop(max_tool_iterations=limit)
    said = play(loop, [*turns, *[CALLS] * 12], exhausted_after)

    assert loop.ended is not None
    assert loop.iterations <= limit
    assert loop.requests <= loop.iterations + 3
    assert [forced for forced, _ in said] == sorted(forced for forced, _ in said)
    assert (True, "run") not in said
