"""
The middleware of an agent: whose session a run has, from its begin to its end.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack

from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import opened
from guardrails.policy.sessions import SessionOptions, Sessions
from guardrails.session.ledger import SHARE
from guardrails.session.session import Session
from guardrails.session.steps import current_session

from .model_step import ModelSteps
from .tool_call import ToolCalls


with needs("agent-framework", "this adapter"):
    from agent_framework import AgentContext, AgentMiddleware, AgentSession

if TYPE_CHECKING:
    from guardrails.policy.policy import Policy

NAME: Final = "guardrails_session"
"""The key of an AgentSession's state by which its runs find their session; what a service calls it may change."""


class GuardrailsMiddleware(AgentMiddleware):
    """
    All function tools of an agent, and its model requests, behind a policy, or a session that several agents share.
    *options* are those of `Policy.session`.

    The AgentSession of a run names its session; a run without one has a new one. If an agent runs in a guarded tool and
    its policy is the same, it has a child of the call's session. The child's *share* of what is left is above 0 and at
    most 1, or amounts (`{"max_calls": 5}`).
    """

    def __init__(
        self,
        guarded: "Policy | Session",
        *,
        share: float | Mapping[str, Any] = SHARE,
        **options: Unpack[SessionOptions],
    ) -> None:
        self._guarded = guarded
        self._share = {"share": share} if isinstance(share, (int, float)) else dict(share)
        self._sessions = Sessions(guarded, **options)

    def session(self, thread: object) -> Session:
        """
        The session of a *thread*: an AgentSession, or its name.
        """
        return self._sessions.of(_name(thread) if isinstance(thread, AgentSession) else thread)

    async def process(self, context: AgentContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """
        Run the agent with its tools and its requests behind the session of this run.
        """
        session, end = await self._begin(context.session)
        steps = ModelSteps(session)
        # The host takes these for its own: innermost, after those of the agent and of the run.
        given = context.client_kwargs.get("middleware") or ()
        context.client_kwargs["middleware"] = [*given, ToolCalls(steps), steps]
        if context.stream:
            context.stream_cleanup_hooks.append(lambda: session.ledger.off_loop(end))
        try:
            await call_next()
        except BaseException:
            await session.ledger.off_loop(end)
            raise
        if not context.stream:
            await session.ledger.off_loop(end)

    async def _begin(self, thread: AgentSession | None) -> tuple[Session, Callable[[], None]]:
        running = current_session()
        if running is not None and self._is_of(running):
            return await running.ledger.off_loop(partial(opened, self._sessions, None, running, **self._share))
        return opened(self._sessions, None if thread is None else _name(thread))

    def _is_of(self, running: Session) -> bool:
        """
        Returns whether a call of *running* that runs this agent shares what it has.
        """
        if isinstance(self._guarded, Session):
            return (
                f"{running.id}/".startswith(f"{self._guarded.id}/")
                and running.ledger.policy is self._guarded.ledger.policy
            )
        return running.ledger.policy is self._guarded


def _name(thread: AgentSession) -> str:
    service = thread.service_session_id
    name = service if isinstance(service, str) and service else thread.session_id
    # As it was called at its first run.
    return str(thread.state.setdefault(NAME, name))
