"""
The tools that turn to others: spawn, a sub-agent; message, a person.
"""

import secrets

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Unpack

from guardrails.core.guards.amounts import Amounts
from guardrails.core.text.control import sanitise
from guardrails.core.values.errors import SessionError
from guardrails.session.steps import seconds_left

from .failure import ToolFailure, ToolSet


if TYPE_CHECKING:
    from guardrails.session.session import Session

MAX_DEPTH: Final = 2
"""Sub-agents of sub-agents."""
MAX_CHARS: Final = 16_384
"""Of a message."""
Agent = Callable[[str, "Session"], Any]
"""`agent(task, session)` works on the task within the session and returns its answer."""


class Spawn(ToolSet):
    """
    Starts *agent* on a task, with a share of the budget of *session*: *amounts* of its limits (`max_calls=20`,
    `max_cost_usd=0.1`). The part that the sub-agent does not use comes back. It has no more time than the call of
    `spawn`: then its session is exhausted.

    *session* may be a function that gives it, if tools are made before their session.
    """

    names = ("spawn",)

    def __init__(self, session: "Session | Callable[[], Session]", agent: Agent, **amounts: Unpack[Amounts]) -> None:
        self._session = session
        self._agent = agent
        self._amounts = amounts

    def spawn(self, task: str) -> dict[str, Any]:
        """
        Let a sub-agent work on a task of its own, and give its answer. Tell it all it needs: it knows nothing else.
        """
        parent = self._session() if callable(self._session) else self._session
        if parent.id.count("/") >= MAX_DEPTH:
            raise ToolFailure("permission", f"sub-agents are at most {MAX_DEPTH} deep")
        amounts, left = self._amounts, seconds_left()
        if left is not None:
            amounts = {**amounts, "max_elapsed": min(left, amounts.get("max_elapsed") or left)}
        try:
            child = parent.child(f"agent-{secrets.token_hex(4)}", **amounts)
        except SessionError as error:
            reason = f"no budget for a sub-agent: {error}"
            raise ToolFailure("precondition", reason, "Do it yourself.", retryable=False) from error
        with child:
            answer = str(self._agent(task, child))
            made = {"answer": answer, "calls_used": child.ledger.progress.get("calls_used", 0)}
            over = child.exhausted
        return made if over is None else {**made, "ended_by": over}


class Outbox(ToolSet):
    """
    Hands what the agent says to *deliver*, a function of the text.
    """

    names = ("message",)

    def __init__(self, deliver: Callable[[str], object]) -> None:
        self._deliver = deliver

    def message(self, text: str) -> dict[str, Any]:
        """
        Send the user a short message while you go on working; nobody answers it.
        """
        plain = sanitise(text).strip()
        if not plain:
            raise ToolFailure("validation", "the message is empty")
        if len(plain) > MAX_CHARS:
            raise ToolFailure("too_large", f"the message has {len(plain):,} characters (limit {MAX_CHARS:,})")
        self._deliver(plain)
        return {"delivered": True}
