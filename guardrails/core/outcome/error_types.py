"""
The kind of error that an exception is, without knowing the library that raised it.

Clients are recognised by what they expose: a status, a code, a response, the names of their classes. Wrappers are
looked through. Nothing an exception does while it is looked at can get out of here.
"""

import re

from collections.abc import Iterator, Mapping
from typing import Any, Final

from guardrails.core.values.types import ErrorType

from .error_names import (
    error_type_of_builtin,
    error_type_of_errno,
    error_type_of_json_rpc,
    error_type_of_name,
    error_type_of_sql_state,
    error_type_of_status,
)
from .error_text import error_type_from_text, unpaid
from .exception_facts import attribute, chain, headers_of, status_of, text_of


_NOT_BY_VALUE: Final = frozenset({"auth", "permission", "code_error", "exec_nonzero"})
"""Kinds that the words of a ValueError do not mean: `invalid token`, `value not allowed`."""
_BAD_CALL: Final = re.compile(
    r"unexpected keyword argument(?: '(\w+)')?|missing \d+ required|takes \S+ .{0,40}positional arguments?|multiple values for"
)


def diagnosis_of(exc: BaseException, arguments: Any = None) -> tuple[ErrorType, BaseException]:
    """
    Returns the kind of *exc* from the closed list, `other` if nothing speaks for a kind; and the exception of its chain
    that told it.

    The *arguments* are those of the call: a fault in something else is not the caller's to correct.

    The exception's own words come first (codes, status, class names). Its explicit causes come next: `__cause__`,
    SQLAlchemy's `orig`, URLError's `reason`, the members of a group. The texts of all these follow, and last the
    exception that was being handled (`__context__`).
    """
    try:
        return _diagnosis_of(exc, arguments)
    except Exception:  # noqa: BLE001
        return "other", exc


def http_status_of(exc: BaseException) -> int | None:
    """
    Returns the HTTP status that *exc* or one of its causes carries, 400 to 599.
    """
    try:
        return next((status for link in chain(exc) if (status := status_of(link)) is not None), None)
    except Exception:  # noqa: BLE001
        return None


def _diagnosis_of(exc: BaseException, arguments: Any) -> tuple[ErrorType, BaseException]:
    causes = list(chain(exc, context=False))
    told = [(kind, link) for link in causes if (kind := _own_type(link, arguments)) is not None]
    # Where one of a group fails, the others are cancelled: that is no cause.
    if told:
        return next((one for one in told if one[0] != "cancelled"), told[0])
    for link in causes:
        if (kind := error_type_from_text(text_of(link))) is not None:
            return kind, link
    return next(
        ((kind, link) for link in chain(exc) if (kind := _own_type(link, arguments)) is not None), ("other", exc)
    )


def _own_type(exc: BaseException, arguments: Any) -> ErrorType | None:
    """
    Returns the kind that *exc* itself says; None for a wrapper that says nothing.
    """
    if (kind := _coded_type(exc)) is not None:
        return kind

    status = status_of(exc)
    if status is not None and status != 400:
        limited = status == 403 and _is_rate_limited(headers_of(exc))
        if status == 429 and unpaid(text_of(exc)):
            return "permission"
        return "rate_limit" if limited else error_type_of_status(status)

    kind = _classed_type(exc, arguments)
    return "validation" if status is not None and kind in {None, "code_error"} else kind


def _coded_type(exc: BaseException) -> ErrorType | None:
    """
    Returns the kind by the code of a service: botocore, grpc, OpenAI, PostgreSQL, JSON-RPC.
    """
    for code in _codes(exc):
        if isinstance(code, bool):
            continue
        if isinstance(code, int):
            if code < 0 and (kind := error_type_of_json_rpc(code)) is not None:
                return kind
        elif isinstance(code, str) and (kind := error_type_of_name(code[:100])) is not None:
            return kind

    state = attribute(exc, "sqlstate") or attribute(exc, "pgcode")
    return error_type_of_sql_state(state) if isinstance(state, str) else None


def _codes(exc: BaseException) -> Iterator[Any]:
    code = attribute(exc, "code")
    if callable(code):
        try:
            code = code()
        except Exception:  # noqa: BLE001
            code = None
    yield attribute(code, "name") if not isinstance(code, int | str) else code
    yield attribute(attribute(exc, "error"), "code")

    response = attribute(exc, "response")
    if isinstance(response, dict):
        error = response.get("Error")
        yield error.get("Code") if isinstance(error, dict) else None


def _classed_type(exc: BaseException, arguments: Any) -> ErrorType | None:
    """
    Returns the kind by the names of its classes, the nearest first.
    """
    for cls in type(exc).__mro__:
        if cls.__module__ != "builtins":
            kind = error_type_of_name(cls.__name__)
        elif cls is OSError:
            number = attribute(exc, "errno")
            kind = error_type_of_errno(number) if isinstance(number, int) else None
        else:
            kind = error_type_of_builtin(cls.__name__)
        if kind is not None:
            return _refined(exc, cls, kind, arguments)
    return None


def _refined(exc: BaseException, cls: type, kind: ErrorType, arguments: Any) -> ErrorType:
    """
    Returns *kind*, refined. A `ValueError` is raised for anything that is wrong with a value: its text may say the
    fault, and the arguments whose it was.
    """
    if cls is TypeError:
        found = _BAD_CALL.search(text_of(exc))
        if found is None:
            return kind
        # A function within the tool may be called wrongly too, by the tool.
        named = isinstance(arguments, Mapping) and found[1] is not None
        return kind if named and found[1] not in arguments else "validation"
    if cls is ValueError:
        document = attribute(exc, "doc")
        if document is not None:
            # A decoder got what is no JSON, or no text: the fault of who sent it, unless that was the caller.
            return kind if _is_given(document, arguments) else "server_error"
        if issubclass(type(exc), UnicodeDecodeError):
            return kind if _is_given(attribute(exc, "object"), arguments) else "other"
        if issubclass(type(exc), UnicodeError):
            return kind
        told = error_type_from_text(text_of(exc))
        return told if told is not None and told not in _NOT_BY_VALUE else kind
    return kind


def _is_given(document: Any, arguments: Any) -> bool:
    """
    Returns whether *document* was in the arguments of the call.
    """
    if isinstance(document, bytes | bytearray):
        document = bytes(document).decode(errors="replace")
    given = arguments.values() if isinstance(arguments, Mapping) else [arguments]
    said = document.strip() if isinstance(document, str) else ""
    return said != "" and any(isinstance(one, str) and said in one for one in given)


def _is_rate_limited(headers: dict[str, str]) -> bool:
    """
    GitHub says 403 where others say 429.
    """
    return "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
