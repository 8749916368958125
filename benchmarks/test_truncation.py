"""
What it costs to serialise and bound one result.

    pytest benchmarks/test_truncation.py --benchmark-enable --benchmark-columns=median,iqr --benchmark-sort=name -s

prints, and puts into `extra_info`, each median in microseconds and as a ratio to R, a fixed loop of pure Python that is
timed in turns with it. The bare `orjson.dumps` of the same value stands beside the small results.
"""

from collections.abc import Callable
from statistics import median
from timeit import timeit
from typing import Any

import orjson
import pytest

from pytest_benchmark.fixture import BenchmarkFixture

from guardrails import Policy
from guardrails.core.text import plain_json, truncation


MEGABYTE = 2**20

GREP = {"output": 'src/main.c:12: log_error("Failed to open");\n' * 8, "count": 8}
HOTEL = {
    "id": "h_1234",
    "name": "Shibuya Stream Hotel",
    "city": "Tokyo",
    "price": 148.5,
    "currency": "USD",
    "stars": 4,
    "available": True,
    "description": "A quiet hotel near the station, with a view of the river. " * 3,
    "url": "https://example.com/hotels/h_1234",
    "rooms": 12,
}
ROWS = [
    {"id": n, "name": f"row number {n}", "score": 0.5, "ok": True, "note": "some words that fill a row"}
    for n in range(110_000)
]

SMALL: dict[str, Any] = {
    "0.4 KB text": "x" * 400,
    "0.4 KB, 2 fields": GREP,
    "0.4 KB, 10 fields": HOTEL,
    "0.4 KB, 4 rows": {"results": ROWS[:4], "total": 4},
    "2 KB, 20 rows": {"results": ROWS[:20], "total": 20},
    "43 KB, 460 rows": {"results": ROWS[:460], "total": 460},
}
LARGE: dict[str, Any] = {
    "text": "x" * (10 * MEGABYTE),
    "text of quotes": '"' * (10 * MEGABYTE),
    "text, not ASCII": "é" * (5 * MEGABYTE),
    "list of rows": ROWS,
    "list of numbers": list(range(1_500_000)),
    "object, one long text": {"ok": True, "content": "x" * (10 * MEGABYTE)},
    "object, rows": {"rows": ROWS},
    "object, many keys": {f"key {n}": n for n in range(600_000)},
    "object, long text two levels down": {"content": [{"type": "text", "text": "x" * (10 * MEGABYTE)}]},
}


def reference() -> int:
    """
    R: the unit that figures of different machines and hours are compared in.
    """
    stored = {}
    for n in range(20):
        stored[n] = n
    return sum(stored.values())


def run(benchmark: BenchmarkFixture, function: Callable[[Any], Any], value: Any, rounds: int, iterations: int) -> Any:
    pedantic: Any = benchmark.pedantic
    result = pedantic(function, args=(value,), rounds=rounds, iterations=iterations, warmup_rounds=2)
    if benchmark.stats is not None:
        taken, ratios = [], []
        for _ in range(rounds):
            taken.append(timeit(lambda: function(value), number=iterations) / iterations * 1e6)
            ratios.append(taken[-1] / (timeit(reference, number=200) / 200 * 1e6))
        benchmark.extra_info.update(median_us=round(median(taken), 2), ratio_to_R=round(median(ratios), 2))
        print(f"\n{benchmark.name}: {median(taken):.2f} us, {median(ratios):.2f} R")
    return result


@pytest.mark.parametrize("name", SMALL)
def test_render_small(benchmark: BenchmarkFixture, name: str) -> None:
    rendered = run(benchmark, truncation.render, SMALL[name], rounds=100, iterations=1_000 if "0.4" in name else 20)

    assert rendered.complete


@pytest.mark.parametrize("name", SMALL)
def test_bare_orjson_small(benchmark: BenchmarkFixture, name: str) -> None:
    run(benchmark, orjson.dumps, SMALL[name], rounds=100, iterations=1_000 if name.startswith("0.4") else 20)


@pytest.mark.parametrize("name", LARGE)
def test_render_ten_megabytes(benchmark: BenchmarkFixture, name: str) -> None:
    rendered = run(benchmark, truncation.render, LARGE[name], rounds=100, iterations=20 if name == "text" else 1)

    assert rendered.size <= plain_json.LIMIT
    assert not rendered.complete


# In the whole chain

RESULTS: dict[str, Any] = {
    "64 KB of text": "x" * 65_000,
    "10 MB of text": "x" * (10 * MEGABYTE),
    "list of 10 MB": ROWS,
    "dict of 10 MB": {"results": ROWS, "total": len(ROWS)},
    "dict with a text of 10 MB": {"ok": True, "content": "x" * (10 * MEGABYTE)},
}
CALLS = 5


@pytest.mark.parametrize("name", RESULTS)
def test_chain_with(measure: Any, default: Policy, name: str) -> None:
    result = RESULTS[name]
    session = default.session("large")
    assert session.call("read", {}, lambda tool, arguments: result).ok
    pages = iter(range(10**9))

    def run() -> None:
        for _ in range(CALLS):
            session.call("read", {"page": next(pages)}, lambda tool, arguments: result).to_json()

    measure(run, CALLS)
