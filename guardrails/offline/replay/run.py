"""
Judges policies over files: all calls are read, then one session after the other is judged.
"""

import gc
import json
import multiprocessing
import time

from collections.abc import Callable, Iterator, Sequence
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
    judges, report, done = [Judge(policy) for policy in policies], Report(), 0
    with ExitStack() as stack:
        written = None if decisions is None else stack.enter_context(decisions.open("wb"))
        stack.enter_context(seldom_collected())
        sessions = sessions_of(calls_of(files, report, tell))
        whole = sum(map(len, sessions))
        for part in stack.enter_context(_parts(policies, sessions, processes)):
            for judge, rows in zip(judges, part, strict=True):
                judge.rows += rows
            if written is not None:
                written.writelines(map(_line, part[0]))
            done += len(part[0])
            if tell is not None:
                tell(f"{done:,} of {whole:,} calls judged")
    made = [judge.judgement() for judge in judges]
    for one in made:
        one.report, one.seconds = report, time.monotonic() - began
    return made


Part = list[list[Row]]
"""The rows of some sessions, by policy."""
_FORKED: list[Callable[[int], Part]] = []
"""In a process that was forked to judge: how it judges. It has the sessions, so that they are sent to none."""


@contextmanager
def _parts(policies: Sequence[Policy], sessions: list[list[RecordedCall]], processes: int) -> Iterator[Iterator[Part]]:
    """
    The rows of all *sessions*, in their order.
    """
    judge, places = partial(_judged, policies, sessions), range(0, len(sessions), SESSIONS)
    if processes == 1:
        yield map(judge, places)
        return
    with multiprocessing.get_context("fork").Pool(processes, _FORKED.append, (judge,)) as pool:
        yield pool.imap(_in_fork, places)


def _in_fork(at: int) -> Part:
    return _FORKED[0](at)


def _judged(policies: Sequence[Policy], sessions: list[list[RecordedCall]], at: int) -> Part:
    judges = [Judge(policy) for policy in policies]
    for calls in sessions[at : at + SESSIONS]:
        for judge in judges:
            judge.judge(calls)
    return [judge.rows for judge in judges]


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
