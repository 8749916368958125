"""
The tool that hands a part of the work to a sub-agent: spawn.
"""

import itertools

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Unpack

from guardrails.core.guards.amounts import Amounts
from guardrails.core.values.errors import SessionError

from .failure import ToolFailure, ToolSet


if TYPE_CHECKING:
    from guardrails.session.session import Session

MAX_DEPTH: Final = 2
"""Sub-agents of sub-agents."""
Agent = Callable[[str, "Session"], Any]
"""`agent(task, session)` works on the task within the session and returns its answer."""


class Spawn(ToolSet):
    """
    Starts *agent* on a task, with a share of the budget of *session*: *amounts* of its limits (`max_calls=20`,
    `max_cost_usd=0.1`). The part that the sub-agent does not use comes back.

    *session* may be a function that gives it, if tools are made before their session.
    """

    names = ("spawn",)

    def __init__(self, session: "Session | Callable[[], Session]", agent: Agent, **amounts: Unpack[Amounts]) -> None:
        self._session = session
        self._agent = agent
        self._amounts = amounts
        self._numbers = itertools.count(1)

    def spawn(self, task: str) -> dict[str, Any]:
        """
        Let a sub-agent work on a task of its own, and give its answer. Tell it all it needs: it knows nothing else.
        """
        parent = self._session() if callable(self._session) else self._session
        if parent.id.count("/") >= MAX_DEPTH:
            raise ToolFailure("permission", f"sub-agents are at most {MAX_DEPTH} deep", retryable=False)
        try:
            child = self._child(parent)
        except SessionError as error:
            raise ToolFailure(
                "precondition",
                f"no budget for a sub-agent: {error}",
                retryable=False,
                next_action_hint="Do it yourself.",
            ) from error
        with child:
            answer = self._agent(task, child)
            used = child.ledger.progress.get("calls_used", 0)
            over = child.exhausted
        told_ = {"answer": str(answer), "calls_used": used}
        return told_ if over is None else {**told_, "ended_by": over}

    def _child(self, parent: "Session") -> "Session":
        # A name that was used in an earlier life of the session is taken: the next number is free.
        for number in itertools.islice(self._numbers, 1_000):
            try:
                return parent.child(f"agent-{number}", **self._amounts)
            except SessionError as error:
                if "was closed" not in str(error):
                    raise
        raise SessionError("no name for a sub-agent is free")
