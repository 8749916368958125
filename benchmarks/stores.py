"""
What processes at work at once get of one store: `python -m benchmarks.stores --store sqlite --workers 8`.

Each worker is a process that calls for some seconds, in a session of its own or, with `--shared`, in one that shares a user and a
tenant with all others. Printed of each run: calls a second together, the share of the worker with the least calls of that with the
most, how long a call took (p50, p99, the longest), and the processor time that it took of its worker; last the medians of all runs.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from guardrails import Budget, MemoryStore, Policy, Rate
from guardrails.session.session import Session
from guardrails.stores.places import store_at


MANY = 10**9
BATCH = 16
"""Calls between two looks at the clock of the worker's end."""
BEFORE = 100
"""Calls of each worker before the clock starts: what a process loads once is no matter of its store."""


def opened(place: str, name: str, *, shared: bool) -> Session:
    scopes: dict[str, list[Any]] = {
        "user": [Budget(max_calls=MANY, max_cost_usd=1e6)],
        "tenant": [Budget(max_calls=MANY), Rate(max_calls_per_second=10**6)],
    }
    policy = Policy([Budget(max_calls=MANY)], scopes=scopes if shared else {})
    store = MemoryStore() if place == "memory" else store_at(place)
    return policy.session(name, store=store, scopes={"user": "u", "tenant": "t"} if shared else {})


def work(place: str, name: str, seconds: float, *, shared: bool) -> None:
    """
    Call for some *seconds* from a line of input on, and print the number of calls and how long they took, in microseconds.
    """
    session, clock = opened(place, name, shared=shared), time.perf_counter
    took: list[int] = []

    def call() -> None:
        before = clock()
        answer = session.call("search", {"q": len(took)}, lambda tool, arguments: {"rows": [arguments["q"]]})
        took.append(round((clock() - before) * 1e6))
        assert answer.ok, answer.to_json()

    for _ in range(BEFORE):
        call()
    took.clear()
    print("ready", flush=True)
    sys.stdin.readline()
    ends, began = time.monotonic() + seconds, time.process_time()
    while time.monotonic() < ends:
        for _ in range(BATCH):
            call()
    spent = round((time.process_time() - began) * 1e6 / len(took))
    took.sort()
    print(json.dumps([len(took), took[len(took) // 2], took[len(took) * 99 // 100], took[-1], spent]))


def run(place: str, workers: int, seconds: float, *, shared: bool) -> dict[str, float]:
    program = [sys.executable, "-m", "benchmarks.stores", "--store", place, "--seconds", str(seconds)]
    program += ["--shared"] if shared else []
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started: list[Any] = [subprocess.Popen([*program, "--name", f"s{n}"], **pipes) for n in range(workers)]
    for one in started:
        assert one.stdout.readline() == "ready\n"
    for one in started:
        one.stdin.write("\n")
        one.stdin.flush()
    each = [json.loads(one.communicate()[0]) for one in started]
    calls = [one[0] for one in each]
    return {
        "calls_a_second": sum(calls) / seconds,
        "least_of_most": min(calls) / max(calls),
        "p50_us": statistics.median(one[1] for one in each),
        "p99_us": statistics.median(one[2] for one in each),
        "longest_ms": max(one[3] for one in each) / 1000,
        "cpu_us": statistics.median(one[4] for one in each),
    }


def served(kind: str, held: ExitStack) -> str:
    """
    Returns the place of a new store of this *kind*; servers are started here, and ended with *held*.
    """
    if kind == "sqlite":
        return str(Path(held.enter_context(tempfile.TemporaryDirectory())) / "state.db")
    if kind in ("redis", "postgres"):
        from tests.stores.servers import Postgres, Server

        server: Any = Server() if kind == "redis" else Postgres()
        held.callback(server.remove)
        return str(server.url)
    return kind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", default="sqlite", help="memory, sqlite, redis, postgres, or the place of a store")
    parser.add_argument("--workers", type=int, nargs="+", default=[8])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--shared", action="store_true", help="all sessions share a user and a tenant")
    parser.add_argument("--name", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.name is not None:
        work(given.store, given.name, given.seconds, shared=given.shared)
        return
    for workers in given.workers:
        runs: list[dict[str, float]] = []
        for number in range(given.runs):
            with ExitStack() as held:
                runs.append(run(served(given.store, held), workers, given.seconds, shared=given.shared))
            print(f"run {number + 1}", shown(runs[-1]), flush=True)
        middle = {name: statistics.median(one[name] for one in runs) for name in runs[0]}
        whose = "shared scopes" if given.shared else "own sessions"
        print(f"{given.store.partition(':')[0]}, {whose}, workers {workers}: median", shown(middle), flush=True)


def shown(row: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:,.2f}" if value < 10 else f"{name} {value:,.0f}" for name, value in row.items())


if __name__ == "__main__":
    main()
