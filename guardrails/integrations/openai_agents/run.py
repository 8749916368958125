"""
A run of the host as its session sees it, and objects of the host with something of ours in front.
"""

from contextvars import ContextVar
from typing import Any

from guardrails.integrations.hosting import Asking
from guardrails.policy.sessions import Sessions
from guardrails.session.session import Session


class Run:
    """
    One run behind *session*, one of *sessions*. *user* says whether a message of the user begins it.
    """

    def __init__(self, session: Session, sessions: Sessions, *, user: bool = False) -> None:
        self.session, self.sessions = session, sessions
        self.asking = Asking(session, user=user)
        self._asked: set[tuple[str, ...]] = set()
        """What was offered in the requests that were made; the agents of a run are told apart by it."""

    def requested(self, asked: dict[str, Any]) -> str | None:
        """
        The choice that the user wants of a request that is *asked*; one that forces a tool holds for the first of each agent.
        """
        names = (*(tool.name for tool in asked["tools"]), *(handoff.tool_name for handoff in asked["handoffs"]))
        self.asking.final.first = names not in self._asked
        self._asked.add(names)
        choice = asked["model_settings"].tool_choice
        return choice if choice is None or isinstance(choice, str) else "required"


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
