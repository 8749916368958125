"""
One MCP server: connected by a task of its own, and again when it is gone.
"""

import asyncio
import random

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

from guardrails.core.values.errors import GuardrailsError, needs
from guardrails.core.values.logs import log

from .config import McpServer
from .stdio import stdio_server


with needs("mcp", "`guardrails.mcp`"):
    import anyio
    import httpx2

    from mcp import Client, MCPError
    from mcp.client.streamable_http import streamable_http_client
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
    from mcp.shared._httpx_utils import create_mcp_http_client
    from mcp_types import CallToolResult, ToolListChangedNotification
    from mcp_types import Tool as McpTool


MAX_TOOLS: Final = 2_000
MAX_PAGES: Final = 100
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0
LISTEN_PAUSE_S: Final = 5.0
CLOSED: Final = -32000
"""The SDK's code of an answer that cannot come any more."""
UNREACHED: Final = (OSError, httpx2.TransportError, anyio.ClosedResourceError, anyio.BrokenResourceError)


class McpServerGone(ConnectionError, GuardrailsError):
    """
    A server cannot be reached, or went away before it answered.
    """


class _Life:
    """
    One connection from its first attempt to its end; a server that died and came back has had two.
    """

    def __init__(self) -> None:
        self.client: Client | None = None
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once it is connected, or will not be."""
        self.lost = asyncio.Event()
        self.news = asyncio.Event()
        """The server has changed its tools."""


class Connection:
    """
    Keeps one server reachable. `start` it, `call` its tools from any task of the same loop, `close` it.
    """

    def __init__(self, server: McpServer, changed: Callable[["Connection", list[McpTool]], None]) -> None:
        self.server = server
        self.problem: str | None = None
        """Why it cannot be reached now."""
        self._changed = changed
        self._life: _Life | None = None
        self._tasks: dict[asyncio.Task[None], _Life] = {}
        self._pause = self._not_before = 0.0

    async def start(self) -> None:
        """
        Connect and list the tools, unless that is done already or under way; `problem` says why it did not work.

        An attempt goes on in the background when the caller that waits for it is cancelled.
        """
        life = self._life
        if life is None or life.lost.is_set():
            if asyncio.get_running_loop().time() < self._not_before:
                return
            life = self._life = _Life()
            task = asyncio.create_task(self._live(life), name=f"mcp {self.server.name}")
            self._tasks[task] = life
            task.add_done_callback(self._tasks.pop)
        await asyncio.shield(life.ready)

    async def call(self, tool: str, arguments: Any) -> CallToolResult:
        """
        Call *tool* by the server's own name. Raises McpServerGone if no answer can come, MCPError if the server
        refuses, TimeoutError after the server's `timeout`.
        """
        async with asyncio.timeout(self.server.timeout):
            await self.start()
            life = self._life
            if life is None or life.client is None:
                raise McpServerGone(f"MCP server `{self.server.name}` cannot be reached: {self.problem}")
            asked = asyncio.ensure_future(life.client.call_tool(tool, arguments))
            lost = asyncio.ensure_future(life.lost.wait())
            try:
                await asyncio.wait((asked, lost), return_when=asyncio.FIRST_COMPLETED)
                if not asked.done():
                    raise McpServerGone(f"MCP server `{self.server.name}` went away before it answered")
                return asked.result()
            except (MCPError, *UNREACHED) as error:
                if isinstance(error, MCPError) and error.error.code != CLOSED:
                    raise
                life.lost.set()
                raise McpServerGone(f"MCP server `{self.server.name}` went away before it answered") from error
            finally:
                for one in (asked, lost):
                    one.cancel()
                await asyncio.gather(asked, lost, return_exceptions=True)

    async def close(self) -> None:
        """
        End the connection, and the server if it was started here.
        """
        for life in self._tasks.values():
            life.lost.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _live(self, life: _Life) -> None:
        # The SDK's contexts must be left by the task that entered them.
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.server.connect_timeout):
                    transport = _transport(self.server, life.lost)
                    client = await stack.enter_async_context(
                        Client(transport, message_handler=lambda message: _heard(message, life.news))
                    )
                    tools = await _listed(client)
                life.client, self.problem = client, None
                self._pause = 0.0
                self._changed(self, tools)
                life.ready.set_result(None)
                await self._serve(client, life)
        except Exception as error:  # noqa: BLE001  whatever a server does, the agent goes on
            self._failed(life, error)
        finally:
            life.client = None
            life.lost.set()
            if not life.ready.done():
                life.ready.set_result(None)

    def _failed(self, life: _Life, error: Exception) -> None:
        self.problem = _shown(error, self.server.connect_timeout)
        log.error("MCP server `%s`: %s", self.server.name, self.problem)
        if not life.ready.done():
            # A server that is down is not asked again by each of many calls; each waits a little differently.
            self._pause = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, 2 * self._pause))
            self._not_before = asyncio.get_running_loop().time() + self._pause * (0.5 + random.random())  # noqa: S311

    async def _serve(self, client: Client, life: _Life) -> None:
        """
        List the tools again whenever they have changed, until the connection is over.
        """
        listening = asyncio.create_task(_listened(client, life))
        try:
            while not life.lost.is_set():
                events = [asyncio.ensure_future(event.wait()) for event in (life.news, life.lost)]
                await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
                for one in events:
                    one.cancel()
                if life.lost.is_set():
                    return
                life.news.clear()
                try:
                    async with asyncio.timeout(self.server.connect_timeout):
                        self._changed(self, await _listed(client))
                except (MCPError, TimeoutError) as error:
                    log.warning("MCP server `%s` changed its tools and does not list them: %r", self.server.name, error)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


async def _listened(client: Client, life: _Life) -> None:
    """
    Hear of changes by a subscription, if the protocol has them (2026-07-28); before, they came unasked.
    """
    with suppress(ListenNotSupportedError, MCPError, TimeoutError):
        while not life.lost.is_set():
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        life.news.set()
            except SubscriptionLost:
                life.news.set()
            # However it ended, one that a server closes at once must not keep us busy.
            await asyncio.sleep(LISTEN_PAUSE_S)


async def _heard(message: object, news: asyncio.Event) -> None:
    if isinstance(message, ToolListChangedNotification):
        news.set()


@asynccontextmanager
async def _transport(server: McpServer, lost: asyncio.Event) -> AsyncIterator[Any]:
    if server.command is not None:
        async with stdio_server(server, lost) as streams:
            yield streams
    else:
        async with (
            create_mcp_http_client(headers=dict(server.headers) or None) as http,
            streamable_http_client(server.url or "", http_client=http) as streams,
        ):
            yield streams


async def _listed(client: Client) -> list[McpTool]:
    found: list[McpTool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None or len(found) >= MAX_TOOLS:
            break
    if cursor is not None:
        log.warning("an MCP server lists more than %d tools, or pages without end; the rest is left out", MAX_TOOLS)
    return found[:MAX_TOOLS]


def _shown(error: BaseException, timeout: float) -> str:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"not ready after {timeout:g} s"
    return f"{type(error).__name__}: {error}"[:500]
