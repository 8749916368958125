"""
The tools that read the web: web_fetch, web_search.
"""

import html
import ipaddress
import json
import re
import socket
import ssl
import threading
import time
import zlib

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple
from urllib.parse import quote

from annotated_types import Ge, Le

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.result.kinds import kind_of
from guardrails.core.result.waits import wait_ms
from guardrails.core.values.errors import needs
from guardrails.core.values.version import __version__

from .failure import ToolFailure, ToolSet


if TYPE_CHECKING:
    import httpx2

MAX_TEXT_CHARS: Final = 24_000
"""Of a page at a time."""
MAX_BODY_BYTES: Final = 4 << 20
MAX_URL_CHARS: Final = 4_096
MAX_QUERY_CHARS: Final = 1_000
MAX_REDIRECTS: Final = 5
_TEXTS: Final = ("text/", "application/json", "application/xml", "application/xhtml", "application/javascript")
_GLOBAL: Final = ipaddress.ip_network("2000::/3")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_AZURE: Final = ipaddress.ip_address("168.63.129.16")
"""Looks public, and is a server of the machine that it is asked from."""
_CHARSET: Final = re.compile(
    rb"""<(?:meta|\?xml)\s[^<>]{0,200}?(?:charset|encoding)\s?=\s?["']?([\w.:-]{1,40})""", re.I
)
_TAG: Final = re.compile(r"<(/?)([a-z][\w:-]*+)[^<>]*+>|(<!--)|(-->)", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title[^<>]*+>([^<]{0,1000})", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"&#?\w{1,32};")
_SKIPPED: Final = frozenset({"head", "noscript", "script", "style", "svg", "template"})
_INLINE: Final = frozenset({"a", "b", "code", "em", "i", "small", "span", "strong", "sub", "sup", "u"})
"""Elements within a line; all others begin one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEndpoint:
    """
    A search service that answers GET with JSON, by default as SearXNG does.
    """

    url: str
    """With `{query}` and, where it takes one, `{count}`: `http://localhost:8080/search?format=json&q={query}`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """A key, for example."""
    results: str = "results"
    """Where in the answer the list is, by keys with dots: Brave has `web.results`."""
    title: str = "title"
    link: str = "url"
    snippet: str = "content"


class Page(NamedTuple):
    """
    The answer of a server.
    """

    url: str
    """After redirects."""
    kind: str
    """Its content type, without parameters."""
    charset: str | None
    body: bytes
    complete: bool


class Web(ToolSet):
    """
    Tools that fetch pages of public addresses and of those that *allow* names (hosts, addresses, networks), and that ask
    *search*; each within *timeout* seconds. They need the extra `openai`, for its HTTP client.
    """

    def __init__(
        self, *, allow: Collection[str] = (), search: SearchEndpoint | None = None, timeout: float = 20
    ) -> None:
        self._allow = allow
        self._search = search
        self._timeout = timeout
        self.names = ("web_fetch",) if search is None else ("web_fetch", "web_search")

    def web_fetch(self, url: str, offset: Annotated[int, Ge(0)] = 0) -> Envelope:
        """
        Fetch a page of the web as text, from character `offset` on.
        """
        page = self._get(url, self._allow)
        title, text = _readable(page)
        shown = text[offset : offset + MAX_TEXT_CHARS]
        if offset and not shown:
            raise ToolFailure("validation", f"the page has {len(text):,} characters", retryable=False)
        value = {"url": page.url, "text": shown, "offset": offset, "characters": len(text)}
        value |= {"title": title} if title else {}
        end = offset + len(shown)
        if end < len(text):
            hint = f"Fetch on from offset {end}."
            return Envelope.success({**value, "next_offset": end}, is_complete=False, next_action_hint=hint)
        missing = None if page.complete else "The rest of the page was not read: it is too long."
        return Envelope.success(value, is_complete=page.complete, next_action_hint=missing)

    def web_search(self, query: str, count: Annotated[int, Ge(1), Le(20)] = 5) -> Envelope:
        """
        Search the web: titles, addresses and snippets of pages.
        """
        endpoint = self._search
        if endpoint is None:
            raise ToolFailure("tool_missing", "no search service is set up", retryable=False)
        if len(query) > MAX_QUERY_CHARS:
            raise ToolFailure("validation", f"a query has at most {MAX_QUERY_CHARS:,} characters", retryable=False)
        url = endpoint.url.replace("{query}", quote(query, safe="", errors="replace")).replace("{count}", str(count))
        # Its address is the host's own choice, so that it may be anywhere.
        hits = _hits(self._get(url, None, endpoint.headers).body, endpoint.results)
        keys = {"title": (endpoint.title, 300), "url": (endpoint.link, 2_000), "snippet": (endpoint.snippet, 1_000)}
        found = [
            {name: _short(hit.get(key), most) for name, (key, most) in keys.items()}
            for hit in hits[:count]
            if isinstance(hit, dict)
        ]
        return Envelope.success(found, total_matches=len(hits), is_complete=True)

    def _get(self, text: str, allow: Collection[str] | None, headers: Mapping[str, str] | None = None) -> Page:
        """
        GET the URL *text*. Each redirect is judged as the first address is; a service with *headers* may not redirect.
        """
        with needs("openai", "`web_fetch`"):
            import httpx2
        deadline = time.monotonic() + self._timeout
        own = {"User-Agent": f"toolcall-guardrails/{__version__}", "Accept-Encoding": "identity", **(headers or {})}
        context = ssl.create_default_context()
        try:
            url = _checked(httpx2.URL(text))
            with (
                httpx2.Client(verify=context, trust_env=False, timeout=self._timeout) as client,
                _alarm(deadline) as trace,
            ):
                for _ in range(MAX_REDIRECTS + 1 if headers is None else 1):
                    with closing(self._sent(client, url, allow, own, trace)) as response:
                        if not response.has_redirect_location:
                            return _read(response, url, deadline)
                        onward = _checked(url.join(response.headers["Location"]))
                    if onward.scheme == "http" != url.scheme:
                        raise ToolFailure("permission", "it redirects to a page without encryption", retryable=False)
                    url = onward
        except (httpx2.InvalidURL, UnicodeError, TypeError):
            raise ToolFailure("validation", "it, or what it redirects to, is no URL", retryable=False) from None
        except (httpx2.HTTPError, OSError, zlib.error) as error:
            if time.monotonic() >= deadline or isinstance(error, httpx2.TimeoutException):
                raise ToolFailure("timeout", f"no complete answer within {self._timeout:g} s") from None
            # A server's words are a stranger's.
            why = "its certificate is not valid" if "CERTIFICATE" in str(error) else type(error).__name__
            raise ToolFailure("connection", f"the page could not be read: {why}") from None
        raise ToolFailure("other", "too many redirects", retryable=False)

    def _sent(
        self, client: "httpx2.Client", url: "httpx2.URL", allow: Collection[str] | None, own: dict[str, str], trace: Any
    ) -> "httpx2.Response":
        """
        Returns the answer, to be read, of the first address of *url* that takes a connection.
        """
        with needs("openai", "`web_fetch`"):
            import httpx2
        *others, last = addresses_of(url.host, url.port or (443 if url.scheme == "https" else 80), allow)
        more: dict[str, Any] = {"headers": {**own, "Host": url.netloc.decode("ascii")}}
        more["timeout"] = httpx2.Timeout(self._timeout, connect=self._timeout / (len(others) + 1))
        more["extensions"] = {"sni_hostname": url.host, "trace": trace}

        def sent(address: str) -> "httpx2.Response":
            # The very address that was judged, whatever the name means later.
            asked = client.build_request("GET", url.copy_with(host=address, fragment=None), **more)
            return client.send(asked, stream=True)

        for address in others:
            with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                return sent(address)
        return sent(last)


@contextmanager
def _alarm(deadline: float) -> Iterator[Callable[[str, Mapping[str, Any]], None]]:
    """
    A trace of connections, which end at *deadline*: a server that sends a byte now and then passes every timeout of a socket.
    """
    opened: list[socket.socket] = []

    def trace(event: str, told: Mapping[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            opened.append(told["return_value"].get_extra_info("socket"))

    def end() -> None:
        for one in opened:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(deadline - time.monotonic(), end)
    timer.daemon = True
    timer.start()
    try:
        yield trace
    finally:
        timer.cancel()


def _checked(url: "httpx2.URL") -> "httpx2.URL":
    if url.scheme not in ("http", "https") or not url.host or len(str(url)) > MAX_URL_CHARS:
        raise ToolFailure("validation", "a URL begins with `http://` or `https://` and a host", retryable=False)
    if url.userinfo:
        raise ToolFailure("validation", "a URL must not hold a name or a password", retryable=False)
    return url


def addresses_of(host: str, port: int, allow: Collection[str] | None) -> list[str]:
    """
    Returns the addresses of *host*: public, or ones that *allow* names; None: any.

    Raises ToolFailure: `permission` if one of its addresses may not be reached, `not_found` if there is no such name.
    """
    try:
        found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        raise ToolFailure("not_found", f"there is no host `{host[:200]}`") from None
    # One private address among public ones is enough to be tricked.
    if allow is None or host in allow or all(_may(ipaddress.ip_address(one), allow) for one in found):
        return found
    raise ToolFailure(
        "permission",
        f"`{host[:200]}` is not on the public internet",
        retryable=False,
        next_action_hint="Use a public address, or ask the user for what is there.",
    )


def _may(address: Any, allow: Collection[str]) -> bool:
    for name in allow:
        try:
            if address in ipaddress.ip_network(name, strict=False):
                return True
        except ValueError:  # the name of a host
            continue
    return is_public(address)


def is_public(address: Any) -> bool:
    """
    Returns whether *address* is one of the public internet, and so is the IPv4 address that it stands for or leads to.
    """
    if address.version == 4:
        return address.is_global and not address.is_multicast and address != _AZURE
    inner = address.ipv4_mapped or address.sixtofour
    inner = ipaddress.ip_address(int(address) & 0xFFFF_FFFF) if address in _NAT64 else inner
    if inner is not None:
        return is_public(inner)
    return address in _GLOBAL and address.is_global and address.teredo is None


def _read(response: "httpx2.Response", url: "httpx2.URL", deadline: float) -> Page:
    status = response.status_code
    if not 200 <= status < 300:
        wait = wait_ms(response.headers.get("Retry-After"))
        fields = {} if wait is None else {"retry_after_ms": wait}
        raise ToolFailure(kind_of(status) or "other", f"`{url.host}` answered {status}", http_status=status, **fields)
    body = bytearray()
    for data in response.iter_raw():
        body += data
        if len(body) > MAX_BODY_BYTES:
            break
    if time.monotonic() >= deadline:
        raise TimeoutError
    complete = len(body) <= MAX_BODY_BYTES
    packing = response.headers.get("Content-Encoding", "identity").lower()
    if packing in ("gzip", "deflate"):
        # It was not asked for. A small body may be an endless one: never more is unpacked than is wanted.
        body = bytearray(zlib.decompressobj(47).decompress(body, MAX_BODY_BYTES + 1))
    elif packing != "identity":
        raise ToolFailure("other", "the answer is packed in a way that was not asked for", retryable=False)
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    complete = complete and len(body) <= MAX_BODY_BYTES
    return Page(str(url), kind, response.charset_encoding, bytes(body[:MAX_BODY_BYTES]), complete)


def _readable(page: Page) -> tuple[str, str]:
    """
    Returns the title and the text of *page*. Raises ToolFailure if it is no text.
    """
    kind, inside = page.kind, _CHARSET.search(page.body[:1_024])
    charset = page.charset or (inside[1].decode() if inside else "utf-8")
    try:
        text = page.body.decode(charset, "replace").encode(errors="replace").decode()
    except (LookupError, UnicodeError):
        # Python has charsets that are no text.
        text = page.body.decode(errors="replace")
    if "\0" in text[:8_192] or (kind and not kind.startswith(_TEXTS) and not kind.endswith(("+json", "+xml"))):
        raise ToolFailure("validation", f"the page is no text but `{kind[:60] or 'binary data'}`", retryable=False)
    if "html" not in kind and (kind or "<html" not in text[:1_000].lower()):
        return "", text
    title = _TITLE.search(text)
    return " ".join(_plain(title[1]).split()) if title else "", page_text(text)


def page_text(source: str) -> str:
    """
    Returns the text of the HTML *source*, however broken: one line for each block, in time that grows with its length alone.
    """
    parts: list[str] = []
    skipped, at = "", 0
    for tag in _TAG.finditer(source):
        name = (tag[2] or tag[0]).lower()
        if not skipped:
            parts.append(source[at : tag.start()])
            if name in _SKIPPED or name == "<!--":
                skipped = "-->" if name == "<!--" else name * (not tag[1])
            elif name not in _INLINE:
                parts.append("\n")
        elif (name == skipped and (tag[1] or tag[4])) or (skipped == "head" and name == "body"):
            skipped = ""
        at = tag.end()
    if not skipped:
        parts.append(source[at:])
    lines = (" ".join(line.split()) for line in _plain("".join(parts)).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _plain(text: str) -> str:
    return _REFERENCE.sub(lambda found: html.unescape(found[0]), text)


def _hits(body: bytes, path: str) -> list[Any]:
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise ToolFailure("server_error", "the search service did not answer with JSON") from None
    for key in path.split("."):
        answer = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(answer, list):
        raise ToolFailure("server_error", f"the search service's answer holds no list `{path}`")
    return answer


def _short(value: object, most: int) -> str:
    # Half a pair of surrogates is no text.
    return value[:most].encode(errors="replace").decode() if isinstance(value, str) else ""
