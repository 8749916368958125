"""
The sessions of a host by the names that it has for its threads and runs.
"""

import threading
import weakref

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack
from uuid import uuid4

from guardrails.core.values.logs import log
from guardrails.core.values.names import session_name

from .policy import Policy, SessionOptions


if TYPE_CHECKING:
    from guardrails.session.session import Session


__all__ = ["MAX_OPEN", "SessionOptions", "Sessions", "tried"]

T = TypeVar("T")
MAX_OPEN: Final = 1_000
"""Sessions whose object is kept; the state of one that is not stays in its store."""


class Sessions:
    """
    Finds the session of a host's thread or run. The session of all of them is *guarded*, or it is the policy whose
    sessions they are. The *options* are those of `Policy.session`.
    """

    def __init__(self, guarded: "Policy | Session", **options: Unpack[SessionOptions]) -> None:
        from guardrails.session.session import Session

        if unknown := options.keys() - SessionOptions.__annotations__.keys():
            raise TypeError(f"`Policy.session` has no option `{min(unknown)}`")
        self._only = guarded if isinstance(guarded, Session) else None
        if self._only and options:
            raise TypeError(f"a session is made already: give `{next(iter(options))}` to `policy.session`")
        self.policy: Any = guarded if self._only is None else self._only.ledger.policy
        self._options = options
        self._open: OrderedDict[str, Session] = OrderedDict()
        self._runs: dict[str, weakref.ref[Any]] = {}
        """Of those whose names nobody says again once their runs are over: what is alive as long as one of their objects is."""
        self._lock = threading.Lock()

    def of(self, name: object = None, *, run: bool = False) -> "Session":
        """
        Returns the session of the thread or run *name*: any text, number or UUID. None: a new one, of a run without a
        name.

        The name of a *run* is never said again once it is over. If `end` was not said, its state is forgotten once
        nobody holds its session and 1,000 others were asked for since.
        """
        if self._only is not None:
            return self._only
        own = session_name(uuid4() if name is None else name)
        with self._lock:
            session = self._open.pop(own, None) or self.policy.session(own, **self._options)
            self._open[own] = session
            if name is None or run or own in self._runs:
                # Its copies, which adapters hold, share this.
                self._runs[own] = weakref.ref(session.ledger.lock)
            over: list[str] = []
            if len(self._open) > MAX_OPEN:
                self._open.popitem(last=False)
                over = [run for run, alive in self._runs.items() if alive() is None]
        for one in over:
            self._runs.pop(one, None)
            gone = self.policy.session(one, **self._options)
            gone.ledger.aside(partial(tried, gone, gone.ledger.forget, None))
        return session

    @property
    def around(self) -> "Session | None":
        """
        The session of the call that this thread or task runs, if its policy is the one of these sessions.
        """
        from guardrails.session.steps import current_session

        running = current_session()
        return running if running is not None and running.ledger.policy is self.policy else None

    def end(self, session: "Session") -> None:
        """
        Forget *session*, which nobody can name again, if it was made here. The answers of the session are not lost if
        its store fails.
        """
        with self._lock:
            one, ran = self._open.pop(session.id, None), self._runs.pop(session.id, None)
        if one is not None or ran is not None:
            tried(session, session.close, None)
            tried(session, session.ledger.forget, None)

    def close(self) -> None:
        """
        Flush the records, and forget the sessions that nobody can name again.
        """
        for session in [*self._open.values()]:
            session.close()
            if session.id in self._runs:
                self.end(session)


def tried(session: "Session", step: Callable[[], T], otherwise: T) -> T:
    """
    Returns what a *step* comes to, *otherwise* if the store of *session* fails: no conversation is lost for it.
    """
    try:
        return step()
    except Exception as error:  # whatever a store raises
        log.error("store failed: %s", error, extra={"session": session.id})
        return otherwise
