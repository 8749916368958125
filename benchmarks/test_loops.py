"""
What it takes to tell whether a call goes on with a loop, with a window of 20 calls.
"""

from collections.abc import Callable
from typing import Any

import pytest

from guardrails import Facts, Loops, SessionState, Tool
from guardrails.core.guards.similarity import same_words, sketch_of
from guardrails.core.result import Reading
from guardrails.core.state import admit, settle, touch
from guardrails.core.tools.tool_call import tool_call
from guardrails.core.values.types import Outcome, ToolCall


WINDOW = 20
NOW = 1_800_000_000_000
GUARD = Loops()
FACTS = Facts(NOW, Tool(name="search", read_only=True))


def called(n: int, size: int = 0) -> ToolCall:
    query = f"cheap hotel in shibuya tokyo number {n}"
    return tool_call("search", {"limit": 10, "notes": "x" * size, "query": query}, f"call_{n}", None)


def state(calls: int, *, empty: int, size: int = 0, same: bool = False) -> SessionState:
    """
    A session of *calls* searches of which each was looked at, and brought something new but for the last *empty* ones.
    """
    made = SessionState()
    touch(made, NOW)
    for n in range(calls):
        call = called(0 if same else n, size)
        call.note_sketch(sketch_of(call.arguments))
        pending = admit(made, call, changes=False, window=WINDOW)
        dull = n >= calls - empty
        settle(made, pending, Outcome("x"), 7 if dull else 100 + n, 0, 2 if dull else 0)
    return made


def fresh(made: SessionState, size: int) -> Callable[[], object]:
    call = called(-1, size)

    def judge() -> object:
        call.sketch = None
        return GUARD.check(call, made, FACTS)

    return judge


@pytest.mark.parametrize(
    ("calls", "empty", "size"),
    [(20, 0, 0), (20, 1, 0), (20, 6, 0), (20, 20, 0), (5_000, 5_000, 0), (20, 20, 1_000_000)],
    ids=[
        *("nothing dull", "the last empty", "the last six empty"),
        *("all empty", "all empty, 5,000 calls before", "all empty, arguments of 1 MB"),
    ],
)
def test_judging_a_fresh_call(benchmark: Any, calls: int, empty: int, size: int) -> None:
    made = state(calls, empty=empty, size=size)
    judge = fresh(made, size)
    assert (judge() is not None) is (empty > 3)
    benchmark(judge)


def test_judging_an_exact_repeat(benchmark: Any) -> None:
    made = state(2, empty=0, same=True)
    call = called(0)
    benchmark(lambda: GUARD.check(call, made, FACTS))


def test_the_sketch_of_a_call(benchmark: Any) -> None:
    call = called(3)

    benchmark(sketch_of, call.arguments)


def test_comparing_two_sketches(benchmark: Any) -> None:
    a, b = sketch_of(called(1).arguments), sketch_of(called(2).arguments)
    assert benchmark(same_words, a, b)


@pytest.mark.parametrize("size", [400, 4_000, 1_000_000])
def test_the_steady_part_of_a_result(benchmark: Any, size: int) -> None:
    row = {"id": "h_1234", "name": "Fuji Inn", "price": 120, "rooms": 3}

    def read() -> tuple[int, int]:
        reading = Reading({"results": [row] * (size // 50), "took_ms": 7}, arguments={"city": "Tokyo"})
        return reading.steady, reading.news

    benchmark(read)
