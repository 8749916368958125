"""
Clients whose calls of tools are behind a session; what the clients of both SDKs share.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Self, Unpack

from guardrails.core.values.errors import needs
from guardrails.policy.policy import Policy
from guardrails.policy.sessions import SessionOptions
from guardrails.session.session import Session

from .answers import RUN
from .guarding import Guarding


with needs("mcp", "`guardrails.mcp`"):
    from mcp_types import Tool as McpTool


class GuardedCalls:
    """
    *client* with calls behind a session of *guarded*, a policy or the session itself; all else is the client's own.

    *run* names the session; without one it is forgotten when the client is left. *options* are those of `Policy.session`.
    """

    def __init__(
        self, client: Any, guarded: Policy | Session, *, run: object = None, **options: Unpack[SessionOptions]
    ) -> None:
        self._client = client
        self._guarding = Guarding(guarded, **options)
        self._named = run is not None
        self.guarded_by: Session = self._guarding.runs.sessions.of(run)
        """The session."""

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> Any:
        try:
            return await self._client.__aexit__(*raised)
        finally:
            if not self._named:
                self._guarding.runs.sessions.end(self.guarded_by)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def _call(
        self,
        name: str,
        arguments: dict[str, Any] | None,
        send: Callable[[Any, dict[str, Any]], Awaitable[Any]],
        options: dict[str, Any],
    ) -> Any:
        """
        The result of `send(arguments, options)`, with *options* that tell the server the session, if that lets the call run.
        """
        options = {**options, "meta": {**(options.get("meta") or {}), RUN: self.guarded_by.id}}
        continuing = options.get("input_responses") is not None or options.get("request_state") is not None
        declared = await self._guarding.known(name, self._listed)
        return await self._guarding.call(
            self.guarded_by,
            name,
            arguments,
            lambda fitted: send(fitted, options),
            declared=declared,
            continuing=continuing,
        )

    async def _listed(self) -> list[McpTool]:
        raise NotImplementedError
