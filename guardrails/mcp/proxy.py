"""
The proxy of one client: two transports of the `mcp` SDK and a pump between them.

Calls of tools and lists of tools are looked at; all other messages pass. What a server says in our names is marked in all of them.
"""

import argparse
import asyncio
import os
import signal
import threading

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from itertools import chain, count
from time import monotonic
from typing import Any, Final

from guardrails.core.guards.tool_filter import ToolFilter
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import PolicyError, needs
from guardrails.core.values.logs import log
from guardrails.integrations.otel import of_process
from guardrails.policy.policy import Policy
from guardrails.stores.memory import MemoryStore
from guardrails.stores.places import store_at

from .guarding import Guarding, Listed, Run, run_of, watches
from .pins import Pins, pins_file, server_of, visible
from .wire import with_room, without_ours


with needs("mcp", "`guardrails mcp`"):
    import anyio

    from mcp.server.stdio import stdio_server
    from mcp.shared.message import ClientMessageMetadata, ServerMessageMetadata, SessionMessage
    from mcp_types import (
        CONNECTION_CLOSED,
        ErrorData,
        JSONRPCError,
        JSONRPCMessage,
        JSONRPCNotification,
        JSONRPCRequest,
        JSONRPCResponse,
    )
    from opentelemetry.propagate import inject

    from .servers import near_server, remote_server


STATELESS: Final = "io.modelcontextprotocol/"
"""Beginning of the keys of a request's `_meta` by which a client of a stateless revision says who it is."""
VERSION: Final = f"{STATELESS}protocolVersion"
CHANGED: Final = "notifications/tools/list_changed"
CANCELLED: Final = "notifications/cancelled"
TERMINATED: Final = "Session terminated"
"""The SDK's words for a server that knows our session no longer."""
DRAIN_S: Final = 60.0
"""How long a client that has closed its input is kept answering what it has asked for."""
LIST_S: Final = 10.0
"""How long a list of tools is waited for that no client has asked for."""
MAX_PAGES: Final = 100
Ask = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""The result of a request to the server, of this method and these parameters."""


class ServerError(Exception):
    """
    The server answered a request with the *error* of JSON-RPC.
    """

    def __init__(self, error: ErrorData) -> None:
        super().__init__(error.message)
        self.error = error


class Shared:
    """
    The part of the guards that all clients of a server have in common, as *options* of the command ask for it; each request says the scopes
    *told*.

    Raises PolicyError for a policy that is not valid or limits a scope that nobody says, StoreError, OSError.
    """

    def __init__(self, options: argparse.Namespace, *told: str) -> None:
        self.options = options
        self.policy = Policy.load(options.policy, envelope="quiet")
        known = {"global", *told, *(name for name in ("user", "tenant") if getattr(options, name) is not None)}
        if unknown := [name for name in self.policy.scopes if name not in known]:
            raise PolicyError(
                [f"the policy limits the scope `{one}`: say whose calls these are by `--{one} ID`" for one in unknown]
            )
        self.store = MemoryStore() if options.store is None else store_at(options.store)
        self.telemetry = of_process()
        self.pins = None if options.pins == "none" else Pins(options.pins or pins_file())
        self.server = server_of(options.command, options.url)


class Guards(Guarding):
    """
    The guards of one client of a server, whose *user* and *tenant* are known.
    """

    def __init__(self, shared: Shared, user: str | None, tenant: str | None) -> None:
        policy, scopes = shared.policy, {"user": user, "tenant": tenant}
        super().__init__(
            policy,
            store=shared.store,
            records=shared.options.records,
            telemetry=shared.telemetry,
            scopes={name: whose for name, whose in scopes.items() if whose is not None and name in policy.scopes},
        )
        self._shared, self._policy = shared, policy
        self._hidden: frozenset[str] = frozenset()

    def hear(self, listed: Iterable[Listed], held: Mapping[str, str] | None = None) -> None:
        """
        Know the tools that a server *listed*. Those that say something else than they did are held.
        """
        listed, pins = list(listed), self._shared.pins
        held = {} if pins is None else pins.look(self._shared.server, listed)
        super().hear(map(with_room, listed), {} if watches(self._policy) else held)

    def shown(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """
        Know the tools of a *result* of `tools/list`. Returns it as the client is told it: without the tools that the policy denies
        without a condition, and without the words of those that are held.
        """
        offered = [one for one in result.get("tools") or () if isinstance(one, dict) and type(one.get("name")) is str]
        self.hear(offered)
        if watches(self._policy):
            return {**result}
        self._hidden = self._denied()
        names = [one["name"] for one in offered if one["name"] not in self._hidden]
        tools = [_shown(*known) for name in names if (known := self._tools[name]) is not None]
        return {**result, "tools": tools}

    def list_changed(self) -> bool:
        """
        Whether the policy, read again, denies other tools than when the client listed them.
        """
        if monotonic() >= self._policy.due_s:
            self._policy.look()
        before, self._hidden = self._hidden, self._denied()
        return before != self._hidden

    async def answer(self, params: Mapping[str, Any], run: Run, ask: Ask) -> Mapping[str, Any]:
        """
        The result of a call of a tool. Raises what *ask* raises, but ConnectionError.
        """
        meta = params.get("_meta") or {}
        named = self._shared.options.session
        run = run if named is None else Run(named, named=True)

        async def listing() -> list[Listed]:
            async with asyncio.timeout(LIST_S):
                return await _pages(meta, ask)

        async def send(fitted: Any) -> Any:
            carrier: dict[str, str] = {}
            inject(carrier)
            more = {"_meta": {**meta, **carrier}} if carrier else {}
            return await ask("tools/call", {**params, **({"arguments": fitted} if fitted else {}), **more})

        known = self._tools.get(params["name"])
        if known is not None and known[0].held:
            # Somebody may have allowed it meanwhile.
            self.forget()
        telemetry = self._shared.telemetry
        with nullcontext() if telemetry is None else telemetry.within(meta):
            made = await self.serve(params, run, listing, send, told=(ConnectionError,))
        return {"resultType": "complete", **made} if VERSION in meta else made

    def _denied(self) -> frozenset[str]:
        if watches(self._policy):
            return frozenset()
        plan = self._policy.chain.plan
        return frozenset(
            name
            for name in self._names()
            if any(type(one) is ToolFilter and one.hides(name) for one in plan(name).acting)
        )


async def _pages(meta: Mapping[str, Any], ask: Ask) -> list[Listed]:
    """
    All tools of the server, which is asked as the client of *meta* asks.
    """
    params: dict[str, Any] = {"_meta": {name: said for name, said in meta.items() if name.startswith(STATELESS)}}
    found: list[Listed] = []
    for _ in range(MAX_PAGES):
        page = await ask("tools/list", params)
        found += page.get("tools") or []
        if page.get("nextCursor") is None:
            break
        params["cursor"] = page["nextCursor"]
    return found


def _shown(tool: Tool, listed: Listed) -> dict[str, Any]:
    if tool.held:
        return {"name": tool.name, "description": f"It is held: {tool.held}.", "inputSchema": {"type": "object"}}
    words = {part: visible(text) for part in ("title", "description") if isinstance(text := listed.get(part), str)}
    return {**listed, **words}


def unguarded(error: Exception) -> dict[str, Any]:
    """
    The result of a call that is not made since the guards themselves failed with *error*; what it says may hold paths.
    """
    log.error("the guards failed: %r", error)
    text = f"[guardrails:proxy] The call was not made, since the guards failed ({type(error).__name__}); the error output of the proxy says more."
    return {"content": [{"type": "text", "text": text}], "isError": True}


def is_call(said: object) -> bool:
    """
    Returns whether *said* asks for a call of a tool; of one without a name its server says what is wrong.
    """
    named = isinstance(said, JSONRPCRequest) and type((said.params or {}).get("name")) is str
    return named and said.method == "tools/call"


def cleaned(said: Any) -> Any:
    """
    Returns the message *said* of a server without what it says in our names.
    """
    if isinstance(said, JSONRPCError):
        said.error = ErrorData(**without_ours(said.error.model_dump(exclude_unset=True)))
    elif isinstance(said, JSONRPCResponse):
        said.result = without_ours(said.result)
    else:
        said.params = without_ours(said.params)
    return said


def result_of(said: Any) -> Any:
    """
    The result of the response *said*. Raises ServerError, or ConnectionError if the server could not answer.
    """
    if isinstance(said, JSONRPCResponse):
        return said.result
    raise ConnectionError(said.error.message) if said.error.code == CONNECTION_CLOSED else ServerError(said.error)


class Pump:
    """
    One conversation of a client with a server, whose streams are *to_client* and *to_server*. A call is of the run that *run* says by its
    `_meta`.
    """

    def __init__(self, guards: Guards, run: Callable[[Mapping[str, Any]], Run], to_client: Any, to_server: Any) -> None:
        self._guards, self._run = guards, run
        self._to_client, self._to_server = to_client, to_server
        self._group = anyio.create_task_group()
        self._calls: dict[Any, anyio.CancelScope] = {}
        self._waiting: dict[Any, asyncio.Future[Any]] = {}
        """Requests whose answers are for us."""
        self._passed: dict[Any, str] = {}
        """The methods of requests that the server answers to the client."""
        self._ended = asyncio.Event()
        """A request was answered; who waits for all of them looks again."""
        self._gone = False
        """The server says nothing more."""
        self._version: str | None = None
        self._numbers = count()

    async def run(self, from_client: AsyncIterable[Any], from_server: AsyncIterable[Any]) -> int:
        """
        Pump until the client says nothing more and has its answers (0), or the server says nothing more (1).
        """
        codes: list[int] = []

        async def until(work: Coroutine[Any, Any, None], code: int) -> None:
            with suppress(anyio.ClosedResourceError):
                await work
            codes.append(code)
            self._group.cancel_scope.cancel()

        async with self._group:
            self._group.start_soon(until, self._from_client(from_client), 0)
            self._group.start_soon(until, self._from_server(from_server), 1)
        return codes[0]

    async def _from_client(self, messages: AsyncIterable[Any]) -> None:
        async for one in messages:
            if isinstance(one, Exception):
                log.warning("a line of the client is no message, and is not passed on")
                continue
            said = one.message
            if self._guards.list_changed():
                await self._tell(JSONRPCNotification(jsonrpc="2.0", method=CHANGED))
            if is_call(said):
                self._calls[said.id] = anyio.CancelScope()
                self._group.start_soon(self._call, said)
            elif not self._cancels(said):
                if isinstance(said, JSONRPCRequest):
                    self._passed[said.id] = said.method
                await self._send(said)
        with anyio.move_on_after(DRAIN_S):
            # A subscription has no answer.
            await self._until(lambda: not self._calls and not set(self._passed.values()) - {"subscriptions/listen"})

    async def _from_server(self, messages: AsyncIterable[Any]) -> None:
        async for one in messages:
            if isinstance(one, Exception):
                continue
            said = cleaned(one.message)
            if not isinstance(said, JSONRPCResponse | JSONRPCError):
                if said.method == CHANGED:
                    self._guards.forget()
                await self._tell(said)
                continue
            if (future := self._waiting.get(said.id)) is not None:
                if not future.done():
                    future.set_result(said)
            elif (method := self._passed.pop(said.id, None)) is not None:
                await self._tell(self._noted(method, said))
                self._ended.set()
            if isinstance(said, JSONRPCError) and said.error.message == TERMINATED:
                # A client that starts anew gets a new session.
                break
        self._gone = True
        for future in self._waiting.values():
            future.cancel()
        await self._until(lambda: not self._calls)

    def _noted(self, method: str, said: Any) -> Any:
        if isinstance(said, JSONRPCResponse) and method == "initialize":
            self._version = said.result.get("protocolVersion")
        if isinstance(said, JSONRPCResponse) and method == "tools/list":
            said.result = self._guards.shown(said.result)
        return said

    async def _until(self, over: Callable[[], bool]) -> None:
        while not over():
            self._ended.clear()
            await self._ended.wait()

    async def _call(self, said: JSONRPCRequest) -> None:
        """
        Answer a call, unless its client cancels it.
        """

        params = said.params or {}

        async def ask(method: str, params: Mapping[str, Any]) -> Any:
            return await self._ask(
                method, params, said.id if method == said.method else f"guardrails-{next(self._numbers)}"
            )

        with self._calls[said.id] as scope:
            try:
                run = self._run(params.get("_meta") or {})
                result = await self._guards.answer(params, run, ask)
                made: JSONRPCMessage = JSONRPCResponse(jsonrpc="2.0", id=said.id, result=dict(result))
            except ServerError as error:
                made = JSONRPCError(jsonrpc="2.0", id=said.id, error=error.error)
            except Exception as error:  # noqa: BLE001  whoever waits is told
                made = JSONRPCResponse(jsonrpc="2.0", id=said.id, result=unguarded(error))
            await self._tell(made)
        if self._calls.get(said.id) is scope:
            del self._calls[said.id]
        self._ended.set()

    async def _ask(self, method: str, params: Mapping[str, Any], id_: Any) -> Any:
        future = self._waiting[id_] = asyncio.get_running_loop().create_future()
        try:
            await self._send(JSONRPCRequest(jsonrpc="2.0", id=id_, method=method, params=dict(params)))
            await asyncio.wait([future], timeout=0 if self._gone else None)
            if future.done() and not future.cancelled():
                return result_of(future.result())
            raise ConnectionError("the server ended and did not answer")
        except asyncio.CancelledError:
            over = {"requestId": id_, "reason": "nobody waits for the answer any more"}
            self._group.start_soon(self._send, JSONRPCNotification(jsonrpc="2.0", method=CANCELLED, params=over))
            raise
        finally:
            del self._waiting[id_]

    def _cancels(self, said: JSONRPCMessage) -> bool:
        """
        Whether *said* cancels a call: the end of its task tells the server.
        """
        if not isinstance(said, JSONRPCNotification) or said.method != CANCELLED:
            return False
        id_ = (said.params or {}).get("requestId")
        scope = self._calls.get(id_) if isinstance(id_, int | str) else None
        if scope is not None:
            scope.cancel()
        return scope is not None

    async def _send(self, said: JSONRPCMessage) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._to_server.send(SessionMessage(said, ClientMessageMetadata(headers=self._headers(said))))

    async def _tell(self, said: JSONRPCMessage) -> None:
        # Nothing says what a request or notification of the server belongs to; the newest request asked for it.
        newest = next(reversed([*self._passed, *self._calls]), None)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._to_client.send(SessionMessage(said, ServerMessageMetadata(related_request_id=newest)))

    def _headers(self, said: JSONRPCMessage) -> dict[str, str]:
        """
        The headers that go beside *said* over HTTP.
        """
        params = getattr(said, "params", None) or {}
        version = (params.get("_meta") or {}).get(VERSION, self._version)
        found = {"mcp-protocol-version": version}
        if VERSION in (params.get("_meta") or {}):
            found |= {"mcp-method": getattr(said, "method", ""), "mcp-name": params.get("name", params.get("uri"))}
        return {key: one for key, one in found.items() if isinstance(one, str) and one.isascii() and one.isprintable()}


class Input:
    """
    The lines of standard input, until its end or `close`. They are read by a thread, which nothing can interrupt: it ends with the
    process.
    """

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(16)
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="guardrails-client", daemon=True).start()

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            yield line

    async def close(self) -> None:
        """
        Read no more.
        """
        await self._lines.put(None)

    def _read(self) -> None:
        with open(0, encoding="utf-8", errors="replace", closefd=False) as file, suppress(RuntimeError, OSError):
            for line in chain(file, [None]):
                asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()


async def _served(options: argparse.Namespace, guards: Guards) -> int:
    far = remote_server(options.url, dict(options.header)) if options.url else None
    async with far or near_server(options.command, os.environ) as (from_server, to_server):
        lines = Input()
        async with stdio_server(stdin=lines) as (from_client, to_client):  # type: ignore[arg-type]  it only reads lines
            pump = Pump(guards, partial(run_of, token=None), to_client, to_server)
            code = 0

            async def stopped() -> None:
                nonlocal code
                with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as numbers:
                    async for number in numbers:
                        code = 128 + number
                        group.cancel_scope.cancel()

            async with anyio.create_task_group() as group:
                group.start_soon(stopped)
                code = await pump.run(from_client, from_server)
                group.cancel_scope.cancel()
            await to_client.aclose()
            await lines.close()
            async for _ in from_client:
                pass
    return code


def serve(options: argparse.Namespace) -> int:
    """
    Stand between the client on standard input and output and the server of *options*. Returns the exit code: 0 once the client has ended,
    1 if the server has, 128 and the number of the signal that came.

    Raises as `Shared` does, and OSError for a command that cannot be started.
    """
    guards = Guards(Shared(options), options.user, options.tenant)
    try:
        return asyncio.run(_served(options, guards))
    except* (BrokenPipeError, ConnectionResetError):
        log.warning("the client is gone")
    finally:
        guards.sessions.close()
    return 1
