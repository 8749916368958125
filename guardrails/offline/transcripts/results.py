"""
The text of a recorded result, and the failure that it tells of.
"""

import json
import re

from typing import Any, Final

import orjson

from guardrails.core.result import reading_of
from guardrails.core.result.kinds import kind_of_text, status_in
from guardrails.core.values.types import ERROR_TYPES, ErrorType

from .calls import RecordedCall
from .fields import is_one_of, text_of
from .mcp_text import string_in, unwrapped


HEAD_CHARS: Final = 600
"""Of a result only this much is asked whether it failed."""
_MAX_PARSED: Final = 65_536

_NONE: Final = r"(?:none|null|nil|no|false|0)\b[ \t]*+(?:$|[\n,;])"
_MEASURE: Final = r"[-+]?(?:\d*\.\d+(?:e[-+]?\d{1,4})?|\d+e[-+]?\d{1,4}|\d+(?=[ \t]?%))[ \t%]*+(?:$|[\n,;])"
"""`0.02`, `1e-9`, `3 %`: how large an error is."""
_TOPIC: Final = (
    r"(?!\ (?:(?:count|rate|budget|margin|bar|log|report|page|estimate|handler|term)s?|messages|codes|types|classes|free"
    r"|handling|logging|reporting|tracking|monitoring|correction|detection|analysis|boundar(?:y|ies)|hierarchy|\d{4}-\d\d)\b|[./-][a-z]|[,;|\t]\S)"
)
"""What makes a word of failure the subject of a text, or a part of a name, a column of a table or a line of a log."""
_FAILURE: Final = re.compile(
    rf"""\s*+(?![^\n]{{0,60}}\b(?:(?:no|zero|without|fixed|standard|margin\ of)(?:\ the)?\ error\b|error\s*[:=]\s*(?:{_NONE}|{_MEASURE})))
    (?:[❌✖✗⛔🚫⚠]\ufe0f?\s?|\*\*)?+(?:                              # `❌ Error: ...`
      (?:[a-z_]{{1,40}}\ ){{0,4}}error\b\s*+(?:[:\[(]|executing|$)      # `Input validation error: ...`
    | error\b{_TOPIC} | err:\ | panic:\ | exception\b{_TOPIC}
    | fatal(?:\ (?:\w{{1,40}}\ )?(?:error|exception|signal)\b|\b\s*+(?:[^\w\s]|$)) | unknown\ tool\b
    | mcp\ error\ -?\d | \[error\](?!\ \d{{4}}-\d\d) | <(?:tool_use_)?error>
    | an\ error\ occurred\ while\ (?:running\ the\ tool|parsing\ tool\ arguments)\b      # OpenAI Agents SDK
    | (?:failed|unable|could\ not|couldn't|cannot)\ (?:to\ )?+[a-z](?![a-z]*:\ 0\b)
    | [\w.]{{0,80}}(?:Error|Exception)\b\ {{0,3}}:
    | (?!(?:0|no|none|nothing)(?:\ \w+){{0,3}}\ timed\ out)[^\n]{{0,60}}(?<!\bthat\ )(?<!\bnot\ )(?<!\bnever\ )\btimed\ out\b(?!:\ \d+\s*+(?:$|\n))
    | (?:process\ exited\ with\ )?(?:exit\ ?(?:code|status)[:\ ]{{1,3}}[1-9]
        | (?:code|status)[:\ ]{{1,3}}(?![23]\d\d\b)[1-9]\d{{0,2}}\s*+(?:$|\n|[^\w\s]))
    | command\ failed\ with\ exit\ code\ [1-9]
    | (?:http[/\d.]{{0,4}}|status(?:\ code)?)[:\ ]{{1,2}}[45]\d\d\b
    | [45]\d\d\ (?:bad|unauthori|forbidden|not\ found|conflict|too\ many|internal|service|gateway|client|server)
    | (?:permission|access)\ denied\b | too\ many\ requests\b | (?:\w+\ )?rate\ limit\ exceeded\b
    | connection\ (?:refused|reset)\b | [^\n]{{0,80}}:\ command\ not\ found\s*+$
    | (?:tool\ \S+\ )?not\ found\s*+$ | (?:timeout|unauthorized|forbidden|bad\ request|service\ unavailable)\.?\s*+$
    | (?-i:E[A-Z]{{4,12}}):\ [a-z]                                     # Node: `ENOENT: no such file ...`
    | -{{20,80}}\s{{1,3}}\w{{1,60}}(?:Error|Exception)\b                  # IPython
    | cell\ in\[\d{{1,6}}\],\ line\ \d[^\n]{{0,500}}\n(?:[^\n]{{0,500}}\n){{1,2}}[A-Z]\w{{1,60}}Error:
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_NO_TEXT: Final = re.compile(
    r"""(?:(?:\{"type":"(?:image|audio|resource|resource_link)"[^\n]*|\[[a-z_]{1,40}, \d{1,12} bytes, [0-9a-f]{16}\])\n)+"""
)
"""Blocks without text before those with some, as `text_of` writes them."""
_TRACEBACK: Final = "Traceback (most recent call last)"
_ENVELOPE_FAILURES: Final = frozenset(
    {"error", "validation_error", "duplicate_call_blocked", "limit_reached", "denied"}
)


def settle(call: RecordedCall, content: Any, *, failed: bool | None = None) -> None:
    """
    Put a result into *call*, with the kind of its error. The format's own flag is *failed*, or None if it has none.

    The result is taken out of the wrapping of MCP. Without the format's flag that wrapping is asked for one, then the text.
    """
    told, flag = unwrapped(text_of(content))
    if failed is None:
        failed = flag or _says_failure(told)
    elif flag and not failed:
        told = as_failed(told)
    call.has_result = True
    call.result = told
    call.is_error = failed
    if failed:
        said = _spoken(told)
        call.error_type = own_error_type(said) or kind_of_text(said) or "other"
        call.http_status = status_in(said)


def as_failed(told: str) -> str:
    """
    Returns a failed result of MCP that says *told*.

    A format that has no failure there may only know that nothing was raised. So `isError` is kept in the text, which is
    judged as in a session. There it is known whose words they are: the tool's, or those of a file that it shows.
    """
    return json.dumps({"content": [{"type": "text", "text": told}], "isError": True})


def says_failure(told: str) -> bool:
    """
    Returns whether a result says that it failed. An MCP result says so by its flag or its text, an object by the status
    of an envelope or as in a session. Other text says so by its beginning, since there is no other sign.
    """
    told, flag = unwrapped(told)
    return flag or _says_failure(told)


def _spoken(told: str) -> str:
    before = _NO_TEXT.match(told)
    return string_in((told if before is None else told[before.end() :]).strip())


def _says_failure(told: str) -> bool:
    told = _spoken(told)
    if told[:1] == "{" and len(told) <= _MAX_PARSED:
        value = _object(told)
        if value is not None:
            return is_one_of(value.get("status"), _ENVELOPE_FAILURES) or reading_of(value).failed

    head = told[:HEAD_CHARS]
    return _FAILURE.match(head) is not None or _TRACEBACK in head


def own_error_type(told: str) -> ErrorType | None:
    """
    Returns the error type that an envelope of this library names.
    """
    if told[:1] != "{" or '"error_type"' not in told or len(told) > _MAX_PARSED:
        return None

    said = (_object(told) or {}).get("error_type")
    return said if type(said) is str and said in ERROR_TYPES else None


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text)
    except ValueError:
        return None

    return value if type(value) is dict else None
