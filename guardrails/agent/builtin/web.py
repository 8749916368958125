"""
The tools that read the web: web_fetch, web_search.
"""

import html
import ipaddress
import json
import re
import socket
import ssl
import time

from collections.abc import Callable, Collection
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote, urlsplit

from annotated_types import Ge, Le

from guardrails.core.envelope import Envelope
from guardrails.core.result.kinds import kind_of
from guardrails.core.result.waits import wait_ms
from guardrails.core.values.errors import needs
from guardrails.core.values.version import __version__

from .failure import ToolFailure, ToolSet, failure_of, page


if TYPE_CHECKING:
    import httpx2

MAX_TEXT_CHARS: Final = 24_000
"""Of a page at a time."""
MAX_BODY_BYTES: Final = 4 << 20
MAX_REDIRECTS: Final = 5
_HEADERS: Final = {"User-Agent": f"toolcall-guardrails/{__version__}", "Accept-Encoding": "identity"}
_PACKINGS: Final = ("identity", "gzip", "deflate")
"""A piece that comes of these has a thousandfold at most; others have no such bound."""
_TEXTS: Final = ("text/", "application/json", "application/xml", "application/xhtml", "application/javascript")
_GLOBAL: Final = ipaddress.ip_network("2000::/3")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_AZURE: Final = ipaddress.ip_address("168.63.129.16")
"""Looks public, and is a server of the machine that it is asked from."""
_CHARSET: Final = re.compile(
    rb"""(?:;|<(?:meta|\?xml)\s[^<>]{0,200}?)\s*(?:charset|encoding)\s?=\s?["']?([\w.:-]{1,40})""", re.I
)
_SKIPPED: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(noscript|script|style|svg|template)\b[^<>]*+>.*?(?:</\1\s*+>|\Z)", re.IGNORECASE | re.DOTALL
)
_INLINE: Final = re.compile(r"</?(?:a|b|code|em|i|small|span|strong|sub|sup|u)\b[^<>]*+>", re.IGNORECASE)
"""Elements within a line; all others begin one."""
_TAG: Final = re.compile(r"</?[a-z][^<>]*+>", re.IGNORECASE)

Search = Callable[[str, int], Collection[Any]]
"""`search(query, count)` gives hits, `{"title": ..., "url": ..., "content": ...}`."""
Page = tuple[str, str, bytes, bool]
"""The answer of a server: its URL after redirects, its content type with parameters, its body, and whether that is whole."""


class Web(ToolSet):
    """
    Tools that fetch pages of public addresses and of those that *allow* names (hosts, addresses, networks), and that ask
    *search*; each within *timeout* seconds. They need the extra `openai`, for its HTTP client.

    *search* is a function, or the URL of a service that answers with JSON as SearXNG does, with `{query}` and, where it
    takes one, `{count}` in it: `http://localhost:8080/search?format=json&q={query}`.
    """

    def __init__(self, *, allow: Collection[str] = (), search: Search | str | None = None, timeout: float = 20) -> None:
        self._allow = allow
        self._search: Any = partial(self._asked, search) if isinstance(search, str) else search
        self._timeout = timeout
        self.names = ("web_fetch",) if search is None else ("web_fetch", "web_search")

    def web_fetch(self, url: str, offset: Annotated[int, Ge(0)] = 0) -> Envelope:
        """
        Fetch a page of the web as text, from character `offset` on.
        """
        place, kind, body, complete = self._get(url, self._allow, MAX_REDIRECTS)
        text = _readable(kind, body)
        shown = text[offset : offset + MAX_TEXT_CHARS]
        end = offset + len(shown)
        value = {"url": place, "text": shown, "offset": offset, "characters": len(text)}
        more = None if complete else "The rest of the page was not read: it is too long."
        if end < len(text):
            value["next_offset"], more = end, f"Fetch on from offset {end}."
        return page(value, more)

    def web_search(self, query: str, count: Annotated[int, Ge(1), Le(20)] = 5) -> Envelope:
        """
        Search the web: titles, addresses and snippets of pages.
        """
        hits = [hit for hit in self._search(query, count) if isinstance(hit, dict)]
        keys = {"title": ("title", 300), "url": ("url", 2_000), "snippet": ("content", 1_000)}
        shown = [{name: str(hit.get(key) or "")[:most] for name, (key, most) in keys.items()} for hit in hits[:count]]
        return Envelope.success(shown, total_matches=len(hits), is_complete=True)

    def _asked(self, service: str, query: str, count: int) -> list[Any]:
        url = service.replace("{query}", quote(query, safe="", errors="replace")).replace("{count}", str(count))
        # Its address is the host's own choice, so that it may be anywhere, and lead nowhere else.
        _, _, body, _ = self._get(url, (str(urlsplit(url).hostname),), 0)
        try:
            return list(json.loads(body)["results"])
        except (ValueError, RecursionError, KeyError, TypeError):
            reason = "the search service did not answer with JSON that holds a list `results`"
            raise ToolFailure("server_error", reason) from None

    def _get(self, url: str, allow: Collection[str], redirects: int) -> Page:
        """
        GET *url*. Each redirect is judged as the first address is.
        """
        with needs("openai", "`web_fetch`"):
            import httpcore2
            import httpx2
        network: Any = _Network(httpcore2.SyncBackend(), allow, time.monotonic() + self._timeout)
        context = ssl.create_default_context()
        transport = httpx2.HTTPTransport(context)
        # It has no other way to be given a network.
        transport._pool = httpcore2.ConnectionPool(context, network_backend=network)  # noqa: SLF001
        client = httpx2.Client(transport=transport, headers=_HEADERS, timeout=self._timeout)
        try:
            with client:
                request: Any = client.build_request("GET", url)
                # The client would read what a redirect brings whole, however long it is.
                for _ in range(redirects + 1):
                    with closing(client.send(request, stream=True)) as answer:
                        request = answer.next_request
                        if request is None:
                            return _read(answer)
                raise httpx2.TooManyRedirects("")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            bad = " (its certificate is not valid)" if "CERTIFICATE" in str(error) else ""
            raise failure_of(error, f"the page could not be read{bad}") from None


class _Network:
    """
    The network of a client: it connects to the very addresses that were judged, whatever a name means later, and connects
    and reads until the *deadline*; a server that sends a byte now and then passes every timeout of a socket.
    """

    def __init__(self, backend: Any, allow: Collection[str], deadline: float) -> None:
        self._backend, self._allow, self._deadline = backend, allow, deadline

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> "_Network":
        *others, last = addresses_of(host, port, self._allow)
        for address in others:
            # The next one may take it.
            with suppress(Exception):
                return self._of(self._backend.connect_tcp(address, port, self._left() / (1 + len(others)), **options))
        return self._of(self._backend.connect_tcp(last, port, self._left(), **options))

    def start_tls(self, **options: Any) -> "_Network":
        return self._of(self._backend.start_tls(**{**options, "timeout": self._left()}))

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return bytes(self._backend.read(max_bytes, self._left()))

    def _of(self, stream: Any) -> "_Network":
        return _Network(stream, self._allow, self._deadline)

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


def addresses_of(host: str, port: int, allow: Collection[str]) -> list[str]:
    """
    Returns the addresses of *host*: public, or ones that *allow* names.

    Raises ToolFailure: `permission` if one of its addresses may not be reached, `not_found` if there is no such name.
    """
    try:
        addresses = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        raise ToolFailure("not_found", f"there is no host `{host[:200]}`") from None
    # One private address among public ones is enough to be tricked.
    if host in allow or all(_may(ipaddress.ip_address(address), allow) for address in addresses):
        return addresses
    reason, hint = "is not on the public internet", "Use a public address, or ask the user for what is there."
    raise ToolFailure("permission", f"`{host[:200]}` {reason}", hint)


def _may(address: Any, allow: Collection[str]) -> bool:
    for name in allow:
        # Others are names of hosts.
        with suppress(ValueError):
            if address in ipaddress.ip_network(name, strict=False):
                return True
    return is_public(address)


def is_public(address: Any) -> bool:
    """
    Returns whether *address* is one of the public internet, as is the IPv4 address that it may stand for; those that tunnel are
    none.
    """
    if address.version == 6 and (address.ipv4_mapped or address in _NAT64):
        address = ipaddress.ip_address(int(address) & 0xFFFF_FFFF)
    if address.version == 4:
        return address.is_global and not address.is_multicast and address != _AZURE
    return address in _GLOBAL and address.is_global and not (address.sixtofour or address.teredo)


def _read(answer: "httpx2.Response") -> Page:
    if not answer.is_success:
        wait, status = wait_ms(answer.headers.get("retry-after", "")), answer.status_code
        reason = f"`{answer.url.host}` answered {status}"
        raise ToolFailure(kind_of(status) or "other", reason, http_status=status, retry_after_ms=wait)
    if (answer.headers.get("content-encoding") or "identity").lower() not in _PACKINGS:
        raise ToolFailure("other", "the answer is packed in a way that was not asked for", retryable=False)
    body = b""
    for data in answer.iter_bytes():
        body += data
        if len(body) > MAX_BODY_BYTES:
            break
    complete = len(body) <= MAX_BODY_BYTES
    return str(answer.url), answer.headers.get("content-type", ""), body[:MAX_BODY_BYTES], complete


def _readable(content_type: str, body: bytes) -> str:
    """
    Returns the text of *body*. Raises ToolFailure if it is none.
    """
    kind = content_type.partition(";")[0].strip().lower()
    named = _CHARSET.search(content_type.encode(errors="replace") + b"\n" + body[:1_024])
    try:
        text = body.decode(named[1].decode() if named else "utf-8", "replace")
    except (LookupError, UnicodeError):
        # Python has charsets that are no text.
        text = body.decode(errors="replace")
    if "\0" in text[:8_192] or (kind and not kind.startswith(_TEXTS) and not kind.endswith(("+json", "+xml"))):
        raise ToolFailure("validation", f"the page is no text but `{kind[:60] or 'binary data'}`")
    return page_text(text) if "html" in kind or (not kind and "<html" in text[:1_000].lower()) else text


def page_text(source: str) -> str:
    """
    Returns the text of the HTML *source*, however broken: one line for each block, the title first, in time that grows
    with its length alone.
    """
    text = _TAG.sub("\n", _INLINE.sub("", _SKIPPED.sub("", source)))
    plain = re.sub(r"&#?\w{1,32};", lambda match: html.unescape(match[0]), text)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(" ".join(line.split()) for line in plain.split("\n"))).strip()
