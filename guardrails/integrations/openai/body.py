"""
The HTTP reply to one request: its source, its beginning, and whether a stream was closed in order.
"""

import re
import sys

from collections.abc import AsyncIterator, Iterator
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
_KEY_CHARS: Final = 6
_DONE: Final = re.compile(rb"[\r\n]data: ?\[DONE\]")
_CARRIED: Final = 16


class Body:
    """
    The body of a reply, of which the *client* made *made*: a raw response, a stream, or the response itself.
    """

    def __init__(self, client: Any, made: Any) -> None:
        self.closed = False
        """A stream has been closed by the mark that chat.completions has for its end."""
        key = getattr(client, "api_key", None)
        self._key = key if isinstance(key, str) else None
        self._response = response = getattr(made, "http_response", None)
        self._url = getattr(response, "url", None) or getattr(client, "base_url", "")
        self._begins = b""
        self._last = b"\n"

    def whole(self, made: Any) -> Any:
        """
        Returns the response that the client *made*. Raises ValueError if it is no JSON.
        """
        if self._response is None:
            return made
        self._begins = self._response.content[:_KEPT_BYTES]
        whole = made.parse()
        if isinstance(whole, str):
            raise ValueError(whole)
        return whole

    def stream(self, made: Any) -> Any:
        """
        Returns the stream that the client *made*, seen as it passes: the client does not tell one that was closed in order
        from one that was cut.
        """
        if self._response is None:
            return made
        each, aeach = self._response.iter_bytes, self._response.aiter_bytes

        def seen(*given: Any, **options: Any) -> Iterator[bytes]:
            for piece in each(*given, **options):
                self._see(piece)
                yield piece

        async def aseen(*given: Any, **options: Any) -> AsyncIterator[bytes]:
            async for piece in aeach(*given, **options):
                self._see(piece)
                yield piece

        self._response.iter_bytes, self._response.aiter_bytes = seen, aseen
        return made.parse()

    def failure(self, error: BaseException) -> BaseException:
        """
        *error* as the loop raises it: a reply that is no response says where it came from and how it begins.
        """
        kind = str(getattr(self._response, "headers", {}).get("content-type", ""))
        if isinstance(error, Cut) and kind and "event-stream" not in kind:
            return self._failed("the reply is no event stream", NO_STREAM, shown=True)
        if isinstance(error, ResponseFailed):
            return self._failed(str(error), error.code, shown=isinstance(error, (Unreadable, Cut)))
        if isinstance(error, (ValueError, RecursionError)):
            return self._failed("the reply is no JSON; check the base URL", shown=True)
        openai = sys.modules.get("openai")
        others = () if openai is None else (openai.APIStatusError, openai.APIConnectionError)
        if openai is None or isinstance(error, others) or not isinstance(error, openai.APIError):
            return error
        # The client's word for an error that the server reports in place of a response.
        said, code = reason_of(str(error) if error.body is None else error.body)
        return self._failed(said if code is None else f"{code}: {said}", code, shown=True)

    def _failed(self, message: str, code: str | None = None, *, shown: bool = False) -> ResponseFailed:
        url, status = public(str(self._url) or None), getattr(self._response, "status_code", None)
        body = in_one_line(self._begins.decode("utf-8", "replace"), self._key)
        if shown:
            http = "the server" if status is None else f"HTTP {status}"
            message += f" ({http}{f' from `{url}`' if url else ''}: {f'`{body}`' if body else 'an empty body'})"
        failed = ResponseFailed(_without_key(message, self._key))
        failed.code, failed.url, failed.status, failed.body = code, url, status, body
        return failed

    def _see(self, piece: bytes) -> None:
        if len(self._begins) < _KEPT_BYTES:
            self._begins += piece[:_KEPT_BYTES]
        seen = self._last + piece
        self.closed = self.closed or _DONE.search(seen) is not None
        self._last = seen[-_CARRIED:]


def in_one_line(said: str, key: str | None, most: int = SHOWN_BYTES) -> str:
    """
    The first *most* bytes of what a server *said*, without control characters, secrets, and the client's *key*.
    """
    line = line_of(without_secrets(_without_key(sanitise(said[:_KEPT_BYTES]), key)))
    return line.encode()[:most].decode("utf-8", "ignore")


def is_cut(error: BaseException) -> bool:
    """
    Returns whether *error* says that a stream ended early: without its end, or because the connection was lost.
    """
    openai = sys.modules.get("openai")
    if openai is None or isinstance(error, Cut):
        return isinstance(error, Cut)
    return isinstance(error, openai.APIConnectionError) and not isinstance(error, openai.APITimeoutError)


def _without_key(said: str, key: str | None) -> str:
    """
    *said* without the client's *key*, which a server may say again; a short one is a placeholder, as `none`.
    """
    return said.replace(key, REDACTED) if key and len(key) >= _KEY_CHARS else said
