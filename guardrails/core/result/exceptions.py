"""
The kind, the status, the wait and the words of an exception, without knowing the library that raised it.

Clients are known by what they expose: a status, a code, a response, the names of their classes. Wrappers are looked through. An
attribute that fails is one that is not there, so nothing that an exception does while it is looked at can get out of here.
"""

import builtins
import errno
import re

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from guardrails.core.text.redaction import SCAN_CHARS, redact
from guardrails.core.values.types import ErrorType, Outcome

from .content import at, first, http_error
from .kinds import kind_of, kind_of_text, passing
from .waits import wait_in_fields, wait_in_text


_OWN: Final = frozenset(one for one in vars(builtins).values() if isinstance(one, type) and issubclass(one, Exception))
"""Python's own classes."""
_STATUSES: Final = "status_code status http_status code response.status_code response.status resp.status error.code response.ResponseMetadata.HTTPStatusCode"
"""Where httpx, requests, aiohttp, urllib, openai, anthropic, botocore, google-api-core, starlette and others have it."""
_CAUSES: Final = ("__cause__", "orig", "reason", "cause", "original_exception")
_BAD_CALL: Final = r"unexpected keyword argument(?: '(\w+)')?|missing \d+ required|takes \S+ .{0,40}positional arguments?|multiple values for"


class Link(NamedTuple):
    """
    An exception of a chain, and what it exposes.
    """

    exc: BaseException
    text: str
    """At most 64 KB of it, unredacted."""
    status: int | None = None
    """400 to 599."""
    fields: Mapping[str, Any] | None = None
    """Headers of the response, and what says a wait, by names in small letters with hyphens; None of a class of Python's own to which
    nothing was added, so that it carries no more than its text and its cause."""


def failure_of(exc: BaseException, arguments: Any = None, now_ms: int | None = None) -> Outcome:
    """
    Returns the failure that *exc* is, of the kind `other` if nothing speaks for one. Its message, unredacted, is the text of *exc* and of the
    exception that told the kind, each with the name of its class if that says more.

    The kind is that of the first that tells one, of the exception, its causes and what was being handled: by its code, its status, its class
    or its text. The *arguments* are those of the call: a fault in something else is not the caller's to correct. Dates of a wait count from
    *now_ms*, milliseconds since 1970, and not without it.
    """
    try:
        links, given = _chain(exc), arguments if isinstance(arguments, Mapping) else None
        kinds = [(kind, one) for one in links if (kind := _own_kind(one, given) or kind_of_text(one.text)) is not None]
        # Where one of a group fails, the others are cancelled: that is no cause.
        kind, teller = min(kinds, key=lambda one: one[0] == "cancelled", default=("other", links[0]))
        message, status, wait = _words(links[0], kind), None, None
        for link in links:
            status = link.status if status is None else status
            wait = wait_in_fields(link.fields, link.status, now_ms) if wait is None and link.fields else wait
            wait = wait_in_text(link.text, now_ms) if wait is None else wait
        if teller is not links[0] and (words := _words(teller, kind)) not in message:
            message = f"{message}: {words}"
        return Outcome(None, kind, message, status, wait)
    except Exception:  # whatever its own code does while it is looked at
        return Outcome(None, "other", type(exc).__name__)


def ends_unknown(exc: BaseException, kind: str | None) -> bool:
    """
    Returns whether *exc*, a failure of the kind *kind*, leaves open whether the call happened. A server of MCP that went away in the call
    has the code -32000 in the SDKs.
    """
    return kind in ("timeout", "cancelled") or -32000 in (at(exc, "error.code"), at(exc, "__cause__.error.code"))


def _words(link: Link, kind: ErrorType) -> str:
    text, name = link.text.strip(), type(link.exc).__name__
    return f"{name}: {text}".rstrip(": ") if kind in ("code_error", "other") or " " not in text else text


def _chain(exc: BaseException) -> list[Link]:
    """
    Returns *exc* with its causes, explicit ones first; at most 12, each once.
    """
    links, waiting = list[Link](), list[Any]([exc])
    for one in waiting:
        if len(links) < 12 and isinstance(one, BaseException) and all(one is not link.exc for link in links):
            links.append(link := _link(one))
            look, causes = (getattr, _CAUSES[:1]) if link.fields is None else (at, _CAUSES)
            waiting += [look(one, name) for name in causes]
            waiting += look(one, "exceptions") or () if isinstance(one, BaseExceptionGroup) else ()
            waiting.append(None if look(one, "__suppress_context__") else look(one, "__context__"))
    return links


def _link(exc: BaseException) -> Link:
    text = str.__str__(str(exc))[:65_536]
    if type(exc) in _OWN and not exc.__dict__:
        return Link(exc, text)
    # A failed command speaks through what it wrote.
    said = first(exc, "stderr", lambda one: (one.decode(errors="replace") if isinstance(one, bytes) else one).strip())
    text = f"{text}\n{said[-65_536:]}" if said else text
    waits = {name.replace("_", "-"): at(exc, name) for name in ("retry_after_ms", "retry_after")}
    headers = first(exc, "response.ResponseMetadata.HTTPHeaders response.headers headers resp", _lowered) or {}
    return Link(exc, text, first(exc, _STATUSES, http_error), waits | headers)


def _lowered(headers: Any) -> dict[str, Any]:
    return {str(name).lower(): str(value) for name, value in islice(headers.items(), 200)}


def _own_kind(link: Link, arguments: Mapping[str, Any] | None) -> ErrorType | None:
    """
    Returns the kind that an exception itself says, by a code, a status or its class; None for a wrapper that says nothing.
    """
    exc, text, status, fields = link
    kind: ErrorType | None = None if fields is None else first(exc, "code error.code response.Error.Code", _coded)
    if kind is None and status is not None and status != 400:
        # GitHub says 403 where others say 429.
        limited = status == 403 and fields and (fields.get("retry-after") or fields.get("x-ratelimit-remaining") == "0")
        return "rate_limit" if limited else kind_of_text(text, status)
    kind = kind or next(filter(None, (_of_class(cls, exc, text, arguments) for cls in type(exc).__mro__)), None)
    return "validation" if status is not None and kind in {None, "code_error"} else kind


def _coded(code: Any) -> ErrorType | None:
    code = code() if callable(code) else code
    return None if http_error(code) else kind_of(code if isinstance(code, str | int) else at(code, "name"))


def _of_class(cls: type, exc: BaseException, text: str, arguments: Mapping[str, Any] | None) -> ErrorType | None:
    """
    Returns the kind that *cls*, a class of an exception, stands for. A `ValueError` is raised for anything that is wrong with a value: its text
    may say the fault, and the arguments whose it was.
    """
    kind = kind_of(cls.__name__)
    if cls is OSError:
        return kind_of(errno.errorcode.get(at(exc, "errno") or 0, ""))
    if cls is TypeError and (match := re.search(_BAD_CALL, text)) is not None:
        # A function within the tool may be called wrongly too, by the tool.
        return "validation" if None in (match[1], arguments) or match[1] in arguments else kind  # type: ignore[operator]
    if cls is not ValueError:
        return kind
    if isinstance(document := at(exc, "doc"), str):
        # A decoder got what is no JSON: the fault of who sent it, unless that was the caller, who may have given nothing.
        sent = [*map(str, (arguments or {"": ""}).values())] if arguments is not None else []
        own = any(document.strip() in one if document.strip() else not one.strip() for one in sent)
        return kind if own else "server_error"
    other = "other" if issubclass(type(exc), UnicodeError) else kind_of_text(text)
    # `invalid token` and `value not allowed` are of the value.
    return kind if other in (None, "auth", "permission", "code_error", "exec_nonzero") else other


def set_failure(read: Any, failure: Outcome, text: str | None) -> None:
    """
    Make the reading *read* that of a *failure*; *text* is that of the result, if it has one.
    """
    kind, message = failure.error_type or "other", redact(failure.error_message)
    if text is not None and (text is read.value or text == failure.error_message):
        # There is no more in the result than the text, which the message may say.
        whole = text.strip()
        shown = None if message == whole else redact(text, 2 * SCAN_CHARS, keep_traceback=True)
        read.value = text if shown == whole else shown
        read.complete = read.complete and len(text) <= 2 * SCAN_CHARS
    passes, soon = passing(kind, failure.error_message)
    read.error_type, read.error_message, read.http_status, read.news = kind, message, failure.http_status, 2
    read.retry_after_ms = soon if failure.retry_after_ms is None else failure.retry_after_ms
    read.retryable, read.retries = passes if failure.retryable is None else failure.retryable, failure.retries
