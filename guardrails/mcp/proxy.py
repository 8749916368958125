"""
The proxy: two transports of the `mcp` SDK and a pump between them, of one client on standard input and output, or of each session of the many
that it listens for over streamable HTTP.

Calls of tools and lists of tools are looked at; all other messages pass. What a server says in our names is marked in all of them.
"""

import argparse
import asyncio
import os
import re
import signal
import socket
import sys

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any, Final
from uuid import uuid4

from guardrails.core.chain import Chain
from guardrails.core.guards.tool_filter import ToolFilter
from guardrails.core.values.errors import PolicyError, needs
from guardrails.core.values.logs import log
from guardrails.hooks.results import mapping
from guardrails.otel import of_process
from guardrails.policy.policy import Policy
from guardrails.policy.tools import run_file
from guardrails.session.steps import in_thread
from guardrails.stores.places import store_at

from .calls import IDLE_S, Guarding, Known, Run, as_shown, run_of, watches, without_ours
from .pins import Pins, by_name, pins_file, server_of


with needs("mcp", "`guardrails mcp`"):
    import anyio
    import uvicorn

    from anyio.abc import TaskStatus
    from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
    from mcp.server.stdio import stdio_server
    from mcp.server.streamable_http import StreamableHTTPServerTransport
    from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, RequestBodyLimitMiddleware
    from mcp.shared.dispatcher import CallOptions, DispatchContext, Outbound
    from mcp.shared.exceptions import MCPError
    from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
    from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
    from sse_starlette.sse import AppStatus
    from starlette.datastructures import Headers
    from starlette.exceptions import HTTPException
    from starlette.middleware.cors import CORSMiddleware
    from starlette.middleware.exceptions import ExceptionMiddleware
    from starlette.requests import HTTPConnection
    from starlette.types import Receive, Scope, Send
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from .servers import near_server, remote_server


STATELESS: Final = "io.modelcontextprotocol/"
"""Beginning of the keys of a request's `_meta` by which a client of a stateless revision says who it is."""
VERSION: Final = f"{STATELESS}protocolVersion"
CALL: Final = "tools/call"
CHANGED: Final = "notifications/tools/list_changed"
CANCELLED: Final = "notifications/cancelled"
DRAIN_S: Final = 60.0
"""How long a client that has closed its input is kept answering what it has asked for."""
SETTLE_S: Final = 0.1
REQUEST_S: Final = 30.0
"""Seconds that a request may take to come, its head and its body."""
MAX_CONNECTIONS: Final = 100
MAX_SESSIONS: Final = 1_000
_NEAR: Final = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")
"""The origins of pages of this machine."""
METHODS: Final = ("GET", "POST", "DELETE")
ONCE: Final = ("authorization", "content-length", "host", "mcp-session-id", "origin")
"""Headers that say whose a request is, where it ends, and who sent it: there is one of each."""
Params = Mapping[str, Any]


class Shared:
    """
    The part of the guards that all clients of a server have in common, as *options* of the command ask for it; each request says the
    *scopes*.

    Raises PolicyError for a policy that is not valid or limits a scope that nobody says, StoreError, OSError.
    """

    def __init__(self, options: argparse.Namespace, *scopes: str) -> None:
        self.options = options
        self.policy = Policy.load(options.policy, envelope="quiet")
        known = {"global", *scopes, *(name for name in ("user", "tenant") if getattr(options, name) is not None)}
        if unknown := [name for name in self.policy.scopes if name not in known]:
            why = "the policy limits the scope `{0}`: say whose calls these are by `--{0} ID`"
            raise PolicyError([why.format(name) for name in unknown])
        self.store = None if options.store is None else store_at(options.store)
        self.telemetry = of_process()
        self.pins = None if options.pins == "none" else Pins(options.pins or pins_file())
        self.server = server_of(options.command, options.url)


class Guards(Guarding):
    """
    The guards of one client of a server, whose *user* and *tenant* are known.
    """

    def __init__(self, shared: Shared, user: str | None, tenant: str | None) -> None:
        self.shared, policy, options = shared, shared.policy, shared.options
        scopes = {name: own for name, own in (("user", user), ("tenant", tenant)) if own and name in policy.scopes}
        store, telemetry = shared.store, shared.telemetry
        super().__init__(policy, store=store, records=options.records, telemetry=telemetry, scopes=scopes)
        self.only = None if options.session is None else Run(options.session, named=True)
        """The run of all calls, if there is only one."""

    def hear(self, listed: Iterable[Any], held: Mapping[str, str] | None = None) -> Known:
        """
        Know the tools that a server *listed*. Those that say something else than they did are held.
        """
        tools = [*by_name(listed).values()]
        held = {} if self.shared.pins is None else self.shared.pins.look(self.shared.server, tools)
        return super().hear(map(as_shown, tools), {} if watches(self.shared.policy) else held)

    def shown(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """
        Know the tools of a *result* of `tools/list`. Returns it as the client is told it: without the tools that the policy denies
        without a condition, and without the words of those that are held.
        """
        offered, tools = result.get("tools") or [], []
        known, plan = self.hear(offered), self.chain().plan
        if watches(self.shared.policy):
            return {**result}
        for name in by_name(offered):
            tool, listed = known[name]
            if tool.held:
                listed = {"name": name, "description": f"It is held: {tool.held}.", "inputSchema": {"type": "object"}}
            if not any(type(one) is ToolFilter and one.hides(name) for one in plan(name).acting):
                tools.append(listed)
        return {**result, "tools": tools}

    def chain(self) -> Chain:
        """
        The policy as it is now.
        """
        self.shared.policy.look()
        return self.shared.policy.chain


class Pump:
    """
    One conversation of a client with a server, each at the other end of two streams, the one to read and the one to write. A call is of the run
    that *run* says by its `_meta`. Ids of requests stay what they are.
    """

    def __init__(self, guards: Guards, run: Callable[[Params], Run], client: Any, server: Any) -> None:
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
                await self._server.run(self._server_request, self._server_notification, task_status=task_status)
            await self.answered()
            code = 1
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            await group.start(serve)
            await self._client.run(self._client_request, self._client_notification)
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

    async def _client_request(self, ctx: DispatchContext[Any], method: str, params: Params | None) -> dict[str, Any]:
        self._open[ctx.request_id] = method, ctx
        try:
            await self._look()
            if method == CALL:
                return await self._call(ctx.request_id, params or {})
            result = await self._ask(method, params, ctx.request_id)
            if method == "initialize":
                self.version = result.get("protocolVersion")
            return self._guards.shown(result) if method == "tools/list" else result
        finally:
            self._open.pop(ctx.request_id, None)
            self._ended.set()

    async def _call(self, id_: Any, params: Params) -> dict[str, Any]:
        meta, telemetry = mapping(params.get("_meta")), self._guards.shared.telemetry
        if type(params.get("name")) is not str:
            # Some servers would find a tool by it all the same.
            raise MCPError(INVALID_PARAMS, "the name of a tool is text")

        async def send(fitted: Any) -> Any:
            try:
                return await self._ask(CALL, {**params, "arguments": fitted} if fitted else params, id_)
            except MCPError as error:
                raise (ConnectionError(error.message) if error.code == CONNECTION_CLOSED else error) from error

        async def listing() -> Any:
            # Whoever has more than one page of tools is known once the client lists them.
            stateless = {name: one for name, one in meta.items() if name.startswith(STATELESS)}
            async with asyncio.timeout(10):
                return (await self._ask("tools/list", {"_meta": stateless}, f"guardrails-{id_}"))["tools"]

        with nullcontext() if telemetry is None else telemetry.within(meta):
            run = self._guards.only or self._run(meta)
            made = await self._guards.serve(params, run, listing, send, failures=(ConnectionError,))
        return {"resultType": "complete", **made} if VERSION in meta else {**made}

    async def _client_notification(self, ctx: DispatchContext[Any], method: str, params: Params | None) -> None:
        await self._look()
        # The end of what is cancelled tells the server. A call that wants no answer is none of MCP's.
        if method not in (CANCELLED, CALL):
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
            if error.message == "Session terminated":
                # The SDK's words for a server that knows our session no longer. A client that starts anew gets a new session.
                self._serving.cancel()
            raise MCPError(**without_ours(error.error.model_dump())) from error

    def _headers(self, method: str, params: Params | None) -> dict[str, str]:
        """
        The headers of a message over HTTP.
        """
        given = params or {}
        version = (given.get("_meta") or {}).get(VERSION)
        named = {"mcp-protocol-version": version or self.version}
        if version is not None:
            named |= {"mcp-method": method, "mcp-name": given.get("name", given.get("uri"))}
        return {key: one for key, one in named.items() if isinstance(one, str) and one.isascii() and one.isprintable()}

    # Of the server

    async def _server_request(self, ctx: DispatchContext[Any], method: str, params: Params | None) -> dict[str, Any]:
        options: CallOptions = {} if ctx.request_id is None else {"request_id": ctx.request_id}
        return await self._near().send_raw_request(method, without_ours(params), options)

    async def _server_notification(self, ctx: DispatchContext[Any], method: str, params: Params | None) -> None:
        if method == CHANGED:
            self._guards.tools.clear()
        if method != CANCELLED:
            await self._near().notify(method, without_ours(params))

    def _near(self) -> Outbound:
        """
        The client, by its newest request: nothing says what a request or notification of the server belongs to.
        """
        return next((ctx for _, ctx in reversed(self._open.values())), self._client)


# One client


async def _at_stdio(options: argparse.Namespace, guards: Guards) -> int:
    code, loop = 0, asyncio.get_running_loop()
    reader, lines = anyio.create_memory_object_stream[str](16)

    def read() -> None:
        with open(0, encoding="utf-8", errors="replace", closefd=False) as file:
            for line in file:
                asyncio.run_coroutine_threadsafe(reader.send(line), loop).result()
        loop.call_soon_threadsafe(reader.close)

    async def input_lines() -> AsyncIterator[str]:
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
    in_thread(read)
    far = remote_server(options.url, dict(options.header)) if options.url else near_server(options.command, os.environ)
    async with far as server, stdio_server(stdin=input_lines()) as (from_client, to_client):  # type: ignore[arg-type]
        # An answer that is written is never taken back: what is on its way to the client has room.
        answers, outgoing = anyio.create_memory_object_stream[Any](float("inf"))
        pump = Pump(guards, run_of, (from_client, answers), server)
        async with anyio.create_task_group() as group:
            group.start_soon(forward)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.add_signal_handler(number, stop, number)
            code = await pump.run()
        reader.close()
    return code


# Many clients


class Session(StreamableHTTPServerTransport):
    """
    One client, or if it is *stateless* one request. It is the *owner's*.
    """

    pump: Pump

    def __init__(self, owner: tuple[str | None, ...], *, stateless: bool) -> None:
        self.owner, self.key = owner, uuid4().hex
        super().__init__(None if stateless else self.key, idle_timeout=None if stateless else IDLE_S)

    def run(self, meta: Mapping[str, Any]) -> Run:
        """
        The run of a call with this `_meta`: the one that the client names, else the session, else the user. Strangers share none.
        """
        return run_of(meta, self.mcp_session_id, *self.owner[:2])


class Gate:
    """
    An ASGI application: who may ask, and the `sessions` of those who do, which are tasks of its `group`.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        names = ("user", "tenant") if options.tokens else (options.identity_header, options.tenant_header)
        self._names = {place: name for place, name in zip(("user", "tenant"), names, strict=True) if name is not None}
        """The scopes that a request says, each with the header that does."""
        self._verifier = options.tokens and getattr(run_file(options.tokens, "tokens"), "verifier", None)
        """Says whose a request is by its token; None: headers do."""
        if options.tokens is not None and self._verifier is None:
            raise PolicyError([f"`{options.tokens}` has no `verifier`"])
        self._shared = Shared(options, *self._names)
        self._needs = self._names.keys() & {"user", *self._shared.policy.scopes}
        self._guards = lru_cache(MAX_SESSIONS)(partial(Guards, self._shared))
        self._options, self.group = options, anyio.create_task_group()
        self.sessions: dict[str, Session] = {}
        allowed = {one.strip().lower() for one in options.allow_host.split(",")} - {""}
        self._hosts = {"localhost", "127.0.0.1", "::1", options.listen[0], *allowed}
        self._origins = {one if "://" in one else f"https://{one}" for one in allowed}
        pages: Any = {"allow_origins": self._origins, "allow_origin_regex": _NEAR.pattern, "allow_methods": METHODS}
        body = RequestBodyLimitMiddleware(self._answer, DEFAULT_MAX_REQUEST_BODY_SIZE)
        self._app = CORSMiddleware(body, **pages, allow_headers=["*"], expose_headers=["mcp-session-id"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Answer a request. Raises HTTPException for one that can be read in two ways, or is of a page of a stranger that has found our address.
        """
        headers = Headers(scope=scope)
        twice = [name for name in (*ONCE, *self._names.values()) if len(headers.getlist(name)) > 1]
        if twice or ("content-length" in headers and "transfer-encoding" in headers):
            raise HTTPException(400, f"said twice: {', '.join(twice) or 'the length'}")
        host, origin = re.sub(r":\d+$", "", headers.get("host", "")).strip("[]").lower(), headers.get("origin")
        if host not in self._hosts or not (origin is None or _NEAR.fullmatch(origin) or origin in self._origins):
            raise HTTPException(403, "this is no address for that client")
        await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["method"] not in METHODS:
            raise HTTPException(405, headers={"Allow": ", ".join(METHODS)})
        owner, name = await self._owner(scope), headers.get("mcp-session-id")
        session = None if name is None else self.sessions.get(name)
        if name is None:
            if len(self.sessions) >= MAX_SESSIONS:
                raise HTTPException(503, "there are too many sessions")
            version = headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[-1])
            session = Session(owner, stateless=version not in HANDSHAKE_PROTOCOL_VERSIONS)
            await self.group.start(self._live, session, headers)
        if session is None or session.owner != owner:
            raise HTTPException(404, "there is no such session")
        try:
            await session.handle_request(scope, receive, send)
        finally:
            if session.pump.version is None:
                # It is over with its one request, or did not begin as a session does.
                await session.terminate()

    async def _owner(self, scope: Scope) -> tuple[str | None, ...]:
        """
        Returns the user and the tenant of a request, as far as they are asked for, and the token of its session. Raises HTTPException
        if it does not say them.
        """
        fields = dict[str, Any](Headers(scope=scope))
        token = fields.get("authorization")
        if self._verifier is not None:
            shown = await BearerAuthBackend(self._verifier).authenticate(HTTPConnection(scope))
            access = None if shown is None else shown[1].access_token
            # A token that says whose the request is may be a new one; any other token is that of the session.
            fields, token = {} if access is None else {**(access.claims or {}), "user": access.subject}, None
        whose = {place: own for place, name in self._names.items() if isinstance(own := fields.get(name), str) and own}
        if not self._needs <= whose.keys():
            why = "this needs a token, or a header, that says whose it is"
            raise HTTPException(401, why, {"WWW-Authenticate": "Bearer"})
        return whose.get("user", self._options.user), whose.get("tenant", self._options.tenant), token

    async def _live(self, session: Session, headers: Headers, *, task_status: TaskStatus[None]) -> None:
        """
        Pump between a client and the server until one of them is gone.
        """
        guards = self._guards(*session.owner[:2])
        # A token that was made for us goes no further: whoever it is shown to could ask us in its owner's name.
        ours = ("mcp-param-",) if self._verifier else ("mcp-param-", "authorization")
        passed = {key: one for key, one in headers.items() if key.startswith(ours)} | dict(self._options.header)
        try:
            async with session.connect() as client, remote_server(self._options.url, passed) as server:
                self.sessions[session.key] = session
                with session.idle_scope or anyio.CancelScope():
                    session.pump = Pump(guards, session.run, client, server)
                    task_status.started()
                    await session.pump.run()
        except Exception as error:  # the others go on
            log.error("a session has failed: %r", error)
        finally:
            await session.terminate()
            if self.sessions.pop(session.key, None) is not None and session.mcp_session_id is not None:
                guards.sessions.end(guards.sessions.of(session.run({}).name))


# The server


class _Connection(H11Protocol):
    """
    A connection on which each request has to come in time.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(REQUEST_S, self._late)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._timer.cancel()
        self._timer = self.loop.call_later(REQUEST_S, self._late)

    def _late(self) -> None:
        # Also of one that was answered before its body came.
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            self.transport.close()


class _Server(uvicorn.Server):
    """
    Answers what was asked before the signal came that ends it.
    """

    sessions: dict[str, Session]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Streams of notifications have no end of their own.
        for session in self.sessions.values():
            session.close_standalone_sse_stream()
        await super().shutdown(sockets)


async def listening(options: argparse.Namespace, ready: Any = lambda *_: None) -> None:
    """
    Listen as *options* say until a signal comes; *ready* is told the server and its port. Raises as `Shared` does, PolicyError for keys that
    cannot be read, OSError for an address that cannot be had.
    """
    gate, family = Gate(options), socket.AF_INET6 if ":" in options.listen[0] else socket.AF_INET
    # Else a signal would cut the streams of open calls.
    AppStatus.enable_automatic_graceful_drain = False
    config = uvicorn.Config(ExceptionMiddleware(gate), http=_Connection, ws="none", lifespan="off", log_level="warning")
    config.limit_concurrency, config.timeout_graceful_shutdown = MAX_CONNECTIONS + 1, int(DRAIN_S)
    with socket.create_server(options.listen, family=family) as listener:
        sys.stderr.write(f"guardrails mcp: listening on port {listener.getsockname()[1]}\n")
        server = _Server(config)
        server.sessions = gate.sessions
        ready(server, listener.getsockname()[1])
        async with gate.group:
            await server.serve(sockets=[listener])
            gate.group.cancel_scope.cancel()


def serve(options: argparse.Namespace) -> int:
    """
    Listen as *options* say, or stand between the client on standard input and output and the server of *options*. Returns the exit code: 0 once
    the client has ended, 1 if the server has, 128 and the number of the signal that came.

    Raises as `Shared` and `listening` do, and OSError for a command that cannot be started.
    """
    if options.listen is not None:
        asyncio.run(listening(options))
        return 0
    guards = Guards(Shared(options), options.user, options.tenant)
    try:
        return asyncio.run(_at_stdio(options, guards))
    except* (BrokenPipeError, anyio.BrokenResourceError):
        log.warning("the client is gone")
    finally:
        guards.sessions.close()
    return 1
