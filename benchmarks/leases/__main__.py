"""
Many simulated workers on one tenant: steps of the shared store per call, the share of the budget that can be used while all
live, and what a call takes that is admitted by a lease.

    python -m benchmarks.leases [--workers 64] [--calls 200000] [--store memory|sqlite]
"""

import argparse
import random
import tempfile
import time

from pathlib import Path
from typing import Any, Final

from guardrails import Budget, Lease, Leases, MemoryStore, Policy, SqliteStore
from guardrails.session.session import Session
from guardrails.stores.base import Store


SCOPE: Final = {"tenant": "acme"}
BIG: Final = 10**12
ROUNDS: Final = 30
ROUND: Final = 1_000
OPEN: Final = 200
"""Calls that are admitted before the first of them ends."""


class Simulated:
    """
    *count* workers of one tenant whose calls come by a clock that is theirs; each has its own speed.
    """

    def __init__(self, shared: Store, count: int, calls: int, rate: int) -> None:
        self.now = 1_800_000_000.0
        self.calls = calls
        self.rate = rate
        policy = Policy([], scopes={"tenant": [Budget(max_calls=calls), Lease()]})
        self.stores = [Leases(shared, clock=lambda: self.now, timer=lambda: self.now, look=None) for _ in range(count)]
        self.sessions = [
            policy.session(f"s{number}", scopes=SCOPE, store=store, clock=lambda: self.now)
            for number, store in enumerate(self.stores)
        ]
        self.admitted = self.refused = 0
        self.first: int | None = None
        """Calls that were admitted before the first was refused."""

    def run(self) -> None:
        """
        Call until all workers say that the budget is used up.
        """
        draw = random.Random(7)
        speeds = [draw.choice((1, 1, 2, 4, 8)) for _ in self.sessions]
        order = [number for number, speed in enumerate(speeds) for _ in range(speed)]
        looked, live = self.now, set(range(len(self.sessions)))
        while live:
            number = draw.choice(order)
            self.now += 1 / self.rate
            if number in live:
                envelope = self.sessions[number].call("look", {"n": self.admitted + self.refused}, _ran)
                if envelope.ok:
                    self.admitted += 1
                else:
                    self.refused += 1
                    self.first = self.admitted if self.first is None else self.first
                    # As a client that is told to wait does.
                    self.now += 0.1 / len(self.sessions)
                    if envelope.code == "tenant.budget.max_calls":
                        live.discard(number)
            if self.now - looked >= 0.25:
                looked = self.now
                for store in self.stores:
                    store.tend()

    def tell(self) -> None:
        """
        Print what it came to.
        """
        steps = sum(store.trips for store in self.stores)
        over = max(0, self.admitted - self.calls)
        print(f"{len(self.stores)} workers, a budget of {self.calls:,} calls")
        print(f"  steps of the shared store per call: {steps / self.admitted:.4f} ({steps:,} steps, goal 0.02)")
        print(f"  used before the first refusal:      {(self.first or 0) / self.calls:.2%} (goal 99 %)")
        print(f"  used in the end:                    {self.admitted / self.calls:.2%}, over by {over}")


def _ran(*_: Any) -> str:
    return "ran"


def _shared(kind: str, folder: str) -> Store:
    return MemoryStore() if kind == "memory" else SqliteStore(Path(folder) / "state.db")


def _costs(folder: str) -> dict[str, tuple[float, float]]:
    """
    Microseconds of CPU that a call takes, and of these its admission: the best of many rounds, taken in turns.
    """
    own = [Budget(max_calls=BIG)]
    scoped, leased = Budget(max_calls=BIG), Lease()
    sessions: dict[str, Session] = {
        "no scope": Policy(own).session("s"),
        "a scope in memory": Policy(own, scopes={"tenant": [scoped]}).session("s", scopes=SCOPE),
        "a scope in a file": Policy(own, scopes={"tenant": [scoped]}).session(
            "s", scopes=SCOPE, store=SqliteStore(Path(folder) / "plain.db")
        ),
        "a leased scope": Policy(own, scopes={"tenant": [scoped, leased]}).session(
            "s", scopes=SCOPE, store=Leases(SqliteStore(Path(folder) / "leased.db"), look=None)
        ),
    }
    best = dict.fromkeys(sessions, (float("inf"), float("inf")))
    for number in range(ROUNDS):
        for name, session in sessions.items():
            whole, admission = best[name]
            best[name] = min(whole, _called(session, number)), min(admission, _admitted(session, number))
    return best


def _called(session: Session, number: int) -> float:
    begun = time.process_time()
    for at in range(number * ROUND, number * ROUND + ROUND):
        session.call("look", {"n": at}, _ran)
    return (time.process_time() - begun) / ROUND * 1e6


def _admitted(session: Session, number: int) -> float:
    begun = time.process_time()
    decisions = [session.decide("look", {"n": (number, at)}, claim=True) for at in range(OPEN)]
    taken = (time.process_time() - begun) / OPEN * 1e6
    assert all(decision.allowed for decision in decisions)
    for decision in decisions:
        session.complete(decision, "ran")
    return taken


def main() -> None:
    """
    Run both, and print what they found.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leases")
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--rate", type=int, default=3_200, help="calls a second of all workers")
    parser.add_argument("--store", choices=("memory", "sqlite"), default="memory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="guardrails-") as folder:
        simulated = Simulated(_shared(options.store, folder), options.workers, options.calls, options.rate)
        simulated.run()
        simulated.tell()
        costs = _costs(folder)
    print("CPU in microseconds (the best of many rounds)            a call    its admission")
    before = costs["a scope in memory"][1]
    for name, (call, admission) in costs.items():
        beside = f" ({admission - before:+.1f} beside a scope in memory, goal 2)" if name == "a leased scope" else ""
        print(f"  {name + ':':50}{call:9.1f}{admission:17.1f}{beside}")


if __name__ == "__main__":
    main()
