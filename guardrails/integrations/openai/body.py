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

from .reading import Cut, line_of, reason_of


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
        self._client = client
        self._response = getattr(made, "http_response", None)
        self._begins, self._last = b"", b"\n"

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
            return map(self._seen, each(*given, **options))

        async def aseen(*given: Any, **options: Any) -> AsyncIterator[bytes]:
            async for piece in aeach(*given, **options):
                yield self._seen(piece)

        self._response.iter_bytes, self._response.aiter_bytes = seen, aseen
        return made.parse()

    def failure(self, error: BaseException) -> BaseException:
        """
        *error* as the loop raises it: a reply that is no response says where it came from and how it begins.
        """
        openai: Any = sys.modules.get("openai")
        kind = str(getattr(self._response, "headers", {}).get("content-type", ""))
        message, code = str(error), getattr(error, "code", None)
        if isinstance(error, Cut) and kind and "event-stream" not in kind:
            message, code = "the reply is no event stream", NO_STREAM
        elif isinstance(error, (ValueError, RecursionError)):
            message = "the reply is no JSON; check the base URL"
        elif openai is not None and type(error) is openai.APIError:
            # The client's word for an error that the server reports in place of a response.
            message, code = reason_of(getattr(error, "body", None) or message)
            message = f"{code}: {message}" if code else message
        elif not isinstance(error, ResponseFailed):
            return error
        key = getattr(self._client, "api_key", None)
        url = public(str(getattr(self._response, "url", None) or getattr(self._client, "base_url", "")) or None)
        status = getattr(self._response, "status_code", None)
        body = in_one_line(self._begins.decode("utf-8", "replace"), key)
        source = ("the server" if status is None else f"HTTP {status}") + (f" from `{url}`" if url else "")
        failed = ResponseFailed(_without_key(f"{message} ({source}: {f'`{body}`' if body else 'an empty body'})", key))
        failed.code, failed.url, failed.status, failed.body = code, url, status, body
        return failed

    def _seen(self, piece: bytes) -> bytes:
        self._begins = (self._begins + piece)[:_KEPT_BYTES]
        seen = self._last + piece
        self.closed = self.closed or _DONE.search(seen) is not None
        self._last = seen[-_CARRIED:]
        return piece


def in_one_line(said: str, key: Any, most: int = SHOWN_BYTES) -> str:
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


def _without_key(said: str, key: Any) -> str:
    """
    *said* without the client's *key*, which a server may say again; a short one is a placeholder, as `none`.
    """
    return said.replace(key, REDACTED) if isinstance(key, str) and len(key) >= _KEY_CHARS else said
