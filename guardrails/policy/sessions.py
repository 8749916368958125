"""
The sessions of a host by the names that it has for its threads and runs.
"""

import threading

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack
from uuid import uuid4

from guardrails.core.values.session_id import session_name


if TYPE_CHECKING:
    from guardrails.core.engine.decision import Decision
    from guardrails.core.tools.tool import Tool
    from guardrails.session.approval import Approver
    from guardrails.session.session import Session
    from guardrails.sinks import Sink
    from guardrails.stores.base import Store

    from .policy import Policy


MAX_KEPT: Final = 1_000
"""Sessions whose object is kept; the state of one that is not stays in its store."""


class SessionOptions(TypedDict, total=False):
    """
    What `Policy.session` takes beside a name, for those who make sessions by names of their own.
    """

    tools: "Iterable[Tool | Callable[..., Any]]"
    store: "Store | None"
    records: "Sink | str | PathLike[str] | None"
    clock: Callable[[], float]
    on_decision: "Callable[[Decision], object] | None"
    scopes: Mapping[str, str] | None
    approver: "Approver | None"


class Sessions:
    """
    Finds the session of a host's thread or run. *guarded* is a session, which is then that of all of them, or the policy
    whose sessions they are; *options* are those of `Policy.session`.
    """

    def __init__(self, guarded: "Policy | Session", **options: Unpack[SessionOptions]) -> None:
        from guardrails.session.session import Session

        if isinstance(guarded, Session) and options:
            raise TypeError(f"a session is made already: give `{next(iter(options))}` to `policy.session`")
        self._guarded = guarded
        self._options = options
        self._kept: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, name: object = None) -> "Session":
        """
        The session of the thread or run *name*: any text, number or UUID. None: a new one.
        """
        from guardrails.session.session import Session

        if isinstance(self._guarded, Session):
            return self._guarded
        own = session_name(uuid4() if name is None else name)
        with self._lock:
            session = self._kept.get(own)
            if session is None:
                session = self._kept[own] = self._guarded.session(own, **self._options)
                if len(self._kept) > MAX_KEPT:
                    self._kept.popitem(last=False)[1].close()
            else:
                self._kept.move_to_end(own)
        return session

    @property
    def denies_on_error(self) -> bool:
        """
        Whether a guard that fails refuses its call, by the policy's `on_error`.
        """
        policy: Any = getattr(self._guarded, "policy", self._guarded)
        return bool(policy.chain.on_error == "deny")

    def end(self, session: "Session") -> None:
        """
        Forget *session*, which nobody can name again, if it was made here.
        """
        with self._lock:
            made = self._kept.pop(session.id, None)
        if made is not None:
            made.close()
            made.forget()
