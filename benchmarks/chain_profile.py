"""
Where the time of a guarded call goes: `python -m benchmarks.chain_profile [ROUNDS]`.

All cases are timed in turns in one process, a few calls each a round, and of each the faster quarter counts; so that the
ratios hold on a busy machine too. The unit is R: twenty stores into a dict and their sum, in pure Python.
"""

import asyncio
import itertools
import sys
import tempfile
import time

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.chain_cases import (
    CALLS,
    FAILED,
    INVALID,
    NUDGED,
    PARAMETERS,
    REPEATED,
    TOOL,
    awaited,
    calls,
    clock,
    equal,
    failing,
    forgive,
    polling,
    refused,
    repeatable,
    same,
    unfit,
)
from benchmarks.conftest import POLICY, bare_calls, references, retried_calls, undisturbed
from guardrails import Policy, Tool
from guardrails.core.text.signature import sign
from guardrails.session.session import Session
from guardrails.sinks import JsonLines


ROUNDS: Final = 150
FLAT: Final = {f"field_{i}": i if i % 2 else f"value {i}" for i in range(20)}
LARGE: Final = {"path": "src/app.py", "content": "x" * 100_000}

pages = itertools.count()


class Case(NamedTuple):
    """
    What *run* does *each* times; seconds where it tells them itself. *before* it is not timed.
    """

    run: Callable[[], float | None]
    each: int = CALLS
    before: Callable[[], object] | None = None


def fresh(session: Session) -> Case:
    return Case(calls(session))


def tasks(session: Session) -> Case:
    run = awaited(session)
    # Within the loop: its own start and end are nobody's cost, and let the writer of records in.
    return Case(lambda: asyncio.run(run()))


def repeats(session: Session) -> Case:
    run = refused(repeatable(session), same, equal, REPEATED)
    return Case(run, before=lambda: forgive(session))


def invalid(session: Session) -> Case:
    return Case(refused(session, same, unfit, INVALID), before=lambda: forgive(session))


def in_vain(session: Session) -> Case:
    for _ in range(CALLS):
        session.call(TOOL, equal(0), same)
    return Case(calls(session, same, equal, NUDGED))


def repeated(function: Callable[[], object]) -> Case:
    def run() -> None:
        for _ in range(CALLS):
            function()

    return Case(run)


def timed(cases: dict[str, Case], rounds: int, between: Callable[[], object]) -> dict[str, float]:
    """
    Microseconds of each case.
    """
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            if case.before is not None:
                case.before()
            between()
            start = time.perf_counter()
            said = case.run()
            taken[name].append((said or time.perf_counter() - start) / case.each * 1e6)
    return {name: undisturbed(times) for name, times in taken.items()}


def by_guard(policy: Policy) -> dict[str, Case]:
    """
    Each guard by itself, and the chain without it.
    """
    rules = policy.chain.rules
    cases = {
        "(no guard)": fresh(Policy().session("none", clock=clock())),
        "(all)": fresh(Policy(policy.chain.guards, rules=rules).session("all", clock=clock())),
    }
    for guard in policy.chain.guards:
        others = [other for other in policy.chain.guards if other is not guard]
        cases[f"{guard.name} alone"] = fresh(Policy([guard]).session("alone", clock=clock()))
        cases[f"all but {guard.name}"] = fresh(Policy(others, rules=rules).session("but", clock=clock()))
    return cases


def row(name: str, us: float, r: float, note: str = "") -> str:
    return f"{name:48s}{us:9.2f}{us / r:9.2f}  {note}".rstrip()


def show(title: str) -> None:
    print(f"\n{title:48s}{'us':>9s}{'x R':>9s}", flush=True)


def main(rounds: int = ROUNDS) -> None:
    """
    Print the tables.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "policy.yaml")
        file.write_text(POLICY)
        policy = Policy.load(file)
        with JsonLines(Path(folder, "records.jsonl")) as sink:
            side_by_side(policy, sink, rounds)
            guard_by_guard(policy, rounds)


YARD: Final = {"bare call": Case(bare_calls, 200), "R": Case(references, 30)}


def side_by_side(policy: Policy, sink: JsonLines, rounds: int) -> None:
    def session(name: str, *tools: Tool, step: float = 0.5) -> Session:
        return policy.session(name, records=sink, clock=clock(step), tools=tools)

    waiting = Tool(name=TOOL, polling=True)
    whole = {
        **YARD,
        "fresh call": fresh(session("sync")),
        "fresh call, awaited": tasks(session("async")),
        "fresh call, no records": fresh(policy.session("plain", clock=clock())),
        "refused duplicate": repeats(session("repeats", step=0.0001)),
        "polling repeat, each answer another": Case(calls(session("poll", waiting), polling(), equal)),
        "polling repeat, equal answers": in_vain(session("vain", waiting)),
        "failing call, each of another text": Case(calls(session("failing"), failing(), expected=FAILED)),
        "invalid arguments": invalid(session("invalid", Tool(name=TOOL, parameters=PARAMETERS))),
        "tenacity @retry, nothing to retry": Case(retried_calls, 10),
        "signature, 3 fields": repeated(lambda: sign(TOOL, {"city": "Shibuya", "max_price": 150, "page": 1})),
        "signature, 20 fields": repeated(lambda: sign(TOOL, FLAT)),
        "signature, 100 KB": repeated(lambda: sign(TOOL, LARGE)),
    }
    notes = {
        "fresh call": "aim 24 R",
        "refused duplicate": "aim 20 R",
        "polling repeat, equal answers": "allowed, with a hint",
        "signature, 3 fields": "floor 0.7 R, stretch 0.35 R",
        "signature, 20 fields": "floor 2.4 R, stretch 1.4 R",
        "signature, 100 KB": "floor 12 R, stretch 6 R",
    }
    show("side by side")
    us = timed(whole, rounds, sink.flush)
    for name, each in us.items():
        print(row(name, each, us["R"], notes.get(name, "")))


def guard_by_guard(policy: Policy, rounds: int) -> None:
    print(f"\n{'by guard, in R, without records':48s}{'alone':>9s}{'removed':>9s}", flush=True)
    us = timed({**YARD, **by_guard(policy)}, rounds, lambda: None)
    none, everything, r = us["(no guard)"], us["(all)"], us["R"]
    print(f"{'(no guard, all)':48s}{none / r:9.2f}{everything / r:9.2f}")
    for guard in policy.chain.guards:
        alone, removed = us[f"{guard.name} alone"] - none, everything - us[f"all but {guard.name}"]
        print(f"{guard.name:48s}{alone / r:+9.2f}{removed / r:+9.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
