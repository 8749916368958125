"""
Results of MCP tools, all as on the wire: read as outcomes, and answered with what an envelope has to say.

A refusal and a failure have one shape. A note stands beside a success where its client reads it, and structured content stays valid for
the tool's `outputSchema`. What a server says in our names is not ours.
"""

import json
import re

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from jsonschema_rs import validator_for

from guardrails.core.arguments.json_schema import SchemaArguments, refuse
from guardrails.core.arguments.problems import Checked
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.envelope.text import block_of
from guardrails.core.result.content import read_mcp
from guardrails.hooks.results import cut, mapping, mark_of


PREFIX: Final = "io.github.toolcall-guardrails"
RUN: Final = f"{PREFIX}/run"
"""Key of a request's `_meta` by which a client says to which run of an agent a call belongs."""
ENVELOPE: Final = f"{PREFIX}/envelope"
"""Key of a result's `_meta` that holds the envelope of a call that did not succeed, or what is said of a success."""
BESIDE: Final = "_guardrails"
"""Key of the structured content that holds the same, as far as the tool's `outputSchema` allows it."""
UNKNOWN: Final[dict[str, Any]] = {"not": {}}
"""The `outputSchema` of a tool that is not known: only what its server gave is sure to fit it."""
THEIRS: Final = "(the server's words) "
"""Before a text of a server that begins as ours do."""
_OURS: Final = re.compile(r"[\W_]*+".join(["(?i)", *"guardrails"]) + r"\b")
"""With any signs between, as some of them are not seen; a bracket is among the first."""
_NOTE: Final[dict[str, Any]] = {"type": "object", "description": "What is to be known of this result beside it."}


# Of a server


def without_ours(said: Any) -> Any:
    """
    Returns what a server *said* without keys of ours, and with a mark before each text that begins as ours do.
    """
    if isinstance(said, str):
        return f"{THEIRS}{said}" if (found := _OURS.match(said)) and "[" in found[0] else said
    if isinstance(said, list):
        return [without_ours(one) for one in said]
    if isinstance(said, dict):
        return {name: without_ours(one) for name, one in said.items() if not name.startswith((BESIDE, PREFIX))}
    return said


class ServerArguments(SchemaArguments):
    """
    Arguments by the schema of a server, as far as the schema alone is enough to know that they are wrong.

    Text in the place of a number, a list or a date is left to the server: many read such text. So is null in the place of a
    member that may be left out.
    """

    __slots__ = ()

    def check(self, arguments: object) -> Checked:
        given, problems = super().check(arguments)
        if problems and isinstance(given, dict):
            there = {name: value for name, value in given.items() if value is not None}
            with suppress(ValueError):
                if not any(map(_is_wrong, self._validator.iter_errors(there))):
                    return given, ()
        return given, problems


def _is_wrong(error: Any) -> bool:
    name = type(error.kind).__name__
    if name in ("AnyOf", "OneOfNotValid"):
        return all(any(map(_is_wrong, way)) for way in error.kind.context)
    return name != "Format" and not (name == "Type" and isinstance(error.instance, str))


def with_room(listed: Mapping[str, Any]) -> dict[str, Any]:
    """
    Returns a *listed* tool with room for a note in its `outputSchema`, if that is of an object.
    """
    schema = mapping(listed.get("outputSchema"))
    fields = schema.get("properties", {})
    if schema.get("type") != "object" or not isinstance(fields, dict):
        return {**listed}
    return {**listed, "outputSchema": {**schema, "properties": {**fields, BESIDE: _NOTE}}}


def is_question(result: Any) -> bool:
    """
    Returns whether *result* asks the client for input: an object of an SDK, or what is on the wire.
    """
    kind = result.get("resultType") if isinstance(result, dict) else getattr(result, "result_type", None)
    return kind == "input_required" or hasattr(result, "input_required")


def outcome_of(result: Mapping[str, Any]) -> Any:
    """
    Returns the outcome of a call: the value of its *result*, or a `Failed`.

    Images and other bytes are the number and the hash of them: no model reads base64 as text.
    """
    content: Any = result.get("content")
    if isinstance(content, list):
        content = [one if is_text(one) else mark_of(mapping(one).get("type"), one) for one in content]
    return read_mcp({**result, "content": content})


# For a client


def refused(envelope: Envelope, result: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """
    Returns the answer of a call that did not run, or whose *result* is a failure. It has `isError`, one line for a
    person and the envelope as JSON. It has no structured content, which clients would check. Images and other blocks
    that are no text stay.
    """
    given, text = result or {}, envelope.to_json()
    blocks = [block for block in given.get("content") or () if not is_text(block)]
    made = {name: value for name, value in given.items() if name != "structuredContent"}
    made["content"] = [{"type": "text", "text": f"{_line(envelope)}\n{text}"}, *blocks]
    meta = {**(given.get("_meta") or {}), ENVELOPE: json.loads(text)}
    return {**made, "isError": True, "_meta": meta}


def answered(envelope: Envelope, result: Mapping[str, Any], value: Any, schema: Any = None) -> Mapping[str, Any]:
    """
    Returns the *result* of a success with the notes of *envelope*; the very *result* if there are none. The session knows
    its content as *value*. The tool's `outputSchema` is *schema*, for which structured content stays valid.

    If a guard put another value in place of the content, and the value does not fit *schema*, it is a failure.
    """
    said, shaped = envelope.notes(), envelope.value is not value and envelope.value != value
    new = shaped or envelope.cut is not None
    whole = new or envelope.form == "nested"
    if not whole and not said:
        return result
    content, structured = list(result.get("content") or ()), result.get("structuredContent")
    if new and structured is not None:
        wrapped = {"result": envelope.value} if wrapped_value(structured) is not structured else envelope.value
        shown = wrapped if shaped else cut(structured, envelope.render().size)
        fits = _fits(shown, schema)
        if shaped and not fits:
            return refused(envelope, result)
        structured = shown if fits else structured
    beside = {**structured, BESIDE: said} if isinstance(structured, dict) and said else None
    told = beside is not None and _fits(beside, schema)
    if whole:
        content = [{"type": "text", "text": envelope.to_json()}, *(one for one in content if not is_text(one))]
    elif not told or said.keys() != {"next_action_hint"}:
        # A hint is said once; that a limit is reached also to clients that read texts alone.
        content.append({"type": "text", "text": block_of(envelope)})
    made = {**result, "content": content}
    if structured is not None:
        made["structuredContent"] = beside if told else structured
    return {**made, "_meta": {**(result.get("_meta") or {}), ENVELOPE: said}} if said else made


def is_text(block: Any) -> bool:
    """
    Returns whether all that a *block* of content says is text, which the envelope has.
    """
    given = mapping(block)
    kind, resource = given.get("type"), mapping(given.get("resource"))
    return kind == "text" or (kind == "resource" and "blob" not in resource)


def wrapped_value(structured: Any) -> Any:
    """
    Returns the value that SDKs wrapped in *structured* content because it is no object; the schema that says so is the
    server's.
    """
    return structured["result"] if isinstance(structured, dict) and structured.keys() == {"result"} else structured


def _fits(structured: Any, schema: Mapping[str, Any] | None) -> bool:
    """
    Returns whether *structured* is valid by *schema*; False also if the schema is none.
    """
    if schema is None:
        return True
    with suppress(ValueError):
        return validator_for(dict(schema), retriever=refuse).is_valid(structured)
    return False


def _line(envelope: Envelope) -> str:
    """
    The state of a call in one line, as clients that show text only quote it.
    """
    said = envelope.message or envelope.error_message or envelope.limit_message or envelope.next_action_hint or ""
    code = envelope.code or envelope.error_type or envelope.status
    return f"[guardrails:{code}] {' '.join(said[:500].split()) or envelope.status}"
