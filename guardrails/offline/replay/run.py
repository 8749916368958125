"""
Judges policies over files: all calls are read, then one session after the other is judged.
"""

import gc
import json
import multiprocessing
import time

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from guardrails.offline.transcripts import RecordedCall, Report
from guardrails.offline.transcripts.files import Input, calls_of
from guardrails.policy.policy import Policy

from .judge import Judge, sessions_of
from .tally import Judgement, Row


SESSIONS: Final = 100
"""Of one part, which one process judges."""


def judge_files(
    policies: Sequence[Policy],
    files: Sequence[Input],
    *,
    decisions: Path | None = None,
    tell: Callable[[str], object] | None = None,
    processes: int = 1,
) -> list[Judgement]:
    """
    Returns one judgement for each policy. The word of the first on each call goes into the file *decisions*, as JSON
    lines, session by session; the progress goes to *tell*. Sessions are judged by so many *processes* where these can fork.

    Raises OSError or ReaderError if a file given by name cannot be read.
    """
    began = time.monotonic()
    judges, report, rows = [Judge(policy) for policy in policies], Report(), [list[Row]() for _ in policies]
    with ExitStack() as stack:
        written = None if decisions is None else stack.enter_context(decisions.open("wb"))
        stack.enter_context(seldom_collected())
        sessions = sessions_of(calls_of(files, report, tell))
        judged, places = partial(_judged, judges, sessions), range(0, len(sessions), SESSIONS)
        parts: Iterable[list[list[Row]]] = map(judged, places)
        if processes > 1:
            fork = multiprocessing.get_context("fork")
            parts = stack.enter_context(fork.Pool(processes, _FORKED.append, (judged,))).imap(_in_fork, places)
        for part in parts:
            for own, more in zip(rows, part, strict=True):
                own.extend(more)
            if written is not None:
                written.writelines(map(_line, part[0]))
            if tell is not None:
                tell(f"{len(rows[0]):,} of {sum(map(len, sessions)):,} calls judged")
    made = [judge.judgement(own) for judge, own in zip(judges, rows, strict=True)]
    for one in made:
        one.report, one.seconds = report, time.monotonic() - began
    return made


_FORKED: list[Callable[[int], list[list[Row]]]] = []
"""In a process that was forked to judge: how it judges. It has the sessions, so that they are sent to none."""


def _in_fork(at: int) -> list[list[Row]]:
    return _FORKED[0](at)


def _judged(judges: Sequence[Judge], sessions: list[list[RecordedCall]], at: int) -> list[list[Row]]:
    """
    Returns the rows of some sessions, by policy.
    """
    return [[row for calls in sessions[at : at + SESSIONS] for row in judge.judge(calls)] for judge in judges]


def _line(row: Row) -> bytes:
    """
    The word on a call; `run` stands in it if a record names the life of its session.
    """
    names = ["source", "session_id", "call_index", "decision", "code"]
    names += (["run"] if row.run else []) + (["recorded"] if row.decision == "deny" or row.observed else [])
    data: dict[str, Any] = {name: getattr(row, name) for name in names}
    # An id may hold a lone surrogate, which `orjson` does not write.
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


@contextmanager
def seldom_collected() -> Iterator[None]:
    """
    Let the collector of cycles look seldom: calls are many objects, and there are no cycles among them.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(500_000, 50, 100)
    try:
        yield
    finally:
        # What is new goes among the old without being looked at, which would take a twentieth of the whole time.
        gc.freeze()
        gc.unfreeze()
        gc.set_threshold(*before)
