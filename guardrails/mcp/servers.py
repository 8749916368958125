"""
MCP servers: which there are, how they are reached, and their tools in a registry beside an agent's own.
"""

import asyncio
import hashlib
import inspect
import json
import os
import re
import shutil
import tomllib

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import BeforeValidator, Field, StrictBool, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from guardrails.core.result.content import block_of
from guardrails.core.text.control import visible
from guardrails.core.tool import Tool
from guardrails.core.values.errors import PolicyError, needs
from guardrails.core.values.logs import log
from guardrails.core.values.units import duration_ms
from guardrails.core.values.version import __version__
from guardrails.hooks.results import mapping
from guardrails.policy.tools import Registry

from .calls import Listed, all_pages, outcome_of, tool_of
from .pins import Pins, server_of


with needs("mcp", "`guardrails.mcp`"):
    import anyio
    import httpx2

    from mcp import Client, MCPError
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types import CONNECTION_CLOSED


# Which there are

Text = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, BeforeValidator(lambda given: duration_ms(given) / 1000), Field(gt=0)]


@dataclass(frozen=True, kw_only=True)
class McpServer:
    """
    One server: *command* with *args* for one that is started here and spoken to over stdio, else *url* for one over HTTP.
    """

    name: Annotated[str, Field(max_length=32, pattern="^[A-Za-z0-9](_?[A-Za-z0-9-])*_?$")]
    """A `__` would end it: it stands before the name of a tool."""
    command: Text | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to the few variables that a server gets by default (PATH, HOME, ...); never this process's own secrets."""
    cwd: Text | None = None
    url: Annotated[str, Field(pattern="^https?://")] | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_timeout: Seconds = 30.0
    """Seconds until it has been started, greeted, and asked for its tools."""
    timeout: Seconds = 60.0
    """Seconds that one call may take, unless the policy says something else."""
    pins: StrictBool = True
    """Whether a tool that changes what it says of itself is held."""

    @property
    def words(self) -> tuple[str, ...]:
        """
        The command with its arguments; none for a server over HTTP.
        """
        return () if self.command is None else (self.command, *self.args)


def read_servers(path: str | Path) -> list[McpServer]:
    """
    The servers in a TOML or JSON file, as `servers_of` reads them.

    Raises PolicyError with all mistakes, OSError if the file cannot be read.
    """
    path = Path(path)
    try:
        document = (json if path.suffix == ".json" else tomllib).loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise PolicyError([f"{path.name}: {error}"]) from None
    return servers_of(document)


def servers_of(document: Any) -> list[McpServer]:
    """
    The servers under `[tools.mcp_servers.NAME]`, or under `mcp_servers` or `mcpServers` as other clients keep them.

    With `command` (and `args`) a server is started and spoken to over stdio, else it listens at `url`. An entry with
    neither is skipped, which the log says. Raises PolicyError with all mistakes.
    """
    whole = mapping(document)
    tables = whole.get("mcpServers"), whole.get("mcp_servers"), mapping(whole.get("tools")).get("mcp_servers")
    table: Any = next((one for one in tables if one is not None), {})
    if not isinstance(table, dict):
        raise PolicyError(["MCP servers are a table of names"])
    gone = [(name, key) for name, one in table.items() for key in ("network", "sandbox") if key in mapping(one)]
    why = "is gone; a `command` may begin with `bwrap` and its options"
    mistakes = [f"mcp_servers.{name}.{key}: {why}" for name, key in gone]
    try:
        entries = {name: {**one, "name": name} if isinstance(one, dict) else one for name, one in table.items()}
        servers = TypeAdapter(dict[str, McpServer]).validate_python(entries).values()
    except ValidationError as error:
        places = [(".".join(map(str, ("mcp_servers", *one["loc"]))), one["msg"]) for one in error.errors()]
        mistakes += [f"{place}: {text.removeprefix('Value error, ')}" for place, text in places]
    if mistakes:
        raise PolicyError(mistakes)
    for name in [one.name for one in servers if one.command is None and one.url is None]:
        log.warning("MCP server `%s` has neither `command` nor `url`, so it is skipped", name)
    return [one for one in servers if one.command is not None or one.url is not None]


# How they are reached

MAX_BYTES: Final = 256 * 1024 * 1024
"""Of one event."""
WHOLE_GROUP: Final = ("/bin/sh", "-c", '"$@"; kill -KILL 0', "sh")
"""Runs a command to its end, and ends all that it has started with it: the SDK gives it a process group of its own."""


def near_server(words: Sequence[str], environment: Mapping[str, str], folder: str | None = None) -> Any:
    """
    The streams of the program of *words*, with a few variables of ours (PATH, HOME, ...) and those of *environment*. It is ended with all that
    it has started.

    Raises FileNotFoundError if there is no such program.
    """
    named = words[0] if Path(words[0]).name == words[0] else str(Path(folder or ".", words[0]))
    if shutil.which(named, path=environment.get("PATH")) is None:
        raise FileNotFoundError(2, "No such file or directory", words[0])
    command, *arguments = (*WHOLE_GROUP, *words) if os.name == "posix" else words
    return stdio_client(StdioServerParameters(command=command, args=arguments, env=dict(environment), cwd=folder))


class _Transport(httpx2.AsyncHTTPTransport):
    """
    Answers a request to a server that cannot be reached, so that the conversation goes on.
    """

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await super().handle_async_request(request)
        except httpx2.TransportError as error:
            message = f"the server cannot be reached: {error or type(error).__name__}"
            failed = {"jsonrpc": "2.0", "id": None, "error": {"code": CONNECTION_CLOSED, "message": message}}
            return httpx2.Response(502, json=failed)


@asynccontextmanager
async def remote_server(url: str, headers: Mapping[str, str]) -> AsyncIterator[Any]:
    """
    The streams of the server at *url*, which is shown *headers*, the last of each name. An answer may take any time: how long is for the policy to say.
    """
    shown = {"user-agent": f"guardrails-mcp/{__version__}", **{name.lower(): one for name, one in headers.items()}}
    async with (
        httpx2.AsyncClient(headers=shown, timeout=httpx2.Timeout(30, read=None), transport=_Transport()) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_BYTES) as streams,
    ):
        yield streams


# Their tools

MAX_NAME: Final = 64
"""Characters that an API takes as the name of a function."""


class McpTools:
    """
    Connects *servers* and keeps their tools in *registry*, as `{server}__{tool}`; an asynchronous context manager.

        async with McpTools(read_servers("agent.toml")) as mcp:
            envelope = await session.acall("time__get_current_time", {"timezone": "UTC"}, mcp.registry.aexecute)

    A server that cannot be reached, dies, hangs or talks nonsense makes no exception here. Its missing answer is an
    error envelope, `problems` says what is wrong, and the next call tries to reach it again. Its tools are those of its first
    connection. A name that another tool has registered stays with that tool.

    A tool that says something else of itself than when it was first seen is held: it is offered without its words, and the guards
    refuse its calls until `guardrails mcp allow`. The lock file is *pins* (`pins_file()` is this user's). None keeps it in this process.
    """

    def __init__(
        self, servers: Iterable[McpServer], registry: Registry | None = None, *, pins: str | None = None
    ) -> None:
        self.registry = Registry() if registry is None else registry
        self.held: dict[str, str] = {}
        """Why which tool is held."""
        self._pins = Pins(pins)
        self._connections = [Connection(server) for server in servers]
        self._offered: list[str] = []

    @property
    def problems(self) -> dict[str, str]:
        """
        The present problem of each server that has one.
        """
        return {one.server.name: one.problem for one in self._connections if one.problem is not None}

    async def __aenter__(self) -> Self:
        await asyncio.gather(*(one.client() for one in self._connections))
        for connection in self._connections:
            server = connection.server
            at = server_of(server.words, server.url, server.name)
            held = self._pins.look(at, connection.listed) if server.pins else {}
            for name, (own, tool) in tools_of(server, connection.listed, held).items():
                if name in self.registry:
                    log.warning("`%s` is registered already, so that of MCP server `%s` is left out", name, server.name)
                    continue
                self.registry.add(tool, partial(connection.call, own))
                self._offered.append(name)
                if tool.held:
                    self.held[name] = tool.held
        return self

    async def __aexit__(self, *raised: object) -> None:
        await asyncio.gather(*(one.close() for one in self._connections))
        while self._offered:
            self.registry.remove(self._offered.pop())


class Connection:
    """
    Keeps one server reachable: `call` its tools from any task of the same loop, and `close` it.
    """

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.listed: list[Listed] = []
        """Its tools, when it was first connected."""
        self.problem: str | None = None
        """Why it cannot be reached now."""
        self._task: asyncio.Task[None] | None = None

    async def client(self) -> Client | None:
        """
        Connect and list the tools, unless that is done already or under way. Returns the client; None: `problem` says why there is none.

        An attempt goes on in the background when the caller that waits for it is cancelled.
        """
        if self._task is None or self._task.done():
            self._lost, self._ready = asyncio.Event(), asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._live(self._ready), name=f"mcp {self.server.name}")
        return await asyncio.shield(self._ready)

    async def call(self, own: str, _: str, arguments: Any) -> Any:
        """
        The outcome of a call of the tool that is the server's *own*. How long it may take is for the session to say.

        Raises ConnectionError if no answer can come, MCPError if the server refuses.
        """
        if (client := await self.client()) is None:
            raise ConnectionError(f"MCP server `{self.server.name}` cannot be reached: {self.problem}")
        try:
            result = await client.call_tool(own, dict(arguments or {}))
        except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            if isinstance(error, MCPError) and error.error.code != CONNECTION_CLOSED:
                raise
            await self.close()
            raise ConnectionError(f"MCP server `{self.server.name}` went away before it answered") from error
        return outcome_of(block_of(result))

    async def close(self) -> None:
        """
        End the connection, and the server if it was started here.
        """
        if self._task is not None:
            self._lost.set()
            await asyncio.wait([self._task])

    async def _live(self, ready: "asyncio.Future[Client | None]") -> None:
        # The SDK's contexts must be left by the task that entered them.
        server, lost = self.server, self._lost
        try:
            near = near_server(server.words, server.env, server.cwd) if server.words else None
            far = near or remote_server(server.url or "", server.headers)
            async with asyncio.timeout(server.connect_timeout) as limit, Client(far) as client:
                self.listed = self.listed or await all_pages(lambda cursor: client.list_tools(cursor=cursor))
                limit.reschedule(None)
                self.problem = None
                ready.set_result(client)
                await lost.wait()
        except Exception as error:  # whatever a server does, the agent goes on
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            text = f"{type(error).__name__}: {error}"[:500]
            self.problem = f"not ready after {server.connect_timeout:g} s" if isinstance(error, TimeoutError) else text
            log.error("MCP server `%s`: %s", server.name, self.problem)
        finally:
            if not ready.done():
                ready.set_result(None)


def tools_of(server: McpServer, listed: Iterable[Listed], held: dict[str, str]) -> dict[str, tuple[str, Tool]]:
    """
    Returns the tools that *server* has *listed* by the name a model calls them by, each with the server's own name. The
    reasons why some are held are *held*, by the server's name.

    A model's name is `{server}__{tool}`, with `_` for characters that no API takes. A name that is too long or taken
    ends in a hash of the server's own name. The arguments of a tool whose schema is none are not checked, which the log says.
    """
    tools: dict[str, tuple[str, Tool]] = {}
    for one in listed:
        own, why = one["name"], held.get(one["name"], "")
        name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server.name}__{own}")
        if len(name) > MAX_NAME or (name in tools and tools[name][0] != own):
            digest = hashlib.sha256(own.encode(errors="surrogatepass")).hexdigest()[:8]
            name = f"{name[: MAX_NAME - 9]}_{digest}"
        text = visible(inspect.cleandoc(one.get("description") or one.get("title") or "").strip())
        words = f"It is held: {why}." if why else text and f"[MCP server `{server.name}` says] {text}"
        tools[name] = own, tool_of(one, why, name=name, description=words, timeout=server.timeout)
    return tools
