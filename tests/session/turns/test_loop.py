"""
The agent loop as a state machine.
"""

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.values.errors import SessionError
from guardrails.session.turns.loop import LIMIT_CODE, Ask, End, Loop, Refuse, RequestedCall, Run, Turn
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
        said.append(loop.ask("budget.max_calls" if spent else None))
        step = loop.take(turn)
        ran += len(step.calls) if isinstance(step, Run) else 0
        said.append(step)
    return said


def test_d1_calls_are_run_until_the_model_answers() -> None:
    loop = Loop()
    said = play(loop, [CALLS, CHATTY, TEXT])
    assert said == [
        Ask(first=True, forced=False),
        Run((CALL,), 1),
        Ask(first=False, forced=False),
        Run((CALL,), 2),
        Ask(first=False, forced=False),
        None,
    ]
    assert loop.end == End("answered", "done", None)
    assert not loop.next()
    assert (loop.requests, loop.iterations) == (3, 2)


def test_a_response_that_was_cut_is_asked_for_once_more_and_so_is_that_of_each_turn() -> None:
    loop = Loop()
    for turn in (CALLS, CHATTY):
        assert loop.ask(None).first is (turn is CALLS)
        assert loop.cut()
        # A choice that forces a tool holds for the first response.
        assert loop.ask(None).first is (turn is CALLS)
        assert isinstance(loop.take(turn), Run)
    loop.ask(None)
    assert [loop.cut(), loop.cut()] == [True, False]
    assert (loop.requests, loop.iterations, loop.end) == (5, 2, None)


def test_d1_text_blocks_are_joined() -> None:
    loop = Loop()
    play(loop, [Turn(texts=("I found ", "two", " errors"))])
    assert loop.end == End("answered", "I found two errors", None)


def test_calls_made_against_none_are_refused_with_the_code() -> None:
    said = play(Loop(), [CALLS, CALLS], exhausted_after=1)
    assert said[3] == Refuse((CALL,), "budget.max_calls")


def test_d1_a_model_that_calls_beyond_the_limit_runs_nothing_more() -> None:
    loop = Loop(max_tool_iterations=1)
    said = play(loop, [CALLS, CALLS, CALLS])
    assert said[3] == Refuse((CALL,), LIMIT_CODE)
    assert loop.end == End("digest", None, LIMIT_CODE)


@table("limit", [0, -1])
def test_d1_the_limit_is_at_least_one(limit: int) -> None:
    with pytest.raises(SessionError, match=f"at least 1, not {limit}"):
        Loop(max_tool_iterations=limit)


turns = st.lists(st.sampled_from([CALLS, CHATTY, TEXT, NOTHING, BLANK]), max_size=30)


@given(turns=turns, limit=st.integers(1, 8), exhausted_after=st.none() | st.integers(0, 8))
def test_any_model_is_stopped(turns: list[Turn], limit: int, exhausted_after: int | None) -> None:
    loop = Loop(max_tool_iterations=limit)
    said = play(loop, [*turns, *[CALLS] * 12], exhausted_after)

    assert loop.end is not None
    assert loop.iterations <= limit
    assert loop.requests <= loop.iterations + 3
    forced = [ask.forced for ask in said[::2]]
    assert forced == sorted(forced)
    assert not any(isinstance(step, Run) for ask, step in zip(said[::2], said[1::2], strict=True) if ask.forced)
