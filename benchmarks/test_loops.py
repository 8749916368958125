"""
What it takes to tell whether a call goes on with a loop, with a window of 20 calls.
"""

from itertools import count
from typing import Any

import pytest

from guardrails import Loops, Policy, Tool
from guardrails.core.guards.similarity import same_words, sketch_of
from guardrails.core.result import Reading
from guardrails.core.result.news import news_hash


POLICY = Policy([Loops(reworded={"nudge": None, "deny": None})], tools=[Tool(name="search", read_only=True)])


def query(n: int, size: int = 0) -> dict[str, Any]:
    return {"limit": 10, "notes": "x" * size, "query": f"cheap hotel in shibuya tokyo number {n}"}


@pytest.mark.parametrize(("empty", "size"), [(False, 0), (True, 0), (True, 1_000_000)])
def test_a_fresh_call(benchmark: Any, empty: bool, size: int) -> None:
    now, numbers = [1_800_000_000.0], count()
    session = POLICY.session(f"{empty}{size}", clock=lambda: now[0])

    def call() -> Any:
        now[0] += 5
        return session.call("search", query(next(numbers), size), lambda *_: [] if empty else [{"id": next(numbers)}])

    for _ in range(20):
        call()
    assert (session.decide("search", query(1_000_000)).nudges != ()) is empty
    assert benchmark(call).ok


def test_the_sketch_of_a_call(benchmark: Any) -> None:
    assert benchmark(sketch_of, query(3))


def test_comparing_two_sketches(benchmark: Any) -> None:
    one, other = (
        sketch_of({"query": "cheap hotel in shibuya tokyo"}),
        sketch_of({"query": "a cheap hotel in shibuya tokyo"}),
    )
    assert benchmark(same_words, one, other)


@pytest.mark.parametrize("size", [400, 4_000, 1_000_000])
def test_the_news_of_a_result(benchmark: Any, size: int) -> None:
    row = {"id": "h_1234", "name": "Fuji Inn", "price": 120, "rooms": 3}

    def read() -> tuple[int, int]:
        reading = Reading({"results": [row] * (size // 50), "took_ms": 7}, arguments={"city": "Tokyo"})
        return news_hash(reading), reading.news

    assert benchmark(read)
