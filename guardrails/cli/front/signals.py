"""
Ctrl-C and SIGTERM while a command waits: both end it, and neither is left unheard.
"""

import os
import signal
import threading
import time

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn


NUDGES_S: Final = (0.01, 0.02, 0.04, 0.08, 0.16)
"""The pauses before each nudge. The main thread begins its wait within microseconds; a busy machine may hold it up."""


class Terminated(KeyboardInterrupt):
    """
    SIGTERM, which ends a command as Ctrl-C does.
    """


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """
    Let SIGTERM break off the block as Ctrl-C does, and both of them any wait of the main thread.
    """

    def end(number: int, frame: object) -> NoReturn:
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        with _heard():
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _heard() -> Iterator[None]:
    """
    Let each signal break off the system call that the main thread is in.

    Python notes a signal, and runs its handler between two instructions. A signal may come after the last instruction
    before a system call, or to another thread. It would be heard at the end of that call: of a request, after minutes.
    """
    if not hasattr(signal, "pthread_kill"):  # Windows
        yield
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    main = threading.get_ident()
    # A signal breaks off a system call if a function of Python handles it. SIGURG is ignored by default.
    handled = signal.signal(signal.SIGURG, lambda *_: None)
    woken = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        threading.Thread(target=_nudge, args=(read, main), name="guardrails-signals", daemon=True).start()
        yield
    finally:
        signal.set_wakeup_fd(woken)
        os.close(write)  # The thread ends by itself: nobody waits for its last nudges.
        signal.signal(signal.SIGURG, handled)


def _nudge(read: int, main: int) -> None:
    """
    Break off what thread *main* waits for after each signal whose number comes from *read*. Closes it at its end.
    """
    with open(read, "rb", buffering=0) as numbers:
        while number := numbers.read(1):
            if number[0] != signal.SIGURG:
                for pause in NUDGES_S:
                    time.sleep(pause)
                    signal.pthread_kill(main, signal.SIGURG)
