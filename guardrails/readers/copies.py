"""
Calls that stand in more than one file, given out once: checkpoints, forks and copies of sessions repeat what was before.

A call is known by its own id, its time, its tool and its arguments; if it has no id, by its source and its place in its
session in place of that. A call without a time is like no other: programs count `call_0`, `call_1`, ... anew in each session.
A time before the year 2000 counts from the session's beginning, so that it tells nothing of other sessions.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from xxhash import xxh3_64_intdigest

from ..signature import low64, sign
from .base import RecordedCall
from .keys import Keys
from .recent import Recent
from .waiting import Session, session_of


MAX_OPEN: Final = 10_000
"""Calls without a result that wait for a copy that has one; then the oldest go without."""
_BITS: Final = (1 << 64) - 1
_CLOCKS_MS: Final = 946_684_800_000
"""The year 2000: an earlier time is none of a clock."""
_NOT_KEPT: Final = frozenset({"signed"})


class Copies:
    """
    What was read so far.

    The first file that holds a call keeps it, and the calls of a session that goes on behind copies are of that file's
    session. A fork, which has another name, begins with its first own call. A call that ends its file without a result gets
    the result that a later file holds.
    """

    def __init__(self) -> None:
        self.left_out = 0
        """Copies that were not given out."""
        self.read = 0
        """Calls of the present file that were taken."""
        self._keys = Keys()
        self._homes: Recent[int, tuple[str, Session]] = Recent()
        """The source and the session that begins with the call of a key."""
        self._moved: Recent[tuple[str, Session], str] = Recent()
        """The source of which a session of another one is the continuation."""
        self._ends: Recent[tuple[str, Session], int] = Recent()
        """The place of the latest call of a session that was given out."""
        self._at: tuple[str, Session] = "", ""
        self._end = -1
        """The same of the session *_at*, which is being read."""
        self._at_once: Recent[Session, _AtOnce] = Recent()
        """By session of the present file."""
        self._open: dict[Session, dict[int, RecordedCall]] = {}
        self._holder: dict[int, Session] = {}
        """The session in *_open* of each key there."""
        self._due: deque[RecordedCall] = deque()

    def once(self, calls: Iterable[RecordedCall], read: int = 0) -> Iterator[RecordedCall]:
        """
        Those *calls* of a file, of which *read* were taken before, that no earlier call is the same as.

        The latest calls of a session are held back if they have no result; `rest` gives them.
        """
        self.read = read
        if not read:
            self._at_once.clear()
        add, open_calls, due, at_once = self._keys.add, self._open, self._due, _AtOnce()
        source = session_id = run = home = ""
        session: Session = ""
        named = 0
        while due:
            yield due.popleft()
        for call in calls:
            self.read += 1
            if call.session_id != session_id or call.source != source or call.run != run:
                self._leave()
                source, session_id, run = call.source, call.session_id, call.run
                session = session_of(call)
                home = self._moved.get((source, session), source)
                self._at, named = (home, session), _named(call)
                at_once = self._at_once.get(session) or _AtOnce()
                self._at_once[session] = at_once
            key = key_of(call, named)
            if key is not None:
                if call.number is None and call.id is not None:
                    key = at_once.told_apart(call, key)
                first = call.call_index == 0
                if not add(key):
                    if first:
                        home = self._home(key, source, session)
                        self._at = home, session
                    self.left_out += 1
                    if call.has_result and key in self._holder:
                        yield self._take_place(call, key)
                    continue
                if first and (call.id is not None or call.number is not None):
                    self._homes[key] = source, session
            if home != source:
                if call.call_index > self._ends.get((home, session), -1):
                    call.source = home
                else:
                    # It goes another way from where they part, which makes it a fork, whatever its name.
                    self._leave()
                    self._moved.pop((source, session), None)
                    home = source
                    self._at = home, session
            self._end = call.call_index
            if key is not None and not call.has_result and call.decision != "deny":
                self._hold(call, key, session)
            elif session in open_calls:
                due += self._given_up(session)
                due.append(call)
            else:
                yield call
                continue
            while due:
                yield due.popleft()
        self._leave()

    def rest(self) -> Iterator[RecordedCall]:
        """
        The calls for which no result came, after all files.
        """
        while self._open:
            self._due += self._given_up(next(iter(self._open)))
            while self._due:
                yield self._due.popleft()

    def notices(self) -> list[str]:
        """
        What a person is told of it.
        """
        if not self.left_out:
            return []
        what = "1 copy of a call is" if self.left_out == 1 else f"{self.left_out:,} copies of calls are"
        return [f"{what} left out: a call that stands in more than one file or session counts once"]

    def to_dict(self) -> dict[str, Any]:
        """
        All but the keys, as JSON has it; `take_over` goes on from it.
        """
        return {
            "left_out": self.left_out,
            "homes": [[key, *where] for key, where in self._homes.items()],
            "moved": [[*which, to] for which, to in self._moved.items()],
            "ends": [[*which, end] for which, end in self._ends.items()],
            "at": [*self._at, self._end],
            "at_once": [[session, *held.to_list()] for session, held in self._at_once.items()],
            "open": [[key, _plain(call)] for held in self._open.values() for key, call in held.items()],
            "due": list(map(_plain, self._due)),
        }

    def packed_keys(self) -> tuple[bytes, bytes]:
        """
        The keys of the calls that were read.
        """
        return self._keys.to_bytes()

    def take_over(self, data: Mapping[str, Any], keys: tuple[bytes, bytes]) -> None:
        """
        Go on from what `to_dict` and `packed_keys` made.
        """
        self.left_out = data["left_out"]
        self._homes.update((key, (source, _session(name))) for key, source, name in data["homes"])
        self._moved.update(((source, _session(name)), to) for source, name, to in data["moved"])
        self._ends.update(((source, _session(name)), end) for source, name, end in data["ends"])
        source, name, self._end = data["at"]
        self._at = source, _session(name)
        self._at_once.update((_session(name), _AtOnce(at_ms, places)) for name, at_ms, places in data["at_once"])
        for key, said in data["open"]:
            call = _call(said)
            self._hold(call, key, session_of(call))
        self._due += map(_call, data["due"])
        self._keys.add_bytes(*keys)

    def _home(self, key: int, source: str, session: Session) -> str:
        """
        The source where *session* stands already if it begins in *source* with a copy of its own first call, which has *key*.
        """
        home, of = self._homes.get(key, (source, session))
        if of != session or home == source:
            return source
        self._moved[source, session] = home
        return home

    def _leave(self) -> None:
        if self._end >= 0:
            self._ends[self._at] = self._end
        self._end = -1

    def _hold(self, call: RecordedCall, key: int, session: Session) -> None:
        self._open.setdefault(session, {})[key] = call
        self._holder[key] = session
        if len(self._holder) > MAX_OPEN:
            self._due += self._given_up(next(iter(self._open)))

    def _take_place(self, call: RecordedCall, key: int) -> RecordedCall:
        """
        The copy *call*, which has a result, where the call without one stood.
        """
        session = self._holder.pop(key)
        held = self._open[session]
        first = held.pop(key)
        if not held:
            del self._open[session]
        call.source, call.session_id, call.run = first.source, first.session_id, first.run
        call.call_index, call.turn = first.call_index, first.turn
        if call.tokens_in is None and call.tokens_out is None:
            call.tokens_in, call.tokens_out, call.cost_usd = first.tokens_in, first.tokens_out, first.cost_usd
        return call

    def _given_up(self, session: Session) -> Iterable[RecordedCall]:
        held = self._open.pop(session)
        for key in held:
            del self._holder[key]
        return held.values()


class _AtOnce:
    """
    The latest calls of a session that have one time. Of those that are equal in all that a key is made of, the second is
    a call of its own if it stands behind the first: servers that count in seconds use an id again within one.
    """

    __slots__ = ("at_ms", "places")

    def __init__(self, at_ms: int | None = None, places: Iterable[tuple[int, int, int]] = ()) -> None:
        self.at_ms = at_ms
        self.places = {key: (place, before) for key, place, before in places}
        """Of each key the place of its latest call, and how many stand before that."""

    def told_apart(self, call: RecordedCall, key: int) -> int:
        """
        The key of *call*, which is *key* unless it is the second, third, ... of that key.
        """
        if call.ts_ms != self.at_ms or len(self.places) >= MAX_OPEN:
            self.at_ms = call.ts_ms
            self.places = {key: (call.call_index, 0)}
            return key
        place, before = self.places.get(key, (call.call_index, -1))
        # A session that begins again, as where each line has the whole of it, has no new calls.
        before = before + 1 if call.call_index > place or before < 0 else 0
        self.places[key] = call.call_index, before
        return hash((key, before)) & _BITS or 1 if before else key

    def to_list(self) -> tuple[int | None, list[tuple[int, int, int]]]:
        """
        What `_AtOnce` takes.
        """
        return self.at_ms, [(key, *said) for key, said in self.places.items()]


def key_of(call: RecordedCall, named: int | None = None) -> int | None:
    """
    The number by which *call* is known again, above 0 and below 2**64; None if nothing tells it from others. *named*
    is `_named` of it, if that is known.
    """
    at_ms = call.ts_ms
    if at_ms is None:
        return None
    sig = call.sig
    if sig is None:
        call.signed = signed = sign(call.tool, call.arguments)
        if signed[0] is None:
            return None
        sig = low64(signed[0])
    if call.number is not None:
        said = _named(call) if named is None else named, call.number, at_ms, sig
    elif call.id is not None and at_ms >= _CLOCKS_MS:
        said = _hash(call.id), -1, at_ms, sig
    elif call.id is not None:
        said = _hash(f"{call.session_id}\n{call.run}\n{call.id}"), call.call_index, at_ms, sig
    else:
        said = _hash(f"{call.source}\n{call.session_id}\n{call.run}"), call.call_index, at_ms, sig
    return hash(said) & _BITS or 1


def _named(call: RecordedCall) -> int:
    return _hash(f"{call.session_id}\n{call.run}")


def _hash(text: str) -> int:
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


def _plain(call: RecordedCall) -> dict[str, Any]:
    return {name: getattr(call, name) for name in RecordedCall.__slots__ if name not in _NOT_KEPT}


def _call(said: Mapping[str, Any]) -> RecordedCall:
    return RecordedCall(**{**said, "nudges": tuple(said["nudges"])})


def _session(name: Any) -> Session:
    return name if type(name) is str else (name[0], name[1])
