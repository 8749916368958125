"""
What the whole chain costs a call: decided, run, settled, recorded, and written as the text that the model reads.

The policy is `default` with more calls than it allows; records go to a file of JSON lines, whose writer is let finish
between the rounds and not while they are timed. What is timed is in `chain_cases`: each case fails unless all of its calls
come to what it is named after.
"""

import asyncio
import statistics
import threading
import time

from pathlib import Path
from typing import Any, NamedTuple

import pytest

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
    searching,
    unfit,
)
from benchmarks.conftest import MANY, POLICY, Measure, references, seconds, undisturbed
from guardrails import (
    Budget,
    Denials,
    Duplicates,
    Growth,
    Policy,
    Rate,
    Retryable,
    Streak,
    Summary,
    Tool,
    ToolFilter,
    Validation,
)
from guardrails.sinks import JsonLines


OLD = 100_000
"""Calls of the session that is to cost the same however many came before."""
SPAN = 1_000
"""Calls at its beginning, and at its end, that are compared."""


class Life(NamedTuple):
    """
    Seconds a call, and of R, of one round after the other of a session.
    """

    taken: list[float]
    yard: list[float]


@pytest.fixture
def sink(tmp_path: Path) -> Any:
    with JsonLines(tmp_path / "records.jsonl") as made:
        yield made
    assert made.dropped == made.failed == 0


def test_bare_call(measure: Measure) -> None:
    search, arguments = searching(), equal(0)

    def run() -> None:
        for _ in range(CALLS):
            search(TOOL, arguments)

    measure(run, CALLS)


def test_fresh_call(measure: Measure, default: Policy, sink: JsonLines) -> None:
    session = default.session("sync", records=sink, clock=clock())
    measure(calls(session), CALLS, before=sink.flush, note="aim 24 R")


def test_fresh_call_awaited(
    measure: Measure, default: Policy, sink: JsonLines, loop: asyncio.AbstractEventLoop
) -> None:
    run = awaited(default.session("async", records=sink, clock=clock()))
    measure(lambda: loop.run_until_complete(run()), CALLS, before=sink.flush, awaited=True)


def test_fresh_call_without_records(measure: Measure, default: Policy) -> None:
    measure(calls(default.session("plain", clock=clock())), CALLS)


def test_refused_duplicate(measure: Measure, default: Policy, sink: JsonLines) -> None:
    # Equal results speak for half a minute only.
    session = repeatable(default.session("repeated", records=sink, clock=clock(0.0001)))

    def before() -> None:
        forgive(session)
        sink.flush()

    measure(refused(session, same, equal, REPEATED), CALLS, before=before, note="aim 20 R")


def test_polling_repeat(measure: Measure, default: Policy, sink: JsonLines) -> None:
    session = default.session("poll", records=sink, clock=clock(), tools=[Tool(name=TOOL, polling=True)])
    measure(calls(session, polling(), equal), CALLS, before=sink.flush, note="each answer another")


def test_polling_repeat_in_vain(measure: Measure, default: Policy, sink: JsonLines) -> None:
    session = default.session("vain", records=sink, clock=clock(), tools=[Tool(name=TOOL, polling=True)])
    for _ in range(CALLS):
        session.call(TOOL, equal(0), same)
    measure(calls(session, same, equal, NUDGED), CALLS, before=sink.flush, note="equal answers: allowed, with a hint")


def test_failing_call(measure: Measure, default: Policy, sink: JsonLines) -> None:
    session = default.session("failing", records=sink, clock=clock())
    measure(
        calls(session, failing(), expected=FAILED), CALLS, before=sink.flush, note="an exception, each of another text"
    )


def test_invalid_arguments(measure: Measure, default: Policy, sink: JsonLines) -> None:
    session = default.session("invalid", records=sink, clock=clock(), tools=[Tool(name=TOOL, parameters=PARAMETERS)])

    def before() -> None:
        forgive(session)
        sink.flush()

    measure(refused(session, same, unfit, INVALID), CALLS, before=before)


def test_writer_thread(measure: Measure, benchmark: Any, default: Policy, sink: JsonLines) -> None:
    """
    The processor time that the writer's own thread takes for the two lines of a call; no call waits for it.
    """
    run = calls(default.session("written", records=sink, clock=clock()))

    def writers() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "guardrails-records"]

    def once() -> float | None:
        run()
        # The thread stays for a while after a flush.
        sink.flush()
        before, lines = writers(), sink.written
        if not before:
            return None
        at = time.pthread_getcpuclockid(before[0].ident or 0)
        try:
            start = time.clock_gettime(at)
            run()
            sink.flush()
            took = time.clock_gettime(at) - start
        except OSError:
            return None
        assert sink.written - lines == 2 * CALLS
        return took if writers() == before else None

    def block() -> float:
        # On a busy machine it may be gone before it is asked.
        return next(took for _ in range(100) if (took := once()) is not None)

    measure(block, CALLS, note="CPU of the two lines of a call, aim 5 R")
    # Nothing of those stands in for a line.
    benchmark.extra_info.pop("x_bare", None)
    benchmark.extra_info.pop("x_tenacity", None)


def test_ten_guards_without_records(measure: Measure) -> None:
    policy = Policy(
        [
            ToolFilter(deny=("rm_*",)),
            Validation(),
            Budget(max_calls=MANY, max_cost_usd=1e6, max_tokens=MANY, max_elapsed=86_400.0),
            Growth(max_calls_per_second=MANY),
            Rate(max_calls_per_minute=MANY),
            Streak(max_same=MANY),
            Denials(),
            Duplicates(window=20, rule="evidence"),
            Retryable(),
            Summary(),
        ]
    )
    measure(calls(policy.session("ten", clock=clock())), CALLS)


@pytest.fixture(scope="module")
def life(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """
    One session from its first call on.
    """
    session: Any = getattr(request.config, "_benchmarksession", None)
    rounds = (4 * CALLS if session is None or session.disabled else OLD) // CALLS
    folder = tmp_path_factory.mktemp("life")
    file = folder / "policy.yaml"
    file.write_text(POLICY)
    lived = Life([], [])
    with JsonLines(folder / "records.jsonl") as sink:
        run = calls(Policy.load(file).session("old", records=sink, clock=clock()))
        for _ in range(rounds):
            sink.flush()
            lived.yard.append(seconds(references) / 30)
            lived.taken.append(run() / CALLS)
    return lived


@pytest.mark.parametrize("call", [100, OLD])
def test_of_one_session_call(benchmark: Any, life: Life, call: int) -> None:
    """
    A call costs the same however many came before it in its session.
    """
    last = call == OLD
    span = slice(-SPAN // CALLS, None) if last else slice(call // CALLS, (call + SPAN) // CALLS)
    taken, yard = life.taken[span], life.yard[span]
    benchmark.pedantic(lambda: None, rounds=1)
    if benchmark.stats is None:
        return
    benchmark.extra_info["median_us"] = statistics.median(taken) * 1e6
    benchmark.extra_info["x_R"] = undisturbed(taken) / undisturbed(yard)
    benchmark.extra_info["note"] = f"the {SPAN:,} calls {'up to' if last else 'from'} there"
