"""
Calls that stand in more than one file, given out once: checkpoints, forks and copies of sessions repeat earlier calls.

A call is known by its own id, its time, its tool and its arguments. If it has no id, its source and its place in its
session stand for that. A call without a time is like no other: programs count `call_0`, `call_1`, ... anew in each
session. A time before the year 2000 counts from the session's beginning, so that it tells nothing of other sessions.
"""

from collections.abc import Hashable, Iterable, Iterator
from typing import Final

from .calls import RecordedCall, Session


_CLOCKS_MS: Final = 946_684_800_000
"""The year 2000: an earlier time is none of a clock."""


class Copies:
    """
    The calls that were read so far.

    The first file that holds a call keeps it, and the calls of a session that goes on behind copies are of that file's
    session. A fork, which has another name, begins with its first own call. A call without a result gets the result that
    a later file holds.
    """

    def __init__(self) -> None:
        self.left_out = 0
        """Copies that were not given out."""
        self._known: dict[Hashable, RecordedCall] = {}
        self._ends: dict[tuple[str, Session], int] = {}
        """The place of the latest call of a session that was given out."""

    def once(self, calls: Iterable[RecordedCall]) -> Iterator[RecordedCall]:
        """
        Yields those *calls* of a file that no earlier call is the same as.
        """
        homes: dict[tuple[str, Session], str] = {}
        """The source of which a session of this file is the continuation."""
        latest: dict[Hashable, tuple[int, int]] = {}
        """Of each key the place of its latest call in this file, and how many stand before that."""
        for call in calls:
            session, index = (call.source, name := call.session), call.call_index
            key = _key(call, name)
            if key is not None:
                # Servers that count in seconds use an id again within one. A session that begins again has no new calls.
                place, before = latest.get(key, (index, -1))
                latest[key] = index, before + 1 if index > place or before < 0 else 0
                key = key, latest[key][1]
                first = self._known.get(key)
                if first is not None:
                    self.left_out += 1
                    if index == first.call_index == 0 and first.session == name:
                        homes[session] = first.source
                    if call.has_result and not first.has_result and first.decision != "deny":
                        _take(first, call)
                    continue
                self._known[key] = call
            home = homes.get(session, call.source)
            if index > self._ends.get((home, name), -1):
                call.source = home
            else:
                # The files go two ways, and this one is a fork of the same name.
                homes.pop(session, None)
            self._ends[call.source, name] = index
            yield call

    def notices(self) -> list[str]:
        """
        Returns the notices for a person.
        """
        if not self.left_out:
            return []
        what = "1 copy of a call is" if self.left_out == 1 else f"{self.left_out:,} copies of calls are"
        return [f"{what} left out: a call that stands in more than one file or session counts once"]


def _key(call: RecordedCall, session: Session) -> Hashable:
    """
    What *call* of *session* is known by. None if nothing tells it from others.
    """
    at_ms, signature = call.ts_ms, call.signature
    if at_ms is None or signature is None:
        return None
    if call.number is not None:
        return session, call.number, at_ms, signature
    if call.id is not None and at_ms >= _CLOCKS_MS:
        return call.id, at_ms, signature
    own = call.source if call.id is None else call.id
    return own, session, call.call_index, at_ms, signature


def _take(first: RecordedCall, copy: RecordedCall) -> None:
    """
    Put the result of a *copy* into the call that was there *first*.
    """
    for name in ("has_result", "result", "is_error", "error_type", "http_status", "retry_after_ms", "plain_hash"):
        setattr(first, name, getattr(copy, name))
    for name in ("masked_hash", "steady", "empty", "is_complete", "duration_ms", "tool_cost_usd"):
        setattr(first, name, getattr(copy, name))
