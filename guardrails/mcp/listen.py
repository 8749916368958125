"""
The proxy of many clients: it listens over streamable HTTP before a server at a URL. Each session has a pump of its own, and so has each request
of a stateless revision.
"""

import argparse
import asyncio
import json
import re
import socket
import sys

from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import compress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from guardrails.core.values.errors import PolicyError, needs
from guardrails.core.values.logs import log

from .calls import RUN, Run
from .proxy import Guards, Pump, Shared
from .servers import remote_server


with needs("mcp", "`guardrails mcp --listen`"):
    import anyio
    import jwt
    import uvicorn

    from anyio.abc import TaskStatus
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from mcp.server.streamable_http import StreamableHTTPServerTransport
    from mcp.server.transport_security import RequestBodyLimitMiddleware
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
    from starlette.datastructures import Headers
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send
    from uvicorn.protocols.http.h11_impl import H11Protocol


HEAD_S: Final = 10.0
"""Seconds that the head of a request may take, and its body."""
BODY_S: Final = 30.0
IDLE_S: Final = 1800.0
"""Seconds without a request after which a session is over."""
MAX_BODY: Final = 4 * 1024 * 1024
MAX_CONNECTIONS: Final = 100
MAX_SESSIONS: Final = 1_000
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_NEAR: Final = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")
"""The origins of pages of this machine."""
ONCE: Final = ("authorization", "content-length", "host", "mcp-session-id", "origin")
"""Headers that say whose a request is, where it ends, and who sent it: there is one of each."""
LEEWAY_S: Final = 10
"""By how much the clocks of who signs tokens and of this machine may differ."""
ASYMMETRIC: Final = [*(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)), "EdDSA"]
"""A secret that both sides know would let whoever checks tokens make them."""


class Session(StreamableHTTPServerTransport):
    """
    One client, or without a *name* one request. It is the *owner's*.
    """

    def __init__(self, name: str | None, owner: tuple[str | None, ...]) -> None:
        super().__init__(name, idle_timeout=None if name is None else IDLE_S)
        self.name, self.owner = name, owner
        self.pump: Pump | None = None

    def run(self, meta: Mapping[str, Any]) -> Run:
        """
        The run of a call with this `_meta`: the one that the client names, else the session, else the user. Strangers share none.
        """
        user, tenant, _ = self.owner
        named = meta.get(RUN, self.name)
        stranger = user is None and tenant is None and named is None
        return Run(None if stranger else json.dumps([user, tenant, named]), named=named is not None)


class Gate:
    """
    An ASGI application: who may ask, and the sessions of those who do, which are tasks of its `group`.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._names = options.identity_header, options.tenant_header
        if options.token_key is not None:
            self._names = options.identity_claim, options.tenant_claim
        """Of what says whose a request is, as far as that is asked for: its user and its tenant."""
        self._keys = {} if options.token_key is None else keys_of(options.token_key)
        """Of those who sign tokens; none: headers say whose a request is."""
        self._shared = Shared(options, *compress(("user", "tenant"), self._names))
        self._guards = lru_cache(MAX_SESSIONS)(partial(Guards, self._shared))
        self._options, self.group = options, anyio.create_task_group()
        self._sessions: dict[str, Session] = {}
        allowed = {one.strip().lower() for one in options.allow_host.split(",")} - {""}
        self._hosts = {*LOOPBACK, options.listen[0], *allowed}
        self._origins = {one if "://" in one else f"https://{one}" for one in allowed}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope["method"], Headers(scope=scope))
        try:
            async with asyncio.timeout(BODY_S) as limit:
                answer = refusal or RequestBodyLimitMiddleware(partial(self._answer, limit), MAX_BODY)
                await answer(scope, receive, send)
        except TimeoutError:
            await Response("the body did not come in time", 408)(scope, receive, send)

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        """
        The answer to a request that can be read in two ways, is of a page of a stranger that has found our address, or asks who may ask.
        """
        twice = [name for name in (*ONCE, *filter(None, self._names)) if len(headers.getlist(name)) > 1]
        if twice or ("content-length" in headers and "transfer-encoding" in headers):
            return Response(f"said twice: {', '.join(twice) or 'the length'}", 400)
        host, origin = re.sub(r":\d+$", "", headers.get("host", "")).strip("[]").lower(), headers.get("origin")
        if host not in self._hosts or not (origin is None or _NEAR.fullmatch(origin) or origin in self._origins):
            return Response("this is no address for that client", 403)
        if method != "OPTIONS":
            return None
        asked = headers.get("access-control-request-headers", "")
        allowed = {"Origin": origin or "", "Methods": "GET, POST, DELETE", "Headers": asked}
        return Response(None, 204, {f"Access-Control-Allow-{name}": value for name, value in allowed.items()})

    async def _answer(self, limit: asyncio.Timeout, scope: Scope, receive: Receive, send: Send) -> None:
        # The body is here, and what follows may take any time.
        limit.reschedule(None)
        headers = Headers(scope=scope)
        owner, name = self._owner(headers), headers.get("mcp-session-id")
        known = self._sessions.get(name or "")
        last = HANDSHAKE_PROTOCOL_VERSIONS[-1]
        stateless = headers.get("mcp-protocol-version", last) not in HANDSHAKE_PROTOCOL_VERSIONS
        answer: ASGIApp
        if owner is None:
            why = "this needs a token, or a header, that says whose it is"
            answer = Response(why, 401, {"WWW-Authenticate": "Bearer"})
        elif known is not None and known.owner == owner:
            answer = known.handle_request
        elif name is not None:
            answer = Response("there is no such session", 404)
        elif not stateless and len(self._sessions) >= MAX_SESSIONS:
            answer = Response("there are too many sessions", 503)
        else:
            answer = partial(self._begin, Session(None if stateless else uuid4().hex, owner), headers)
        await answer(scope, receive, send)

    def _owner(self, headers: Headers) -> tuple[str | None, ...] | None:
        """
        The user and the tenant of a request, as far as they are asked for, and the token of its session; None if it does not say them.
        """
        said, token = dict[str, Any](headers), headers.get("authorization")
        if self._keys:
            # A token that says whose the request is may be a new one; any other token is that of the session.
            said, token = self._claims(token or ""), None
        if not all(isinstance(said.get(name), str) and said[name] for name in self._names if name is not None):
            return None
        user, tenant = self._names
        return said.get(user, self._options.user), said.get(tenant, self._options.tenant), token

    def _claims(self, shown: str) -> dict[str, Any]:
        """
        The claims of the token that is *shown*; none if it was not signed for us.
        """
        scheme, _, token = shown.strip().partition(" ")
        options, token = self._options, token.strip()
        named: Any = {"audience": options.token_audience, "issuer": options.token_issuer, "leeway": LEEWAY_S}
        try:
            # Of several keys the token names one.
            key: Any = self._keys.get(jwt.get_unverified_header(token).get("kid"), self._keys.get(None))
            claims: dict[str, Any] = jwt.decode(token, key, ASYMMETRIC, {"require": ["exp"]}, **named)
        except (jwt.PyJWTError, TypeError, ValueError):
            return {}
        return claims if scheme.lower() == "bearer" else {}

    async def _begin(self, session: Session, headers: Headers, scope: Scope, receive: Receive, send: Send) -> None:
        await self.group.start(self._live, session, headers)
        try:
            await session.handle_request(scope, receive, send)
        finally:
            if session.pump is None or session.pump.version is None:
                # It is over with its one request, or did not begin as a session does.
                await session.terminate()

    async def _live(self, session: Session, headers: Headers, *, task_status: TaskStatus[None]) -> None:
        """
        Pump between a client and the server until one of them is gone.
        """
        guards = self._guards(*session.owner[:2])
        # A token that was made for us goes no further: whoever it is shown to could ask us in its owner's name.
        ours = ("mcp-param-",) if self._options.token_key else ("mcp-param-", "authorization")
        passed = {key: one for key, one in headers.items() if key.startswith(ours)} | dict(self._options.header)
        try:
            async with session.connect() as client, remote_server(self._options.url, passed) as server:
                if session.name is not None:
                    self._sessions[session.name] = session
                with session.idle_scope or anyio.CancelScope():
                    session.pump = Pump(guards, session.run, client, server)
                    task_status.started()
                    await session.pump.run()
        except Exception as error:  # the others go on
            log.error("a session has failed: %r", error)
        finally:
            await session.terminate()
            if self._sessions.pop(session.name or "", None) is not None:
                guards.sessions.end(guards.sessions.of(session.run({}).name))


def keys_of(path: str) -> dict[str | None, Any]:
    """
    Returns the public keys in the file *path*, by their names; the only one stands for each name. Raises PolicyError if it has none.
    """
    try:
        text = Path(path).read_text()
        if "-----BEGIN" in text:
            return {None: load_pem_public_key(text.encode())}
        keys = {one.key_id: one.key for one in jwt.PyJWKSet.from_json(text).keys}
    except (OSError, ValueError, jwt.PyJWTError) as error:
        raise PolicyError([f"`--token-key {path}` cannot be read: {error}"]) from None
    return {**keys} if len(keys) > 1 else {None: next(iter(keys.values()))}


# The server


class _Connection(H11Protocol):
    """
    A connection on which each head has to come in time.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head = self.loop.call_later(HEAD_S, self._late)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._head.cancel()
        self._head = self.loop.call_later(HEAD_S, self._late)

    def _late(self) -> None:
        # Also of one that was answered before its body came.
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


async def listening(options: argparse.Namespace, ready: Any = None) -> None:
    """
    Listen as *options* say until a signal comes; *ready* is told the server and its port. Raises as `Shared` does, PolicyError for keys that
    cannot be read, OSError for an address that cannot be had.
    """
    gate, family = Gate(options), socket.AF_INET6 if ":" in options.listen[0] else socket.AF_INET
    config = uvicorn.Config(gate, http=_Connection, ws="none", lifespan="off", log_level="warning")
    config.limit_concurrency, config.timeout_graceful_shutdown = MAX_CONNECTIONS + 1, 2
    with socket.create_server(options.listen, family=family) as listener:
        sys.stderr.write(f"guardrails mcp: listening on port {listener.getsockname()[1]}\n")
        server = uvicorn.Server(config)
        if ready is not None:
            ready(server, listener.getsockname()[1])
        async with gate.group:
            await server.serve(sockets=[listener])
            gate.group.cancel_scope.cancel()


def serve(options: argparse.Namespace) -> int:
    """
    See `listening`. Returns the exit code.
    """
    asyncio.run(listening(options))
    return 0
