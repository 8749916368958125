"""
One connection to a server, with a limit of time for each answer.
"""

import os
import socket
import time

from collections.abc import Callable
from typing import Any, Final

from .scripts import FORMAT, KEPT_US, MARK_BYTES, OPEN, Script


_CHUNK: Final = 65_536
_NUMBER_BYTES: Final = 8
_EVICTING: Final = "allkeys-"
_FOREIGN: Final = "does not answer as a server of Redis: see its host and port"


class Cut(Exception):
    """
    The connection could not be made, was lost, or gave no answer in time. The command may have been done or not.
    """


class Refused(Exception):
    """
    The server answered with an error, and did nothing. *code* is its first word.
    """

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.code = said.partition(" ")[0]


class Unfit(Exception):
    """
    A fault of the server, or of its content, that forbids its use as a store. The message says how to mend it.
    """


class Wire:
    """
    A connection that is made when it is first asked, and made again after it was lost. One thread at a time uses it.

    The connection is one *writer*, whose commits have numbers that only rise. Its latest number is `number`, and `last`
    is the latest number that the server is known to have. The function *make* gives a connection of the package
    `redis`. It takes a limit in seconds, and a function that is called once the connection stands.
    """

    def __init__(self, make: Callable[[float, Callable[[Any], None]], Any], stem: bytes) -> None:
        self._make = make
        self._stem = stem
        self._connection: Any = None
        self._socket: socket.socket | None = None
        self._read = bytearray()
        self.writer: Final = os.urandom(MARK_BYTES - _NUMBER_BYTES)
        self.number = 0
        self.last = 0
        self._ahead_us = 0
        """The server's clock, less `time.monotonic`."""

    def next(self, limit_s: float) -> int:
        """
        Returns the number of the next commit: even, and about twice the server's time in microseconds. Raises as `ask`.
        """
        self.number = max(self.number + 2, 2 * self.now_us(limit_s))
        return self.number

    def now_us(self, limit_s: float) -> int:
        """
        Microseconds since 1970 by the server's clock. Raises as `ask`.
        """
        if self._socket is None:
            self._connect(limit_s)
        return self._ahead_us + time.monotonic_ns() // 1_000

    def mark(self, number: int) -> bytes:
        """
        Returns the version that states have from the commit *number*: no other commit ever gives the same.
        """
        return self.writer + number.to_bytes(_NUMBER_BYTES, "big")

    def run(self, script: Script, keys: list[bytes], arguments: list[bytes], limit_s: float) -> Any:
        """
        Returns the answer of *script*. Raises as `ask`.
        """
        count = b"%d" % len(keys)
        try:
            return self.ask(limit_s, b"EVALSHA", script.sha, count, *keys, *arguments)
        except Refused as error:
            if error.code != "NOSCRIPT":
                raise
        return self.ask(limit_s, b"EVAL", script.text, count, *keys, *arguments)

    def ask(self, limit_s: float, *parts: bytes) -> Any:
        """
        Returns the answer to a command: bytes, a number, None, or a list of these.

        Raises Cut, Refused, or Unfit, within *limit_s* seconds.
        """
        until = time.monotonic() + limit_s
        if self._socket is None:
            self._connect(limit_s)
        return self._exchange(until, parts)

    def drop(self) -> None:
        """
        Close the connection. In a process that was forked since, the parent's connection stays open.
        """
        connection, self._connection, self._socket = self._connection, None, None
        self._read.clear()
        if connection is not None:
            connection.disconnect()

    def _connect(self, limit_s: float) -> None:
        until = time.monotonic() + limit_s

        def greet(connection: Any) -> None:
            # Its own reader has a limit for each piece of an answer, not for all of it.
            self._socket = connection._sock  # noqa: SLF001
            self._greet(connection, until)

        self._connection = self._make(limit_s, greet)
        try:
            self._connection.connect()
        except BaseException as error:
            self.drop()
            if isinstance(error, OSError) or type(error).__module__.startswith("redis."):
                raise Cut(str(error) or type(error).__name__) from error
            raise

    def _greet(self, connection: Any, until: float) -> None:
        given = connection.credential_provider
        said = (connection.username, connection.password) if given is None else given.get_credentials()
        if any(said):
            self._exchange(until, (b"AUTH", *(part.encode() for part in said if part)))
        if connection.db:
            self._exchange(until, (b"SELECT", b"%d" % int(connection.db)))
        self._check(until)

    def _check(self, until: float) -> None:
        policy = _field(self._exchange(until, (b"INFO", b"memory")), "maxmemory_policy")
        if policy.startswith(_EVICTING):
            raise Unfit(
                f"may drop states that are in use (maxmemory-policy `{policy}`): set it to `noeviction`, or use another server"
            )
        # One that takes no writes says so, and may yet take over.
        if _field(self._exchange(until, (b"INFO", b"replication")), "slave_read_only") == "0":
            raise Unfit(
                "is a replica whose writes are lost when its primary sends it all anew (replica-read-only no): give the address of "
                "the primary"
            )
        keys = [self._stem + b"store", self._stem + b"writers"]
        command = (b"EVAL", OPEN.text, b"2", *keys, FORMAT, b"%d" % KEPT_US)
        before = time.monotonic_ns()
        opened = self._exchange(until, command)
        if not isinstance(opened, list) or not opened or not isinstance(opened[0], bytes):
            raise Unfit(_FOREIGN)
        found, *us = opened
        if found != FORMAT:
            raise Unfit(
                f"holds under this namespace what this version cannot read (`{found[:40].decode(errors='replace')}`, this one "
                f"reads `{FORMAT.decode()}`): upgrade, or use another `namespace`"
            )
        self._ahead_us = int(us[0]) - (before + time.monotonic_ns()) // 2_000

    def _exchange(self, until: float, parts: tuple[bytes, ...]) -> Any:
        sock = self._socket
        if sock is None:
            raise Cut("the connection is closed")
        try:
            said = b"".join([b"*%d\r\n" % len(parts), *[b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]])
            sock.settimeout(max(until - time.monotonic(), 1e-6))
            sock.sendall(said)
            return self._answer(sock, until)
        except Refused:
            raise
        except OSError as error:
            self.drop()
            raise Cut(str(error) or type(error).__name__) from error
        except ValueError:
            self.drop()
            raise Unfit(_FOREIGN) from None
        except BaseException:
            # An answer that is still under way must not be taken for that to the next command.
            self.drop()
            raise

    def _answer(self, sock: socket.socket, until: float) -> Any:
        line = self._take(sock, until, None)
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self._take(sock, until, size)
        if kind == b"*":
            count = int(rest)
            return None if count < 0 else [self._answer(sock, until) for _ in range(count)]
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest
        if kind == b"-":
            raise Refused(rest.decode(errors="replace"))
        raise Unfit(_FOREIGN)

    def _take(self, sock: socket.socket, until: float, size: int | None) -> bytes:
        """
        The next *size* bytes, or the next line, without the end of line behind them.
        """
        read = self._read
        while True:
            end = read.find(b"\r\n") if size is None else size
            if 0 <= end <= len(read) - 2:
                taken = bytes(read[:end])
                del read[: end + 2]
                return taken
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("no answer in time")
            sock.settimeout(left)
            got = sock.recv(_CHUNK)
            if not got:
                raise ConnectionResetError("the server closed the connection")
            read += got


def _field(told: Any, name: str) -> str:
    """
    Returns the value of a field of INFO, as it was *told*. Returns "" if there is none.
    """
    for line in told.decode(errors="replace").splitlines() if isinstance(told, bytes) else ():
        found, _, value = line.partition(":")
        if found == name:
            return str(value.strip())
    return ""
