"""
What the benchmarks share: R, a yardstick that is timed in turns with each case, and one table at the end.

R is a fixed piece of pure Python: twenty stores into a dict and their sum. Machines differ and are busy, so that what can be compared is
the ratio of a case to R of the same run. It is taken of the faster quarter of the rounds of each, since whatever else the
machine does can only add.
"""

import asyncio
import statistics
import time

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from pytest_benchmark.fixture import BenchmarkFixture

from guardrails import Policy


ROUNDS = (5, 400)
MANY = 10**9
POLICY = f"""
version: 1
extends: default
budget: {{max_calls: {MANY}}}
growth: {{max_calls_per_second: {MANY}}}
"""
"""`default`, but for how many calls it allows."""

Block = Callable[[], object]
"""Runs a case several times; the seconds that it took where it tells them itself."""


class Measure(Protocol):
    """
    Times *block*, which runs its case *each* times, in turns with R.
    """

    def __call__(self, block: Block, each: int = 1, *, note: str = "") -> None: ...


def reference() -> int:
    stored = {}
    for number in range(20):
        stored[number] = number
    return sum(stored.values())


def references() -> None:
    for _ in range(30):
        reference()


def seconds(block: Block) -> float:
    start = time.perf_counter()
    said = block()
    return said if isinstance(said, float) else time.perf_counter() - start


def times(case: Callable[[], object], number: int) -> Callable[[], None]:
    """
    A block that runs *case* so many times.
    """

    def run() -> None:
        for _ in range(number):
            case()

    return run


def undisturbed(times: list[float]) -> float:
    return sorted(times)[len(times) // 4]


@pytest.fixture
def default(tmp_path: Path) -> Policy:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return Policy.load(file)


@pytest.fixture(scope="session")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture
def measure(benchmark: BenchmarkFixture) -> Measure:
    def run(block: Block, each: int = 1, *, note: str = "") -> None:
        yard: list[float] = []

        def setup() -> None:
            yard.append(seconds(references) / 30)

        options: dict[str, Any] = {"rounds": 1}
        if benchmark.enabled:
            longest: Any = benchmark._max_time  # noqa: SLF001  what the command line says
            rounds = min(max(int(2 * longest / seconds(block)), ROUNDS[0]), ROUNDS[1])
            options = {"rounds": rounds, "warmup_rounds": 1}
        told: list[float] = []
        pedantic: Any = benchmark.pedantic
        pedantic(lambda: told.append(seconds(block)), setup=setup, **options)
        if benchmark.stats is None:
            return
        # Without the rounds to warm up.
        times = told[-len(benchmark.stats.stats.data) :]
        benchmark.extra_info.update(median_us=statistics.median(times) / each * 1e6, note=note)
        benchmark.extra_info["x_R"] = undisturbed(times) / each / undisturbed(yard)

    return run


def pytest_configure(config: pytest.Config) -> None:
    # The table below says all of the plugin's own, and what it is compared to.
    config.option.benchmark_quiet = True


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    session: Any = getattr(config, "_benchmarksession", None)
    if session is None or not session.benchmarks:
        return
    head = f"{'case':58s}{'median us':>12s}{'x R':>9s}"
    terminalreporter.section("benchmarks")
    file = None
    for case in session.benchmarks:
        if case.fullname.partition("::")[0] != file:
            file = case.fullname.partition("::")[0]
            terminalreporter.write_line(f"{file}\n{head}")
        terminalreporter.write_line(row(case))
    rows = [case.extra_info for case in session.benchmarks if "row" in case.extra_info]
    if rows:
        terminalreporter.section("for docs/measurements.md")
        terminalreporter.write_line("| case | R | aim |\n|---|---|---|")
        for said in rows:
            terminalreporter.write_line(f"| {said['row']} | {said['figure']} | {said['aim']} |")


def row(case: Any) -> str:
    info = case.extra_info
    us = info.get("median_us") or case.stats.median * 1e6
    r = info.get("x_R")
    name = case.name.removeprefix("test_").replace("_", " ")
    note = info.get("note") or info.get("figure") or ""
    return f"{name:58.57s}{us:12.2f}{'' if r is None else f'{r:.2f}':>9s}  {note}".rstrip()
