"""
What guards promise, and whether they keep it.
"""

import dataclasses

from collections.abc import Callable
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Approve, Duplicates, Guard, Policy, Retryable, Success, Tool, ToolFilter, Validation, guard
from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import Facts, Verdict, overrides
from guardrails.core.guards.rules import Rules, RuleSettings
from guardrails.core.state import SessionState
from guardrails.core.values.types import ToolCall
from tests.conftest import FakeClock
from tests.tables import table


def watched(one: Guard, broken: list[str]) -> Guard:
    """
    Returns *one*, which notes in *broken* what it says of a fresh call although `checks_fresh` says that it would not.
    """
    cls: Any = type(one)

    def check(self: Guard, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        verdict = one.check(call, state, mine, facts)
        fresh = not (call.sig in state.latest or state.pending or call.problems)
        if verdict is not None and fresh and not one.checks_fresh(call.tool, facts.known):
            broken.append(f"`checks_fresh` is false of `{call.tool}`, and `check` says {verdict.code} of a fresh call")
        return verdict

    watching: Any = guard(type(cls.__name__, (cls,), {"name": cls.name, "__doc__": cls.__doc__, "check": check}))
    settings = {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}
    return cast("Guard", watching(**settings))


RULES = (RuleSettings(tools=("p*",), after=("look",)), RuleSettings(tools=("made_up",), deny="no"))
PROMISING = [
    st.builds(Approve, tools=st.sampled_from([("pay*",), ("made_up", "l*")]), expires=st.none() | st.just(60.0)),
    st.builds(Duplicates, window=st.integers(1, 9), rule=st.sampled_from(["always", "evidence"])),
    st.builds(Retryable, backoff=st.sampled_from([0.5, 90.0])),
    st.builds(ToolFilter, deny=st.sampled_from([(), ("pay*",)]), allow=st.sampled_from([(), ("p*", "look")])),
    st.just(Validation()),
    st.builds(Rules, rules=st.lists(st.sampled_from(RULES), max_size=2).map(tuple)),
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
