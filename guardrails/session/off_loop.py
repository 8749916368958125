"""
Steps that may wait for a file, away from an event loop.
"""

import os
import weakref

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar


T = TypeVar("T")


async def away(store: object, work: Callable[[], T], undo: Callable[[T], object]) -> T:
    """
    Returns the result of *work*, done in the thread of *store*. Each store has one thread, as it takes one step at a
    time. No step then waits for threads that tools keep.

    It is done to its end even if this task is cancelled meanwhile. The function *undo* then gets its result, in that
    thread too, and the cancellation is raised on.
    """
    import asyncio

    begun, cancelled = later(store, work), None
    made = asyncio.wrap_future(begun)
    try:
        while not made.done():
            try:
                await asyncio.wait((made,))
            except asyncio.CancelledError as error:
                cancelled = error
    except BaseException:
        # Ctrl-C has ended the loop: nobody awaits this coroutine any more.
        begun.add_done_callback(lambda done: None if done.exception() else undo(done.result()))
        raise
    if cancelled is None:
        return made.result()
    if made.exception() is None:
        await away(store, partial(undo, made.result()), lambda _: None)
    raise cancelled


def later(store: object, work: Callable[[], T]) -> "Future[T]":
    """
    Do *work* in the thread of *store*, and wait for nothing. Returns the future of its result.
    """
    try:
        worker = _workers.get(store)
    except TypeError:  # a store that cannot be referred to
        store = type(store)
        worker = _workers.get(store)
    if worker is None:
        worker = _workers.setdefault(store, ThreadPoolExecutor(1, "guardrails-store"))
    return worker.submit(copy_context().run, work)


_workers: "weakref.WeakKeyDictionary[Any, ThreadPoolExecutor]" = weakref.WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    # No thread of the parent is there in a new process.
    os.register_at_fork(after_in_child=_workers.clear)
