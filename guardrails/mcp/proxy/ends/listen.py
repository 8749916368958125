"""
A proxy that listens, before a server over streamable HTTP. Each POST is a conversation of its own: ids of clients collide.
"""

import json
import socket
import sys
import threading

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from guardrails.mcp.proxy.deadlines import Deadlines
from guardrails.mcp.proxy.loading import Guards
from guardrails.mcp.proxy.messages import read, tell_person
from guardrails.mcp.proxy.options import Options
from guardrails.mcp.proxy.tap import Tap
from guardrails.mcp.runs import Run

from .asked import Asked, Listening
from .bodies import body_of
from .connections import FAILURES, Connection, Connections, LostError, Response, event_of, events, kept_of
from .hangups import Hangups
from .identity import identity_of
from .lines import MAX_LINE


if TYPE_CHECKING:
    from guardrails.mcp.proxy.calls import Calls
    from guardrails.policy.policy import Policy


LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
CHUNK: Final = 65_536


class Gate(Listening):
    """
    Listens as *options* say, and guards the calls of each who asks apart.
    """

    daemon_threads = True

    def __init__(self, options: Options, policy: "Policy | None") -> None:
        host, _, port = (options.listen or "").rpartition(":")
        # This machine only, if no host is said.
        host = host.strip("[]").lower() or "127.0.0.1"
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.options = options
        self.identity = identity_of(options)
        self.guards = Guards(options, policy)
        self.connections = Connections()
        self.deadlines = Deadlines()
        self.hangups = Hangups()
        named = frozenset(one.strip().lower() for one in (options.allow_host or "").split(",") if one.strip())
        self.hosts = LOOPBACK | named | {host}
        super().__init__((host, int(port)), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """
        Say what went wrong, but that a client has hung up.
        """
        error = sys.exception()
        if isinstance(error, Exception) and not isinstance(error, OSError):
            tell_person(error)

    def end(self) -> None:
        """
        Listen no more, and flush the records.
        """
        self.server_close()
        self.connections.close()
        self.guards.close()


class Handler(Asked):
    """
    One connection of a client, whose messages are passed on.
    """

    server: Gate
    _upstream: Connection | None = None

    def do_POST(self) -> None:  # noqa: N802  named by the library
        """
        Pass on one message, or a batch.
        """
        whose = self._whose()
        if whose is None:
            return
        body = body_of(self.headers, self.rfile)
        if isinstance(body, int):
            self._plain(body, b"")
            self.close_connection = True
            return
        user, tenant = whose
        calls = self.server.guards.of(user, tenant)
        session = self.headers.get("Mcp-Session-Id")
        stranger = user is None and tenant is None and session is None
        name = f"stranger:{uuid4()}" if stranger else json.dumps([user, tenant, session])
        run = Run(name, named=stranger)
        try:
            self._exchange(body, calls, run)
        finally:
            if stranger:
                calls.forget(run)

    def _exchange(self, body: bytes, calls: "Calls", run: Run) -> None:
        self._told: list[bytes] = []
        self._late = threading.Event()
        forwarded: list[bytes] = []
        to_server = lambda line: self._cancel(line) if forwarded else forwarded.append(line)  # noqa: E731
        tap = Tap(self._tell, to_server, lambda: calls, run=run, deadlines=self.server.deadlines)
        tap.from_client(body)
        if not forwarded:
            self._plain(200 if self._told else 202, self._told[0] if self._told else b"")
            return
        refused, self._told = self._told, []
        try:
            response, _ = self._ask("POST", forwarded[0], None, opened=self._opened)
            if (response.getheader("Content-Type") or "").lower().startswith("text/event-stream"):
                self._stream(response, tap, refused)
            else:
                self._whole(response, tap, refused)
        except (*FAILURES, LostError) as error:
            if not self._late.is_set():
                tap.lost(_id_of(body), f"the server cannot be reached: {error or type(error).__name__}")
            self._finish()
        finally:
            self.server.hangups.drop(self.connection)
            if self._upstream is not None:
                self._upstream.close()
                self._upstream = None
            if tap.waiting:
                tap.unanswered("the server ended its stream and did not answer")

    def _opened(self, upstream: Connection) -> None:
        self._upstream = upstream
        self.server.hangups.add(self.connection, upstream)
        if self._late.is_set():
            raise LostError("its time was up")

    def _tell(self, line: bytes) -> None:
        """
        Have the client told *line*, which may be of another thread that answers a call whose time is up.
        """
        self._told.append(line)
        if threading.current_thread().name == "guardrails-time":
            self._late.set()
            upstream = self._upstream
            if upstream is not None and upstream.sock is not None:
                # Who reads from it wakes up.
                with suppress(OSError):
                    upstream.sock.shutdown(socket.SHUT_RDWR)

    def _cancel(self, line: bytes) -> None:
        try:
            response, connection = self._ask("POST", line.strip(), 5.0)
            response.read()
            connection.close()
        except FAILURES:
            return

    def _whole(self, response: Response, tap: Tap, refused: list[bytes]) -> None:
        body = response.read(MAX_LINE + 1)
        if len(body) > MAX_LINE:
            raise LostError("its answer is too long to be passed on")
        if self._upstream is not None:
            # From now on it is not what this client waits for.
            self.server.hangups.drop(self.connection)
            self.server.connections.give_back(self.server.options.url or "", response, self._upstream)
            self._upstream = None
        if body.strip():
            tap.from_server(body)
        told = self._told[0] if self._told else b""
        if refused:
            said = read(told) if told else []
            told = json.dumps([*(said if isinstance(said, list) else [said]), *map(read, refused)]).encode()
        self._plain(response.status if told is body or not told else 200, told, response)

    def _stream(self, response: Response, tap: Tap, refused: list[bytes]) -> None:
        self._begin(response)
        self._told += refused
        for event in events(response):
            self._flush()
            if not event.data:
                self._chunk(event.raw)
                continue
            tap.from_server(event.data)
            told, self._told = self._told, []
            for line in told:
                self._chunk(event.raw if line is event.data else event_of(line, event.id))
        if self._late.is_set():
            raise LostError("its time was up")
        tap.unanswered("the server ended its stream and did not answer")
        self._finish()

    def _finish(self) -> None:
        """
        Say what is still to be said, and end the answer.
        """
        if not self._streams:
            self._plain(200 if self._told else 502, self._told[0] if self._told else b"")
            return
        self._flush()
        self._chunk(b"")
        self._streams = False

    def _flush(self) -> None:
        told, self._told = self._told, []
        for line in told:
            self._chunk(event_of(line, ""))

    def _pass(self) -> None:
        """
        Pass on what is no message.
        """
        if self._whose() is None:
            return
        try:
            response, connection = self._ask(self.command, None, None)
            self._begin(response)
            while part := response.read1(CHUNK):
                self._chunk(part)
            self._chunk(b"")
            connection.close()
        except FAILURES:
            if not self._streams:
                self._plain(502, b"")
            self.close_connection = True
        self._streams = False

    do_GET = do_DELETE = do_OPTIONS = _pass  # noqa: N815  named by the library

    # The wire

    def _ask(
        self,
        method: str,
        body: bytes | None,
        seconds: float | None,
        opened: Callable[[Connection], object] | None = None,
    ) -> tuple[Response, Connection]:
        given = dict(kept_of(self.headers.items()))
        options = self.server.options
        if options.token_key is not None:
            # It was made for us: whoever it is shown to could ask us in its owner's name.
            given = {name: value for name, value in given.items() if name.lower() != "authorization"}
        return self.server.connections.request(
            method, options.url or "", body, {**given, **dict(options.headers)}, seconds, opened=opened
        )


def _id_of(body: bytes) -> Any:
    with suppress(ValueError):
        said = read(body)
        return said.get("id") if isinstance(said, dict) and "method" in said else None
    return None
