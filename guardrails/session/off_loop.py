"""
Steps that may wait for a file, away from an event loop.
"""

import os
import threading
import weakref

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Generic, TypeVar


if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


async def away(store: object, work: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """
    Returns the result of *work*, done in the thread of *store*. Each store has one thread, as it takes one step at a
    time. No step then waits for threads that tools keep.

    It is done to its end even if this task is cancelled meanwhile. The function *undo* then gets its result, in that
    thread too, and the cancellation is raised on.
    """
    begun = _Work(work, undo)
    try:
        future = _begin(store, begun.run)
        cancelled = await _ended(future)
    except BaseException:
        # Ctrl-C has ended the loop, or came before anybody waited: nobody awaits this coroutine any more.
        begun.abandon()
        raise
    if cancelled is None:
        return future.result()
    if undo is not None and future.exception() is None:
        undone = _begin(store, begun.abandon)
        await _ended(undone)
        undone.result()
    raise cancelled


class _Work(Generic[T]):
    """
    *work* that is undone once it is done, if nobody gets its result.
    """

    def __init__(self, work: Callable[[], T], undo: Callable[[T], object] | None) -> None:
        self._work = work
        self._undo = undo
        self._made: list[T] = []
        self._abandoned = False

    def run(self) -> T:
        made = self._work()
        self._made.append(made)
        if self._abandoned:
            self.abandon()
        return made

    def abandon(self) -> None:
        """
        Undo the work that is done, or will be.
        """
        self._abandoned = True
        if self._undo is None:
            return
        # One of the two threads gets it.
        with suppress(IndexError):
            self._undo(self._made.pop())


def later(store: object, work: Callable[[], object]) -> None:
    """
    Do *work* in the thread of *store*, and wait for nothing.
    """
    _worker_of(store).submit(copy_context().run, work)


def _begin(store: object, work: Callable[[], T]) -> "asyncio.Future[T]":
    import asyncio

    return asyncio.wrap_future(_worker_of(store).submit(copy_context().run, work))


async def _ended(work: "asyncio.Future[Any]") -> "asyncio.CancelledError | None":
    """
    Wait until *work* is done. Returns the cancellation of this task, if there was one.
    """
    import asyncio

    cancelled = None
    while not work.done():
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        work.exception()  # it was looked at: nobody else will
    return cancelled


def _worker_of(store: object) -> Executor:
    try:
        hash(store)
        weakref.ref(store)
    except TypeError:
        store = type(store)
    with _lock:
        worker = _workers.get(store)
        if worker is None:
            worker = _workers[store] = ThreadPoolExecutor(1, "guardrails-store")
        return worker


def _afresh() -> None:
    """
    Have no threads yet, as in a new process.
    """
    global _lock, _workers
    _lock, _workers = threading.Lock(), weakref.WeakKeyDictionary()


_lock: threading.Lock
_workers: "weakref.WeakKeyDictionary[Any, Executor]"
_afresh()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_afresh)
