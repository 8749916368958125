"""
FastMCP servers and clients behind sessions.
"""

from collections.abc import Sequence
from typing import Any, Unpack

from guardrails.core.values.errors import needs
from guardrails.policy.policy import Policy
from guardrails.policy.sessions import SessionOptions
from guardrails.session.session import Session


with needs("fastmcp", "`guardrails.integrations.fastmcp`"):
    from fastmcp.client.client import CallToolResult as ClientResult
    from fastmcp.exceptions import DisabledError, FastMCPError, NotFoundError, ToolError
    from fastmcp.server.dependencies import get_access_token
    from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
    from fastmcp.tools.base import InputRequiredToolResult, Tool, ToolResult
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsRequest, TextContent
    from mcp_types import Tool as McpTool

    from guardrails.mcp.answers import BESIDE, wrapped_value
    from guardrails.mcp.guarded_client import GuardedCalls
    from guardrails.mcp.guarding import Guarding
    from guardrails.mcp.results import from_wire
    from guardrails.mcp.runs import run_of


class GuardrailsMiddleware(Middleware):
    """
    Guards each `tools/call` of a FastMCP server with all that is mounted in it, or of a proxy:

        server.add_middleware(GuardrailsMiddleware(Policy.load("default")))

    The run that a client names in `_meta` is the session; see `runs.run_of` for calls that name none.
    """

    def __init__(self, guarded: Policy | Session, **options: Unpack[SessionOptions]) -> None:
        self._guarding = Guarding(guarded, **options)

    async def on_list_tools(
        self, context: MiddlewareContext[ListToolsRequest], call_next: CallNext[ListToolsRequest, Sequence[Tool]]
    ) -> Sequence[Tool]:
        listed = await call_next(context)
        self._guarding.hear(tool.to_mcp_tool() for tool in listed)
        return listed

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> Any:
        asked, host = context.message, context.fastmcp_context
        given: Any = None
        read: CallToolResult | None = None

        async def send(arguments: Any) -> Any:
            nonlocal given, read
            same = arguments == (asked.arguments or {})
            fitted = context if same else context.copy(message=asked.model_copy(update={"arguments": arguments}))
            given = await call_next(fitted)
            if not isinstance(given, ToolResult) or isinstance(given, InputRequiredToolResult):
                return given
            read = _read(given)
            return read

        async def listed() -> list[McpTool]:
            tool = None if host is None else await host.fastmcp.get_tool(asked.name)
            return [] if tool is None else [tool.to_mcp_tool(name=asked.name)]

        wire = None if host is None else host.request_context
        run = run_of(wire and wire.meta, get_access_token(), request=wire and wire.request)
        told = (FastMCPError, NotFoundError, DisabledError)
        made = await self._guarding.serve(asked, run, listed, send, told=told)
        if made is read or not isinstance(made, CallToolResult):
            return given
        return ToolResult(made.content, made.structured_content, made.meta, made.is_error)


class GuardedClient(GuardedCalls):
    """
    A FastMCP Client whose `call_tool` is behind a session; all else is the client's own:

        async with GuardedClient(Client("http://localhost:8000/mcp"), Policy.load("default")) as client:
            result = await client.call_tool("search", {"query": "x"}, raise_on_error=False)

    A refusal is a result with `is_error`, or ToolError as the client raises it. The server is told the session in `_meta`.
    *run* names the session; without one it is forgotten when the client is left.
    """

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, *, raise_on_error: bool = True, **options: Any
    ) -> ClientResult:
        """
        The client's own `call_tool`, if the session lets the call run. Raises ToolError for a failure unless *raise_on_error*
        is False.
        """
        given = read = None

        async def send(fitted: Any, told: dict[str, Any]) -> CallToolResult:
            nonlocal given, read
            given = await self._client.call_tool(name, fitted, raise_on_error=False, **told)
            read = _read(given)
            return read

        made: CallToolResult = await self._call(name, arguments, send, options)
        if made.is_error and raise_on_error:
            [first, *_] = made.content
            raise ToolError(first.text if isinstance(first, TextContent) else f"Tool '{name}' returned an error")
        if given is not None and made is read:
            return given
        shown = {key: said for key, said in (made.structured_content or {}).items() if key != BESIDE}
        whole = given is not None and not made.is_error and shown == (given.structured_content or {})
        data = given.data if given is not None and whole else None if made.is_error else wrapped_value(shown)
        return ClientResult(made.content, made.structured_content, made.meta, data, made.is_error)

    async def list_tools(self, *options: Any, **more: Any) -> list[McpTool]:
        """
        The client's own `list_tools`, which the session hears.
        """
        listed: list[McpTool] = await self._client.list_tools(*options, **more)
        self._guarding.hear(listed)
        return listed

    async def _listed(self) -> list[McpTool]:
        return await self._client.list_tools()


def _read(given: ToolResult | ClientResult) -> CallToolResult:
    said = {"content": given.content, "structuredContent": given.structured_content}
    return from_wire({**said, "isError": given.is_error, "_meta": given.meta})
