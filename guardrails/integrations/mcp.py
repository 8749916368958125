"""
MCP servers and clients of the `mcp` SDK behind sessions.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self, Unpack

from guardrails.core.result.content import block_of
from guardrails.core.values.errors import needs
from guardrails.policy.policy import Policy
from guardrails.policy.sessions import SessionOptions
from guardrails.session.session import Session


with needs("mcp", "`guardrails.integrations.mcp`"):
    from mcp import Client, ClientSession
    from mcp.server.auth.middleware.auth_context import get_access_token
    from mcp.server.auth.provider import AccessToken, principal_components
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
    from pydantic import ValidationError

    from guardrails.mcp.calls import PROCESS, RUN, Guarding, Listed, Run, all_pages, run_of

__all__ = ["GuardedClient", "GuardrailsMiddleware"]


class GuardrailsMiddleware:
    """
    Guards each `tools/call` of a server, an MCPServer or a low-level Server, with tools from any source:

        server.middleware.append(GuardrailsMiddleware(Policy.load("default")))

    The run that a client names in `_meta` is the session; see `run_of_request` for calls that name none.
    """

    def __init__(self, guarded: Policy | Session, **options: Unpack[SessionOptions]) -> None:
        self._guarding = Guarding(guarded, **options)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/list":
            listed = await call_next(ctx)
            with suppress(ValidationError):
                self._guarding.hear(map(block_of, ListToolsResult.model_validate(listed).tools))
            return listed
        if ctx.method != "tools/call" or ctx.request_id is None:
            return await call_next(ctx)
        try:
            CallToolRequestParams.model_validate(ctx.params or {}, by_name=False)
        except ValidationError:
            # The server says what is wrong with it.
            return await call_next(ctx)
        asked = ctx.params or {}

        async def send(arguments: Any) -> Any:
            same = arguments == (asked.get("arguments") or {})
            return _wire(await call_next(ctx if same else replace(ctx, params={**asked, "arguments": arguments})))

        run = run_of_request(ctx.meta, get_access_token(), ctx.request)
        made = await self._guarding.serve(asked, run, lambda: _tools(ctx, call_next), send)
        modern = isinstance(made, dict) and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        return {"resultType": "complete", **made} if modern else made


def run_of_request(meta: Any, token: AccessToken | None, request: Any) -> Run:
    """
    Returns the run of a call: the one that its client names in *meta*, else the session of the transport, else the process if the client has it
    for itself. Each *token* has runs of its own. Strangers over HTTP (*request*) who name none have no run.
    """
    session = PROCESS if request is None else request.headers.get("mcp-session-id")
    return run_of(meta, session, *(() if token is None else principal_components(token)))


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
        self.guarded_by: Session = self._guarding.sessions.of(run)
        """The session."""

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> Any:
        try:
            return await self._client.__aexit__(*raised)
        finally:
            if not self._named:
                self._guarding.sessions.end(self.guarded_by)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def _call(self, name: str, arguments: Any, wire: Callable[[Any], Any], **options: Any) -> tuple[Any, Any]:
        """
        The client's own answer if it was asked, and what is told: that very answer, or what is on the wire in its place. Its *options* tell the
        server the session.
        """
        given: Any = None
        options["meta"] = {**(options.get("meta") or {}), RUN: self.guarded_by.id}
        asked = {"name": name, "arguments": arguments, "inputResponses": options.get("input_responses")}
        asked["requestState"] = options.get("request_state")

        async def send(fitted: Any) -> Any:
            nonlocal given
            given = await self._client.call_tool(name, fitted if fitted or arguments is not None else None, **options)
            return given

        made = await self._guarding.call(self.guarded_by, asked, self._listed, send, wire=wire)
        return given, made

    async def _listed(self) -> list[Listed]:
        raise NotImplementedError


class GuardedClient(GuardedCalls):
    """
    A `mcp` Client, or a ClientSession, whose `call_tool` is behind a session; all else is the client's own:

        async with GuardedClient(Client("http://localhost:8000/mcp"), Policy.load("default")) as client:
            result = await client.call_tool("search", {"query": "x"})

    A refusal is a result with `is_error`; what the client raises it raises still. The server is told the session in `_meta`.
    """

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
        """
        The client's own `call_tool`, if the session lets the call run.
        """
        _, made = await self._call(name, arguments, _wire, **options)
        return CallToolResult.model_validate(made, by_name=False) if isinstance(made, dict) else made

    async def list_tools(self, **options: Any) -> ListToolsResult:
        """
        The client's own `list_tools`, which the session hears.
        """
        listed: ListToolsResult = await self._client.list_tools(**options)
        self._guarding.hear(map(block_of, listed.tools))
        return listed

    async def _listed(self) -> list[Listed]:
        async def page(cursor: str | None) -> ListToolsResult:
            if isinstance(self._client, Client):
                return await self._client.list_tools(cursor=cursor)
            session: ClientSession = self._client
            return await session.list_tools(params=PaginatedRequestParams(cursor=cursor))

        return await all_pages(page)


async def _tools(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> list[Listed]:
    """
    The tools that the server lists, asked by a request of our own in the place of *ctx*.
    """
    meta = {name: value for name, value in (ctx.params or {}).items() if name == "_meta"}

    async def page(cursor: str | None) -> ListToolsResult:
        params = meta if cursor is None else {**meta, "cursor": cursor}
        return ListToolsResult.model_validate(await call_next(replace(ctx, method="tools/list", params=params)))

    return await all_pages(page)


def _wire(result: Any) -> Any:
    """
    A tool result as it is on the wire; anything else, such as a question to the client, as it is.
    """
    if not isinstance(result, CallToolResult):
        return result
    return result.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"result_type"})
