"""
Ctrl-C at a chosen place of some work, out of all places where Python hears of signals.
"""

import gc
import itertools
import sys

from collections.abc import Callable
from types import FrameType
from typing import Any


def at(place: int, work: Callable[[], object], *, within: str = "guardrails/") -> bool:
    """
    Do *work*, and interrupt it at its *place* (from 0) in files whose path has *within*. Returns whether there is that
    place: after each call of a function in C, and at the start of each in Python.
    """
    seen = itertools.count()
    reached = False

    def hear(frame: FrameType, event: str, _: Any) -> None:
        nonlocal reached
        if event in ("call", "c_return") and within in frame.f_code.co_filename and next(seen) == place:
            sys.setprofile(None)
            reached = True
            raise KeyboardInterrupt

    # A collection would call back others' code, here and now: an exception in there is raised nowhere.
    collects = gc.isenabled()
    gc.disable()
    sys.setprofile(hear)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
        if collects:
            gc.enable()
    return reached
