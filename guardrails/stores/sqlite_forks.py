"""
Prepares the stores in files of SQLite for a fork: no connection is open while one process becomes two.
"""

import os
import sqlite3
import weakref

from typing import Any, Final


FORK_WAIT_S: Final = 10.0
"""How long a fork waits for an update that is under way: SQLite cannot be taken along in one."""
_stores: "weakref.WeakSet[Any]" = weakref.WeakSet()


def keep_track(store: Any) -> None:
    """
    See to the `SqliteStore` *store* at every fork.
    """
    _stores.add(store)


def _before_fork() -> None:
    # A connection and its locks must not be in two processes, so none is open while one becomes two.
    for store in list(_stores):
        held = store._held_by_fork = store._lock.acquire(timeout=FORK_WAIT_S)  # noqa: SLF001
        store._taken_along = not held or store._in_step  # noqa: SLF001
        if not store._taken_along:  # noqa: SLF001
            store._close()  # noqa: SLF001


def _after_fork_in_parent() -> None:
    for store in list(_stores):
        store._taken_along = False  # noqa: SLF001
        if store._held_by_fork:  # noqa: SLF001
            store._held_by_fork = False  # noqa: SLF001
            store._lock.release()  # noqa: SLF001


def _after_fork_in_child() -> None:
    for store in list(_stores):
        if store._taken_along:  # noqa: SLF001
            # Not closed either: that would give up the locks that this copy believes to hold.
            _abandoned.append(store._database)  # noqa: SLF001
            store._database = None  # noqa: SLF001
        store._begin()  # noqa: SLF001


_abandoned: list[sqlite3.Connection | None] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
