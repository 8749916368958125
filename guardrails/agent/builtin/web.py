"""
The tools that read the web: web_fetch, web_search.
"""

import json
import re

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final
from urllib.parse import quote, urlsplit

from annotated_types import Ge, Le

from guardrails.core.envelope.envelope import Envelope

from .addresses import Network
from .failure import ToolFailure, ToolSet
from .http import Page, get
from .page_text import page_text


MAX_TEXT_CHARS: Final = 24_000
"""Of a page at a time."""
MAX_BODY_BYTES: Final = 4 << 20
MAX_QUERY_CHARS: Final = 1_000
_TEXTS: Final = ("text/", "application/json", "application/xml", "application/xhtml", "application/javascript")
_META_BYTES: Final = 1_024
"""Where browsers look for the charset of a page that its server does not name."""
_META: Final = re.compile(
    rb"""<(?:meta|\?xml)[\s/][^>]{0,200}?(?:charset|encoding)\s*=\s*["']?([a-z0-9_.:-]{1,40})""", re.IGNORECASE
)
_CODECS: Final = {
    **{f"iso8859{number}": f"iso8859-{number}" for number in (*range(2, 12), *range(13, 17))},
    **{f"{name}{number}": f"cp{number}" for name in ("windows", "cp") for number in (866, 874, *range(1250, 1259))},
    **dict.fromkeys(("ascii", "usascii", "latin1", "iso88591"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk", "gb18030"), "gb18030"),
    **dict.fromkeys(("shiftjis", "sjis", "windows31j", "cp932"), "cp932"),
    **dict.fromkeys(("euckr", "ksc56011987", "windows949", "cp949"), "cp949"),
    **dict.fromkeys(("big5", "big5hkscs"), "big5hkscs"),
    **{name.replace("-", ""): name for name in ("utf-16", "utf-16le", "utf-16be", "koi8-r", "koi8-u")},
    **{name: name for name in ("eucjp", "iso2022jp")},
    "tis620": "cp874",
    "ibm866": "cp866",
    "macintosh": "mac_roman",
}
"""Charsets as browsers know them, without hyphens. All that they call Latin-1 is read as its superset of Windows."""


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


class Web(ToolSet):
    """
    Tools that fetch pages of public addresses and of those that *allow* names (hosts, addresses, networks), and that ask
    *search*; each within *timeout* seconds.
    """

    def __init__(
        self,
        *,
        allow: Collection[str] = (),
        search: SearchEndpoint | None = None,
        timeout: float = 20,
        network: Network | None = None,
    ) -> None:
        self._network = Network(allow) if network is None else network
        self._search = search
        self.names = ("web_fetch",) if search is None else ("web_fetch", "web_search")
        self._timeout = timeout

    def web_fetch(self, url: str, offset: Annotated[int, Ge(0)] = 0) -> Envelope:
        """
        Fetch a page of the web as text, from character `offset` on.
        """
        page = get(url, self._network, timeout=self._timeout, limit=MAX_BODY_BYTES)
        title, text = _readable(page)
        shown = text[offset : offset + MAX_TEXT_CHARS]
        if offset and not shown:
            raise ToolFailure("validation", f"the page has {len(text):,} characters", retryable=False)
        value: dict[str, Any] = {"url": page.url, "text": shown, "offset": offset, "characters": len(text)}
        if title:
            value["title"] = title
        end = offset + len(shown)
        if end < len(text):
            value["next_offset"] = end
            return Envelope.success(value, is_complete=False, next_action_hint=f"Fetch on from offset {end}.")
        hint = None if page.complete else "The rest of the page did not come: it was cut on the way, or is too long."
        return Envelope.success(value, is_complete=page.complete, next_action_hint=hint)

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
        # Its address is the host's own choice, so it may be anywhere; where it redirects to is not.
        host = urlsplit(url).hostname or ""
        network = Network([host])
        page = get(url, network, timeout=self._timeout, limit=MAX_BODY_BYTES, headers=endpoint.headers)
        found = _found(page, endpoint)
        shown = [
            {
                "title": _text(each.get(endpoint.title), 300),
                "url": _text(each.get(endpoint.link), 2_000),
                "snippet": _text(each.get(endpoint.snippet), 1_000),
            }
            for each in found[:count]
            if isinstance(each, dict)
        ]
        return Envelope.success(shown, total_matches=len(found), is_complete=True)


def _readable(page: Page) -> tuple[str, str]:
    kind = page.content_type
    binary = b"\0" in page.body[:8_192] and not page.charset.startswith("utf-16")
    if binary or (kind and not kind.startswith(_TEXTS) and not kind.endswith(("+json", "+xml"))):
        raise ToolFailure("validation", f"the page is no text but `{kind[:60] or 'binary data'}`", retryable=False)
    inside = _said_inside(page.body) if not page.charset and (not kind or kind.endswith("ml")) else ""
    text = page.body.decode(_codec(page.charset or inside), errors="replace").removeprefix("\ufeff")
    html = "html" in kind or (not kind and "<html" in text[:1_000].lower())
    return page_text(text) if html else ("", text)


def _said_inside(body: bytes) -> str:
    """
    The charset that a page names in its first bytes; `""` if it names none, or one that those bytes cannot be in.
    """
    found = _META.search(body[:_META_BYTES])
    named = found[1].decode("ascii").lower() if found else ""
    return "" if named.startswith("utf-16") else named


def _codec(charset: str) -> str:
    """
    The codec of a page's *charset*; that of UTF-8 for what no browser knows: Python has others, that are no text.
    """
    name = charset.replace("-", "").replace("_", "").removeprefix("x")
    return _CODECS.get(name, "utf-8")


def _text(value: object, most: int) -> str:
    """
    *value* if it is text, without lone surrogates, which no envelope holds.
    """
    return value[:most].encode(errors="replace").decode() if isinstance(value, str) else ""


def _found(page: Page, endpoint: SearchEndpoint) -> list[Any]:
    try:
        answer: Any = json.loads(page.body)
    except (ValueError, RecursionError):
        raise ToolFailure("server_error", "the search service did not answer with JSON") from None
    for key in endpoint.results.split("."):
        answer = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(answer, list):
        raise ToolFailure("server_error", f"the search service's answer holds no list `{endpoint.results}`")
    return answer
