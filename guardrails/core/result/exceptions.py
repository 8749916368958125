"""
The kind, the status, the wait and the words of an exception, without knowing the library that raised it.

Clients are known by what they expose: a status, a code, a response, the names of their classes. Wrappers are looked through. An
attribute that fails is one that is not there, so nothing that an exception does while it is looked at can get out of here.
"""

import builtins
import errno
import re

from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final, NamedTuple

from guardrails.core.values.types import ErrorType, Outcome

from .content import at, first, http_error
from .kinds import kind_of_code, kind_of_name, kind_of_status, kind_of_text, unpaid
from .waits import wait_in_fields, wait_in_text


LINKS: Final = 12
"""So many exceptions of a chain are looked at."""
TEXT_CHARS: Final = 65_536
_OWN: Final = frozenset(one for one in vars(builtins).values() if isinstance(one, type) and issubclass(one, Exception))
"""Python's own classes."""
_STATUSES: Final = "status_code status http_status code response.status_code response.status resp.status error.code response.ResponseMetadata.HTTPStatusCode"
"""Where httpx, requests, aiohttp, urllib, openai, anthropic, botocore, google-api-core, starlette and others have it."""
_HEADERS: Final = "response.ResponseMetadata.HTTPHeaders response.headers headers resp"
_CAUSES: Final = ("__cause__", "orig", "reason", "cause", "original_exception")
_NOT_BY_VALUE: Final = (None, "auth", "permission", "code_error", "exec_nonzero")
"""Kinds that the words of a ValueError do not mean: `invalid token`, `value not allowed`."""
_BAD_CALL: Final = r"unexpected keyword argument(?: '(\w+)')?|missing \d+ required|takes \S+ .{0,40}positional arguments?|multiple values for"


class Link(NamedTuple):
    """
    An exception of a chain, and what it exposes.
    """

    exc: BaseException
    text: str
    """At most 64 KB of it, unredacted."""
    bare: bool
    """It carries no more than its text and its cause: nothing was added to a class of Python's own."""
    status: int | None
    """400 to 599."""
    fields: Mapping[str, Any] | None
    """Headers of the response, and what says a wait, by names in small letters with hyphens."""


def failure_of(exc: BaseException, arguments: Any = None, now_ms: int | None = None) -> Outcome:
    """
    Returns the failure that *exc* is, of the kind `other` if nothing speaks for one. Its message, unredacted, is the text of *exc* and of the
    exception that told the kind, each with the name of its class if that says more.

    Codes, statuses and class names come first, of the exception and then of its causes; then their texts, and last what was being
    handled. The *arguments* are those of the call: a fault in something else is not the caller's to correct. Dates of a wait count from
    *now_ms*, milliseconds since 1970, and not without it.
    """
    try:
        return _failure(exc, arguments, now_ms)
    except Exception:  # noqa: BLE001 - whatever its own code does while it is looked at
        return Outcome(None, "other", type(exc).__name__)


def _failure(exc: BaseException, arguments: Any, now_ms: int | None) -> Outcome:
    causes, handled = _chain(exc)
    told = [(kind, link) for link in causes if (kind := _own_kind(link, arguments)) is not None]
    # Where one of a group fails, the others are cancelled: that is no cause.
    told.sort(key=lambda one: one[0] == "cancelled")
    told = told or [(kind, link) for link in causes if (kind := kind_of_text(link.text)) is not None]
    told = told or [(kind, link) for link in handled if (kind := _own_kind(link, arguments)) is not None]
    kind, teller = told[0] if told else ("other", causes[0])
    message = status = wait = None
    for link in causes + handled:
        status = link.status if status is None else status
        if wait is None and link.fields:
            wait = wait_in_fields(link.fields, link.status, now_ms)
        wait = wait_in_text(link.text, now_ms) if wait is None else wait
    for link in (causes[0],) if teller is causes[0] else (causes[0], teller):
        text, name = link.text.strip(), type(link.exc).__name__
        words = f"{name}: {text}".rstrip(": ") if kind in ("code_error", "other") or " " not in text else text
        message = words if message is None else message if words in message else f"{message}: {words}"
    return Outcome(None, kind, message or "", status, wait)


def _chain(exc: BaseException) -> tuple[list[Link], list[Link]]:
    """
    Returns *exc* with its explicit causes, and what was being handled; at most 12, each once.
    """
    causes: list[Link] = []
    handled: list[Link] = []
    seen: set[int] = set()
    waiting: list[Any] = [exc]
    later: list[Any] = []
    for place, links in ((waiting, causes), (later, handled)):
        for one in place:
            if id(one) in seen or len(seen) >= LINKS or not issubclass(type(one), BaseException):
                continue
            seen.add(id(one))
            links.append(link := _link(one))
            place.extend([one.__cause__] if link.bare else [at(one, name) for name in _CAUSES])
            if issubclass(type(one), BaseExceptionGroup):
                place.extend(list(at(one, "exceptions") or ())[:LINKS])
            if not at(one, "__suppress_context__"):
                later.append(at(one, "__context__"))
    return causes, handled


def _link(exc: BaseException) -> Link:
    bare, status, fields = type(exc) in _OWN and not exc.__dict__, None, None
    try:
        text = str.__str__(str(exc))
    except Exception:  # noqa: BLE001
        text = ""
    if not bare:
        # A failed command speaks through what it wrote.
        written = at(exc, "stderr") or (at(exc, "output") if at(exc, "returncode") else None)
        written = written.decode(errors="replace") if isinstance(written, bytes) else written
        text = f"{text}\n{written.strip()}" if isinstance(written, str) and written.strip() else text
        status, fields = first(exc, _STATUSES, http_error), first(exc, _HEADERS, _lowered) or {}
        for name in ("retry_after_ms", "retry_after"):
            fields.setdefault(name.replace("_", "-"), at(exc, name))
    text = text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS // 2] + text[-TEXT_CHARS // 2 :]
    return Link(exc, text, bare, status, fields)


def _lowered(headers: Any) -> dict[str, Any] | None:
    with suppress(Exception):
        return {str(name).lower(): str(value) for name, value in islice(headers.items(), 200)} or None
    return None


def _own_kind(link: Link, arguments: Any) -> ErrorType | None:
    """
    Returns the kind that an exception itself says, by a code, a status or its class; None for a wrapper that says nothing.
    """
    kind: ErrorType | None = None
    status, fields = link.status, link.fields
    if not link.bare:
        kind = first(link.exc, "code error.code response.Error.Code", _coded)
    if kind is not None:
        return kind
    if status is not None and status != 400:
        if status == 403 and fields and (fields.get("retry-after") or fields.get("x-ratelimit-remaining") == "0"):
            # GitHub says 403 where others say 429.
            return "rate_limit"
        return "permission" if status == 429 and unpaid(link.text) else kind_of_status(status)
    for cls in type(link.exc).__mro__:
        if kind is None:
            kind = _of_class(link, cls, arguments)
    return "validation" if status is not None and kind in {None, "code_error"} else kind


def _coded(code: Any) -> ErrorType | None:
    with suppress(Exception):
        code = code() if callable(code) else code
    negative = type(code) is int and code < 0
    return kind_of_code(code) if negative else kind_of_name(code if isinstance(code, str) else at(code, "name"))


def _of_class(link: Link, cls: type, arguments: Any) -> ErrorType | None:
    """
    Returns the kind that *cls*, a class of an exception, stands for. A `ValueError` is raised for anything that is wrong with a value: its text
    may say the fault, and the arguments whose it was.
    """
    exc, text = link.exc, link.text
    kind, given = kind_of_name(cls.__name__), arguments if isinstance(arguments, Mapping) else {"": arguments or ""}
    if cls is OSError:
        return kind_of_name(errno.errorcode.get(at(exc, "errno") or 0, ""))
    if cls is TypeError:
        found = re.search(_BAD_CALL, text)
        # A function within the tool may be called wrongly too, by the tool.
        inner = found is not None and found[1] is not None and arguments is not None and found[1] not in given
        return kind if found is None or inner else "validation"
    if cls is not ValueError:
        return kind
    decodes = issubclass(type(exc), UnicodeDecodeError)
    document = at(exc, "object") if decodes else at(exc, "doc")
    if document is None:
        told = None if issubclass(type(exc), UnicodeError) else kind_of_text(text)
        return kind if told in _NOT_BY_VALUE else told
    # A decoder got what is no JSON, or no text: the fault of who sent it, unless that was the caller, who may have given nothing.
    text = (document.decode(errors="replace") if isinstance(document, bytes) else str(document)).strip()
    texts = [one for one in given.values() if isinstance(one, str)] or ([] if given else [""])
    own = arguments is not None and any(text in one if text else not one.strip() for one in texts)
    return kind if own else "other" if decodes else "server_error"
