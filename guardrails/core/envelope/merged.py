"""
The merged form: a tool's own JSON text with a few fields spliced in.

The text is never parsed and written again, which would change spacing, key order and big integers; only what is added
is new.
"""

import json

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from guardrails.core.values.types import STATUSES


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
