"""
A run of the host as its session sees it, and objects of the host with something of ours in front.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from guardrails.core.envelope.envelope import Envelope
from guardrails.integrations.hosting import Asking, missing, user_asks
from guardrails.session.session import Session
from guardrails.session.steps import current_session


class Run:
    """
    One run behind *session*, made by *owner*. *user* says whether a message of the user begins it.
    """

    def __init__(self, session: Session, *, owner: object = None, user: bool = False) -> None:
        self.session, self.owner = session, owner
        self.asking = Asking(session, user=False)
        self._user = user
        self._asked: set[tuple[str, ...]] = set()
        """What was offered in the requests that were made; the agents of a run are told apart by it."""

    async def ask(self, settings: Any, tools: Sequence[Any], handoffs: Sequence[Any]) -> str | None:
        """
        Begin a request of an agent with *tools*. Returns the choice that its user wants; one that forces a tool holds for
        the first request of each agent.
        """
        if self._user and current_session() is None:
            await self.session.ledger.off_loop(user_asks, self.session)
        self._user = False
        names = (*(tool.name for tool in tools), *(handoff.tool_name for handoff in handoffs))
        self.asking.final.first = names not in self._asked
        self._asked.add(names)
        choice = settings.tool_choice
        return choice if choice is None or isinstance(choice, str) else "required"

    async def unknown(self, name: str, call_id: str) -> Envelope:
        """
        Returns the refusal that a call reads if its tool was not offered.
        """
        return await self.session.acall(name, {}, missing, id=call_id)


running: ContextVar[Run | None] = ContextVar("guardrails_openai_agents_run", default=None)
"""The run that this task is a part of; None: none of ours."""


class Behind:
    """
    An object of the host with methods in front: every other attribute is the object's own, its class too.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.inner)
