"""
Reads a tool's result as an outcome, and writes it with its envelope's notes in the tool's own shape.
"""

import json

from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any, Final

import orjson

from xxhash import xxh3_64_hexdigest

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.envelope.text import block_of
from guardrails.core.result.content import read_mcp
from guardrails.core.text.truncation import MIN_LIMIT, render


_BLOCKS: Final = frozenset({"text", "image", "audio", "resource", "resource_link"})
"""Kinds of content of an MCP server's result."""
_RESULT: Final = frozenset({"content", "structuredContent", "isError", "_meta"})
"""Fields of such a result: what has others is a built-in tool's."""
MAX_JSON: Final = 1 << 20
"""Characters of a text that is read as JSON."""


def read_response(given: Any) -> Any:
    """
    The outcome of a call whose tool gave back *given*.
    """
    blocks = _blocks(given)
    if blocks is None:
        return given
    shown = [block if block.get("type") == "text" else mark_of(block.get("type"), block) for block in blocks]
    value = read_mcp({**given, "content": shown} if isinstance(given, Mapping) else {"content": shown})
    return _value(value) if isinstance(value, str) else value


def rewritten(given: Any, envelope: Envelope, *, envelopes: bool) -> tuple[Any, str | None]:
    """
    Returns the result that the model reads in place of *given*, None if it stays. The second value is the text that the
    model reads beside it, or None.

    Blocks of an MCP server stay blocks. The result of a built-in tool has a schema: only its texts are cut.
    """
    blocks = _blocks(given)
    said = beside(envelope)
    if blocks is not None:
        texts = all(block.get("type") == "text" for block in blocks)
        envelopes = envelopes or envelope.form in ("nested", "merged")
        if envelope.cut is None and not (texts and (envelopes or said is not None)):
            return None, said
        kept = [block for block in blocks if block.get("type") != "text"]
        made = [{"type": "text", "text": envelope.to_json("nested" if envelope.form is None else None)}, *kept]
        if envelope.form == "quiet" and envelope.ok and envelope.cut is None and not envelopes:
            made = [*blocks, {"type": "text", "text": block_of(envelope)}]
        return ({**given, "content": made} if isinstance(given, Mapping) else made), None
    if envelope.cut is None or envelope.rendered is None:
        return None, said
    return cut(given, envelope.rendered.size), said


def beside(envelope: Envelope) -> str | None:
    """
    Returns the notes of *envelope* beside its value, as JSON: a used-up limit, a hint, a cut. None: nothing that
    matters.
    """
    said = envelope.notes()
    return json.dumps(said, ensure_ascii=False, default=str) if said else None


def shortened(given: Any, envelope: Envelope) -> str | None:
    """
    Returns the text that is read in place of the result *given*, with all notes of *envelope*. It is for clients that
    take only a text. Returns None if nothing was cut.
    """
    if envelope.cut is None or envelope.rendered is None:
        return None
    if not isinstance(given, str):
        return envelope.to_json()
    kept, said = cut(given, envelope.rendered.size), beside(envelope)
    return str(kept) if said is None else f"{kept}\n{said}"


def cut(given: Any, limit: int) -> Any:
    """
    *given* with its longest texts cut, so that it has about *limit* bytes of JSON, and with all of its keys. Lists, and what is
    no text, stay as they are.
    """
    whole = {"": deepcopy(given)}
    for _ in range(3):
        over = len(orjson.dumps(whole, default=str)) - limit
        if over <= 0:
            break
        holder, key, text = max(_texts(whole), key=lambda found: len(found[2]), default=(None, None, ""))
        if holder is None:
            break
        room = max(MIN_LIMIT, len(orjson.dumps(text)) - over)
        holder[key] = render(text, room).text or text
    return whole[""]


def _texts(value: Any) -> Iterator[tuple[Any, Any, str]]:
    found = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in found:
        if isinstance(one, str):
            yield value, key, one
        else:
            yield from _texts(one)


def _value(text: str) -> Any:
    """
    The object or list that *text* is the JSON of, as servers write them; else the text.
    """
    if text[:1] in ("{", "[") and len(text) <= MAX_JSON:
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


def _blocks(given: Any) -> list[Any] | None:
    if isinstance(given, Mapping) and not given.keys() <= _RESULT:
        return None
    content = given.get("content") if isinstance(given, Mapping) else given
    if not isinstance(content, list) or not content:
        return None
    return content if all(isinstance(one, Mapping) and one.get("type") in _BLOCKS for one in content) else None


def mark_of(kind: Any, piece: Any) -> dict[str, Any]:
    """
    A *piece* of a result that is no text as the records have it: its *kind*, and what tells it from others.
    """
    whole = json.dumps(piece, sort_keys=True, default=str).encode()
    return {"type": kind, "bytes": len(whole), "xxh3": xxh3_64_hexdigest(whole)}
