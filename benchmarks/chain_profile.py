"""
Where the time of a guarded call goes: `python3 dev.py profile`, or `python -m benchmarks.chain_profile [ROUNDS]`.

All cases are timed in turns in one process, a few calls each a round, and of each the faster quarter counts; so that the
ratios hold on a busy machine too. The unit is R: twenty stores into a dict and their sum, in pure Python.
"""

import asyncio
import importlib
import itertools
import sys
import tempfile
import time

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from benchmarks.conftest import MANY, POLICY, bare_calls, references, retried_calls, undisturbed
from benchmarks.onion import onion
from guardrails import Policy
from guardrails.core.engine.complete import complete, prepare
from guardrails.core.engine.decide import decide
from guardrails.core.engine.digest import Earlier
from guardrails.core.outcome import outcome_of
from guardrails.core.state.state import SessionState
from guardrails.core.text.room import room_left
from guardrails.core.text.signature import sign
from guardrails.core.text.truncation import LIMIT
from guardrails.core.tools.tool_call import tool_call
from guardrails.session.recorder import Recorder
from guardrails.session.results import Results
from guardrails.session.session import Session
from guardrails.sinks import JsonLines


CALLS = 50
ROUNDS = 150
TOOL = "search_hotels"
RESULT = {
    "results": [{"id": f"h_{n}", "name": f"Hotel {n}", "price": 100 + n, "stars": 4, "free": True} for n in range(7)],
    "total": 7,
}
FLAT = {f"field_{i}": i if i % 2 else f"value {i}" for i in range(20)}
LARGE = {"path": "src/app.py", "content": "x" * 100_000}

pages = itertools.count()


class Case(NamedTuple):
    """
    What *run* does *each* times; seconds where it tells them itself.
    """

    run: Callable[[], float | None]
    each: int = CALLS


class Nowhere:
    """
    A sink that drops what it gets.
    """

    written = dropped = failed = 0

    def put(self, record: Any, size_hint: int) -> None: ...

    def flush(self, timeout: float | None = None) -> bool:
        return True

    def close(self) -> None: ...


def search(tool: str, arguments: Any) -> Any:
    return RESULT


async def asearch(tool: str, arguments: Any) -> Any:
    return RESULT


def new() -> Iterator[dict[str, Any]]:
    return ({"city": "Shibuya", "max_price": 150, "page": page} for page in itertools.islice(pages, CALLS))


def calls(session: Session) -> Case:
    def run() -> None:
        for arguments in new():
            session.call(TOOL, arguments, search).to_json()

    return Case(run)


def awaited(session: Session) -> Case:
    async def run() -> float:
        # Within the loop: its own start and end are nobody's cost, and let the writer of records in.
        start = time.perf_counter()
        for arguments in new():
            (await session.acall(TOOL, arguments, asearch)).to_json()
        return time.perf_counter() - start

    return Case(lambda: asyncio.run(run()))


def denied(session: Session) -> Case:
    arguments = {"city": "Shibuya", "max_price": 150}
    for _ in range(2):
        session.call(TOOL, arguments, search)
    assert session.call(TOOL, arguments, search).code == "duplicates.evidence"

    def run() -> None:
        for _ in range(CALLS):
            session.call(TOOL, arguments, search).to_json()

    return Case(run)


def nested(policy: Policy) -> Case:
    call = onion(policy.chain, search)

    def run() -> None:
        for arguments in new():
            call(TOOL, arguments, round(time.time() * 1000)).to_json()

    return Case(run)


def peer() -> Case | None:
    """
    Agentguard47's locked budget and its test of consecutive repeats, around the same tool; None where it is not installed.
    """
    try:
        guards = importlib.import_module("agentguard.guards")
    except ImportError:
        return None
    budget, repeats = guards.BudgetGuard(max_calls=MANY), guards.LoopGuard(max_repeats=3)

    def run() -> None:
        for arguments in new():
            repeats.check(TOOL, arguments)
            budget.consume(calls=1)
            orjson.dumps(search(TOOL, arguments)).decode()

    return Case(run)


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
            between()
            start = time.perf_counter()
            said = case.run()
            taken[name].append((said or time.perf_counter() - start) / case.each * 1e6)
    return {name: undisturbed(times) for name, times in taken.items()}


def parts(policy: Policy) -> dict[str, Case]:
    """
    The steps of one admitted call, each by itself.
    """
    chain, state, results, sink = policy.chain, SessionState(run="r"), Results(), Nowhere()
    plan, recorder = chain.plan(TOOL), Recorder("s", sink)
    arguments = {"city": "Shibuya", "max_price": 150, "page": 1}
    prepared = prepare(outcome_of(RESULT), LIMIT)
    payload = b"" if prepared.rendered is None else prepared.rendered.payload
    session = policy.session("parts")
    session.call(TOOL, arguments, search)
    numbers = itertools.count()

    def decided() -> Any:
        number = next(numbers)
        made = tool_call(TOOL, {"page": number}, "c", None)
        return decide(chain, made, state, number, True, plan)  # noqa: FBT003

    def decided_only() -> None:
        decided()
        state.pending.clear()

    def completed() -> Any:
        decision = decided()
        return complete(chain, decision, prepared, state, decision.at_ms, plan)

    decision = decided()
    envelope, completion = complete(chain, decision, prepared, state, decision.at_ms, plan)

    def recorded() -> None:
        recorder.decided(decision, plan)
        recorder.settled(decision, prepared, completion)

    def kept() -> None:
        results.keep("s", next(numbers), Earlier(TOOL, b"{}", payload, ok=True))

    return {
        "sign and make the call": repeated(lambda: tool_call(TOOL, arguments, "c", None)),
        "decide (with the line above)": repeated(decided_only),
        "decide and complete (with both)": repeated(completed),
        "prepare the result": repeated(lambda: prepare(outcome_of(RESULT), LIMIT)),
        "  of it: its size, looked at": repeated(lambda: room_left(RESULT, LIMIT)),
        "  of it: its JSON": repeated(lambda: orjson.dumps(RESULT)),
        "text for the model": repeated(envelope.to_json),
        "two visits of the store": repeated(
            lambda: (session._store.update(session._keys, id), session._store.update(session._keys, id))  # noqa: SLF001
        ),
        "two looks at the clock": repeated(lambda: (session._now(), session._now())),  # noqa: SLF001
        "two records, handed over": repeated(recorded),
        "the result, kept": repeated(kept),
    }


def by_guard(policy: Policy) -> dict[str, Case]:
    """
    Each guard by itself, and the chain without it.
    """
    cases = {
        "(no guard)": calls(Policy().session("none")),
        "(all)": calls(Policy(policy.chain.guards, rules=policy.chain.rules).session("all")),
    }
    for guard in policy.chain.guards:
        others = [other for other in policy.chain.guards if other is not guard]
        cases[f"{guard.name} alone"] = calls(Policy([guard]).session("alone"))
        cases[f"all but {guard.name}"] = calls(Policy(others, rules=policy.chain.rules).session("but"))
    return cases


def row(name: str, us: float, r: float, note: str = "") -> str:
    return f"{name:44s}{us:9.2f}{us / r:9.2f}  {note}".rstrip()


def show(title: str) -> None:
    print(f"\n{title:44s}{'us':>9s}{'x R':>9s}", flush=True)


def main(rounds: int = ROUNDS) -> None:
    """
    Print the tables.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "policy.yaml")
        file.write_text(POLICY)
        policy = Policy.load(file)
        with JsonLines(Path(folder, "records.jsonl")) as sink:
            profile(policy, sink, rounds)


def profile(policy: Policy, sink: JsonLines, rounds: int) -> None:
    yard = {"bare call": Case(bare_calls, 200), "R": Case(references, 30)}
    other = peer()
    whole = {
        **yard,
        "chain, sync": calls(policy.session("sync", records=sink)),
        "chain, async": awaited(policy.session("async", records=sink)),
        "chain, denied": denied(policy.session("denied", records=sink)),
        "chain, sync, no records": calls(policy.session("plain")),
        "the same guards as nested closures": nested(policy),
        "tenacity @retry, nothing to retry": Case(retried_calls, 10),
        **({} if other is None else {"agentguard47, budget and repeats": other}),
        "signature, 3 fields": repeated(lambda: sign(TOOL, {"city": "Shibuya", "max_price": 150, "page": 1})),
        "signature, 20 fields": repeated(lambda: sign(TOOL, FLAT)),
        "signature, 100 KB": repeated(lambda: sign(TOOL, LARGE)),
    }
    notes = {
        "chain, sync": "floor 18 R, stretch 10.5 R",
        "chain, async": "floor 20 R, stretch 12 R",
        "chain, denied": "floor 12 R, stretch 7 R",
        "the same guards as nested closures": "no store, lock, record, kept result, claims or errors",
        "agentguard47, budget and repeats": "no envelope, no look at the result",
        "signature, 3 fields": "floor 0.7 R, stretch 0.35 R",
        "signature, 20 fields": "floor 2.4 R, stretch 1.4 R",
        "signature, 100 KB": "floor 12 R, stretch 6 R",
    }
    show("side by side")
    us = timed(whole, rounds, sink.flush)
    for name, each in us.items():
        print(row(name, each, us["R"], notes.get(name, "")))
    if other is None:
        print("agentguard47: not installed (`pip install agentguard47`), so not compared")

    show("by part, each by itself")
    us = timed({**yard, **parts(policy)}, rounds, lambda: None)
    for name, each in us.items():
        print(row(name, each, us["R"]))

    print(f"\n{'by guard, in R, without records':44s}{'alone':>9s}{'removed':>9s}", flush=True)
    us = timed({**yard, **by_guard(policy)}, rounds, lambda: None)
    none, everything, r = us["(no guard)"], us["(all)"], us["R"]
    print(f"{'(no guard, all)':44s}{none / r:9.2f}{everything / r:9.2f}")
    for guard in policy.chain.guards:
        alone, removed = us[f"{guard.name} alone"] - none, everything - us[f"all but {guard.name}"]
        print(f"{guard.name:44s}{alone / r:+9.2f}{removed / r:+9.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
