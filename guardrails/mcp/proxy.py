"""
The proxy of one client: two transports of the `mcp` SDK and a pump between them.

Calls of tools and lists of tools are looked at; all other messages pass. What a server says in our names is marked in all of them.
"""

import argparse
import asyncio
import os
import signal
import threading

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Final

from guardrails.core.chain import Chain
from guardrails.core.guards.tool_filter import ToolFilter
from guardrails.core.values.errors import PolicyError, needs
from guardrails.core.values.logs import log
from guardrails.otel import of_process
from guardrails.policy.policy import Policy
from guardrails.stores.memory import MemoryStore
from guardrails.stores.places import store_at

from .calls import Guarding, Known, Run, run_of, watches, with_room, without_ours
from .pins import Pins, by_name, pins_file, server_of, visible


with needs("mcp", "`guardrails mcp`"):
    import anyio

    from anyio.abc import TaskStatus
    from mcp.server.stdio import stdio_server
    from mcp.shared.dispatcher import CallOptions, DispatchContext, Outbound
    from mcp.shared.exceptions import MCPError
    from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
    from mcp_types import CONNECTION_CLOSED

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
SETTLE_S: Final = 0.1
LIST_S: Final = 10.0
"""How long a list of tools is waited for that no client has asked for."""
Params = Mapping[str, Any]
Streams = tuple[Any, Any]


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
        why = "the policy limits the scope `{0}`: say whose calls these are by `--{0} ID`"
        if unknown := [why.format(name) for name in self.policy.scopes if name not in known]:
            raise PolicyError(unknown)
        self.store = MemoryStore() if options.store is None else store_at(options.store)
        self.telemetry = of_process()
        self.pins = None if options.pins == "none" else Pins(options.pins or pins_file())
        self.server = server_of(options.command, options.url)


class Guards(Guarding):
    """
    The guards of one client of a server, whose *user* and *tenant* are known.
    """

    def __init__(self, shared: Shared, user: str | None, tenant: str | None) -> None:
        self.shared, options = shared, shared.options
        whose = {"user": user, "tenant": tenant}
        scopes = {name: own for name, own in whose.items() if own is not None and name in shared.policy.scopes}
        told = {"records": options.records, "telemetry": shared.telemetry, "scopes": scopes}
        super().__init__(shared.policy, store=shared.store, **told)
        self.only = None if options.session is None else Run(options.session, named=True)
        """The run of all calls, if there is only one."""

    def hear(self, listed: Iterable[Any], held: Mapping[str, str] | None = None) -> Known:
        """
        Know the tools that a server *listed*. Those that say something else than they did are held.
        """
        tools = [*by_name(listed).values()]
        held = {} if self.shared.pins is None else self.shared.pins.look(self.shared.server, tools)
        return super().hear(map(with_room, tools), {} if watches(self.shared.policy) else held)

    def shown(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """
        Know the tools of a *result* of `tools/list`. Returns it as the client is told it: without the tools that the policy denies
        without a condition, and without the words of those that are held.
        """
        offered, shown = result.get("tools") or [], []
        known, plan = self.hear(offered), self.chain().plan
        if watches(self.shared.policy):
            return {**result}
        for name in by_name(offered):
            tool, listed = known[name]
            if any(type(one) is ToolFilter and one.hides(name) for one in plan(name).acting):
                continue
            if tool.held:
                listed = {"name": name, "description": f"It is held: {tool.held}.", "inputSchema": {"type": "object"}}
            words = {
                part: visible(text) for part in ("title", "description") if isinstance(text := listed.get(part), str)
            }
            shown.append({**listed, **words})
        return {**result, "tools": shown}

    def chain(self) -> Chain:
        """
        The policy as it is now.
        """
        if monotonic() >= self.shared.policy.due_s:
            self.shared.policy.look()
        return self.shared.policy.chain


class Pump:
    """
    One conversation of a client with a server, each at the other end of two streams, the one to read and the one to write. A call is of the run
    that *run* says by its `_meta`. Ids of requests stay what they are.
    """

    def __init__(self, guards: Guards, run: Callable[[Params], Run], client: Streams, server: Streams) -> None:
        self._guards, self._run = guards, run
        self._client, self._server = JSONRPCDispatcher(*client), JSONRPCDispatcher(*server)
        self._open: dict[Any, tuple[str, DispatchContext[Any]]] = {}
        """Requests of the client that are not answered yet, the newest last, with their methods."""
        self._ended = asyncio.Event()
        """A request was answered; who waits for all of them looks again."""
        self._serving = anyio.CancelScope()
        """Of the server, as long as it knows this session."""
        self._chain = guards.chain()
        """The policy by which the client knows the tools."""
        self.version: str | None = None
        """The revision that a server with a handshake has agreed to."""

    async def run(self) -> int:
        """
        Pump until the client says nothing more (0), or the server says nothing more (1).
        """
        code = 0

        async def serve(*, task_status: TaskStatus[None]) -> None:
            nonlocal code
            with self._serving:
                await self._server.run(self._asked_back, self._told, task_status=task_status)
            await self.answered()
            code = 1
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            await group.start(serve)
            await self._client.run(self._asked, self._said)
            group.cancel_scope.cancel()
        return code

    async def answered(self) -> None:
        """
        Wait until no request of the client is open, but for subscriptions, which have no answer.
        """
        while any(method != "subscriptions/listen" for method, _ in self._open.values()):
            self._ended.clear()
            await self._ended.wait()
        # The last answer is still on its way to the client.
        await anyio.sleep(SETTLE_S)

    # Of the client

    async def _asked(self, ctx: DispatchContext[Any], method: str, params: Params | None) -> dict[str, Any]:
        self._open[ctx.request_id] = method, ctx
        try:
            await self._look()
            if method == "tools/call" and type((params or {}).get("name")) is str:
                return await self._call(ctx.request_id, params or {})
            result = await self._ask(method, params, ctx.request_id)
            if method == "initialize":
                self.version = result.get("protocolVersion")
            return self._guards.shown(result) if method == "tools/list" else result
        finally:
            self._open.pop(ctx.request_id, None)
            self._ended.set()

    async def _call(self, id_: Any, params: Params) -> dict[str, Any]:
        meta, telemetry = params.get("_meta") or {}, self._guards.shared.telemetry

        async def send(fitted: Any) -> Any:
            try:
                return await self._ask("tools/call", {**params, "arguments": fitted} if fitted else params, id_)
            except MCPError as error:
                raise (ConnectionError(error.message) if error.code == CONNECTION_CLOSED else error) from error

        async def listing() -> Any:
            # Whoever has more than one page of tools is known once the client lists them.
            stateless = {name: one for name, one in meta.items() if name.startswith(STATELESS)}
            async with asyncio.timeout(LIST_S):
                return (await self._ask("tools/list", {"_meta": stateless}, f"guardrails-{id_}"))["tools"]

        with nullcontext() if telemetry is None else telemetry.within(meta):
            run = self._guards.only or self._run(meta)
            made = await self._guards.serve(params, run, listing, send, told=(ConnectionError,))
        return {"resultType": "complete", **made} if VERSION in meta else {**made}

    async def _said(self, ctx: DispatchContext[Any], method: str, params: Params | None) -> None:
        await self._look()
        # The end of what is cancelled tells the server.
        if method != CANCELLED:
            await self._server.notify(method, params, {"headers": self._headers(method, params)})

    async def _look(self) -> None:
        """
        Tell the client if the policy is another one, which may deny other tools.
        """
        before, self._chain = self._chain, self._guards.chain()
        if before is not self._chain:
            await self._client.notify(CHANGED, None)

    async def _ask(self, method: str, params: Params | None, id_: Any) -> dict[str, Any]:
        """
        The result of a request to the server, without what it says in our names. Raises MCPError.
        """
        try:
            options: CallOptions = {"request_id": id_, "headers": self._headers(method, params)}
            return {**without_ours(await self._server.send_raw_request(method, params, options))}
        except MCPError as error:
            if error.message == TERMINATED:
                # A client that starts anew gets a new session.
                self._serving.cancel()
            raise MCPError(**without_ours(error.error.model_dump())) from error

    def _headers(self, method: str, params: Params | None) -> dict[str, str]:
        """
        The headers of a message over HTTP.
        """
        given = params or {}
        version = (given.get("_meta") or {}).get(VERSION)
        found = {"mcp-protocol-version": version or self.version}
        if version is not None:
            found |= {"mcp-method": method, "mcp-name": given.get("name", given.get("uri"))}
        return {key: one for key, one in found.items() if isinstance(one, str) and one.isascii() and one.isprintable()}

    # Of the server

    async def _asked_back(self, ctx: DispatchContext[Any], method: str, params: Params | None) -> dict[str, Any]:
        options: CallOptions = {} if ctx.request_id is None else {"request_id": ctx.request_id}
        return await self._near().send_raw_request(method, without_ours(params), options)

    async def _told(self, ctx: DispatchContext[Any], method: str, params: Params | None) -> None:
        if method == CHANGED:
            self._guards.forget()
        if method != CANCELLED:
            await self._near().notify(method, without_ours(params))

    def _near(self) -> Outbound:
        """
        The client, by its newest request: nothing says what a request or notification of the server belongs to.
        """
        return next((ctx for _, ctx in reversed(self._open.values())), self._client)


async def _served(options: argparse.Namespace, guards: Guards) -> int:
    code, loop = 0, asyncio.get_running_loop()
    reader, lines = anyio.create_memory_object_stream[str](16)

    def read() -> None:
        with open(0, encoding="utf-8", errors="replace", closefd=False) as file, suppress(RuntimeError, OSError):
            for line in file:
                asyncio.run_coroutine_threadsafe(reader.send(line), loop).result()
            loop.call_soon_threadsafe(reader.close)

    async def heard() -> AsyncIterator[str]:
        async for line in lines:
            yield line
        with anyio.move_on_after(DRAIN_S):
            # The last line is still on its way to the task that answers it.
            await anyio.sleep(SETTLE_S)
            await pump.answered()

    async def forward() -> None:
        async with outgoing, to_client:
            async for message in outgoing:
                await to_client.send(message)

    def stop(number: int) -> None:
        nonlocal code
        code = 128 + number
        group.cancel_scope.cancel()

    # Nothing can interrupt who reads: the thread ends with the process.
    threading.Thread(target=read, name="guardrails-client", daemon=True).start()
    far = remote_server(options.url, dict(options.header)) if options.url else None
    client: Any = stdio_server(stdin=heard())  # type: ignore[arg-type]
    async with far or near_server(options.command, os.environ) as server, client as (from_client, to_client):
        # An answer that is written is never taken back: what is on its way to the client has room.
        answers, outgoing = anyio.create_memory_object_stream[Any](inf)
        pump = Pump(guards, partial(run_of, token=None), (from_client, answers), server)
        async with anyio.create_task_group() as group:
            group.start_soon(forward)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.add_signal_handler(number, stop, number)
            code = await pump.run()
        reader.close()
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
    except* (BrokenPipeError, anyio.BrokenResourceError):
        log.warning("the client is gone")
    finally:
        guards.sessions.close()
    return 1
