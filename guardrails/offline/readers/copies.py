"""
Calls that stand in more than one file, given out once: checkpoints, forks and copies of sessions repeat earlier calls.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from .base import RecordedCall
from .same_call import AtOnce, key_of, named_of
from .waiting import Session, session_of


class Copies:
    """
    The calls that were read so far.

    The first file that holds a call keeps it, and the calls of a session that goes on behind copies are of that file's
    session. A fork, which has another name, begins with its first own call. A call that ends its file without a result gets
    the result that a later file holds.
    """

    def __init__(self) -> None:
        self.left_out = 0
        """Copies that were not given out."""
        self.read = 0
        """Calls of the present file that were taken."""
        self._keys: set[int] = set()
        self._homes: dict[int, tuple[str, Session]] = {}
        """The source and the session that begins with the call of a key."""
        self._moved: dict[tuple[str, Session], str] = {}
        """The source of which a session of another one is the continuation."""
        self._ends: dict[tuple[str, Session], int] = {}
        """The place of the latest call of a session that was given out."""
        self._at: tuple[str, Session] = "", ""
        self._end = -1
        """The same of the session *_at*, which is being read."""
        self._at_once: dict[Session, AtOnce] = {}
        """By session of the present file."""
        self._open: dict[Session, dict[int, RecordedCall]] = {}
        self._holder: dict[int, Session] = {}
        """The session in *_open* of each key there."""
        self._due: deque[RecordedCall] = deque()

    def once(self, calls: Iterable[RecordedCall]) -> Iterator[RecordedCall]:
        """
        Returns those *calls* of a file that no earlier call is the same as.

        The latest calls of a session are held back if they have no result; `rest` gives them.
        """
        self.read = 0
        self._at_once.clear()
        keys, open_calls, due, at_once = self._keys, self._open, self._due, AtOnce()
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
                self._at, named = (home, session), named_of(call)
                at_once = self._at_once[session] = self._at_once.get(session) or AtOnce()
            key = key_of(call, named)
            if key is not None:
                if call.number is None and call.id is not None:
                    key = at_once.told_apart(call, key)
                first = call.call_index == 0
                if key in keys:
                    if first:
                        home = self._home(key, source, session)
                    self.left_out += 1
                    if call.has_result and key in self._holder:
                        yield self._take_place(call, key)
                    continue
                keys.add(key)
                if first and (call.id is not None or call.number is not None):
                    self._homes[key] = source, session
            if home != source:
                call.source = home = self._goes_on(call, home, session)
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
        Returns the calls for which no result came, after all files.
        """
        while self._open:
            self._due += self._given_up(next(iter(self._open)))
            while self._due:
                yield self._due.popleft()

    def notices(self) -> list[str]:
        """
        Returns the notices for a person.
        """
        if not self.left_out:
            return []
        what = "1 copy of a call is" if self.left_out == 1 else f"{self.left_out:,} copies of calls are"
        return [f"{what} left out: a call that stands in more than one file or session counts once"]

    def _home(self, key: int, source: str, session: Session) -> str:
        """
        The source where *session* stands already if it begins in *source* with a copy of its own first call, which has *key*.
        """
        home, of = self._homes.get(key, (source, session))
        if of != session or home == source:
            return source
        self._moved[source, session] = home
        self._at = home, session
        return home

    def _goes_on(self, call: RecordedCall, home: str, session: Session) -> str:
        """
        Returns the source of *call*, the next of a *session* that stands in the source *home* too. It is *home* if the
        call goes on behind its last one. If not, the files go two ways, and this one is a fork of the same name.
        """
        if call.call_index > self._ends.get((home, session), -1):
            return home
        self._moved.pop((call.source, session), None)
        self._at = call.source, session
        return call.source

    def _leave(self) -> None:
        if self._end >= 0:
            self._ends[self._at] = self._end
        self._end = -1

    def _hold(self, call: RecordedCall, key: int, session: Session) -> None:
        self._open.setdefault(session, {})[key] = call
        self._holder[key] = session

    def _take_place(self, call: RecordedCall, key: int) -> RecordedCall:
        """
        The copy *call*, which has a result, if the call without one stood.
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
