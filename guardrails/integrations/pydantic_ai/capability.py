"""
The capability that an agent of pydantic-ai is given.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import user_asks
from guardrails.policy.sessions import SessionOptions, Sessions
from guardrails.session.steps import current_session

from .run import GuardedRun


with needs("pydantic-ai", "this adapter"):
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability

if TYPE_CHECKING:
    from guardrails.policy.policy import Policy
    from guardrails.session.session import Session


class GuardrailsCapability(AbstractCapability[Any]):
    """
    All tools of an agent but its output tools, from every toolset, behind a policy or a session that several agents
    share. The *options* are those of `Policy.session`.

    The conversation of a run names its session. A run inside a guarded tool uses the session of the tool's call if its
    policy is the same. With *share* (`{"max_calls": 5}`) it has at most that much of it. At the end tools are off and
    output tools stay; so it is for the last request of `UsageLimits`.
    """

    def __init__(
        self, guarded: "Policy | Session", *, share: Mapping[str, Any] | None = None, **options: Unpack[SessionOptions]
    ) -> None:
        self._guarded = guarded
        self._share = share
        self._sessions = Sessions(guarded, **options)

    def session(self, conversation: object) -> "Session":
        """
        The session of a *conversation*, such as `result.conversation_id`.
        """
        return self._sessions.of(conversation)

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """
        The hooks of one run.
        """
        running = current_session()
        if running is not None and running.ledger.policy is self._guarded:
            return GuardedRun(running, self._share)
        session = self._sessions.of(ctx.conversation_id or ctx.run_id)
        if ctx.prompt is not None and running is None:
            await session.ledger.off_loop(user_asks, session)
        return GuardedRun(session)
