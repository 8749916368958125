"""
Judges policies over files: all calls are read, then one session after the other is judged.
"""

import gc
import json
import multiprocessing
import time

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from guardrails.offline.transcripts import RecordedCall, Report
from guardrails.offline.transcripts.inputs import Input, calls_of
from guardrails.policy.policy import Policy

from .judge import Found, Judge, Said, sessions_of
from .tally import Judgement


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
    judges, report = [Judge(policy) for policy in policies], Report()
    with ExitStack() as stack:
        written = None if decisions is None else stack.enter_context(decisions.open("wb"))
        stack.enter_context(seldom_collected())
        sessions = sessions_of(calls_of(files, report, tell))
        whole, done = sum(map(len, sessions)), 0
        work = Work([Judge(policy) for policy in policies], sessions, written is not None)
        for part in stack.enter_context(_each_part(work, processes)):
            for judge, found in zip(judges, part.judged, strict=True):
                judge.found.add(found)
            if written is not None:
                written.writelines(part.lines)
            done += part.calls
            if tell is not None:
                tell(f"{done:,} of {whole:,} calls judged")
    return [_judgement(judge, report, time.monotonic() - began) for judge in judges]


class Part(NamedTuple):
    """
    Some sessions that were judged.
    """

    calls: int
    judged: list[Found]
    """By policy."""
    lines: list[bytes]
    """The word of the first policy on each call."""


class Work(NamedTuple):
    """
    The sessions to be judged. A process that was forked has them, so that they are sent to none.
    """

    judges: list[Judge]
    sessions: list[list[RecordedCall]]
    written: bool
    """The word on each call is asked for."""

    def part(self, place: range) -> Part:
        """
        Returns the sessions of a *place*, judged.
        """
        for judge in self.judges:
            judge.found = Found()
        sessions, lines = self.sessions[place.start : place.stop], list[bytes]()
        for calls in sessions:
            first, *_ = [judge.judge(calls) for judge in self.judges]
            if self.written:
                lines += map(_line, calls, first)
        return Part(sum(map(len, sessions)), [judge.found for judge in self.judges], lines)


_WORK: list[Work] = []
"""That of this process, if it was forked for one."""


def _judged(place: range) -> Part:
    return _WORK[0].part(place)


@contextmanager
def _each_part(work: Work, processes: int) -> Iterator[Iterator[Part]]:
    """
    All parts of *work*, in the order of its sessions.
    """
    places = [range(at, at + SESSIONS) for at in range(0, len(work.sessions), SESSIONS)]
    if processes == 1 or "fork" not in multiprocessing.get_all_start_methods():
        yield map(work.part, places)
        return
    with ProcessPoolExecutor(
        processes, multiprocessing.get_context("fork"), initializer=_WORK.append, initargs=(work,)
    ) as pool:
        yield pool.map(_judged, places)


def _judgement(judge: Judge, report: Report, seconds: float) -> Judgement:
    made = judge.judgement()
    made.notices += report.notices
    made.read_as, made.without, made.broken_lines = report.read_as, report.without, len(report.broken)
    made.seconds = seconds
    return made


def _line(call: RecordedCall, said: Said) -> bytes:
    """
    The word *said* on *call*; `run` stands in it if a record names the life of its session.
    """
    data: dict[str, Any] = {
        "source": call.source,
        "session_id": call.session_id,
        "call_index": call.call_index,
        "decision": said.decision,
        "code": said.code,
    }
    if call.run:
        data["run"] = call.run
    if said.decision == "deny" or said.observed:
        data["recorded"] = said.recorded
    try:
        return orjson.dumps(data, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # A lone surrogate in an id.
        return json.dumps(data).encode() + b"\n"


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
