"""
What a pause means to the calls of a proxy, whose clients say neither turns nor messages of a user.
"""

from guardrails import Budget, Denials, Duplicates, Growth, Policy
from guardrails.core.guards.base import Guard
from guardrails.mcp.proxy.calls import Calls
from guardrails.mcp.runs import STUCK_S
from tests.tables import table

from .server import text


class Clock:
    """
    Seconds that pass only if told.
    """

    def __init__(self) -> None:
        self.now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


def ran(calls: Calls, clock: Clock, count: int, *, seconds: float = 2.0, distinct: bool = False) -> list[bool]:
    """
    Which of *count* calls ran, that come *seconds* after each other.
    """
    made = []
    for n in range(count):
        clock.now += seconds
        asked = calls.ask(n, {"name": "search", "arguments": {"n": n if distinct else 0}})
        made.append(not isinstance(asked, dict))
        if asked is not None and not isinstance(asked, dict):
            calls.answer(asked, text("found"))
    return made


STUCK: list[Guard] = [Duplicates(), Denials(max_turns_in_a_row=2)]


def test_a_model_that_was_stuck_in_a_named_session_leaves_the_tools_to_the_next_question() -> None:
    clock = Clock()
    calls = Calls(Policy([*STUCK, Budget(max_calls=3)]), named="desk", clock=clock)
    assert ran(calls, clock, 5) == [True, False, False, False, False]
    assert ran(calls, clock, 2, distinct=True) == [False, False]
    clock.now += STUCK_S
    assert ran(calls, clock, 1) == [False]
    assert ran(calls, clock, 4, distinct=True) == [False, True, True, False]
    # What is used up stays so.
    clock.now += 10 * STUCK_S
    assert ran(calls, clock, 2, distinct=True) == [False, False]


@table("named", ["desk", None])
def test_a_client_that_was_too_fast_is_served_again_after_a_minute(named: str | None) -> None:
    clock = Clock()
    calls = Calls(Policy([Growth(max_calls_per_second=3)]), named=named, clock=clock)
    assert ran(calls, clock, 6, seconds=0.01, distinct=True) == [True] * 3 + [False] * 3
    clock.now += STUCK_S
    assert ran(calls, clock, 3, distinct=True) == [True, True, True]
