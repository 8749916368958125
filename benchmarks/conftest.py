"""
What the benchmarks share: yardsticks that are timed in turns with each case, and one table at the end.

The yardsticks are the bare call of a tool that does nothing, R (a fixed piece of pure Python: twenty stores into a dict and
their sum) and tenacity's `@retry` around that tool. Machines differ and are busy, so that what can be compared is the ratio
of a case to a yardstick of the same run. It is taken of the faster quarter of the rounds of each, since whatever else the
machine does can only add.
"""

import asyncio
import statistics
import time

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from pytest_benchmark.fixture import BenchmarkFixture
from tenacity import retry, stop_after_attempt

from guardrails import Policy


ARGUMENTS = {"city": "Shibuya", "max_price": 150}
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
    Times *block*, which runs its case *each* times, in turns with the yardsticks.

    *before* runs before each round and is not timed. Of an *awaited* case, which tells the seconds that it took within its
    loop, the yardsticks are awaited too: to start and end a loop is no part of a call.
    """

    def __call__(
        self, block: Block, each: int = 1, *, before: Block | None = None, awaited: bool = False, note: str = ""
    ) -> None: ...


def search(tool: str, arguments: Any) -> None: ...


async def asearch(tool: str, arguments: Any) -> None: ...


def reference() -> int:
    stored = {}
    for number in range(20):
        stored[number] = number
    return sum(stored.values())


retried = retry(stop=stop_after_attempt(3))(search)
aretried = retry(stop=stop_after_attempt(3))(asearch)


def bare_calls() -> None:
    for _ in range(200):
        search("search_hotels", ARGUMENTS)


def references() -> None:
    for _ in range(30):
        reference()


def retried_calls() -> None:
    for _ in range(10):
        retried("search_hotels", ARGUMENTS)


async def bare_awaits() -> None:
    for _ in range(200):
        await asearch("search_hotels", ARGUMENTS)


async def retried_awaits() -> None:
    for _ in range(10):
        await aretried("search_hotels", ARGUMENTS)


async def within(block: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await block()
    return time.perf_counter() - start


def seconds(block: Block) -> float:
    start = time.perf_counter()
    said = block()
    return said if isinstance(said, float) else time.perf_counter() - start


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
def measure(benchmark: BenchmarkFixture, loop: asyncio.AbstractEventLoop) -> Measure:
    def run(block: Block, each: int = 1, *, before: Block | None = None, awaited: bool = False, note: str = "") -> None:
        yardsticks: dict[str, tuple[Block, int]] = {
            "bare": ((lambda: loop.run_until_complete(within(bare_awaits))) if awaited else bare_calls, 200),
            "R": (references, 30),
            "tenacity": ((lambda: loop.run_until_complete(within(retried_awaits))) if awaited else retried_calls, 10),
        }
        taken: dict[str, list[float]] = {name: [] for name in yardsticks}

        def setup() -> None:
            if before is not None:
                before()
            for name, (yardstick, times) in yardsticks.items():
                taken[name].append(seconds(yardstick) / times)

        options: dict[str, Any] = {"rounds": 1}
        if benchmark.enabled:
            setup()
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
        for name, yard in taken.items():
            benchmark.extra_info[f"x_{name}"] = undisturbed(times) / each / undisturbed(yard)

    return run


def pytest_configure(config: pytest.Config) -> None:
    # The table below says all of the plugin's own, and what it is compared to.
    config.option.benchmark_quiet = True


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    session: Any = getattr(config, "_benchmarksession", None)
    if session is None or not session.benchmarks:
        return
    head = f"{'case':58s}{'median us':>12s}{'x bare':>9s}{'x R':>9s}{'x tenacity':>12s}"
    terminalreporter.section("benchmarks")
    file = None
    for case in session.benchmarks:
        if case.fullname.partition("::")[0] != file:
            file = case.fullname.partition("::")[0]
            terminalreporter.write_line(f"{file}\n{head}")
        terminalreporter.write_line(row(case))
    rows = [case.extra_info for case in session.benchmarks if "row" in case.extra_info]
    if rows:
        terminalreporter.section("for docs/performance.md")
        terminalreporter.write_line("| case | R | aim |\n|---|---|---|")
        for said in rows:
            terminalreporter.write_line(f"| {said['row']} | {said['figure']} | {said['aim']} |")


def row(case: Any) -> str:
    info = case.extra_info
    us = info.get("median_us") or info.get("median_ns", case.stats.median * 1e9) / 1e3
    found = info.get("x_bare"), info.get("x_R", info.get("ratio_to_R")), info.get("x_tenacity")
    bare, r, tenacity = ("" if ratio is None else f"{ratio:.2f}" for ratio in found)
    name = case.name.removeprefix("test_").replace("_", " ")
    note = info.get("note") or info.get("figure") or ""
    return f"{name:58.57s}{us:12.2f}{bare:>9s}{r:>9s}{tenacity:>12s}  {note}".rstrip()
