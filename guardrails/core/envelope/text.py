"""
An envelope as the text that the model reads.

    nested   an object of ours, in which the tool's result is one field
    merged   the tool's own object with a few fields spliced in; failures that are no object, and what could be taken for an envelope, nested
    quiet    the tool's own text, with one line of ours below it if there is something to say; failures nested

A text that is spliced into is never parsed and written again, which would change spacing, key order and big integers.
"""

import json

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from guardrails.core.text.control import cleaned, sanitise
from guardrails.core.text.truncation import render
from guardrails.core.values.types import STATUSES


if TYPE_CHECKING:
    from .envelope import Envelope


MAX_BYTES: Final = 8_192
"""Bytes of a message beside the result and the earlier one that a refusal gives back."""
MARK: Final = "[guardrails] "
"""The beginning of a line of ours below a tool's own text."""


def nested(envelope: "Envelope") -> str:
    """
    Returns *envelope* as an object, in which the result is one field.
    """
    shown, size = envelope.fields(), 0
    if envelope.value is not None:
        payload = envelope.render().payload
        size = len(payload)
        shown["results" if "results" in shown else "result"] = orjson.Fragment(payload)
    if envelope.previous_payload is not None:
        size += len(envelope.previous_payload)
        shown["previous_result"] = orjson.Fragment(envelope.previous_payload)
    return cleaned(_written(shown, size).decode())


def merged(envelope: "Envelope") -> str | None:
    """
    Returns the tool's own text with what *envelope* has to say spliced in. Returns None if it must be nested: a refusal, a failure that
    is no object, an object that says of itself what only we say, or that has a field of ours.
    """
    ok, value = envelope.ok, envelope.value
    if not ok and (envelope.status != "error" or not isinstance(value, dict | str)):
        return None
    text, strict = _own(envelope)
    # Behind marks that nobody sees, spaces of any kind and a byte order mark, it begins like an object.
    opened = next((one for one in text if one.isprintable() and not one.isspace()), "") == "{"
    if (opened and (not strict or imitates(text))) or not (ok or (opened and strict)):
        return None
    notes = _noted({name: one for name, one in envelope.notes().items() if name != "status"})
    if not notes:
        return text
    if opened and not {name for name, _ in _members(text)}.isdisjoint(notes):
        return None
    return with_fields(text if strict else json.dumps(text, ensure_ascii=False), notes)


def quiet(envelope: "Envelope") -> str | None:
    """
    Returns the tool's own text, and below it what *envelope* has to say. Returns None for what is no success, or has a mark of ours.
    """
    text = _own(envelope)[0] if envelope.ok else MARK
    if MARK in text:
        return None
    block = block_of(envelope)
    return text if block is None else f"{text}\n\n{block}"


def block_of(envelope: "Envelope") -> str | None:
    """
    Returns the line that is read beside a result which stays as it is; None if there is nothing to say.
    """
    notes = envelope.notes()
    return f"{MARK}{orjson.dumps(_noted(notes)).decode()}" if notes else None


def _own(envelope: "Envelope") -> tuple[str, bool]:
    """
    Returns the tool's own text, and whether it is JSON for every parser.
    """
    rendered = envelope.render()
    if rendered.text is None:
        return cleaned(rendered.payload.decode()), True
    text = sanitise(rendered.text)
    return text, text == rendered.text and is_strict(text)


def _noted(fields: dict[str, Any]) -> dict[str, Any]:
    """
    Returns *fields*, cleaned and within bounds.
    """
    clean = {name: sanitise(one) if isinstance(one, str) else one for name, one in fields.items()}
    return cast("dict[str, Any]", orjson.loads(_written(clean)))


def _written(shown: dict[str, Any], size: int = 0) -> bytes:
    """
    Returns the fields *shown* as JSON, in at most `MAX_BYTES` bytes beside *size* bytes of what is JSON already. Of more, each field is cut to
    its share.
    """
    # A tool's or guard's own code may fill a field with what JSON cannot say.
    with suppress(TypeError, ValueError):
        written = orjson.dumps(shown)
        if len(written) <= MAX_BYTES + size:
            return written
    # The names take the rest.
    share = (MAX_BYTES - 1_024) // len(shown)
    return orjson.dumps({name: _cut(content, share) for name, content in shown.items()})


def _cut(content: Any, share: int) -> Any:
    if isinstance(content, orjson.Fragment):
        return content
    with suppress(TypeError, ValueError):
        if len(orjson.dumps(content)) <= share:
            return content
    return orjson.Fragment(render(content, share).payload)


CLAIMS: Final = ("retryable", "retry_after_ms", "max_retries_remaining", "is_complete", "next_action_hint")
"""Fields by which a tool's own object would speak as an envelope."""
LIMITS: Final = "limit_"
"""The beginning of fields that tell of a limit."""

# An object is a tuple of its members, of two with one name too: a reader may take either. Numbers stay text: nobody reads them here, and
# Python refuses integers of more than 4,300 digits.
_decode = json.JSONDecoder(object_pairs_hook=tuple, parse_int=str, parse_float=str).decode
_SPACE: Final = " \t\n\r"


def _members(text: str) -> tuple[tuple[str, Any], ...]:
    """
    Returns the top-level members of the JSON object *text*; none of text that is no object.
    """
    with suppress(ValueError, RecursionError):
        made = _decode(text)
        return made if isinstance(made, tuple) else ()
    return ()


def imitates(text: str) -> bool:
    """
    Returns whether the JSON object *text* could be taken for an envelope of ours; text that is no object imitates nothing.
    """
    claimed = f'"{LIMITS}' in text or any(f'"{key}"' in text for key in (*CLAIMS, "status"))
    if not claimed and "\\u" not in text:
        return False
    return any(
        name in CLAIMS or name.startswith(LIMITS) or (name == "status" and isinstance(value, str) and value in STATUSES)
        for name, value in _members(text)
    )


def is_strict(text: str) -> bool:
    """
    Returns whether *text* is JSON for every parser. It has no NaN, no half of a surrogate pair, no number beyond a
    double, and at most 254 containers within each other.
    """
    with suppress(TypeError, ValueError):
        return bool(orjson.dumps(orjson.loads(text)))
    return False


def with_fields(text: str, added: Mapping[str, Any]) -> str:
    """
    Returns *text*, a JSON object, with the members *added* before its last brace, and a value that is no object as
    `{"result": <value or text>, ...}`. An object that has some of the same names is written anew.
    """
    new = json.dumps(added, ensure_ascii=False)[1:-1]
    try:
        value = _decode(text)
        if isinstance(value, tuple) and not added.keys().isdisjoint(dict(value)):
            return json.dumps({**json.loads(text), **added}, ensure_ascii=False)
    except (ValueError, RecursionError):
        value, text = None, json.dumps(text, ensure_ascii=False)
    if not isinstance(value, tuple):
        return f'{{"result": {text.strip(_SPACE)}, {new}}}'
    head, brace, rest = text.rpartition("}")
    body = head.rstrip(_SPACE)
    return f"{body}{', ' if value else ''}{new}{head[len(body) :]}{brace}{rest}"


def limit_fields(text: str, message: str | None = None, *, max_tool_turns: int | None = None) -> str:
    """
    Returns the JSON text of a tool's result with `limit_reached` and `limit_message` added, all other fields kept. The *message* says
    which limit; with *max_tool_turns* it is that of B5: `Tool call limit reached (3). Stopping tool loop.`

    A value that is no object becomes `{"result": <value or text>, ...}`. Without a limit the text stays as it is.
    """
    if message is None and max_tool_turns is not None:
        message = f"Tool call limit reached ({max_tool_turns}). Stopping tool loop."
    return text if message is None else with_fields(text, {"limit_reached": True, "limit_message": message})
