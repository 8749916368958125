"""
The whole soak.

    python -m tests.soak [--calls 2000000] [--sessions 1000000] [--json FILE] [--only calls|crowd|idle] [--seed 0]

Mixed calls, half of them on a `MemoryStore` and half on a `SqliteStore`, with records; a crowd of tasks and threads on each
store; idle sessions in each. Ends with 1 if a figure grows, a call is lost, or a cap is passed.
"""

import argparse
import json
import sys
import tempfile
import time

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from guardrails import JsonLines, MemoryStore, SqliteStore
from guardrails.stores.base import Store

from .calls import Run, soak
from .crowd import Crowd, gather
from .figures import Sample, table
from .idle import Idle, rest


PARTS: Final = ("calls", "crowd", "idle")
LIVE: Final = 100
CROWDS: Final = {"memory": 100, "file": 40}
"""Calls of each task and thread, of which the tenant may make 19 of 20."""


def main(*arguments: str) -> int:
    """
    Run the command line; its exit code.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Say what grows in a long run.")
    parser.add_argument("--calls", type=int, default=2_000_000)
    parser.add_argument("--sessions", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, help="the file for the figures")
    parser.add_argument("--only", choices=PARTS, help="one part of it")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    parts: dict[str, Callable[[str, Path], tuple[dict[str, Any], bool]]] = {
        "calls": lambda store, folder: calls(store, folder, asked.calls // 2, asked.seed),
        "crowd": crowd,
        "idle": lambda store, folder: idle(store, folder, asked.sessions, asked.seed),
    }
    found: dict[str, Any] = {}
    good = True
    for part in [asked.only] if asked.only else PARTS:
        for store in ("memory", "file"):
            begun = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="soak-") as folder:
                figures, well = parts[part](store, Path(folder))
            found[f"{part}, {store}"] = {**figures, "well": well, "seconds": round(time.monotonic() - begun)}
            good &= well
            if asked.json:
                asked.json.write_text(json.dumps(found, indent=1))
    print("=== all is well" if good else "=== something grows, is lost, or is over its cap")
    return 0 if good else 1


def store_of(name: str, folder: Path) -> Store:
    """
    A store in memory, or in a file of *folder*.
    """
    return MemoryStore(live=LIVE) if name == "memory" else SqliteStore(folder / "state.db", live=LIVE)


def calls(name: str, folder: Path, number: int, seed: int) -> tuple[dict[str, Any], bool]:
    """
    So many mixed calls; what they showed, and whether that is well.
    """
    print(f"--- {number:,} mixed calls, store in {name}", flush=True)
    run: Run = soak(store_of(name, folder), folder, number, seed, _told)
    told = ", ".join(f"{code} {count:,}" for code, count in run.told.most_common())
    print(
        f"{told}\n{run.written:,} records, {run.lost} lost; {run.left} states left\n{table(run.verdicts)}", flush=True
    )
    figures = {
        "samples": [one._asdict() for one in run.samples],
        "told": run.told,
        "records": run.written,
        "lost": run.lost,
        "left": run.left,
        "verdicts": [one._asdict() for one in run.verdicts],
    }
    return figures, run.lost == 0 and all(one.flat for one in run.verdicts)


def _told(one: Sample) -> None:
    tails = f"p50 {one.p50_us:,.0f}, p99 {one.p99_us:,.0f}, p99.9 {one.p999_us:,.0f} us, of CPU {one.cpu_p999_us:,.0f}"
    print(
        f"{one.calls:>10,}  {one.rss / 2**20:6.1f} MiB  {one.handles} handles  {one.threads} threads  {tails}",
        flush=True,
    )


def crowd(name: str, folder: Path) -> tuple[dict[str, Any], bool]:
    """
    Tasks and threads at once.
    """
    each = CROWDS[name]
    with JsonLines(folder / "records.jsonl") as sink:
        made: Crowd = gather(store_of(name, folder), sink, calls=each, cap=each * 300)
    print(
        f"--- 300 tasks and 16 threads at once, store in {name}: {made.asked:,} calls asked, cap {made.cap:,}, "
        f"ran {made.ran:,}, counted {made.counted:,}; {made.calls_s:,.0f} calls/s; p50 {made.p50_us / 1_000:,.1f}, "
        f"p99 {made.p99_us / 1_000:,.1f}, slowest {made.slowest_us / 1_000:,.1f} ms",
        flush=True,
    )
    return made._asdict(), made.exact


def idle(name: str, folder: Path, sessions: int, seed: int) -> tuple[dict[str, Any], bool]:
    """
    Sessions that rest.
    """
    made: Idle = rest(None if name == "memory" else folder, sessions, seed)
    print(
        f"--- {made.sessions:,} idle sessions, store in {name}: {made.bytes_each:,.0f} bytes each; a call of one "
        f"{made.few_us:,.0f} us among 1,000, {made.many_us:,.0f} us among all; pruned in {made.prune_s:.1f} s",
        flush=True,
    )
    return made._asdict(), made.many_us <= 3 * made.few_us


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
