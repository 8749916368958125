"""
Reads a tool's result as an outcome, and writes it, or an envelope, as the text that the model reads. Reads the file in which a client keeps
what its agent does: anybody may have written there, and nothing of it is believed.
"""

import json
import os
import stat

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from xxhash import xxh3_64_hexdigest

from guardrails.core.envelope import Envelope
from guardrails.core.result.content import read_mcp
from guardrails.core.text.plain_json import dumps
from guardrails.core.text.truncation import MIN_LIMIT, render


_BLOCKS: Final = frozenset({"text", "image", "audio", "resource", "resource_link"})
"""Kinds of content of an MCP server's result."""
_RESULT: Final = frozenset({"content", "structuredContent", "isError", "_meta"})
"""Fields of such a result: what has others is a built-in tool's."""
MIN_ITEMS: Final = 16
"""Elements of a list that are shown, each in part, however long they are."""
SMALLEST_SHARE: Final = 1e-6
TAIL: Final = 1 << 20
"""Bytes at the end of a transcript that are read."""
Line = Mapping[str, Any]


def reason_of(envelope: Envelope) -> str:
    """
    Returns the reason that the model reads of a call that was refused: a sentence, and below it the envelope.
    """
    sentence = envelope.message or envelope.limit_message or envelope.user_facing_hint or "This call was refused."
    return f"{sentence}\n{envelope.to_json()}"


def notes_of(envelope: Envelope) -> str | None:
    """
    Returns the notes of *envelope* beside its value, as JSON: a used-up limit, a hint, a cut. None: nothing that
    matters.
    """
    notes = envelope.notes()
    return json.dumps(notes, ensure_ascii=False, default=str) if notes else None


def read_response(given: Any) -> Any:
    """
    Returns the outcome of a call whose tool gave back *given*.
    """
    blocks = blocks_of(given)
    if blocks is None:
        return given
    shown = [block if block.get("type") == "text" else mark_of(block.get("type"), block) for block in blocks]
    return read_mcp({**given, "content": shown} if isinstance(given, Mapping) else {"content": shown})


def blocks_of(given: Any) -> list[Any] | None:
    """
    Returns the blocks of content if *given* is the result of an MCP server, else None.
    """
    if isinstance(given, Mapping) and not given.keys() <= _RESULT:
        return None
    content = given.get("content") if isinstance(given, Mapping) else given
    if not isinstance(content, list) or not content:
        return None
    return content if all(isinstance(one, Mapping) and one.get("type") in _BLOCKS for one in content) else None


def shortened(given: Any, envelope: Envelope) -> str | None:
    """
    Returns the text that is read in place of the result *given*, with all notes of *envelope*: for clients that take only a text. None: nothing was cut.
    """
    if not envelope.cut or envelope.rendered is None:
        return None
    if not isinstance(given, str):
        return envelope.to_json()
    return "\n".join(filter(None, (str(cut(given, len(envelope.rendered.payload))), notes_of(envelope))))


def cut(given: Any, limit: int) -> Any:
    """
    Returns *given* in about *limit* bytes of JSON, in its own form: the same share of each long text and list, and all members of objects.
    """
    if (blocks := blocks_of(given)) is not None:
        # An image of which a part is missing is none.
        shown = [{**one, "text": cut(one["text"], limit)} if one.get("type") == "text" else one for one in blocks]
        return {**given, "content": shown} if isinstance(given, Mapping) else shown
    made, size = given, len(dumps(given) or "")
    share = 0.9 * limit / max(size, 1)
    while size > limit and share > SMALLEST_SHARE:
        made = _share_of(given, share)
        size, share = len(dumps(made) or ""), share / 2
    return made


def _share_of(value: Any, share: float) -> Any:
    if isinstance(value, str):
        return render(value, max(MIN_LIMIT, int(len(value) * share))).text or value
    if isinstance(value, list):
        return [_share_of(one, share) for one in value[: max(MIN_ITEMS, int(len(value) * share))]]
    return {key: _share_of(one, share) for key, one in value.items()} if isinstance(value, dict) else value


def mark_of(kind: Any, piece: Any) -> dict[str, Any]:
    """
    Returns a *piece* of a result that is no text as the records have it: its *kind*, and what tells it from others.
    """
    whole = json.dumps(piece, sort_keys=True, default=str).encode()
    return {"type": kind, "bytes": len(whole), "xxh3": xxh3_64_hexdigest(whole)}


# Transcripts


def tail(path: str, marks: Iterable[bytes]) -> list[Line]:
    """
    The objects in the last lines of the file *path* that have one of *marks*, but for a line of which the beginning or the end is missing. Empty if
    there is no such file, or it is no plain one.
    """
    # A pipe would wait for who writes into it.
    with suppress(OSError, ValueError), open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode):
            start = file.seek(max(0, status.st_size - TAIL))
            lines = file.read(TAIL).split(b"\n")
            return [_parsed(line) for line in lines[1 if start else 0 : -1] if any(mark in line for mark in marks)]
    return []


def _parsed(line: bytes) -> Line:
    """
    The object that *line* is the JSON of; an empty one if it is none.
    """
    with suppress(ValueError, RecursionError):
        return mapping(json.loads(line))
    return {}


def mapping(value: Any) -> Mapping[str, Any]:
    """
    *value* if it is an object, else an empty one.
    """
    return value if isinstance(value, dict) else {}


def at_ms(text: Any) -> int | None:
    """
    Milliseconds since 1970 of a time as ISO 8601 writes it. Returns None if it is none.
    """
    with suppress(TypeError, ValueError, OverflowError):
        at = datetime.fromisoformat(text)
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    return None
