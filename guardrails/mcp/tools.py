"""
The tools of all configured MCP servers, in a registry beside an agent's own.
"""

import asyncio
import hashlib
import inspect
import re

from collections.abc import Iterable
from functools import partial
from typing import Any, Final, Literal, Self

from guardrails.core.arguments import foreign_arguments
from guardrails.core.tools.tool import Tool, from_annotations
from guardrails.core.values.errors import needs
from guardrails.core.values.logs import log
from guardrails.hooks.results import mapping
from guardrails.policy.tools import Registry

from .config import McpServer
from .pins import Pins, server_of, visible
from .wire import outcome_of


with needs("mcp", "`guardrails.mcp`"):
    import anyio

    from mcp import Client, MCPError
    from mcp_types import CONNECTION_CLOSED

    from .servers import near_server, remote_server


SEPARATOR: Final = "__"
MAX_NAME: Final = 64
"""Characters that an API takes as the name of a function."""
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_ON_WIRE: Final[dict[str, Any]] = {"by_alias": True, "mode": "json", "exclude_none": True}
Listed = dict[str, Any]
LockFile = str | Literal[False] | None


class McpTools:
    """
    Connects *servers* and keeps their tools in *registry*, as `{server}__{tool}`; an asynchronous context manager.

        async with McpTools(read_servers("agent.toml")) as mcp:
            envelope = await session.acall("time__get_current_time", {"timezone": "UTC"}, mcp.registry.aexecute)

    A server that cannot be reached, dies, hangs or talks nonsense makes no exception here. Its missing answer is an
    error envelope, `problems` says what is wrong, and the next call tries to reach it again. Its tools are those of its first
    connection. A name that another tool has registered stays with that tool.

    A tool that says something else of itself than when it was first seen is held: it is offered without its words, and the guards
    refuse its calls until `guardrails mcp allow`. The lock file is *pins* (`pins_file()` is this user's). None keeps it in this process,
    and False holds no tool.
    """

    def __init__(
        self, servers: Iterable[McpServer], registry: Registry | None = None, *, pins: LockFile = None
    ) -> None:
        self.registry = Registry() if registry is None else registry
        self.held: dict[str, str] = {}
        """Why which tool is held."""
        self._pins = None if pins is False else Pins(pins)
        self._connections = [Connection(server) for server in servers]
        self._offered: list[str] = []

    @property
    def problems(self) -> dict[str, str]:
        """
        The present problem of each server that has one.
        """
        return {one.server.name: one.problem for one in self._connections if one.problem is not None}

    async def __aenter__(self) -> Self:
        await asyncio.gather(*(one.start() for one in self._connections))
        for connection in self._connections:
            self._offer(connection)
        return self

    async def __aexit__(self, *raised: object) -> None:
        await asyncio.gather(*(one.close() for one in self._connections))
        while self._offered:
            self.registry.remove(self._offered.pop())

    def _offer(self, connection: "Connection") -> None:
        server, held = connection.server, {}
        if self._pins is not None and server.pins:
            held = self._pins.look(server_of(server.words, server.url, server.name), connection.listed)
        for name, (own, tool) in tools_of(server, connection.listed, held).items():
            if name in self.registry:
                log.warning("`%s` is registered already, so that of MCP server `%s` is left out", name, server.name)
                continue
            self.registry.add(tool, partial(connection.call, own))
            self._offered.append(name)
            if tool.held:
                self.held[name] = tool.held


class Connection:
    """
    Keeps one server reachable: `start` it, `call` its tools from any task of the same loop, `close` it.
    """

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.listed: list[Listed] = []
        """Its tools, when it was first connected."""
        self.problem: str | None = None
        """Why it cannot be reached now."""
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._lost = asyncio.Event()

    async def start(self) -> None:
        """
        Connect and list the tools, unless that is done already or under way; `problem` says why it did not work.

        An attempt goes on in the background when the caller that waits for it is cancelled.
        """
        if self._task is not None and self._lost.is_set():
            await asyncio.wait([self._task])
        if self._task is None or self._task.done():
            self._lost, self._ready = asyncio.Event(), asyncio.Event()
            self._task = asyncio.create_task(self._live(), name=f"mcp {self.server.name}")
        await self._ready.wait()

    async def call(self, own: str, _: str, arguments: Any) -> Any:
        """
        The outcome of a call of the tool that is the server's *own*. Raises ConnectionError if no answer can come, MCPError if the server
        refuses, TimeoutError after the server's `timeout`.
        """
        async with asyncio.timeout(self.server.timeout):
            await self.start()
            if self._client is None:
                raise ConnectionError(f"MCP server `{self.server.name}` cannot be reached: {self.problem}")
            try:
                result = await self._client.call_tool(own, dict(arguments or {}))
            except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
                if isinstance(error, MCPError) and error.error.code != CONNECTION_CLOSED:
                    raise
                self._lost.set()
                raise ConnectionError(f"MCP server `{self.server.name}` went away before it answered") from error
        return outcome_of(result.model_dump(**_ON_WIRE))

    async def close(self) -> None:
        """
        End the connection, and the server if it was started here.
        """
        self._lost.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _live(self) -> None:
        # The SDK's contexts must be left by the task that entered them.
        server = self.server
        try:
            far = None if server.url is None else remote_server(server.url, server.headers)
            near = far or near_server(server.words, server.env, server.cwd)
            async with asyncio.timeout(server.connect_timeout) as limit, Client(near) as client:
                self.listed = self.listed or await _listed(client)
                limit.reschedule(None)
                self._client, self.problem = client, None
                self._ready.set()
                await self._lost.wait()
        except Exception as error:  # whatever a server does, the agent goes on
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            said = f"{type(error).__name__}: {error}"[:500]
            self.problem = f"not ready after {server.connect_timeout:g} s" if isinstance(error, TimeoutError) else said
            log.error("MCP server `%s`: %s", server.name, self.problem)
        finally:
            self._client = None
            self._lost.set()
            self._ready.set()


def tools_of(server: McpServer, listed: Iterable[Listed], held: dict[str, str]) -> dict[str, tuple[str, Tool]]:
    """
    Returns the tools that *server* has *listed* by the name a model calls them by, each with the server's own name. The
    reasons why some are held are *held*, by the server's name.

    A model's name is `{server}__{tool}`, with `_` for characters that no API takes. A name that is too long or taken
    ends in a hash of the server's own name. The arguments of a tool whose schema is none are not checked, which the log says.
    """
    found: dict[str, tuple[str, Tool]] = {}
    for one in listed:
        own, why = one["name"], held.get(one["name"], "")
        name = _ODD.sub("_", f"{server.name}{SEPARATOR}{own}")
        if len(name) > MAX_NAME or (name in found and found[name][0] != own):
            digest = hashlib.sha256(own.encode(errors="surrogatepass")).hexdigest()[:8]
            name = f"{name[: MAX_NAME - 9]}_{digest}"
        said = visible(inspect.cleandoc(one.get("description") or one.get("title") or "").strip())
        words = f"It is held: {why}." if why else said and f"[MCP server `{server.name}` says] {said}"
        schema = None if why else foreign_arguments(name, one.get("inputSchema") or {})
        hints = from_annotations(mapping(one.get("annotations")))
        tool = Tool(name=name, description=words, parameters=schema, timeout=server.timeout, held=why, **hints)
        found[name] = own, tool
    return found


async def _listed(client: Client) -> list[Listed]:
    """
    The tools of all pages, of which the last has no tool that is new. Of two tools of one name the first counts.
    """
    found: dict[str, Listed] = {}
    page, before = await client.list_tools(), -1
    while len(found) > before:
        before = len(found)
        for tool in page.tools:
            found.setdefault(tool.name, tool.model_dump(**_ON_WIRE))
        if page.next_cursor is not None:
            page = await client.list_tools(cursor=page.next_cursor)
    return [*found.values()]
