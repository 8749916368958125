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
    from mcp_types import Tool as McpTool
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
    from pydantic import ValidationError

    from guardrails.mcp.guarded_client import GuardedCalls
    from guardrails.mcp.guarding import Guarding
    from guardrails.mcp.results import on_wire
    from guardrails.mcp.runs import run_of

MAX_PAGES: Final = 100


class GuardrailsMiddleware:
    """
    Guards each `tools/call` of a server, an MCPServer or a low-level Server, with tools from any source:

        server.middleware.append(GuardrailsMiddleware(Policy.load("default")))

    The run that a client names in `_meta` is the session; see `runs.run_of` for calls that name none.
    """

    def __init__(self, guarded: Policy | Session, **options: Unpack[SessionOptions]) -> None:
        self._guarding = Guarding(guarded, **options)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/list":
            listed = await call_next(ctx)
            with suppress(ValidationError):
                self._guarding.hear(ListToolsResult.model_validate(listed).tools)
            return listed
        if ctx.method != "tools/call" or ctx.request_id is None:
            return await call_next(ctx)
        try:
            params = CallToolRequestParams.model_validate(ctx.params or {}, by_name=False)
        except ValidationError:
            # The server says what is wrong with it.
            return await call_next(ctx)

        wire: Any = None
        read: CallToolResult | None = None

        async def send(arguments: Any) -> Any:
            nonlocal wire, read
            same = arguments == (params.arguments or {})
            wire = await call_next(ctx if same else replace(ctx, params={**(ctx.params or {}), "arguments": arguments}))
            read = _read(wire)
            return wire if read is None else read

        run = run_of(ctx.meta, get_access_token(), request=ctx.request)
        made = await self._guarding.serve(params, run, lambda: _tools(ctx, call_next), send)
        return wire if made is read or made is wire else _wire(made, ctx.protocol_version)


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

        async def send(fitted: Any, told: dict[str, Any]) -> Any:
            return await self._client.call_tool(name, fitted if fitted or arguments is not None else None, **told)

        return await self._call(name, arguments, send, options)

    async def list_tools(self, **options: Any) -> ListToolsResult:
        """
        The client's own `list_tools`, which the session hears.
        """
        listed: ListToolsResult = await self._client.list_tools(**options)
        self._guarding.hear(listed.tools)
        return listed

    async def _listed(self) -> list[McpTool]:
        async def page(cursor: str | None) -> ListToolsResult:
            if isinstance(self._client, Client):
                return await self._client.list_tools(cursor=cursor)
            session: ClientSession = self._client
            return await session.list_tools(params=PaginatedRequestParams(cursor=cursor))

        return await _pages(page)


async def _tools(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> list[McpTool]:
    """
    The tools that the server lists, asked by a request of our own in the place of *ctx*.
    """
    meta = {name: said for name, said in (ctx.params or {}).items() if name == "_meta"}

    async def page(cursor: str | None) -> ListToolsResult:
        params = meta if cursor is None else {**meta, "cursor": cursor}
        return ListToolsResult.model_validate(await call_next(replace(ctx, method="tools/list", params=params)))

    return await _pages(page)


async def _pages(page: Callable[[str | None], Awaitable[ListToolsResult]]) -> list[McpTool]:
    found: list[McpTool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        listed = await page(cursor)
        found += listed.tools
        cursor = listed.next_cursor
        if cursor is None:
            break
    return found


def _read(wire: Any) -> CallToolResult | None:
    """
    The tool result that is on the *wire*; None if it is none, such as a question to the client.
    """
    if not isinstance(wire, dict) or wire.get("resultType", "complete") != "complete":
        return None
    try:
        return CallToolResult.model_validate(wire)
    except ValidationError:
        return None


def _wire(result: CallToolResult, version: str) -> dict[str, Any]:
    answer = on_wire(result)
    if version not in MODERN_PROTOCOL_VERSIONS:
        del answer["resultType"]
    return answer
