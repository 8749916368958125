"""
FastMCP servers and clients behind sessions.
"""

from collections.abc import Sequence
from typing import Any, Unpack

from guardrails.core.result.content import block_of, wrapped_value
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

    from guardrails.mcp.calls import NOTES, Guarding, Listed

    from .mcp import GuardedCalls, run_of_request


class GuardrailsMiddleware(Middleware):
    """
    Guards each `tools/call` of a FastMCP server with all that is mounted in it, or of a proxy:

        server.add_middleware(GuardrailsMiddleware(Policy.load("default")))

    The run that a client names in `_meta` is the session; see `run_of_request` for calls that name none.
    """

    def __init__(self, guarded: Policy | Session, **options: Unpack[SessionOptions]) -> None:
        self._guarding = Guarding(guarded, **options)

    async def on_list_tools(
        self, context: MiddlewareContext[ListToolsRequest], call_next: CallNext[ListToolsRequest, Sequence[Tool]]
    ) -> Sequence[Tool]:
        listed = await call_next(context)
        self._guarding.hear(block_of(tool.to_mcp_tool()) for tool in listed)
        return listed

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> Any:
        asked, host = context.message, context.fastmcp_context

        async def send(arguments: Any) -> Any:
            if arguments == (asked.arguments or {}):
                return await call_next(context)
            return await call_next(context.copy(message=asked.model_copy(update={"arguments": arguments})))

        async def listed() -> list[Listed]:
            tool = None if host is None else await host.fastmcp.get_tool(asked.name)
            return [] if tool is None else [block_of(tool.to_mcp_tool(name=asked.name))]

        request = None if host is None else host.request_context
        run = run_of_request(request and request.meta, get_access_token(), request and request.request)
        params = asked.model_dump(by_alias=True, exclude_none=True)
        failures = (FastMCPError, NotFoundError, DisabledError)
        made = await self._guarding.serve(params, run, listed, send, wire=_wire, failures=failures)
        if not isinstance(made, dict):
            return made
        result = CallToolResult.model_validate(made, by_name=False)
        return ToolResult(result.content, result.structured_content, result.meta, result.is_error)


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
        given, answer = await self._call(name, arguments, _wire, raise_on_error=False, **options)
        made = CallToolResult.model_validate(_wire(answer), by_name=False)
        if made.is_error and raise_on_error:
            [first, *_] = made.content
            raise ToolError(first.text if isinstance(first, TextContent) else f"Tool '{name}' returned an error")
        if given is not None and answer is given:
            return given
        shown = {key: value for key, value in (made.structured_content or {}).items() if key != NOTES}
        whole = given is not None and not made.is_error and shown == (given.structured_content or {})
        data = given.data if given is not None and whole else None if made.is_error else wrapped_value(shown)
        return ClientResult(made.content, made.structured_content, made.meta, data, made.is_error)

    async def list_tools(self, *options: Any, **more: Any) -> list[McpTool]:
        """
        The client's own `list_tools`, which the session hears.
        """
        listed: list[McpTool] = await self._client.list_tools(*options, **more)
        self._guarding.hear(map(block_of, listed))
        return listed

    async def _listed(self) -> list[Listed]:
        return [block_of(tool) for tool in await self._client.list_tools()]


def _wire(given: Any) -> Any:
    """
    A tool result as it is on the wire; anything else, such as a question to the client, as it is.
    """
    if not isinstance(given, ToolResult | ClientResult) or isinstance(given, InputRequiredToolResult):
        return given
    made = {"structuredContent": given.structured_content, "_meta": given.meta}
    made = {key: one for key, one in made.items() if one is not None}
    return {"content": [*map(block_of, given.content)], **made, "isError": given.is_error}
