"""
Connections to a server over HTTP, by the library of the language: importing another one takes longer than a server takes to
answer.
"""

import http.client
import select
import ssl
import threading
import time

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from .lines import MAX_LINE, TOO_LONG


CONNECT_S: Final = 30.0
IDLE_S: Final = 20.0
"""How long a connection that nobody uses may be used again."""

Response = http.client.HTTPResponse
Connection = http.client.HTTPConnection
FAILURES: Final = (OSError, http.client.HTTPException)
"""What is raised where a server cannot be reached, or speaks no HTTP."""

HOPS: Final = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host"}) | {
    "proxy-authenticate",
    "proxy-authorization",
    "content-length",
    "accept-encoding",
    "date",
    "server",
}
"""Headers that are of one connection and not of the message."""


class LostError(Exception):
    """
    A message of the client is not answered; the text says why.
    """


class Connections:
    """
    Connections that are used again while they are idle. Safe in any number of threads.
    """

    def __init__(self) -> None:
        self._idle: list[tuple[tuple[str, str], Connection, float]] = []
        self._lock = threading.Lock()

    def request(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: dict[str, str],
        seconds: float | None,
        *,
        opened: Callable[[Connection], object] | None = None,
    ) -> tuple[Response, Connection]:
        """
        The beginning of what the server at *url* answers, and the connection it comes on, which *opened* is told before; each
        part may take *seconds*.

        Raises what `FAILURES` names.
        """
        parts = urlsplit(url)
        connection = self._connection((parts.scheme, parts.netloc))
        connection.sock.settimeout(seconds)
        try:
            if opened is not None:
                opened(connection)
            connection.request(method, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), body, headers)
            return connection.getresponse(), connection
        except BaseException:
            connection.close()
            raise

    def give_back(self, url: str, response: Response, connection: Connection) -> None:
        """
        Keep *connection* for another request to *url*, since *response* was read.
        """
        if response.will_close or not response.isclosed():
            connection.close()
            return
        parts = urlsplit(url)
        with self._lock:
            self._idle.append(((parts.scheme, parts.netloc), connection, time.monotonic()))

    def close(self) -> None:
        """
        Close all that are idle.
        """
        with self._lock:
            for _, connection, _ in self._idle:
                connection.close()
            self._idle.clear()

    def _connection(self, place: tuple[str, str]) -> Connection:
        with self._lock:
            kept, self._idle = self._idle, []
            found = None
            for each in reversed(kept):
                where, connection, since = each
                if time.monotonic() - since >= IDLE_S or _is_over(connection):
                    connection.close()
                elif found is None and where == place:
                    found = connection
                else:
                    self._idle.insert(0, each)
        if found is not None:
            return found
        scheme, netloc = place
        made = (
            http.client.HTTPSConnection(netloc, timeout=CONNECT_S, context=ssl.create_default_context())
            if scheme == "https"
            else http.client.HTTPConnection(netloc, timeout=CONNECT_S)
        )
        made.connect()
        return made


class Event(NamedTuple):
    """
    One event of a stream.
    """

    raw: bytes
    data: bytes
    id: str
    wait: float | None
    """Seconds before a stream that breaks off is taken up again; None: it does not say."""


def events(response: Response) -> Iterator[Event]:
    """
    The events of a stream. Raises LostError for one that is too long to be passed on, and what `FAILURES` names.
    """
    raw: list[bytes] = []
    data: list[bytes] = []
    size = 0
    event, wait = "", None
    while line := response.readline(MAX_LINE + 1):
        raw.append(line)
        size += len(line)
        if size > MAX_LINE:
            raise LostError(TOO_LONG)
        line = line.rstrip(b"\r\n")
        if not line:
            yield Event(b"".join(raw), b"\n".join(data), event, wait)
            raw, data, event, wait, size = [], [], "", None, 0
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"id" and value.isascii():
            event = value.decode()
        elif name == b"retry" and value.isdigit():
            wait = min(int(value[:9]) / 1000, 30.0)


def event_of(line: bytes, id_: str) -> bytes:
    """
    The event that says the message *line*, with its *id_* if it has one.
    """
    head = f"id: {id_}\n".encode() if id_ else b""
    return head + b"event: message\ndata: " + line.strip() + b"\n\n"


def kept_of(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """
    Returns the *headers* of a message, without those of one connection.
    """
    return [(name, value) for name, value in headers if name.lower() not in HOPS]


def _is_over(connection: http.client.HTTPConnection) -> bool:
    """
    Returns whether the other end has closed an idle *connection*, or says what nobody has asked for.
    """
    return connection.sock is None or bool(select.select([connection.sock], [], [], 0)[0])
