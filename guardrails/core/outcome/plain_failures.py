"""
Failures that hide in results though nothing is declared of their tool: those that anyone would call one.

In doubt a result is a success. No form here was found in one tool only. The forms are MCP's, JSON-RPC's, GraphQL's,
those of problem details (RFC 9457), and those that tools make of an exception.
"""

import re

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, Literal

from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.tool_name import TOKEN
from guardrails.core.values.types import Found

from .result_views import as_number, is_mcp_error, says_something


Words = Literal["own", "data", "code", "shown"]
"""
Whose words a text result is. own: the tool's. data: JSON is the tool's, other text may be what it found. code: a program's,
which ends in a traceback if it fails. shown: others'.
"""
Speaks = Callable[[Any], Words]
"""Of the arguments of a call, whose words its text is."""
JSON_CHARS: Final = 8192
"""A longer JSON text brings something."""
LINE_CHARS: Final = 300
_STATUS_CHARS: Final = 3
_SCALARS: Final = frozenset({tuple, int, float, bool, type(None)})
_STATUS: Final = ("status", "status_code", "statusCode", "http_status", "httpStatus")
_FALSE: Final = ("ok", "success")
_TRUE: Final = ("isError", "is_error")
_SIGNS: Final = frozenset({"error", "errors", "content", "structuredContent", *_STATUS, *_FALSE, *_TRUE})
"""One of these is in each object that is looked at."""
_SAYS: Final = r'"\s{0,20}:\s{0,20}'
_IN_TEXT: Final = pattern(
    rf'"(?:(?:{"|".join(_TRUE)}){_SAYS}true|(?:{"|".join(_FALSE)}){_SAYS}false|(?:{"|".join(_STATUS)}){_SAYS}"?[45]\d\d\b'
    rf'|errors?{_SAYS}(?:"[^"]|[\[{{]\s{{0,20}}[^\]}}\s]|true))'
)
"""The same in JSON."""
_NO_ERROR: Final = frozenset({"", "none", "null", "nil", "no", "false", "0", "ok", "success", "n/a", "no error"})
_TELLS: Final = pattern(
    "err|message|msg|details?|reason|cause|code|type|kind|title|description|hints?|help|suggestions?|trace|traceback|stack|exception"
    "|warnings?|timestamp|time|at|date|elapsed|duration|took|instance|ur[li]|href|path|docs|documentation|retry|retryable|retries"
    "|attempts?|status|ok|success|failed|limit|remaining|reset|quota|category|severity|level|domain|fields?|params?|parameter"
    "|version|extensions|locations|jsonrpc|errors?"
    "|(?:err|error|exception|retry|request|response|status|http|documentation|trace) .*"
    "|.* (?:errors?|message|msg|details?|reason|trace|traceback|exception|timestamp|ms)"
)
"""Names of members that say more of a failure, or of the call: their words in lowercase."""
_HTTP: Final = frozenset({*range(400, 419), *range(421, 427), 428, 429, 431, 451, *range(500, 509), 510, 511})
"""The failures in IANA's registry of HTTP status codes."""
_EXPLAINS: Final = ("message", "error", "detail", "title", "reason")
_OF_RESPONSES: Final = frozenset({"body", "headers", "text", "content", "html", "response"})
"""Members of an HTTP response beside its status."""
_LINE: Final = pattern(
    r"""(?:
      (?:(?:fatal|unexpected|unknown|tool|api|http|network|database|system|request|execution|connection|runtime|syntax
      |internal|internal\ server|(?:input\ |output\ )?validation)\ )?
      error(?:\ (?:execut|call|runn|invok|perform|process|fetch|read|writ|open|load|pars|creat|updat|delet|gett|retriev|search
      |connect|send|access)ing\b[^\n:]{0,100}|\ ?[(\[][^\n:]{1,40}[)\]])?:\ *(?=\S)
    | (?:[a-z_]\w{0,60}\.){0,6}[a-z]\w{0,60}(?-i:Error|Exception):\ *(?=\S)
    )(?![-+]?\d*\.\d|(?![45]\d\d$)[-+\d,%\ ]{0,40}$|(?:none|null|nil|no|n/a)\b[. ]*$)""",
    re.IGNORECASE | re.VERBOSE,
)
_TRACEBACK: Final = pattern(r"(?:-{20,100}\s{1,3}[A-Z]\w{2,60} {2,80})?Traceback \(most recent call last\)")
"""Python's, or IPython's under a rule."""
_STATES: Final = ("status", "state")
_WRONG: Final = frozenset({"error", "fail"})
_FAILED: Final = _WRONG | {"failed", "failure", "ko"}


def may_fail(value: Any) -> bool:
    """
    Returns whether *value* is worth a closer look, found out at little cost.
    """
    kind = type(value)
    if kind is dict:
        return not value.keys().isdisjoint(_SIGNS) and _has_sign(value)
    if kind is str:
        head = value[:LINE_CHARS]
        if head[:1] == "{" or (head[:1].isspace() and head.lstrip()[:1] == "{"):
            return len(value) <= JSON_CHARS and _IN_TEXT.search(value) is not None
        return "rror" in head or "RROR" in head or "xception" in head or "raceback" in head
    if kind is list:
        return bool(value) and type(value[0]) is dict and "text" in value[0]
    if kind in _SCALARS:
        return False
    return issubclass(kind, Mapping | str) or is_dataclass(kind) or hasattr(kind, "model_fields") or is_mcp_error(value)


def _has_sign(value: dict[Any, Any]) -> bool:
    for name in value.keys() & _SIGNS:
        said = value[name]
        if said is True or said is False:
            signals = name in _FALSE if said is False else name in _TRUE or name == "error"
        elif name in _STATUS:
            signals = _http_error(said) is not None
        else:
            signals = bool(said) if name[:5] == "error" else isinstance(said, list | dict)
        if signals:
            return True
    return False


def members_of(value: Any) -> Any:
    """
    Returns the fields of a dataclass or a pydantic model; any other value as it is.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return dict(value) if hasattr(type(value), "model_fields") else value


def sign_in(value: Any, arguments: Any) -> tuple[int | None, str, Found] | None:
    """
    Returns (HTTP status, the sign in words, how sure it is) of an object that is a failure. Returns None if it is none,
    or brings something as well. An object that is called unsuccessful and names its error may bring anything beside it.

    A value that is equal to one of the *arguments* of the call is an echo, and brings nothing.
    """
    if not isinstance(value, Mapping):
        return None
    if any(value.get(name) is True for name in _TRUE):
        return None, "the tool reported an error and said nothing of it", "error"
    status, named = _status(value)
    error = value.get("error")
    told = _tells(error) or ("data" in value and value["data"] is None and _tells(value.get("errors")))
    false = next((name for name in _FALSE if value.get(name) is False), None)
    if not told and ((status is None and false is None) or (type(error) in (int, float) and error)):
        return None
    given = [(type(one), one) for one in arguments.values()] if isinstance(arguments, Mapping) else []
    # What has a state and an id is told of: a job that failed was looked up all the same.
    state = next((word.lower() for name in _STATES if isinstance(word := value.get(name), str)), "error")
    thing = not state.isdecimal() and state not in _WRONG
    sure = bool(told and false)
    # A number of HTTP's that is explained is hardly a thing's own: what was asked for stands beside it.
    http = status in _HTTP and any(isinstance(value.get(name), str) for name in _EXPLAINS)
    for name, member in value.items():
        words = [word.lower() for word in TOKEN.findall(str(name))] or [""]
        if name in _STATES:
            news = thing and state not in _FAILED
        elif words[-1] == "id":
            news = thing
        elif sure or _TELLS.fullmatch(" ".join(words)) or (status is not None and words[-1] in _OF_RESPONSES):
            news = False
        elif isinstance(member, int | float) and not told and status is None:
            # Who says no more than `false` may answer a question: a number or a flag is the answer.
            news = True
        elif http and not isinstance(member, Mapping | list | tuple):
            news = False
        else:
            news = brings(member) and (type(member) not in (str, int, float) or (type(member), member) not in given)
        if news:
            return None
    said = f"{named}: {status}" if status is not None else f"{false}: False" if false else "error"
    return status, said, "error" if told else "answer"


def line_in(text: str, words: Words, arguments: Any) -> bool:
    """
    Returns whether the first line of *text* says that all of it is a failure, and was not in the *arguments* of the
    call.
    """
    head = text[:LINE_CHARS].lstrip()
    if _TRACEBACK.match(head) is not None:
        return words in {"code", "own"}
    head = head.partition("\n")[0].rstrip()
    if words != "own" or _LINE.match(head) is None:
        return False
    given = arguments.values() if isinstance(arguments, Mapping) else (arguments,)
    said = head.partition(":")[0]
    return not any(isinstance(one, str) and f"{said}:" in one for one in given)


def brings(value: Any, depth: int = 4) -> bool:
    """
    Returns whether *value* holds more than null, false, zeros and empty texts, lists and objects.
    """
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, Mapping | list | tuple) and depth:
        members = value.values() if isinstance(value, Mapping) else value
        return any(brings(member, depth - 1) for member in members)
    return says_something(value)


def _status(value: Mapping[Any, Any]) -> tuple[int | None, str]:
    return next(
        ((number, name) for name in _STATUS if (number := _http_error(value.get(name))) is not None), (None, "")
    )


def _http_error(said: Any) -> int | None:
    if isinstance(said, str):
        said = as_number(said) if len(said) == _STATUS_CHARS else None
    return int(said) if isinstance(said, int | float) and 400 <= said < 600 else None


def _tells(error: Any) -> bool:
    """
    Returns whether a member `error` says that there was one. A number may be the error of a measurement.
    """
    if isinstance(error, str):
        return error.strip().lower() not in _NO_ERROR
    return error is True or (isinstance(error, Mapping | list) and brings(error))
