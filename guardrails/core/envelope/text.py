"""
An envelope as the text that the model reads.

    nested   an object of ours, in which the tool's result is one field
    merged   the tool's own object with a few fields spliced in; failures that are no object, and what could be taken for an envelope, nested
    quiet    the tool's own text, with one line of ours below it if there is something to say; failures nested

A text that is spliced into is never parsed and written again, which would change spacing, key order and big integers.
"""

import json

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from guardrails.core.text.control import cleaned, sanitise
from guardrails.core.text.truncation import render
from guardrails.core.values.types import STATUSES


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


CLAIMS: Final = ("retryable", "retry_after_ms", "max_retries_remaining", "is_complete", "next_action_hint")
"""Fields by which a tool's own object would speak as an envelope."""
LIMITS: Final = "limit_"
"""The beginning of fields that tell of a limit."""

# Numbers stay text: nobody reads them here, and Python refuses integers of more than 4,300 digits.
_decode = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
_SPACE: Final = " \t\n\r"


def members(text: str) -> Iterator[tuple[str, Any, int, int]]:
    """
    Returns (key, value, start, end) of each top-level member of the JSON object that *text* is; positions are of
    characters.

    Raises ValueError if *text* is no object.
    """
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        raise ValueError("not an object")
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        start = at
        key, at = _decode(text, at)
        at = _skip(text, at)
        if not isinstance(key, str) or text[at : at + 1] != ":":
            raise ValueError("not an object")
        value, at = _decode(text, _skip(text, at + 1))
        yield key, value, start, at
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
            if text[at : at + 1] == "}":
                raise ValueError("a comma before the end")
        elif text[at : at + 1] != "}":
            raise ValueError("not an object")
    if text[at + 1 :].strip(_SPACE):
        raise ValueError("text after the object")


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in _SPACE:
        at += 1
    return at


def imitates(text: str) -> bool:
    """
    Returns whether the JSON object *text* could be taken for an envelope of ours; text that is no object imitates nothing.
    """
    claimed = f'"{LIMITS}' in text or any(f'"{key}"' in text for key in (*CLAIMS, "status"))
    if not claimed and "\\u" not in text:
        return False
    try:
        # Each member by itself: of two with one name, a reader may take either.
        return any(
            key in CLAIMS or key.startswith(LIMITS) or (key == "status" and isinstance(said, str) and said in STATUSES)
            for key, said, _, _ in members(text)
        )
    except (ValueError, RecursionError):
        return False


def begins_object(text: str) -> bool:
    """
    Returns whether *text* begins like a JSON object, behind marks that nobody sees: spaces of any kind, a byte order
    mark.
    """
    return next((one for one in text if one.isprintable() and not one.isspace()), "") == "{"


def is_strict(text: str) -> bool:
    """
    Returns whether *text* is JSON for every parser. It has no NaN, no half of a surrogate pair, no number beyond a
    double, and at most 254 containers within each other.
    """
    try:
        orjson.dumps(orjson.loads(text))
    except (TypeError, ValueError):
        return False
    return True


def splice(text: str, added: Mapping[str, Any]) -> str | None:
    """
    Returns *text*, a JSON object, with the members *added* before its last brace. Returns None if *text* is no object.

    Members of the same names are replaced.
    """
    try:
        found = list(members(text))
    except (ValueError, RecursionError):
        return None
    if not added:
        return text
    kept = [at for at, (key, *_) in enumerate(found) if key not in added]
    new = json.dumps(added, ensure_ascii=False)[1:-1]
    if not kept:
        return f"{text[: text.index('{') + 1]}{new}{text[text.rindex('}') :]}"
    # Each with what stands between it and the next member, so that the spacing stays; the last is followed by the new.
    parts = [text[found[at][2] : found[at][3] if at == kept[-1] else found[at + 1][2]] for at in kept]
    return f"{text[: found[0][2]]}{''.join(parts)}, {new}{text[found[-1][3] :]}"


def with_fields(text: str, added: Mapping[str, Any]) -> str:
    """
    Returns *text* as `splice` does, and a value that is no object as `{"result": <value or text>, ...}`.
    """
    return splice(text, added) or f'{{"result": {_value(text)}, {json.dumps(added, ensure_ascii=False)[1:-1]}}}'


def _value(text: str) -> str:
    value = text.strip(_SPACE)
    try:
        _, end = _decode(value)
    except (ValueError, RecursionError):
        end = -1
    return value if end == len(value) else json.dumps(text, ensure_ascii=False)


def limit_fields(text: str, message: str | None = None, *, max_tool_turns: int | None = None) -> str:
    """
    Returns the JSON text of a tool's result with `limit_reached` and `limit_message` added, all other fields kept. The *message* says
    which limit; with *max_tool_turns* it is that of B5: `Tool call limit reached (3). Stopping tool loop.`

    A value that is no object becomes `{"result": <value or text>, ...}`. Without a limit the text stays as it is.
    """
    if message is None and max_tool_turns is not None:
        message = f"Tool call limit reached ({max_tool_turns}). Stopping tool loop."
    return text if message is None else with_fields(text, {"limit_reached": True, "limit_message": message})
