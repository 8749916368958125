"""
The answers that a client of an MCP server reads of guarded calls: one shape for refusals and failures, and the note
beside a success. All of it as on the wire, so that it needs no SDK.
"""

import json

from collections.abc import Mapping
from typing import Any, Final

from guardrails.core.arguments.json_schema import refuse
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.envelope.text import block_of

from .pruning import pruned


PREFIX: Final = "io.github.toolcall-guardrails"
RUN: Final = f"{PREFIX}/run"
"""Key of a request's `_meta` by which a client says to which run of an agent a call belongs."""
ENVELOPE: Final = f"{PREFIX}/envelope"
"""Key of a result's `_meta` that holds the envelope of a call that did not succeed, or what is said of a success."""
BESIDE: Final = "_guardrails"
"""Key of the structured content that holds the same, as far as the tool's `outputSchema` allows it."""

_SHOWN: Final = frozenset({"content", "structuredContent", "isError", "_meta"})
UNKNOWN: Final[dict[str, Any]] = {"not": {}}
"""The `outputSchema` of a tool that is not known: none is sure to fit it, but what its server gave."""


def refused(envelope: Envelope, result: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """
    Returns the answer of a call that did not run, or whose *result* is a failure. It has `isError`, one line for a
    person and the envelope as JSON. It has no structured content, which clients would check. Images and other blocks
    that are no text stay.
    """
    text = envelope.to_json()
    given = {} if result is None else result
    said = {"type": "text", "text": f"{_line(envelope)}\n{text}"}
    rest = {name: value for name, value in given.items() if name not in _SHOWN}
    kept = [block for block in given.get("content") or () if not is_text(block)]
    meta = {**(given.get("_meta") or {}), ENVELOPE: json.loads(text)}
    return {**rest, "content": [said, *kept], "isError": True, "_meta": meta}


def says_nothing(envelope: Envelope, value: Any) -> bool:
    """
    Returns whether *envelope* has nothing to say beside *value*, as which the session knows the content of a success.
    """
    return not (_is_whole(envelope) or envelope.notes() or (envelope.ok and not _is_own(envelope.value, value)))


def answered(
    envelope: Envelope, result: Mapping[str, Any], value: Any, schema: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """
    Returns the *result* that a server gave, with the notes of *envelope*; the very *result* if there are none. The
    session knows its content as *value*. The tool's `outputSchema` is *schema*, for which structured content stays
    valid.

    Raises ValueError if a guard put another value in place of the structured content, and the value does not fit
    *schema*.
    """
    if says_nothing(envelope, value):
        return result
    said, shaped = envelope.notes(), envelope.ok and not _is_own(envelope.value, value)
    content, structured = list(result.get("content") or ()), result.get("structuredContent")
    if shaped or envelope.cut is not None or _is_whole(envelope):
        content = [{"type": "text", "text": envelope.to_json()}, *(one for one in content if not is_text(one))]
        if structured is not None and (shaped or envelope.cut is not None):
            shown = _shown(envelope, structured, shaped=shaped)
            if _fits(shown, schema):
                structured = shown
            elif shaped:
                raise ValueError("what a guard made of the structured content does not fit the tool's `outputSchema`")
    else:
        content.append({"type": "text", "text": block_of(envelope)})
    if isinstance(structured, dict) and said and BESIDE not in structured:
        beside = {**structured, BESIDE: said}
        structured = beside if _fits(beside, schema) else structured
    made = {**result, "content": content}
    if structured is not None:
        made["structuredContent"] = structured
    if said:
        made["_meta"] = {**(result.get("_meta") or {}), ENVELOPE: said}
    return made


def _is_whole(envelope: Envelope) -> bool:
    """
    Returns whether a policy asks for the whole envelope, also of a success with nothing to say.
    """
    return envelope.form == "nested"


def is_text(block: Any) -> bool:
    """
    Returns whether all that a *block* of content says is text, which the envelope has.
    """
    if not isinstance(block, Mapping):
        return False
    if block.get("type") == "resource":
        return "blob" not in (block.get("resource") or ())
    return block.get("type") == "text"


def wrapped_value(structured: Any) -> Any:
    """
    Returns the value that SDKs wrapped in *structured* content because it is no object; the schema that says so is the
    server's.
    """
    return structured["result"] if isinstance(structured, dict) and structured.keys() == {"result"} else structured


def _is_own(shown: Any, value: Any) -> bool:
    """
    Returns whether what is *shown* is the tool's own *value*, or what that says as an envelope.
    """
    if shown is value:
        return True
    spoken = Envelope.spoken(value)
    return bool(shown == (spoken.value if isinstance(spoken, Envelope) else value))


def _shown(envelope: Envelope, structured: Any, *, shaped: bool) -> Any:
    whole: Any = structured
    if shaped:
        wrapped = wrapped_value(structured) is not structured
        whole = {"result": envelope.value} if wrapped else envelope.value
    return whole if envelope.cut is None else pruned(whole, envelope.render().size)


def _fits(structured: Any, schema: Mapping[str, Any] | None) -> bool:
    """
    Returns whether *structured* is valid by *schema*; False also if the schema is none.
    """
    if schema is None:
        return True
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=refuse).is_valid(structured)
    except ValueError:
        return False


def _line(envelope: Envelope) -> str:
    """
    The state of a call in one line, as clients that show text only quote it.
    """
    said = envelope.message or envelope.error_message or envelope.limit_message or envelope.next_action_hint or ""
    code = envelope.code or envelope.error_type or envelope.status
    return f"[guardrails:{code}] {' '.join(said[:500].split()) or envelope.status}"
