"""
Prepares live sinks for a fork and for the end of the process: a child begins anew, nothing is lost at exit.
"""

import atexit
import os
import sys
import weakref

from typing import Protocol

from .base import Sink


class Live(Sink, Protocol):
    """
    A sink with a thread.
    """

    def begin_in_child(self) -> None:
        """
        Begin anew in a forked child.
        """


_live: "weakref.WeakSet[Live]" = weakref.WeakSet()


def keep_track(sink: Live) -> None:
    """
    See to *sink* after every fork, and close it at exit.
    """
    _live.add(sink)


def flush_in_pool_process(sink: Live) -> None:
    """
    Flush *sink* at the end of this process, if it is a child of multiprocessing.

    Those leave by `os._exit`, without atexit, but with the finalizers of multiprocessing.
    """
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, sink.flush, exitpriority=-100)


def _begin_in_child() -> None:
    for sink in list(_live):
        sink.begin_in_child()


def _close_all() -> None:
    for sink in list(_live):
        sink.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
atexit.register(_close_all)
