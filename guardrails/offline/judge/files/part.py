"""
A part of the files, judged in a process of its own.

It is read and judged as in one process that has all files. Calls without a result stay open at its end, for they are judged
after all files.
"""

import signal
import time

from contextlib import ExitStack
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from guardrails.offline.judge.judgement import SHOWN_SESSIONS, Judge
from guardrails.policy.policy import Policy

from .checkpoint import Position
from .decisions import Decisions
from .inputs import Input
from .progress import Progress
from .run import Run, Work, broken_lines, decides, seldom_collected
from .spill import SpillingTracks, key_bytes


TOLD_S: Final = 0.2
"""Seconds between two words on progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """
    The part of the work that one process judges.
    """

    files: list[Input]
    decisions: Path | None
    """Where to write what the first policy says of its calls."""
    limit: int
    """Sessions that are kept in memory, of all policies together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """
    The findings of one part, as plain values.
    """

    position: Position
    finished: bool
    figures: list[dict[str, Any]]
    """Of each policy, as `Judge.to_dict` gives them."""
    rows: list[list[tuple[bytes, int, bytes]]]
    """Of each policy the busiest sessions and those with open calls, as `SpillingTracks.add_packed` takes them."""
    spilled: bool
    sessions: list[tuple[str, str]]
    """(id, life) of all."""
    open: list[tuple[int, dict[str, Any]]]
    """(key, call) of calls that wait for a result, as `Copies.to_dict` gives them."""
    keys: bytes
    """Of all calls that can be known again."""
    held: int
    """Calls that ever waited for a result."""
    left_out: int
    calls: int


def work_on(connection: Connection, names: list[str]) -> None:
    """
    Judge one part after the other, as *connection* orders them, by the policies of these *names*.

    First it sends what the policies decide. A word in place of an order ends a part early. None is sent if a part fails.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        policies = [Policy.load(name) for name in names]
        connection.send([decides(policy) for policy in policies])
        while True:
            order = connection.recv()
            if isinstance(order, Order):
                connection.send(_judged(policies, order, connection))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        # The process that wanted it is gone.
        return
    except Exception:  # noqa: BLE001  it fails again, and is told, where one process judges all
        connection.send(None)


def _judged(policies: list[Policy], order: Order, connection: Connection) -> Part:
    asked: list[bool] = []
    told = time.monotonic()

    def tell(progress: Progress) -> None:
        nonlocal told
        if connection.poll():
            connection.recv()
            asked.append(True)
        if (now := time.monotonic()) - told > TOLD_S:
            told = now
            connection.send(progress)

    work = Work(policies, order.files, decisions=order.decisions, limit=order.limit, on_progress=tell)
    with ExitStack() as stack:
        tracks = [stack.enter_context(SpillingTracks(work.limit // len(policies))) for _ in policies]
        run = Run(work, tracks)
        if work.decisions is not None:
            run.decisions = stack.enter_context(Decisions(work.decisions))
        stack.enter_context(seldom_collected())
        return _found(run, finished=run.judge_files(asked))


def _found(run: Run, *, finished: bool) -> Part:
    copies = run.copies.to_dict()
    waiting = [call for _, call in copies["open"]]
    older, newer = run.copies.packed_keys()
    report, position = run.report, run.position
    return Part(
        position=replace(
            position,
            broken=position.broken + report.broken_count,
            notices=[*position.notices, *report.notices, *broken_lines(report)],
            read_as=position.read_as | report.read_as,
            without=position.without | report.without,
        ),
        finished=finished,
        figures=[judge.to_dict() for judge in run.judges],
        rows=[_rows(judge, kept, waiting) for judge, kept in zip(run.judges, run.tracks, strict=True)],
        spilled=any(kept.spilled for kept in run.tracks),
        sessions=sorted({(name, life) for _, name, life in run.tracks[0].in_memory()}),
        open=copies["open"],
        keys=older + newer,
        held=run.copies.held,
        left_out=run.copies.left_out,
        calls=run.calls,
    )


def _rows(judge: Judge, kept: SpillingTracks, waiting: list[dict[str, Any]]) -> list[tuple[bytes, int, bytes]]:
    wanted = dict(kept.busiest(SHOWN_SESSIONS, judge.lens))
    for call in waiting:
        key = call["source"], call["session_id"], call["run"]
        track = kept.get(key, judge.lens)
        if track is not None:
            wanted[key] = track
    return [(key_bytes(key), track.stop_count, track.to_bytes()) for key, track in wanted.items()]
