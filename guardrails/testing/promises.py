"""
A guard held to what it promises: `checks_fresh`.
"""

import dataclasses

from typing import Any, cast

from guardrails.core.guards.base import Facts, Guard, Verdict
from guardrails.core.guards.base import guard as made
from guardrails.core.state import SessionState
from guardrails.core.values.types import ToolCall


def watched(guard: Guard, broken: list[str]) -> Guard:
    """
    Returns *guard*, which notes in *broken* what it says of a fresh call although `checks_fresh` says that it would not.
    """
    cls: Any = type(guard)

    def check(self: Guard, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        verdict = guard.check(call, state, mine, facts)
        fresh = not (call.sig in state.latest or state.pending or call.problems)
        if verdict is not None and fresh and not guard.checks_fresh(call.tool, facts.known):
            broken.append(f"`checks_fresh` is false of `{call.tool}`, and `check` says {verdict.code} of a fresh call")
        return verdict

    watching: Any = made(type(cls.__name__, (cls,), {"name": cls.name, "__doc__": cls.__doc__, "check": check}))
    settings = {field.name: getattr(guard, field.name) for field in dataclasses.fields(guard)}
    return cast("Guard", watching(**settings))
