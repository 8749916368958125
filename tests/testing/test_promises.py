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
from guardrails.core.values.usage import Usage
from guardrails.testing.promises import watched
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
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("turn")),
        st.tuples(st.just("wait"), st.sampled_from([0.2, 2.0, 70.0])),
        st.tuples(st.just("charge"), st.sampled_from([None, 0.01, 0.2])),
        st.tuples(
            st.just("call"),
            st.sampled_from(["look", "pay", "poll", "made_up"]),
            st.sampled_from([{}, {"n": 1}, {"n": 2}, {"n": 3, "path": "../x"}]),
            st.sampled_from([[], ["Inn"], TimeoutError("late"), Success("dear", cost_usd=0.2)]),
        ),
        st.tuples(st.just("decide"), st.sampled_from(["look", "pay"]), st.sampled_from([{"n": 1}, {"n": 2}])),
    ),
    max_size=20,
)


def ending(outcome: Any) -> Callable[..., Any]:
    def execute(tool: str, arguments: Any) -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return execute


def broken_by(one: Guard, events: list[Any], clock: Any) -> list[str]:
    broken: list[str] = []
    with Policy([watched(one, broken)]).session("s", tools=TOOLS, clock=clock) as session:
        for kind, *rest in events:
            if kind == "turn":
                session.begin_turn()
            elif kind == "wait":
                clock.now += rest[0]
            elif kind == "charge":
                session.charge(cost_usd=rest[0], usage=Usage(30, 10), model="m")
            elif kind == "decide":
                session.decide(*rest)
            else:
                session.call(rest[0], rest[1], ending(rest[2]))
    return broken


@table("guards", PROMISING)
def test_a_guard_says_nothing_where_it_promises_to(guards: st.SearchStrategy[Guard]) -> None:
    @given(guards, EVENTS)
    def holds(one: Guard, events: list[Any]) -> None:
        class Clock:
            now = 1_800_000_000.0

            def __call__(self) -> float:
                return self.now

        assert broken_by(one, events, Clock()) == []

    holds()


def test_every_guard_of_the_library_that_promises_is_held_to_it() -> None:
    promising = {cls.name for cls in GUARDS if overrides(cls, "checks_fresh")}
    assert promising == {*("approve", "duplicates", "retryable", "tool_filter", "validation")}


def test_a_promise_that_does_not_hold_is_told(clock: Any) -> None:
    calls = [("call", "look", {"n": n}, "ok") for n in range(4)]
    said = "`checks_fresh` is false of `look`, and `check` says forgetful.no of a fresh call"
    assert said in broken_by(Forgetful(), calls, clock)
