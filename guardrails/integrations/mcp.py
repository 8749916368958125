"""
MCP servers and clients of the `mcp` SDK behind sessions.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Unpack

from guardrails.core.values.errors import needs
from guardrails.policy.policy import Policy
from guardrails.policy.sessions import SessionOptions
from guardrails.session.session import Session


with needs("mcp", "`guardrails.integrations.mcp`"):
    from mcp import Client, ClientSession
    from mcp.server.auth.middleware.auth_context import get_access_token
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
    from pydantic import ValidationError

    from guardrails.mcp.calls import GuardedCalls, Guarding, Listed, run_of

MAX_PAGES: Final = 100


class GuardrailsMiddleware:
    """
    Guards each `tools/call` of a server, an MCPServer or a low-level Server, with tools from any source:

        server.middleware.append(GuardrailsMiddleware(Policy.load("default")))

    The run that a client names in `_meta` is the session; see `run_of` for calls that name none.
    """

    def __init__(self, guarded: Policy | Session, **options: Unpack[SessionOptions]) -> None:
        self._guarding = Guarding(guarded, **options)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/list":
            listed = await call_next(ctx)
            with suppress(ValidationError):
                self._guarding.hear(_on_wire(ListToolsResult.model_validate(listed)))
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

        run = run_of(ctx.meta, get_access_token(), request=ctx.request)
        made = await self._guarding.serve(asked, run, lambda: _tools(ctx, call_next), send)
        modern = isinstance(made, dict) and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        return {"resultType": "complete", **made} if modern else made


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

        given: Any = None
        wire: Any = None

        async def send(fitted: Any, options: dict[str, Any]) -> Any:
            nonlocal given, wire
            given = await self._client.call_tool(name, fitted if fitted or arguments is not None else None, **options)
            wire = _wire(given)
            return wire

        made = await self._call(name, arguments, self._listed, send, options)
        return given if made is wire and given is not None else CallToolResult.model_validate(made, by_name=False)

    async def list_tools(self, **options: Any) -> ListToolsResult:
        """
        The client's own `list_tools`, which the session hears.
        """
        listed: ListToolsResult = await self._client.list_tools(**options)
        self._guarding.hear(_on_wire(listed))
        return listed

    async def _listed(self) -> list[Listed]:
        async def page(cursor: str | None) -> ListToolsResult:
            if isinstance(self._client, Client):
                return await self._client.list_tools(cursor=cursor)
            session: ClientSession = self._client
            return await session.list_tools(params=PaginatedRequestParams(cursor=cursor))

        return await _pages(page)


async def _tools(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> list[Listed]:
    """
    The tools that the server lists, asked by a request of our own in the place of *ctx*.
    """
    meta = {name: value for name, value in (ctx.params or {}).items() if name == "_meta"}

    async def page(cursor: str | None) -> ListToolsResult:
        params = meta if cursor is None else {**meta, "cursor": cursor}
        return ListToolsResult.model_validate(await call_next(replace(ctx, method="tools/list", params=params)))

    return await _pages(page)


async def _pages(page: Callable[[str | None], Awaitable[ListToolsResult]]) -> list[Listed]:
    tools: list[Listed] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        listed = await page(cursor)
        tools += _on_wire(listed)
        cursor = listed.next_cursor
        if cursor is None:
            break
    return tools


def _on_wire(listed: ListToolsResult) -> list[Listed]:
    return [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in listed.tools]


def _wire(result: Any) -> Any:
    """
    A tool result as it is on the wire; anything else, such as a question to the client, as it is.
    """
    if not isinstance(result, CallToolResult):
        return result
    return result.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"result_type"})
