"""
The kind, the status and the words of an exception, without knowing the library that raised it.

Clients are known by what they expose: a status, a code, a response, the names of their classes. Wrappers are looked through. An
attribute that fails is one that is not there, so nothing that an exception does while it is looked at can get out of here.
"""

import builtins
import errno
import re

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from guardrails.core.values.types import ErrorType

from .content import at, first, http_error
from .kinds import kind_of_code, kind_of_name, kind_of_status, kind_of_text, unpaid


LINKS: Final = 12
"""So many exceptions of a chain are looked at."""
TEXT_CHARS: Final = 65_536
_OWN: Final = frozenset(one for one in vars(builtins).values() if isinstance(one, type) and issubclass(one, Exception))
"""Python's own classes."""
_STATUSES: Final = "status_code status http_status code response.status_code response.status resp.status error.code response.ResponseMetadata.HTTPStatusCode"
"""Where httpx, requests, aiohttp, urllib, openai, anthropic, botocore, google-api-core, starlette and others have it."""
_HEADERS: Final = "response.ResponseMetadata.HTTPHeaders response.headers headers resp"
_NOT_BY_VALUE: Final = (None, "auth", "permission", "code_error", "exec_nonzero")
"""Kinds that the words of a ValueError do not mean: `invalid token`, `value not allowed`."""
_BAD_CALL: Final = r"unexpected keyword argument(?: '(\w+)')?|missing \d+ required|takes \S+ .{0,40}positional arguments?|multiple values for"


def is_bare(exc: BaseException) -> bool:
    """
    Returns whether *exc* carries no more than a text and its cause: nothing was added to a class of Python's own.
    """
    return type(exc) in _OWN and not exc.__dict__


def text_of(exc: BaseException) -> str:
    """
    Returns the text of *exc*, at most 64 KB of it and unredacted; a failed command speaks through what it wrote to stderr.
    """
    text, written = "", None
    if not is_bare(exc):
        written = at(exc, "stderr") or (at(exc, "output") if at(exc, "returncode") else None)
    with suppress(Exception):
        text = str.__str__(str(exc))
    written = written.decode(errors="replace") if isinstance(written, bytes) else written
    text = f"{text}\n{written.strip()}" if isinstance(written, str) and written.strip() else text
    return text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS // 2] + text[-TEXT_CHARS // 2 :]


def chain(exc: BaseException, *, context: bool = True) -> Iterator[BaseException]:
    """
    Returns *exc*, its explicit causes, and with *context* at last what was being handled; at most 12, each once.
    """
    alone = is_bare(exc) and exc.__cause__ is exc.__context__ is None and not isinstance(exc, BaseExceptionGroup)
    return iter((exc,)) if alone else islice(_links(exc, context), LINKS)


def _links(exc: BaseException, context: object) -> Iterator[BaseException]:
    waiting: list[Any] = [exc]
    later: list[Any] = []
    seen: set[int] = set()
    while waiting or later:
        link = (waiting or later).pop(0)
        if id(link) in seen or not issubclass(type(link), BaseException):
            continue
        seen.add(id(link))
        yield link
        named = ("__cause__",) if is_bare(link) else ("__cause__", "orig", "reason", "cause", "original_exception")
        waiting += [cause for name in named if (cause := at(link, name)) is not None]
        waiting += list(at(link, "exceptions") or ())[:LINKS] if issubclass(type(link), BaseExceptionGroup) else []
        later += [at(link, "__context__")] if context and not at(link, "__suppress_context__") else []


def status_of(exc: BaseException) -> int | None:
    """
    Returns the HTTP status that *exc* itself carries, 400 to 599.
    """
    status: int | None = None if is_bare(exc) else first(exc, _STATUSES, http_error)
    return status


def headers_of(exc: BaseException) -> dict[str, str]:
    """
    Returns the response headers that *exc* carries, names in small letters.
    """

    def lowered(headers: Any) -> dict[str, str] | None:
        with suppress(Exception):
            return {str(name).lower(): str(value) for name, value in islice(headers.items(), 200)} or None
        return None

    return {} if is_bare(exc) else first(exc, _HEADERS, lowered) or {}


def diagnosis_of(exc: BaseException, arguments: Any = None) -> tuple[ErrorType, BaseException]:
    """
    Returns the kind of *exc*, `other` if nothing speaks for one, and the exception of its chain that told it.

    Codes, statuses and class names come first, of the exception and then of its causes; then their texts, and last what was being
    handled. The *arguments* are those of the call: a fault in something else is not the caller's to correct.
    """
    with suppress(Exception):
        causes = list(chain(exc, context=False))
        own = [(kind, link) for link in causes if (kind := _own_kind(link, arguments)) is not None]
        texts = ((kind, link) for link in causes if (kind := kind_of_text(text_of(link))) is not None)
        handled = ((kind, link) for link in chain(exc) if (kind := _own_kind(link, arguments)) is not None)
        # Where one of a group fails, the others are cancelled: that is no cause.
        own.sort(key=lambda told: told[0] == "cancelled")
        return next((told for some in (own, texts, handled) for told in some), ("other", exc))
    return "other", exc


def message_of(exc: BaseException, kind: ErrorType, teller: BaseException) -> str:
    """
    Returns the text of *exc*, and of the *teller* of its *kind*, each with the name of its class if that says more.
    """
    said: list[str] = []
    for one in (exc,) if teller is exc else (exc, teller):
        text, name = text_of(one).strip(), type(one).__name__
        words = f"{name}: {text}".rstrip(": ") if kind in ("code_error", "other") or " " not in text else text
        said += [] if said and words in said[0] else [words]
    return ": ".join(said)


def _own_kind(exc: BaseException, arguments: Any) -> ErrorType | None:
    """
    Returns the kind that *exc* itself says, by a code, a status or its class; None for a wrapper that says nothing.
    """
    bare = is_bare(exc)
    kind: ErrorType | None = None if bare else first(exc, "code error.code response.Error.Code", _coded)
    status = None if bare else status_of(exc)
    if kind is not None:
        return kind
    if status is not None and status != 400:
        headers = headers_of(exc)
        if status == 403 and ("retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"):
            # GitHub says 403 where others say 429.
            return "rate_limit"
        return "permission" if status == 429 and unpaid(text_of(exc)) else kind_of_status(status)
    kind = next((kind for cls in type(exc).__mro__ if (kind := _of_class(exc, cls, arguments)) is not None), None)
    return "validation" if status is not None and kind in {None, "code_error"} else kind


def _coded(code: Any) -> ErrorType | None:
    with suppress(Exception):
        code = code() if callable(code) else code
    negative = type(code) is int and code < 0
    return kind_of_code(code) if negative else kind_of_name(code if isinstance(code, str) else at(code, "name"))


def _of_class(exc: BaseException, cls: type, arguments: Any) -> ErrorType | None:
    """
    Returns the kind that *cls*, a class of *exc*, stands for. A `ValueError` is raised for anything that is wrong with a value: its text
    may say the fault, and the arguments whose it was.
    """
    kind, given = kind_of_name(cls.__name__), arguments if isinstance(arguments, Mapping) else {"": arguments or ""}
    if cls is OSError:
        return kind_of_name(errno.errorcode.get(at(exc, "errno") or 0, ""))
    if cls is TypeError:
        found = re.search(_BAD_CALL, text_of(exc))
        # A function within the tool may be called wrongly too, by the tool.
        inner = found is not None and found[1] is not None and arguments is not None and found[1] not in given
        return kind if found is None or inner else "validation"
    if cls is not ValueError:
        return kind
    decodes = issubclass(type(exc), UnicodeDecodeError)
    document = at(exc, "object") if decodes else at(exc, "doc")
    if document is None:
        told = None if issubclass(type(exc), UnicodeError) else kind_of_text(text_of(exc))
        return kind if told in _NOT_BY_VALUE else told
    # A decoder got what is no JSON, or no text: the fault of who sent it, unless that was the caller, who may have given nothing.
    text = document.decode(errors="replace").strip() if isinstance(document, bytes) else str(document).strip()
    texts = [one for one in given.values() if isinstance(one, str)] or ([] if given else [""])
    own = arguments is not None and any(text in one if text else not one.strip() for one in texts)
    return kind if own else "other" if decodes else "server_error"
