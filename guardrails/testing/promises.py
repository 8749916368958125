"""
A guard held to what it promises: `checks_fresh` and `far`.

A guard is not asked if it says that it would say nothing. So a promise that does not hold is a refusal that nobody ever
sees; here it is asked all the same.
"""

import dataclasses

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from guardrails.core.guards.base import Facts, Guard, Verdict, overrides
from guardrails.core.guards.base import guard as made
from guardrails.core.state.state import SessionState
from guardrails.core.values.types import Denial, ToolCall


class _Far(NamedTuple):
    """
    When a guard last said that its limits are far.
    """

    seq: int
    n: int
    now_ms: int


def watched(guard: Guard, broken: list[str]) -> Guard:
    """
    *guard* for a policy in a test: it does what it does, and is asked also if it promises to say nothing. Each thing
    that it says there is added to *broken* as a sentence.
    """
    cls: Any = type(guard)
    methods: dict[str, Callable[..., Any]] = {
        "check": _check(guard, broken, (last := [_Far(-1, -1, -1)])),
        "spent": _spent(guard, broken, last, "spent"),
        "turn_spent": _spent(guard, broken, last, "turn_spent"),
    }
    own = {name: method for name, method in methods.items() if overrides(guard, name)}
    # What a parent promises is not promised of methods that replace its own, so that all of them are asked.
    watching: Any = made(type(cls.__name__, (cls,), {"name": cls.name, "__doc__": cls.__doc__, **own}))
    settings = {field.name: getattr(guard, field.name) for field in dataclasses.fields(guard)}
    return cast("Guard", watching(**settings))


def _check(guard: Guard, broken: list[str], last: list[_Far]) -> Callable[..., Verdict]:
    far = guard.far()

    def check(self: Guard, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        said = guard.check(call, state, facts)
        fresh = not (call.sig in state.latest or state.pending or call.problems)
        is_far = fresh and far is not None and far(state, facts.now_ms, facts.cost)
        last[0] = _Far(state.seq, state.n, facts.now_ms) if is_far else _Far(-1, -1, -1)
        if said is None:
            return said
        if fresh and not guard.checks_fresh(call.tool, facts.known):
            broken.append(f"`checks_fresh` is false of `{call.tool}`, and `check` says {said.code} of a fresh call")
        if is_far:
            broken.append(f"`far` is true, and `check` says {said.code}")
        return said

    return check


def _spent(guard: Guard, broken: list[str], last: list[_Far], method: str) -> Callable[..., Denial | None]:
    look: Callable[[SessionState, int], Denial | None] = getattr(guard, method)

    def spent(self: Guard, state: SessionState, now_ms: int) -> Denial | None:
        said = look(state, now_ms)
        if said is not None and last[0] == (state.seq - 1, state.n - 1, now_ms):
            broken.append(f"`far` was true, and after the call `{method}` says {said.code}")
        return said

    return spent
