"""
What the whole chain costs a call: decided, run, settled, recorded, and written as the text that the model reads. Each row of the
table in docs/measurements.md is one case here, and the end of a run prints the table.

The policy is `default` with more calls than it allows; records go to a file of JSON lines, whose writer is let finish
between the rounds and not while they are timed. What is timed is in `chain_cases`: each case fails unless all of its calls
come to what it is named after, and unless each has left its line in the file. A figure is the median of the rounds' processor time
over the median of R, which is timed before each round.
"""

import asyncio
import itertools
import json
import statistics
import time

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chain_cases import (
    ALLOWED,
    CALLS,
    FAILED,
    INVALID,
    KILOBYTE,
    NUDGED,
    PARAMETERS,
    REPEATED,
    ROWS,
    SIXTEEN,
    STATE,
    TOOL,
    WORDS,
    Expected,
    awaited,
    calls,
    clock,
    equal,
    failing,
    forgive,
    made,
    polling,
    refused,
    repeatable,
    same,
    searching,
    stumbling,
    unfit,
)
from benchmarks.conftest import MANY, references
from guardrails import Budget, Duplicates, Policy, Tool
from guardrails.offline.replay.run import judge_files
from guardrails.offline.transcripts.files import inputs
from guardrails.sinks import JsonLines


R: int = 30
"""References in one look at the yardstick."""
JUDGED: int = 10_000
"""Recorded calls of the replay."""

Block = Callable[[], float]
"""The seconds of processor time that a round of `CALLS` took."""


class Table:
    """
    Times the blocks of a row in turns with R, and notes its figures.
    """

    def __init__(self, benchmark: Any) -> None:
        self.benchmark = benchmark
        benchmark.pedantic(lambda: None, rounds=1)

    def row(self, name: str, aim: str, *blocks: Block, before: Callable[[], object] = lambda: None) -> list[float]:
        """
        Returns the medians of *blocks* in R a call, shown as `26.1` or `24.0 / 25.1`. Without benchmarks each runs once.
        """
        warm = [block() for block in blocks]
        longest: Any = self.benchmark._max_time  # noqa: SLF001  what the command line says
        rounds = min(max(int(2 * longest / sum(warm)), 5), 400) if self.benchmark.enabled else 1
        taken: list[list[float]] = [[] for _ in blocks]
        yard: list[float] = []
        for _ in range(rounds):
            before()
            start = time.thread_time()
            references()
            yard.append((time.thread_time() - start) / R)
            for block, times in zip(blocks, taken, strict=True):
                times.append(block() / CALLS)
        r = statistics.median(yard)
        found = [statistics.median(times) / r for times in taken]
        self.say(name, aim, " / ".join(f"{each:.1f}" for each in found), statistics.median(taken[0]))
        return found

    def say(self, name: str, aim: str, figure: str, seconds: float) -> None:
        self.benchmark.extra_info.update(row=name, aim=aim, figure=figure, median_us=seconds * 1e6)


@pytest.fixture
def table(benchmark: Any) -> Table:
    return Table(benchmark)


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[JsonLines]:
    """
    A file of records, which at the end holds a decision for each call that was timed.
    """
    file, first = tmp_path / "records.jsonl", made()
    with JsonLines(file) as sink:
        yield sink
    lines = file.read_bytes().splitlines() if made() > first else []
    decided = sum(json.loads(line)["event"] == "call" for line in lines)
    assert decided >= made() - first, f"{made() - first} calls left {decided} decisions"


def test_fresh_dict(table: Table, default: Policy, sink: JsonLines) -> None:
    table.row("fresh dict", "26", calls(default.session("sync", records=sink, clock=clock())), before=sink.flush)


@pytest.mark.parametrize(
    ("name", "aim", "results"),
    [
        ("text of 1 KB with common words", "40", KILOBYTE),
        ("text of 16 KB", "50", SIXTEEN),
        ("64 KB of rows", "150", ROWS),
    ],
)
def test_fresh_result(
    table: Table, default: Policy, sink: JsonLines, name: str, aim: str, results: Sequence[Any]
) -> None:
    session = default.session("size", records=sink, clock=clock())
    least = min(len(one) if isinstance(one, str) else len(json.dumps(one, separators=(",", ":"))) for one in results)
    assert least > {"40": 1_000, "50": 16_000, "150": 63_000}[aim]
    block = calls(session, searching(results), expected=Expected("success", text=least))
    table.row(name, aim, block, before=sink.flush)


def test_refused_duplicate(table: Table, default: Policy, sink: JsonLines) -> None:
    # Equal results speak for half a minute only.
    session = repeatable(default.session("repeated", records=sink, clock=clock(0.0001)))

    def before() -> None:
        forgive(session)
        sink.flush()

    table.row("refused duplicate", "28", refused(session, same, equal, REPEATED), before=before)


def test_polling(table: Table, default: Policy, sink: JsonLines) -> None:
    session = default.session("poll", records=sink, clock=clock(), tools=[Tool(name=TOOL, repeats="allow")])
    table.row("polling, each answer another", "45", calls(session, polling(), equal, STATE), before=sink.flush)


def test_polling_in_vain(table: Table, default: Policy, sink: JsonLines) -> None:
    session = default.session("vain", records=sink, clock=clock(), tools=[Tool(name=TOOL, repeats="allow")])
    for _ in range(CALLS):
        session.call(TOOL, equal(0), same)
    table.row("polling, equal answers, with a hint", "", calls(session, same, equal, NUDGED), before=sink.flush)


def test_failing(table: Table, default: Policy, sink: JsonLines) -> None:
    session = default.session("failing", records=sink, clock=clock())
    table.row(
        "failing: an exception, each of another text",
        "90",
        calls(session, failing(), expected=FAILED),
        before=sink.flush,
    )


def test_invalid_arguments(table: Table, default: Policy, sink: JsonLines) -> None:
    session = default.session("invalid", records=sink, clock=clock(), tools=[Tool(name=TOOL, parameters=PARAMETERS)])

    def before() -> None:
        forgive(session)
        sink.flush()

    table.row("invalid arguments", "32", refused(session, same, unfit, INVALID), before=before)


def test_every_tenth_fails(table: Table, default: Policy, sink: JsonLines) -> None:
    session = default.session("mixed", records=sink, clock=clock())
    told = [*(ALLOWED._replace(nudged=None),) * 9, FAILED]
    table.row("every tenth call failing, a call", "45", calls(session, stumbling(), expected=told), before=sink.flush)


def test_awaited(table: Table, default: Policy, sink: JsonLines, loop: asyncio.AbstractEventLoop) -> None:
    run = awaited(default.session("async", records=sink, clock=clock()))
    here = calls(default.session("sync", records=sink, clock=clock()))

    def block() -> float:
        # Within the loop: its own start and end are no part of a call.
        return loop.run_until_complete(run())

    over, sync = table.row("fresh dict, awaited / not", "1.15 times", block, here, before=sink.flush)
    figure = f"{over:.1f} / {sync:.1f}: {over / sync:.2f} times"
    table.benchmark.extra_info["figure"] = figure


def test_minimal_policy_without_records(table: Table) -> None:
    policy = Policy([Budget(max_calls=MANY), Duplicates(window=20, rule="evidence")])
    assert [guard.name for guard in policy.chain.guards] == ["budget", "duplicates"]
    table.row("two guards (budget, duplicates), no records", "18", calls(policy.session("two", clock=clock())))


def test_new_session(table: Table, default: Policy, sink: JsonLines) -> None:
    numbers = itertools.count()

    def run() -> float:
        names = [f"trip-{next(numbers)}" for _ in range(CALLS)]
        start = time.thread_time()
        for name in names:
            session = default.session(name, records=sink)
        took = time.thread_time() - start
        assert session.id == names[-1]
        return took

    table.row("`policy.session()`", "15", run)


def test_new_tool(table: Table, default: Policy) -> None:
    chain, numbers = default.session("plans").ledger.policy.chain, itertools.count()

    def run() -> float:
        names = [f"search_{next(numbers)}" for _ in range(CALLS)]
        assert chain.plans.keys().isdisjoint(names)
        start = time.thread_time()
        for name in names:
            plan = chain.plan(name)
        took = time.thread_time() - start
        assert plan.tool.name == names[-1]
        return took

    table.row("plan of a new tool", "40", run)


def test_many_tools(table: Table, default: Policy, sink: JsonLines) -> None:
    def over(count: int) -> Block:
        session = default.session(f"tools-{count}", records=sink, clock=clock())
        tools = [f"search_{n}_of_{count}" for n in range(count)]
        block = calls(session, tools=tools)
        for _ in range(0, count, CALLS):
            block()
        return block

    table.row("fresh dict, 500 tools in turn / 2,000", "equal", over(500), over(2_000), before=sink.flush)


def test_many_sessions(table: Table, default: Policy, sink: JsonLines) -> None:
    def over(count: int) -> Block:
        # A policy of its own: its memory keeps so many sessions ready.
        policy = Policy(default.chain.guards, rules=default.chain.rules)
        block = calls([policy.session(f"s-{n}", records=sink, clock=clock()) for n in range(count)])
        for _ in range(0, count, CALLS):
            block()
        return block

    table.row("fresh dict, 500 sessions in turn / 2,000", "equal", over(500), over(2_000), before=sink.flush)


def test_long_session(table: Table, default: Policy, sink: JsonLines) -> None:
    young = calls(default.session("young", records=sink, clock=clock()))
    old = calls(default.session("old", records=sink, clock=clock()))
    for _ in range(400 if table.benchmark.enabled else 4):
        old()
        sink.flush()
    table.row("fresh dict, of a new session / after 20,000 calls", "equal", young, old, before=sink.flush)


def test_replay(table: Table, default: Policy, tmp_path: Path) -> None:
    """
    Recorded calls with results of 1.6 KB, of which some repeat and some fail, judged in one process.
    """
    file = tmp_path / "calls.jsonl"
    with file.open("w") as written:
        for n in range(JUDGED):
            result = "\n".join(WORDS.format(f"{n}.{line}") for line in range(16))
            told = {
                "source": "bench",
                "session_id": f"s{n // 40}",
                "turn": n % 40,
                "call_index": n % 40,
                "tool": "Grep",
            }
            told |= {
                "arguments": {"pattern": f"name_{n // 3}", "path": "src"},
                "result": result,
                "is_error": n % 20 == 7,
            }
            told |= {"error_type": "timeout" if n % 20 == 7 else None, "ts": 1.8e9 + n}
            written.write(json.dumps(told) + "\n")
    judge_files([default], inputs([str(file)]))  # what is imported and compiled once
    start = time.process_time()
    [judgement] = judge_files([default], inputs([str(file)]))
    took = time.process_time() - start
    assert judgement.total.calls == JUDGED
    assert judgement.total.refused < JUDGED // 10
    table.say("replay, calls a second of one core", "20,000", f"{JUDGED / took:,.0f}", took / JUDGED)
