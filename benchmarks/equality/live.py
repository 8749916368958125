"""
Live through random sessions with the library that is found on the path, and print their lines; run by `benchmarks.equality`.

    python -m benchmarks.equality.live SESSIONS SEED > LINES

Each session has a process of its own, so that none knows of another, and a folder of its own. A line is the JSON list of the
session's number, the kind of what was said, and what was said.
"""

import itertools
import json
import logging
import os
import sys
import tempfile
import traceback

from hashlib import sha256
from pathlib import Path


_numbers = itertools.count()


def drawn(size: int) -> bytes:
    """
    In place of `os.urandom`: ids of calls and of lives are the same in each run.
    """
    return sha256(str(next(_numbers)).encode()).digest()[:size]


class Said(logging.Handler):
    """
    What the library says to the log.
    """

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(f"{record.levelname} {record.getMessage()}")


def live(number: int, seed: int) -> list[tuple[str, str]]:
    """
    The lines of session *number*, in a working folder of its own.
    """
    global _numbers  # noqa: PLW0603
    from .story import told

    _numbers = itertools.count()
    said, log = Said(), logging.getLogger("guardrails")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(said)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        lines = told(number, seed)
        os.chdir("/")
    whole = [*lines, *(("log", message) for message in said.messages)]
    # The folder is another one each time.
    return [(kind, text.replace(folder, "FOLDER")) for kind, text in whole]


def codes() -> list[str]:
    """
    The codes that the library's guards say they have, and those that no guard says.
    """
    import guardrails

    found = {"store.error", "clock.error", "session.closed"}
    found |= {
        f"tools.budget.{limit}" for limit in ("max_calls", "max_turns", "max_cost_usd", "max_tokens", "max_elapsed")
    }
    for name in guardrails.__all__:
        found |= {*(getattr(getattr(guardrails, name), "codes", None) or ())}
    return sorted(found)


def main(sessions: int, seed: int) -> None:
    """
    Print the lines of all *sessions*. Raises RuntimeError if a session ends without its lines.
    """
    import guardrails

    from . import story  # noqa: F401  once, before the processes part

    print(json.dumps([-1, "library", str(Path(guardrails.__file__).parent)]))
    print(json.dumps([-1, "codes", json.dumps(codes())]), flush=True)
    for number in range(sessions):
        child = os.fork()
        if child == 0:
            failed = 1
            try:
                for kind, text in live(number, seed):
                    print(json.dumps([number, kind, text]))
                sys.stdout.flush()
                failed = 0
            except BaseException:  # noqa: BLE001  this process ends here
                traceback.print_exc()
            finally:
                os._exit(failed)
        if os.waitpid(child, 0)[1]:
            raise RuntimeError(f"session {number} ended without its lines")


if __name__ == "__main__":
    # Before the library is imported, which may hold on to what it finds.
    os.urandom = drawn
    main(int(sys.argv[1]), int(sys.argv[2]))
