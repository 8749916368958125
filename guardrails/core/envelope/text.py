"""
An envelope as the text that the model reads.

    nested   an object of ours, in which the tool's result is one field
    merged   the tool's own object with a few fields spliced in; failures that are no object, and what could be taken for an envelope, nested
    quiet    the tool's own text, with one line of ours below it if there is something to say; failures nested
"""

import json

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from guardrails.core.text.control import cleaned
from guardrails.core.text.redaction import sanitise
from guardrails.core.text.truncation import render

from .merged import begins_object, imitates, is_strict, members, splice, with_fields


if TYPE_CHECKING:
    from .envelope import Envelope

MAX_SAID: Final = 8_192
"""Bytes of a message beside the result and the earlier one that a refusal gives back."""
_CAPS: Final = (4_096, 2_048, 1_024, 512, 256)
"""Bytes of one field, tried in turn: with the last of them all fields together are shorter than `MAX_SAID`."""
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
    try:
        written = orjson.dumps(shown)
    except (TypeError, ValueError):
        # A field that a tool's or guard's own code filled with what JSON cannot say.
        shown = {name: _cut(content, _CAPS[2]) for name, content in shown.items()}
        written = orjson.dumps(shown)
    if len(written) > MAX_SAID + size:
        written = orjson.dumps(_bounded(shown))
    return cleaned(written.decode())


def merged(envelope: "Envelope") -> str | None:
    """
    Returns the tool's own text with what *envelope* has to say spliced in. Returns None if it must be nested: a refusal, a failure that
    is no object, an object that says of itself what only we say, or that has a field of ours.
    """
    ok, value = envelope.ok, envelope.value
    if not ok and (envelope.status != "error" or not isinstance(value, dict | str)):
        return None
    text, strict = _own(envelope)
    opened = begins_object(text)
    if (opened and (not strict or imitates(text))) or not (ok or (opened and strict)):
        return None
    notes = _noted({name: said for name, said in envelope.notes().items() if name != "status"})
    if not notes:
        return text
    if not opened:
        return with_fields(text if strict else json.dumps(text, ensure_ascii=False), notes)
    with suppress(ValueError, RecursionError):
        if {key for key, *_ in members(text)}.isdisjoint(notes):
            return splice(text, notes)
    return None


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


def _noted(said: dict[str, Any]) -> dict[str, Any]:
    """
    Returns the fields *said*, cleaned and within bounds.
    """
    cut = _bounded({name: sanitise(one) if isinstance(one, str) else one for name, one in said.items()})
    return cast("dict[str, Any]", orjson.loads(orjson.dumps(cut)))


def _bounded(shown: dict[str, Any]) -> dict[str, Any]:
    """
    Returns the fields *shown* in at most `MAX_SAID` bytes but for what is written already: the longest are cut first.
    """
    for cap in _CAPS:
        made = {name: _cut(content, cap) for name, content in shown.items()}
        said = {name: content for name, content in made.items() if not isinstance(shown[name], orjson.Fragment)}
        if len(orjson.dumps(said)) <= MAX_SAID - len('"previous_result":,"results":,'):
            break
    return made


def _cut(content: Any, cap: int) -> Any:
    if isinstance(content, orjson.Fragment):
        return content
    with suppress(TypeError, ValueError):
        if len(orjson.dumps(content)) <= cap:
            return content
    return orjson.Fragment(render(content, cap).payload)
