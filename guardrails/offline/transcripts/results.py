"""
The text of a recorded result, and the failure that it tells of.
"""

import json
import re

from ast import literal_eval
from typing import Any, Final

from guardrails.core.result import reading_of
from guardrails.core.result.kinds import kind_of_text, status_in
from guardrails.core.values.types import ERROR_TYPES, ErrorType

from .calls import RecordedCall
from .fields import has_text, is_one_of, text_of
from .json_text import parsed


HEAD_CHARS: Final = 600
"""Of a result only this much is asked whether it failed."""
_MAX_PARSED: Final = 65_536

_MAX_WRAPPED: Final = 1 << 20
"""Longer text stays as it is."""
_HEAD: Final = 300
"""Characters at the beginning of which a wrapping is looked for."""
_STRING: Final = r"""(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")"""
_BLOCK: Final = rf"""TextContent\(type='text',\ text={_STRING}
    (?:,\ annotations=(?:None|Annotations\([^()]{{0,200}}\)))?
    (?:,\ meta=(?:None|\{{[^{{}}]{{0,200}}\}}))?\)"""
_PRINTED: Final = re.compile(
    rf"""(?:CallToolResult\()?
    (?:(?:meta=(?:None|\{{[^{{}}]{{0,200}}\}}),?\ )?content=)?
    (?P<blocks>\[{_BLOCK}(?:,\ {_BLOCK})*+\])
    (?:,?\ structuredContent=(?:None|\{{.*\}}))?(?:,?\ isError=(?P<failed>True|False))?\)?""",
    re.VERBOSE | re.DOTALL,
)
_TEXT: Final = re.compile(rf"TextContent\(type='text', text=({_STRING})", re.DOTALL)
_BLOCK_KEYS: Final = frozenset(
    {"type", "text", "annotations", "_meta", "meta", "id", "index", "citations", "cache_control", "logprobs"}
)
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
    told, flag = _unwrapped(text_of(content))
    if failed is None:
        failed = flag or _says_failure(told)
    elif flag and not failed:
        told = as_failed(told)
    call.has_result = True
    call.result = told
    call.is_error = failed
    if failed:
        said = _spoken(told)
        call.error_type = _own_error_type(said) or kind_of_text(said) or "other"
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
    told, flag = _unwrapped(told)
    return flag or _says_failure(told)


def _unwrapped(text: str) -> tuple[str, bool]:
    """
    Returns *text* without the wrappings of MCP tool results, as JSON or as Python prints them, and whether one says that it failed.
    """
    failed = False
    # A server that calls another wraps its result once more, and a host writes the block once more.
    for _ in range(3):
        bare = text.strip()
        value = parsed(bare) if bare[:1] in ("{", "[") and '"text"' in bare and len(bare) <= _MAX_WRAPPED else None
        blocks = value.get("content", [value]) if type(value) is dict else value
        if "[TextContent(" in bare[:_HEAD] and (found := _PRINTED.fullmatch(bare[:_MAX_WRAPPED])):
            text = "\n".join(str(literal_eval(one)) for one in _TEXT.findall(found["blocks"]))
            failed = failed or found["failed"] == "True"
        elif type(blocks) is list and any(map(_is_block, blocks)):
            text = text_of(blocks)
            failed = failed or (type(value) is dict and True in (value.get("isError"), value.get("is_error")))
        else:
            break
    return text, failed


def _is_block(value: Any) -> bool:
    return has_text(value) and "type" in value and _BLOCK_KEYS.issuperset(value)


def _spoken(told: str) -> str:
    before = _NO_TEXT.match(told)
    return (told if before is None else told[before.end() :]).strip()


def _says_failure(told: str) -> bool:
    told = _spoken(told)
    if told[:1] == "{" and len(told) <= _MAX_PARSED and type(value := parsed(told)) is dict:
        return is_one_of(value.get("status"), _ENVELOPE_FAILURES) or reading_of(value).failed
    head = told[:HEAD_CHARS]
    return _FAILURE.match(head) is not None or _TRACEBACK in head


def _own_error_type(told: str) -> ErrorType | None:
    """
    Returns the error type that an envelope of this library names.
    """
    value = parsed(told) if told[:1] == "{" and '"error_type"' in told and len(told) <= _MAX_PARSED else None
    return next((each for each in ERROR_TYPES if type(value) is dict and each == value.get("error_type")), None)
