"""
Judges policies over files: all calls are read, then one session after the other is judged.
"""

import gc
import json
import time

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import orjson

from guardrails.offline.transcripts import RecordedCall, Report
from guardrails.offline.transcripts.inputs import Input, calls_of
from guardrails.policy.policy import Policy

from .judge import Judge, Said, sessions_of
from .tally import Judgement


TOLD_CALLS: Final = 256
"""Calls between two words on progress."""


def judge_files(
    policies: Sequence[Policy],
    files: Sequence[Input],
    *,
    decisions: Path | None = None,
    tell: Callable[[str], object] | None = None,
) -> list[Judgement]:
    """
    Returns one judgement for each policy. The word of the first on each call goes into the file *decisions*, as JSON
    lines, session by session; the progress goes to *tell*.

    Raises OSError or ReaderError if a file given by name cannot be read.
    """
    began = time.monotonic()
    judges, report = [Judge(policy) for policy in policies], Report()
    with ExitStack() as stack:
        written = None if decisions is None else stack.enter_context(decisions.open("wb"))
        stack.enter_context(seldom_collected())
        sessions = sessions_of(calls_of(files, report, tell))
        whole, done = sum(map(len, sessions)), 0
        for calls in sessions:
            first, *_ = [judge.judge(calls) for judge in judges]
            if written is not None:
                written.writelines(map(_line, calls, first))
            if tell is not None and done // TOLD_CALLS != (done + len(calls)) // TOLD_CALLS:
                tell(f"{done + len(calls):,} of {whole:,} calls judged")
            done += len(calls)
    return [_judgement(judge, report, time.monotonic() - began) for judge in judges]


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
