"""
Cares for leases beside the calls: a thread looks after them, a fork leaves them, and the end of the program closes
them.
"""

import atexit
import os
import threading
import weakref

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

# First, since what is registered later is closed before it: the last trips are recorded too.
import guardrails.sinks.exits  # noqa: F401

from guardrails.core.values.logs import log
from guardrails.core.values.types import NO_TIME


class Kept(Protocol):
    """
    A store with leases.
    """

    def tend(self) -> None:
        """
        Give back the parts that others ask for.
        """

    def close(self) -> None:
        """
        Give back the unused parts.
        """

    def begin_in_child(self) -> None:
        """
        Begin anew in a forked child.
        """


_all: "weakref.WeakSet[Kept]" = weakref.WeakSet()


def now_of(clock: Callable[[], float]) -> int:
    """
    Returns the time of *clock*, in milliseconds. Returns `NO_TIME` if it fails.
    """
    try:
        return round(clock() * 1000)
    except Exception as error:  # noqa: BLE001  whatever a clock raises: the time stands still
        log.error("clock failed: %s", error)
        return NO_TIME


def keep_track(leases: Kept) -> None:
    """
    See to *leases* after every fork, and close them at exit.
    """
    _all.add(leases)


def keep(leases: Kept, ended: threading.Event, every_s: float) -> threading.Thread:
    """
    Returns the thread that tends *leases* every so many seconds until *ended*, or until nobody else has them.
    """
    thread = threading.Thread(
        target=_keep, args=(weakref.ref(leases), ended, every_s), name="guardrails-leases", daemon=True
    )
    thread.start()
    return thread


def _keep(which: "weakref.ref[Kept]", ended: threading.Event, every_s: float) -> None:
    while not ended.wait(every_s):
        leases = which()
        if leases is None:
            return
        leases.tend()
        del leases


def _close_all() -> None:
    for leases in tuple(_all):
        with suppress(Exception):  # what is not given back is lost after its time
            leases.close()


def _begin_all() -> None:
    for leases in tuple(_all):
        leases.begin_in_child()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_all)
