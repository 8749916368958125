"""
Which calls were made together, where nobody tells turns.
"""

from typing import Any

from guardrails.core.state.admissions import admit, deny, settle
from guardrails.core.state.state import Pending, SessionState
from guardrails.core.state.totals import touch
from guardrails.core.state.turns import OVERLAP_MS, imply_turn
from guardrails.core.values.types import Denial, Outcome, ToolCall
from tests.tables import table


NOW = 1_800_000_000_000
REFUSED = Denial(code="x.y", message="no")


def call(sig: int | None) -> ToolCall:
    return ToolCall("t", None, f"call {sig}", None, sig)


def start(state: SessionState, sig: int | None, at_ms: int) -> Pending:
    touch(state, NOW + at_ms)
    imply_turn(state, sig)
    return admit(state, call(sig), window=20)


def end(state: SessionState, pending: Pending, at_ms: int) -> None:
    touch(state, NOW + at_ms)
    settle(state, pending, Outcome("found"), pending.seq)


def turns(*starts: tuple[int, int | None], answered: bool = True) -> list[int]:
    """
    The turn of each call: *starts* are (milliseconds, signature), each over at once where *answered*, else never.
    """
    state, seen = SessionState(), []
    for at_ms, sig in starts:
        pending = start(state, sig, at_ms)
        if answered:
            end(state, pending, at_ms)
        seen.append(state.implied)
    return seen


STORIES: dict[str, tuple[list[tuple[int, int | None]], bool, list[int]]] = {
    "one after the other, however soon": ([(0, 1), (0, 2), (9, 3), (6_000, 3)], True, [1, 2, 3, 4]),
    "running beside": ([(0, 1), (3_000, 2), (6_000, 3)], False, [1, 1, 1]),
    "running for long": ([(0, 1), (OVERLAP_MS, 2), (OVERLAP_MS + 1_000, 3)], False, [1, 1, 2]),
    "an equal call that runs": ([(0, 1), (0, 1), (90_000, 1)], False, [1, 1, 1]),
}


@table("name", STORIES)
def test_turns_are_told_apart_by_the_times_of_calls(name: str) -> None:
    starts, answered, expected = STORIES[name]
    assert turns(*starts, answered=answered) == expected


def test_a_call_that_was_refused_is_answered() -> None:
    state, seen = SessionState(), []
    for sig in (1, 2, 1, 2, 3):
        touch(state, NOW)
        imply_turn(state, sig)
        deny(state, call(sig), REFUSED)
        seen.append(state.implied)
    assert seen == [1, 1, 2, 2, 2]
    assert (state.refused_turns, state.denied_turns, state.turn_strikes) == (1, 0, 2)


def test_what_runs_since_an_earlier_turn_joins_nothing() -> None:
    state = SessionState()
    start(state, 1, 0)
    end(state, start(state, 2, OVERLAP_MS + 1), OVERLAP_MS + 2)
    start(state, 3, OVERLAP_MS + 5_000)
    assert state.implied == 3


@table("told", [0, 3, 254, 255, 256, 600])
def test_no_two_turns_that_are_near_have_one_mark_and_none_is_unmarked(told: int) -> None:
    state = SessionState()
    seen: list[Any] = []
    for _ in range(20):
        state.implied += 1
        state.turn = told
        seen.append(state.mark)
    assert len(set(seen)) == 20
    assert all(1 <= mark <= 255 for mark in seen)
