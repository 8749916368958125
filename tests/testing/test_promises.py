"""
What guards promise, and whether they keep it.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import (
    Approve,
    Denial,
    Duplicates,
    Guard,
    Policy,
    Retryable,
    Success,
    Tool,
    ToolFilter,
    Validation,
    guard,
)
from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import overrides
from guardrails.testing.promises import watched
from tests.conftest import FakeClock
from tests.tables import table


@guard
class Forgetful(Guard):
    """
    A guard that refuses fresh calls, and says that it never does.
    """

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        return False

    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Denial | None:
        return Denial(code="forgetful.no", message="No.")


PROMISING = [
    st.builds(Approve, tools=st.sampled_from([("pay*",), ("made_up", "l*")]), expires=st.none() | st.just(60.0)),
    st.builds(Duplicates, window=st.integers(1, 9), rule=st.sampled_from(["always", "evidence"])),
    st.builds(Retryable, backoff=st.sampled_from([0.5, 90.0])),
    st.builds(ToolFilter, deny=st.sampled_from([(), ("pay*",)]), allow=st.sampled_from([(), ("p*", "look")])),
    st.just(Validation()),
]
TOOLS = [
    Tool(name="look", read_only=True, parameters={"type": "object", "required": ["n"]}),
    Tool(name="pay", cost_usd=0.1, paths=("path",)),
    Tool(name="poll", repeats="allow"),
]
CALLS = st.tuples(
    st.sampled_from(["look", "pay", "poll", "made_up"]),
    st.sampled_from([{}, {"n": 1}, {"n": 2}, {"n": 3, "path": "../x"}]),
    st.sampled_from([None, [], ["Inn"], TimeoutError("late"), Success("dear", cost_usd=0.2)]),
)
EVENTS = st.lists(st.just("turn") | st.sampled_from([0.2, 2.0, 70.0]) | CALLS, max_size=20)
"""Turns, waits in seconds, and calls with their outcomes; without one a call is only decided."""


def ending(outcome: Any) -> Callable[..., Any]:
    def execute(tool: str, arguments: Any) -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return execute


def broken_by(one: Guard, events: list[Any]) -> list[str]:
    broken, clock = list[str](), FakeClock()
    with Policy([watched(one, broken)]).session("s", tools=TOOLS, clock=clock) as session:
        for event in events:
            match event:
                case "turn":
                    session.begin_turn()
                case float():
                    clock.advance(event)
                case (tool, arguments, None):
                    session.decide(tool, arguments)
                case (tool, arguments, outcome):
                    session.call(tool, arguments, ending(outcome))
    return broken


@table("guards", PROMISING)
def test_a_guard_says_nothing_where_it_promises_to(guards: st.SearchStrategy[Guard]) -> None:
    @given(guards, EVENTS)
    def holds(one: Guard, events: list[Any]) -> None:
        assert broken_by(one, events) == []

    holds()


def test_every_guard_of_the_library_that_promises_is_held_to_it() -> None:
    promising = {cls.name for cls in GUARDS if overrides(cls, "checks_fresh")}
    assert promising == {*("approve", "duplicates", "retryable", "tool_filter", "validation")}


def test_a_promise_that_does_not_hold_is_told() -> None:
    said = "`checks_fresh` is false of `look`, and `check` says forgetful.no of a fresh call"
    assert said in broken_by(Forgetful(), [("look", {"n": n}, "ok") for n in range(4)])
