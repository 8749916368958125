"""
One HTTP request of a tool: to an address that was judged, within a time, of a bounded size.
"""

import http.client
import socket
import ssl
import threading
import time
import zlib

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from guardrails.core.outcome.error_names import error_type_of_status
from guardrails.core.outcome.retry_after import wait_ms

from .addresses import Network
from .failure import ToolFailure


MAX_REDIRECTS: Final = 5
MAX_URL_CHARS: Final = 4_096
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_CHUNK: Final = 1 << 16
_SAFE: Final = "%/:=&?~#+!$,;'@()*[]"


@dataclass(slots=True)
class Page:
    """
    What a server answered.
    """

    url: str
    """After redirects."""
    content_type: str
    """Lowercase, without parameters; `""` where none was said."""
    charset: str
    body: bytes
    complete: bool
    """Nothing was cut, neither here nor on the way."""


class _Pinned(http.client.HTTPConnection):
    """
    A connection to an address that was judged before, whatever its host's name may mean by now.
    """

    def __init__(self, parts: SplitResult, port: int, address: str, timeout: float) -> None:
        super().__init__(parts.hostname or "", port, timeout=timeout)
        self._address = address
        self._secure = parts.scheme == "https"
        self.opened: socket.socket | None = None
        """The socket itself; `sock` is given up once the answer is known to be the last."""

    def connect(self) -> None:
        """
        Connect to the address, by TLS to the name.
        """
        plain = self.opened = self.sock = socket.create_connection((self._address, self.port), self.timeout)
        if self._secure:
            # The handshake comes after it is known here, so that it can be ended from outside too.
            context = ssl.create_default_context()
            self.opened = self.sock = context.wrap_socket(
                plain, server_hostname=self.host, do_handshake_on_connect=False
            )
            self.sock.do_handshake()


def get(url: str, network: Network, *, timeout: float, limit: int, headers: Mapping[str, str] | None = None) -> Page:
    """
    GET *url*, following redirects, each judged by *network*; within *timeout* seconds in all, of the body at most *limit*
    bytes. *headers* go to the first host only.

    Raises ToolFailure with the type of what went wrong.
    """
    deadline = time.monotonic() + timeout
    first = parsed(url)
    parts = first
    for _ in range(MAX_REDIRECTS + 1):
        sent = headers if (parts.scheme, parts.netloc) == (first.scheme, first.netloc) else None
        page, onward = _once(parts, network, deadline, timeout, limit, sent or {})
        if onward is None:
            return page
        parts = parsed(urljoin(parts.geturl(), onward))
        if first.scheme == "https" and parts.scheme == "http":
            raise ToolFailure("permission", "the server redirects to an address without encryption", retryable=False)
    raise ToolFailure("other", f"more than {MAX_REDIRECTS} redirects", retryable=False)


def parsed(url: str) -> SplitResult:
    """
    *url* in its parts. Raises ToolFailure `validation` where it is none that can be fetched.
    """
    if len(url) > MAX_URL_CHARS or any(ord(char) <= 32 or ord(char) == 127 for char in url):
        raise ToolFailure("validation", "the URL is too long or holds spaces or control characters", retryable=False)
    try:
        parts = urlsplit(quote(url, safe=_SAFE))
        port = parts.port
    except (ValueError, UnicodeError):
        raise ToolFailure("validation", f"`{url[:200]}` is no URL", retryable=False) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ToolFailure("validation", "a URL begins with `http://` or `https://` and a host", retryable=False)
    if parts.username is not None or port == 0:
        raise ToolFailure("validation", "a URL must not hold a name, a password or port 0", retryable=False)
    return parts


def _once(
    parts: SplitResult, network: Network, deadline: float, timeout: float, limit: int, headers: Mapping[str, str]
) -> tuple[Page, str | None]:
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = parts.hostname or ""
    address = network.address(host, port)
    left = deadline - time.monotonic()
    if left <= 0:
        raise _late(timeout)
    connection = _Pinned(parts, port, address, left)
    # A server that sends a byte now and then passes every timeout of a socket; closing it ends that.
    alarm = threading.Timer(left, _shut, [connection])
    alarm.daemon = True
    alarm.start()
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        own = {"User-Agent": "toolcall-guardrails", "Accept": "*/*", "Accept-Encoding": "identity", **headers}
        connection.request("GET", target, headers=own)
        response = connection.getresponse()
        onward = response.getheader("Location")
        if response.status in _REDIRECTS and onward:
            return Page(parts.geturl(), "", "", b"", complete=True), onward
        if response.status >= 400:
            raise _refused(response, host)
        body, complete = _body(response, limit)
        if time.monotonic() > deadline:
            raise _late(timeout)
        kind = response.headers.get_content_type() if response.headers.get("Content-Type") else ""
        charset = response.headers.get_content_charset() or "utf-8"
        return Page(parts.geturl(), kind, charset, body, complete), None
    except ToolFailure:
        raise
    except TimeoutError:
        raise _late(timeout) from None
    except (OSError, http.client.HTTPException, ValueError, AttributeError, zlib.error) as error:
        # A connection that was closed by the alarm fails in any of these ways.
        if time.monotonic() >= deadline:
            raise _late(timeout) from None
        raise ToolFailure("connection", f"`{host[:200]}` could not be read: {_reason(error)}") from error
    finally:
        alarm.cancel()
        connection.close()


def _shut(connection: _Pinned) -> None:
    with suppress(OSError):
        if connection.opened is not None:
            connection.opened.shutdown(socket.SHUT_RDWR)


def _late(timeout: float) -> ToolFailure:
    return ToolFailure("timeout", f"no complete answer within {timeout:g} s")


def _refused(response: http.client.HTTPResponse, host: str) -> ToolFailure:
    status = response.status
    wait = wait_ms(response.getheader("Retry-After"))
    fields = {} if wait is None else {"retry_after_ms": wait}
    return ToolFailure(
        error_type_of_status(status) or "other",
        f"`{host[:200]}` answered {status} {response.reason[:100]}",
        http_status=status,
        **fields,
    )


def _body(response: http.client.HTTPResponse, limit: int) -> tuple[bytes, bool]:
    """
    (at most *limit* bytes, whether that is all), whatever the server says its length is.
    """
    said = response.getheader("Content-Encoding", "").strip().lower()
    if said not in ("", "identity", "gzip", "deflate"):
        raise ToolFailure("other", f"the answer is encoded as `{said[:40]}`", retryable=False)
    unpacking = zlib.decompressobj(47) if said in ("gzip", "deflate") else None
    expected = response.length
    parts, size, received = [], 0, 0
    while size <= limit:
        data = response.read1(_CHUNK)
        received += len(data)
        if not data:
            if unpacking is not None:
                data = unpacking.flush()
                parts.append(data)
            whole = expected is None or received >= expected
            return b"".join(parts)[:limit], whole and size + len(data) <= limit
        if unpacking is not None:
            # A small answer may be an endless one: never more is unpacked than is still wanted.
            data = unpacking.decompress(data, limit + 1 - size)
        parts.append(data)
        size += len(data)
    return b"".join(parts)[:limit], False


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({error.verify_message})"
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(said).lower()[:200]
