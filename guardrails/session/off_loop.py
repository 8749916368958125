"""
Steps that may wait for a file, away from an event loop.
"""

import os
import threading
import weakref

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar


if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


async def away(store: object, work: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """
    The result of *work*, done in the thread of *store*: one for each, as it takes one step at a time, and no step waits for
    threads that tools keep.

    It is done to its end also if this task is cancelled meanwhile: *undo* then gets what it came to, there too, and the
    cancellation is raised on.
    """
    begun = _begin(store, work)
    cancelled = await _ended(begun)
    if cancelled is None:
        return begun.result()
    if undo is not None and begun.exception() is None:
        made = begun.result()
        undone = _begin(store, lambda: undo(made))
        await _ended(undone)
        undone.result()
    raise cancelled


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
