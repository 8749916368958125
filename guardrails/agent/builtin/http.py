"""
One HTTP request of a tool: to an address that was judged, within a time, of a bounded size.
"""

import http.client
import re
import socket
import ssl
import threading
import time
import zlib

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from guardrails.core.result.kinds import kind_of
from guardrails.core.result.waits import wait_ms
from guardrails.core.values.version import __version__

from .addresses import PORTS, Network, Target, onward_of, parsed, printable
from .failure import ToolFailure


MAX_REDIRECTS: Final = 5
_MAX_TYPE_CHARS: Final = 1_000
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_CHUNK: Final = 1 << 16
_TYPE: Final = re.compile(r"\s*([a-z0-9!#$&^_.+-]{1,80}/[a-z0-9!#$&^_.+-]{1,80})\s*(?:[;,]|$)")
_CHARSET: Final = re.compile(r"""[;,]\s*charset\s*=\s*["']?([a-z0-9_.:-]{1,40})""")


@dataclass(slots=True)
class Page:
    """
    The answer of a server.
    """

    url: str
    """After redirects."""
    content_type: str
    """Lowercase, without parameters; `""` where none was said."""
    charset: str
    """As the server named it, lowercase; `""` where it did not."""
    body: bytes
    complete: bool
    """Nothing was cut, neither here nor on the way."""


class _Pinned(http.client.HTTPConnection):
    """
    A connection to one of *addresses*, which were judged before, whatever its host's name may mean by now.
    """

    def __init__(self, target: Target, addresses: list[str], deadline: float) -> None:
        # Its port is not said to the host where it is the usual one.
        self.default_port = PORTS[target.scheme]
        super().__init__(target.host, target.port)
        self._addresses = addresses
        self._secure = target.scheme == "https"
        self._deadline = deadline
        self.over = False
        """Its time is up."""
        self.opened: socket.socket | None = None
        """The socket itself; `sock` is given up once the answer is known to be the last."""

    def connect(self) -> None:
        """
        Connect to the first address that answers, by TLS to the name. Raises OSError, TimeoutError.
        """
        plain = self.opened = self.sock = self._connected()
        plain.settimeout(self._left())
        if self._secure:
            # The handshake comes after it is known here, so that it can be ended from outside too.
            context = ssl.create_default_context()
            self.opened = self.sock = context.wrap_socket(
                plain, server_hostname=self.host, do_handshake_on_connect=False
            )
            self._left()
            self.sock.do_handshake()

    def end(self) -> None:
        """
        End it from another thread.
        """
        self.over = True
        with suppress(OSError):
            if self.opened is not None:
                self.opened.shutdown(socket.SHUT_RDWR)

    def _connected(self) -> socket.socket:
        for number, address in enumerate(self._addresses):
            others = len(self._addresses) - number
            try:
                return socket.create_connection((address, self.port), self._left() / others)
            except OSError:
                if others == 1:
                    raise
        raise OSError("no address")

    def _left(self) -> float:
        # The alarm may have come while there was no socket that it could end.
        left = self._deadline - time.monotonic()
        if self.over or left <= 0:
            raise TimeoutError
        return left


def get(url: str, network: Network, *, timeout: float, limit: int, headers: Mapping[str, str] | None = None) -> Page:
    """
    GET *url*, following redirects, each judged by *network*. It takes at most *timeout* seconds in all, and reads at
    most *limit* bytes of the body. The *headers* go to the first host only, and no more once a redirect has left it.

    Raises ToolFailure with the type of what went wrong.
    """
    deadline = time.monotonic() + timeout
    target = parsed(url)
    secure = target.scheme == "https"
    for _ in range(MAX_REDIRECTS + 1):
        try:
            page, onward = _once(target, network, deadline, limit, headers or {})
        except TimeoutError:
            raise ToolFailure("timeout", f"no complete answer within {timeout:g} s") from None
        if onward is None:
            return page
        before, target = target, onward_of(target, onward)
        if secure and target.scheme == "http":
            raise ToolFailure("permission", "the server redirects to an address without encryption", retryable=False)
        if before.origin != target.origin:
            headers = None
    raise ToolFailure("other", f"more than {MAX_REDIRECTS} redirects", retryable=False)


def _once(
    target: Target, network: Network, deadline: float, limit: int, headers: Mapping[str, str]
) -> tuple[Page, str | None]:
    """
    (the answer, where it says to look instead). Raises TimeoutError, ToolFailure.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    addresses = network.addresses(target.host, target.port, timeout=left)
    connection = _Pinned(target, addresses, deadline)
    # A server that sends a byte now and then passes every timeout of a socket; closing it ends that.
    alarm = threading.Timer(max(0.0, deadline - time.monotonic()), connection.end)
    alarm.daemon = True
    alarm.start()
    try:
        own = {
            "User-Agent": f"toolcall-guardrails/{__version__}",
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            **headers,
        }
        connection.request("GET", target.path, headers=own)
        response = connection.getresponse()
        onward = response.getheader("Location")
        if response.status in _REDIRECTS and onward:
            return Page(target.url, "", "", b"", complete=True), onward
        if not 200 <= response.status < 400:
            raise _refused(response, target.host)
        body, complete = _body(response, limit, deadline)
        kind, charset = _kind(response.getheader("Content-Type", ""))
        return Page(target.url, kind, charset, body, complete), None
    except (ToolFailure, TimeoutError):
        raise
    except (OSError, http.client.HTTPException, ValueError, AttributeError, zlib.error) as error:
        # A connection that was closed by the alarm fails in any of these ways.
        if connection.over or time.monotonic() >= deadline:
            raise TimeoutError from None
        raise ToolFailure("connection", f"`{target.host}` could not be read: {_reason(error)}") from error
    finally:
        alarm.cancel()
        connection.close()


def _refused(response: http.client.HTTPResponse, host: str) -> ToolFailure:
    status = response.status
    wait = wait_ms(response.getheader("Retry-After"))
    fields = {} if wait is None else {"retry_after_ms": wait}
    # In the words of the standard: those of the server are a stranger's.
    known = http.client.responses.get(status, "")
    kind = kind_of(status) or "other"
    return ToolFailure(kind, f"`{host}` answered {status} {known}".rstrip(), http_status=status, **fields)


def _body(response: http.client.HTTPResponse, limit: int, deadline: float) -> tuple[bytes, bool]:
    """
    (at most *limit* bytes, whether that is all). The length that the server names is not believed.
    """
    packings = [each.strip() for each in response.getheader("Content-Encoding", "").lower().split(",")]
    packings = [each for each in packings if each not in ("", "identity")]
    if len(packings) > 1 or not set(packings) <= {"gzip", "x-gzip", "deflate"}:
        raise ToolFailure("other", "the answer is packed in a way that was not asked for", retryable=False)
    unpacking = zlib.decompressobj(47) if packings else None
    expected = response.length
    found, received = bytearray(), 0
    # What is packed may unpack to nothing, and never end; so it is counted as it comes as well.
    while len(found) <= limit and received <= limit:
        if time.monotonic() > deadline:
            raise TimeoutError
        data = response.read1(_CHUNK)
        received += len(data)
        if not data:
            # An alarm that ends the connection looks like its end.
            if time.monotonic() > deadline:
                raise TimeoutError
            return bytes(found), (expected is None or received >= expected) and (not unpacking or unpacking.eof)
        if unpacking is None:
            found += data
            continue
        # A small answer may be an endless one: never more is unpacked than is still wanted.
        found += unpacking.decompress(data, limit + 1 - len(found))
        if unpacking.eof:
            whole = not unpacking.unused_data and (expected is None or received >= expected)
            return bytes(found[:limit]), whole and len(found) <= limit
    return bytes(found[:limit]), False


def _kind(said: str) -> tuple[str, str]:
    """
    (type, charset) of a `Content-Type`, each `""` if it says none.
    """
    text = said[:_MAX_TYPE_CHARS].lower()
    kind, charset = _TYPE.match(text), _CHARSET.search(text)
    return kind[1] if kind else "", charset[1] if charset else ""


def _reason(error: Exception) -> str:
    """
    Returns the reason of a failure in words of this machine. A server's words are a stranger's.
    """
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not valid ({printable(error.verify_message)})"
        case OSError():
            return printable(error.strerror or type(error).__name__).lower()
        case zlib.error():
            return "its answer cannot be unpacked"
    return "its answer is no valid HTTP"
