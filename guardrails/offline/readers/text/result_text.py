"""
The text of a recorded result, and what it says of its own failure.
"""

import re

from typing import Any, Final

import orjson

from xxhash import xxh3_64_hexdigest

from guardrails.core.outcome.error_text import error_type_from_text, status_in_text
from guardrails.core.outcome.plain_failures import sign_in
from guardrails.core.values.types import ERROR_TYPES, ErrorType
from guardrails.offline.readers.base import RecordedCall

from .fields import is_one_of
from .mcp_text import unwrapped


HEAD_CHARS: Final = 600
"""Of a result only this much is asked whether it failed."""
_MAX_BLOCK: Final = 1_000
"""Bytes of a content block without text (an image) that stand in the result; more is a hash."""
_MAX_PARSED: Final = 65_536

_FAILURE: Final = re.compile(
    r"""\s*+(?:
      (?:[a-z_]{1,40}\ ){0,4}error\b\s*+(?:[:\[(]|executing|$)      # `Input validation error: ...`
    | error\b | err:\ | fatal\b | panic:\ | exception\b | unknown\ tool\b
    | (?:failed|unable|could\ not|couldn't|cannot)\ (?:to\ )?[a-z]
    | [\w.]{0,80}(?:Error|Exception)\b\ {0,3}:
    | [^\n]{0,60}\btimed\ out\b
    | (?:process\ exited\ with\ )?(?:code|exit\ ?code|status)[:\ ]{1,3}[1-9]
    | (?:http[/\d.]{0,4}|status(?:\ code)?)[:\ ]{1,2}[45]\d\d\b
    | [45]\d\d\ (?:bad|unauthori|forbidden|not\ found|conflict|too\ many|internal|service|gateway|client|server)
    | -{20,80}\s{1,3}\w{1,60}(?:Error|Exception)\b                  # IPython
    | cell\ in\[\d{1,6}\],\ line\ \d[^\n]{0,500}\n(?:[^\n]{0,500}\n){1,2}[A-Z]\w{1,60}Error:
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_TRACEBACK: Final = "Traceback (most recent call last)"
_ENVELOPE_FAILURES: Final = frozenset(
    {"error", "validation_error", "duplicate_call_blocked", "limit_reached", "denied"}
)


def text_of(content: Any) -> str:
    """
    The text of *content*: itself, or its blocks joined by newlines. A block without text stands as its JSON, or as a
    hash of it where that is long, so that different ones stay different; any other value is its JSON.
    """
    if type(content) is str:
        return content

    if content is None:
        return ""

    if type(content) is list:
        return "\n".join(map(_block_text, content))

    return _block_text(content)


def _block_text(block: Any) -> str:
    if type(block) is str:
        return block

    if type(block) is dict and type(block.get("text")) is str and is_one_of(block.get("type", "text"), _TEXT_BLOCKS):
        return str(block["text"])

    try:
        written = orjson.dumps(block)
    except (TypeError, ValueError, RecursionError):
        written = repr(block).encode("utf-8", "backslashreplace")
    if len(written) <= _MAX_BLOCK:
        return written.decode()

    kind = block.get("type") if type(block) is dict else None
    return f"[{kind if type(kind) is str else 'value'}, {len(written)} bytes, {xxh3_64_hexdigest(written)}]"


_TEXT_BLOCKS: Final = frozenset({"text", "input_text", "output_text"})


def settle(call: RecordedCall, content: Any, *, failed: bool | None = None) -> None:
    """
    Put a result into *call*, with the kind of its error; *failed* is the format's own flag, None where it has none.

    Without a flag the result is taken out of the wrapping of MCP, which may have one, and its text is asked.
    """
    told = text_of(content)
    if failed is None:
        told, flag = unwrapped(told)
        failed = flag or says_failure(told)
    call.has_result = True
    call.result = told
    call.is_error = failed
    if failed:
        call.error_type = own_error_type(told) or error_type_from_text(told) or "other"
        call.http_status = status_in_text(told)


def says_failure(told: str) -> bool:
    """
    Whether a result says that it failed: an object by the status of an envelope or as in a session, other text by how it begins,
    since there is nobody else to ask.
    """
    if told[:1] == "{" and len(told) <= _MAX_PARSED:
        value = _object(told)
        if value is not None:
            return is_one_of(value.get("status"), _ENVELOPE_FAILURES) or sign_in(value, None) is not None

    head = told[:HEAD_CHARS]
    return _FAILURE.match(head) is not None or _TRACEBACK in head


def own_error_type(told: str) -> ErrorType | None:
    """
    The error type that an envelope of this library names.
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
