"""
Reading what an exception carries without trusting it: text, causes, status, response headers.

No library is imported; the clients are known by the attributes that they share. An attribute that fails is one that is
not there.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final


LINKS: Final = 12
"""So many exceptions of a chain are looked at."""
TEXT_CHARS: Final = 65_536
_HEADERS: Final = 200


def text_of(exc: BaseException) -> str:
    """
    Returns the text of *exc*, at most 64 KB of it and unredacted; `""` if it says nothing or fails to.

    A failed command speaks through what it wrote to stderr.
    """
    try:
        text = str.__str__(str(exc))
    except Exception:  # noqa: BLE001
        return ""
    written = attribute(exc, "stderr") or (attribute(exc, "output") if attribute(exc, "returncode") else None)
    if isinstance(written, bytes):
        written = written[-TEXT_CHARS:].decode(errors="replace")
    if isinstance(written, str) and written.strip():
        text = f"{text}\n{written[-TEXT_CHARS:].strip()}"
    return text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS // 2] + text[-TEXT_CHARS // 2 :]


def attribute(owner: object, name: str) -> Any:
    """
    Returns `owner.name`. Returns None if it is absent or fails.
    """
    try:
        return getattr(owner, name, None)
    except Exception:  # noqa: BLE001
        return None


def chain(exc: BaseException, *, context: bool = True) -> Iterator[BaseException]:
    """
    Returns *exc*, its explicit causes, and with *context* at last the exception that was being handled; at most 12,
    each once.
    """
    return islice(_chain(exc, context), LINKS)


def _chain(exc: BaseException, context: bool) -> Iterator[BaseException]:
    waiting, later, seen = [exc], list[BaseException](), set[int]()
    while waiting or later:
        link = waiting.pop(0) if waiting else later.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link

        causes = [attribute(link, name) for name in ("__cause__", "orig", "reason", "cause", "original_exception")]
        if issubclass(type(link), BaseExceptionGroup):
            causes += list(attribute(link, "exceptions") or ())[:LINKS]
        waiting += [cause for cause in causes if issubclass(type(cause), BaseException)]
        if context and not attribute(link, "__suppress_context__"):
            before = attribute(link, "__context__")
            later += [before] if issubclass(type(before), BaseException) else []


def status_of(exc: BaseException) -> int | None:
    """
    Returns the HTTP status that *exc* itself carries, 400 to 599.

    httpx, requests, aiohttp, urllib, openai, anthropic, botocore, google-api-core, starlette and others each have it
    somewhere else.
    """
    response = attribute(exc, "response")
    said = [attribute(exc, name) for name in ("status_code", "status", "http_status", "code")]
    if isinstance(response, dict):
        metadata = response.get("ResponseMetadata")
        said.append(metadata.get("HTTPStatusCode") if isinstance(metadata, dict) else None)
    else:
        said += [attribute(response, "status_code"), attribute(response, "status")]
    said += [attribute(attribute(exc, "resp"), "status"), attribute(attribute(exc, "error"), "code")]
    for number in said:
        if isinstance(number, str) and number.isdecimal() and len(number) == 3:
            number = int(number)  # noqa: PLW2901
        if isinstance(number, int) and 400 <= number < 600:
            return int(number)
    return None


def headers_of(exc: BaseException) -> dict[str, str]:
    """
    Returns the response headers that *exc* carries, names in lowercase. The dict is empty if there are none.
    """
    response = attribute(exc, "response")
    if isinstance(response, dict):
        metadata = response.get("ResponseMetadata")
        carried: list[Any] = [metadata.get("HTTPHeaders") if isinstance(metadata, dict) else None]
    else:
        carried = [attribute(response, "headers")]
    carried += [attribute(exc, "headers"), attribute(exc, "resp")]
    for headers in carried:
        try:
            found = {str(name).lower(): str(value) for name, value in islice(headers.items(), _HEADERS)}
        except Exception:  # noqa: BLE001, S112
            continue
        if found:
            return found
    return {}
