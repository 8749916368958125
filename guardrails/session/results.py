"""
Earlier results: kept to be given back, bounded in bytes, the oldest go first; and the events of a session in a few lines, which are the
answer if a model gives none, and its memory after a context compaction.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from guardrails.core.state import Entry, SessionState, latest_of
from guardrails.core.text.control import sanitise
from guardrails.core.text.plain_json import dumps, exact
from guardrails.core.values.types import Outcome


MAX_RESULT: Final = 300
"""Characters shown of one result."""
MAX_ARGUMENTS: Final = 160


class Earlier(NamedTuple):
    """
    One earlier result.
    """

    arguments: bytes
    """Canonical JSON."""
    payload: bytes
    """JSON."""


Find = Callable[[Entry], Earlier | None]


def failure(outcome: Outcome) -> bytes:
    """
    Returns the part that is kept of a call that failed and brought nothing; JSON.
    """
    return exact(dumps({"error_type": outcome.error_type, "error_message": outcome.error_message}) or b"null")


def digest(state: SessionState, find: Find, progress: Mapping[str, Any], exhausted: tuple[str, str] | None) -> str:
    """
    Returns the calls of the window, oldest first, each with its result as far as it is kept, and the rest of the
    limits.
    """
    lines, shown = ["No tool was run."], len(state.window)
    if state.seq > 0:
        head = f"{state.seq} tool {'call was' if state.seq == 1 else 'calls were'} made"
        lines = [f"{head}:" if shown == state.seq else f"{head}; the last {shown}:"]
    # What is kept is the result of the latest call of its signature that ended, and of no other.
    latest = latest_of(entry for entry in state.window if entry.status in ("ok", "error"))
    lines += [f"- {_line(each, find(each), whole=latest.get(each.sig) == each.seq)}" for each in state.window]
    left = ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in progress.items())
    lines.append(f"Progress: {left}.")
    if exhausted is not None:
        lines.append(f"{exhausted[1]} The user can resume or raise the limit.")
    # Names are those that a model made up, and JSON does not escape DEL.
    return sanitise("\n".join(lines))


def _line(entry: Entry, earlier: Earlier | None, *, whole: bool) -> str:
    arguments = "" if earlier is None else _short(earlier.arguments, MAX_ARGUMENTS)
    how = {"ok": "done", "error": f"failed ({entry.error_type})", "running": "still running"}
    how["expired"] = "no result: it may have happened" if entry.changes else "no result"
    result = "" if earlier is None or not whole else f": {_short(earlier.payload, MAX_RESULT)}"
    return f"{entry.tool} {arguments} {how[entry.status]}{result}".replace("  ", " ")


def _short(text: bytes, limit: int) -> str:
    shown = text[: limit * 4].decode("utf-8", "ignore")
    return shown if len(shown) <= limit else f"{shown[:limit]}..."


MAX_BYTES: Final = 4 * 2**20
"""Of one policy's sessions together; a larger cache costs each call more than it gives back (memory that is not warm)."""
OVERHEAD: Final = 350
"""Bytes that an entry costs beside its texts, as tracemalloc counts them."""


class Results:
    """
    A cache of results by session and signature, of about *max_bytes*. A result that falls out is only told of, not given
    back.

    Half of it is new and half is old: once the new half is full it is the old one, and what was old is gone. No lock: where
    two threads meet, a sum is off by a result until then.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._half = max_bytes // 2
        self._size = 0
        self._new: dict[tuple[str, int | None], Earlier] = {}
        self._old: dict[tuple[str, int | None], Earlier] = {}

    def keep(self, session: str, sig: int, arguments: bytes, payload: bytes) -> None:
        """
        Remember the result of a call; its texts are the cache's from here on, and take no more than they say
        (`plain_json.exact`).
        """
        size = self._size + len(payload) + len(arguments) + OVERHEAD
        if size > self._half:
            self._old, self._new, size = self._new, {}, size - self._size
        self._size = size
        self._new[session, sig] = Earlier(arguments, payload)

    def find(self, session: str, sig: int | None) -> Earlier | None:
        """
        Returns the result of the latest call of that signature.
        """
        return self._new.get((session, sig)) or self._old.get((session, sig))
