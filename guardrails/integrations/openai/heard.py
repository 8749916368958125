"""
The reply to one request as the server sent it: its source, its beginning, and whether a stream was closed in order. The
one error for a malformed reply is here too.
"""

import re
import sys

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

from guardrails.core.text.control import sanitise
from guardrails.core.text.redaction import REDACTED, without_secrets
from guardrails.core.values.errors import ResponseFailed
from guardrails.core.values.usage import public

from .reading import Cut, Unreadable, line_of, reason_of


SHOWN_BYTES: Final = 200
"""Of a body, in an error."""
_KEPT_BYTES: Final = 1_024
"""Half a secret has no shape that could be found: they are taken out before the body is cut."""
NO_STREAM: Final = "no_event_stream"
"""The code of a ResponseFailed if the server answers with something else where a stream was asked for."""
_NO_JSON: Final = "the reply is no JSON; check the base URL"
_KEY_CHARS: Final = 6
_DONE: Final = re.compile(rb"[\r\n]data: ?\[DONE\]")
_CARRIED: Final = 16


class Heard:
    """
    *made*, what the client made of a reply: a stream, a raw response, or the response itself. *secret* is never shown.
    """

    def __init__(self, made: Any, *, url: str | None = None, secret: str | None = None) -> None:
        self.made = made
        self.closed = False
        """Whether a stream has been closed by the mark that its protocol has for its end."""
        self._asked = url
        self._secret = secret
        self._begins = b""
        self._last = b"\n"
        self._response: Any = getattr(made, "http_response", None) or getattr(made, "response", None)
        if hasattr(made, "response"):
            self._listen()

    def whole(self) -> Any:
        """
        The response to a request that does not stream.
        """
        made = self.made
        if self._response is not None:
            self._begins = self._response.content[:_KEPT_BYTES]
            made = made.parse()
        if isinstance(made, str):
            raise self.no_json()
        return made

    def no_json(self) -> ResponseFailed:
        """
        Returns the error for a reply that is not JSON.
        """
        if isinstance(self.made, str):
            self._begins = self.made.encode("utf-8", "replace")[:_KEPT_BYTES]
        return self._failed(_NO_JSON, shown=True)

    def told(self, error: BaseException) -> BaseException:
        """
        *error* as the loop raises it: a reply that is no response is told with where it came from and how it begins.
        """
        if isinstance(error, Cut) and self._other_than("event-stream"):
            return self._failed("the reply is no event stream", NO_STREAM, shown=True)
        if isinstance(error, (Unreadable, Cut)):
            return self._failed(str(error), error.code, shown=True)
        if isinstance(error, ResponseFailed):
            return error if error.url else self._failed(str(error), error.code)
        if isinstance(error, (ValueError, RecursionError)):
            return self.no_json()
        if _said_in_stream(error):
            body: Any = getattr(error, "body", None)
            message, code = reason_of(str(error) if body is None else body)
            return self._failed(message if code is None else f"{code}: {message}", code, shown=True)
        return error

    def _other_than(self, kind: str) -> bool:
        return kind not in str(getattr(self._response, "headers", {}).get("content-type", kind))

    def _failed(self, message: str, code: str | None = None, *, shown: bool = False) -> ResponseFailed:
        url = public(str(getattr(self._response, "url", None) or self._asked or "") or None)
        status = getattr(self._response, "status_code", None)
        body = in_one_line(self._begins.decode("utf-8", "replace"), self._secret)
        if shown:
            http = "the server" if status is None else f"HTTP {status}"
            message += f" ({http}{f' from `{url}`' if url else ''}: {f'`{body}`' if body else 'an empty body'})"
        failed = ResponseFailed(without_key(message, self._secret))
        failed.code, failed.url, failed.status, failed.body = code, url, status, body
        return failed

    def _listen(self) -> None:
        # The client does not tell a stream that was closed in order from one that was cut.
        each: Callable[..., Iterator[bytes]] | None = getattr(self._response, "iter_bytes", None)
        aeach: Callable[..., AsyncIterator[bytes]] | None = getattr(self._response, "aiter_bytes", None)
        if each is None or aeach is None:
            return

        def heard(*given: Any, **options: Any) -> Iterator[bytes]:
            for piece in each(*given, **options):
                self._take(piece)
                yield piece

        async def aheard(*given: Any, **options: Any) -> AsyncIterator[bytes]:
            async for piece in aeach(*given, **options):
                self._take(piece)
                yield piece

        self._response.iter_bytes, self._response.aiter_bytes = heard, aheard

    def _take(self, piece: bytes) -> None:
        if len(self._begins) < _KEPT_BYTES:
            self._begins += piece[:_KEPT_BYTES]
        if not self.closed:
            seen = self._last + piece
            self.closed = _DONE.search(seen) is not None
            self._last = seen[-_CARRIED:]


def in_one_line(said: str, key: str | None, most: int = SHOWN_BYTES) -> str:
    """
    The first *most* bytes of what a server *said*, without control characters, secrets, and the client's *key*.
    """
    line = line_of(without_secrets(without_key(sanitise(said[:_KEPT_BYTES]), key)))
    return line.encode()[:most].decode("utf-8", "ignore")


def without_key(said: str, key: str | None) -> str:
    """
    *said* without the client's *key*, which a server may say again; a short one is a placeholder, as `none`.
    """
    return said.replace(key, REDACTED) if key and len(key) >= _KEY_CHARS else said


def raw(create: Callable[..., Any]) -> Callable[..., Any]:
    """
    *create* of the openai client as it gives the HTTP response too; another client's as it is.
    """
    made = getattr(getattr(create, "__self__", None), "with_raw_response", None)
    raw_create: Callable[..., Any] = create if made is None else made.create
    return raw_create


def _said_in_stream(error: BaseException) -> bool:
    """
    Returns whether *error* is the client's word for an error that the server reports in place of a response.
    """
    openai = sys.modules.get("openai")
    if openai is None or not isinstance(error, openai.APIError):
        return False
    return not isinstance(error, (openai.APIStatusError, openai.APIConnectionError))
