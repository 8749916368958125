"""
Calls that wait for their results: joined by id, given out in the order of their session.
"""

from collections import deque
from collections.abc import Iterator

from .base import RecordedCall


Session = str | tuple[str, str]
"""A session's id, or (id, run) where the name has more than one life."""


def session_of(call: RecordedCall) -> Session:
    """
    Returns the session of *call*, its life told apart.
    """
    return (call.session_id, call.run) if call.run else call.session_id


class _Session:
    __slots__ = ("count", "open", "queue")

    def __init__(self) -> None:
        self.queue: deque[tuple[str | int, RecordedCall]] = deque()
        self.open: dict[str | int, RecordedCall] = {}
        self.count = 0


class Waiting:
    """
    The open calls of one file, by session and id.

    A call is given out when its result is there and every earlier call of its session is given out.
    """

    def __init__(self) -> None:
        self._sessions: dict[Session, _Session] = {}

    def add(self, call: RecordedCall, key: str | int | None) -> None:
        """
        A call has begun; it gets its place in the session. Without a *key* no result will come.

        A key that is still open names the new call from here on; the earlier one stays without a result.
        """
        of = session_of(call)
        session = self._sessions.get(of)
        if session is None:
            session = self._sessions[of] = _Session()
        call.call_index = session.count
        session.count += 1
        call.has_result = False
        if key is None:
            key = -session.count
        else:
            session.open[key] = call
        session.queue.append((key, call))

    def settle(self, of: Session, key: str | int) -> RecordedCall | None:
        """
        Returns the open call of that id, whose result is there now. Returns None if there is none.
        """
        session = self._sessions.get(of)
        return None if session is None else session.open.pop(key, None)

    def ready(self, of: Session) -> Iterator[RecordedCall]:
        """
        Returns the calls of that session that can be given out.
        """
        session = self._sessions.get(of)
        if session is None:
            return

        queue, still_open = session.queue, session.open
        while queue:
            key, call = queue[0]
            if still_open.get(key) is call:
                return
            queue.popleft()
            yield call

    def rest(self) -> Iterator[RecordedCall]:
        """
        Everything else, at the end of the file.
        """
        for session in self._sessions.values():
            yield from (call for _, call in session.queue)
        self._sessions.clear()
