"""
One run of an agent or a crew, which its tools and its model find by the context that they are called in.
"""

import asyncio
import threading

from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError as FutureCancelled
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import PrivateAttr

from guardrails.integrations.hosting import Asking


if TYPE_CHECKING:
    from guardrails.session.session import Session

M = TypeVar("M")
T = TypeVar("T")


class Run:
    """
    A run of *owner* in *session*. *first* says whether it is the first loop of it: the host makes some again.
    """

    def __init__(self, owner: object, session: "Session", *, first: bool = True) -> None:
        self.owner = owner
        self.session = session
        self.asking = Asking(session, first=first)
        self.since: int | None = None
        """How many messages there were before its first request."""
        self.odd: dict[str, tuple[str, str]] = {}
        """Calls by their ids that the host answers itself: name and arguments."""
        self.settled: set[str] = set()
        """Of those, the ones that the session knows of."""
        self._told: dict[tuple[str, str], int] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def told(self, tool: str, text: str) -> str:
        """
        *text* as the model reads it. The host ends a run by an exception at the fifth result that equals those before
        (`utilities/agent_utils.py:1922`). Each text is therefore made different by space at its end.
        """
        with self._lock:
            again = self._told[tool, text] = self._told.get((tool, text), -1) + 1
        return text + " " * again

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """
        Returns the result of *work* in this run's loop, which its asynchronous tools share; the host makes one for each
        call. Raises CancelledError once the run is over.
        """
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(loop,), daemon=True)
                self._thread.start()
                # A loop that a signal has left without its thread would be waited for without an end.
                self._loop = loop
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except FutureCancelled:
            raise asyncio.CancelledError from None

    def close(self) -> None:
        """
        End its loop, and cancel what still runs there.
        """
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(1)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        for task in (tasks := asyncio.all_tasks(loop)):
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks))
    finally:
        loop.close()


running: Final[ContextVar[Run | None]] = ContextVar("guardrails_crewai_run", default=None)
"""The run that the host is in; None inside of a tool, and within a request."""


@cache
def _kind(mixin: type, host: type) -> type:
    namespace = {"__module__": __name__, "__annotations__": {"_guard": Any}, "_guard": PrivateAttr(default=None)}
    made: Callable[..., type] = type(host)
    return made(f"Guarded{host.__name__}", (mixin, host), namespace)


def guarded(mixin: type, one: M, guard: Any, **changes: Any) -> M:
    """
    A copy of *one* of the host's objects, with *changes*: of its own class, with *mixin* before it, and *guard* its `_guard`.
    """
    made: Any = one.model_copy(update=changes)  # type: ignore[attr-defined]
    host: Any = type(one)
    if not isinstance(one, mixin):
        made.__class__ = _kind(mixin, host)
    made._guard = guard  # noqa: SLF001
    return made
