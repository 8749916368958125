"""
Earlier results that can be given back.
"""

import tracemalloc

import orjson
import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.records.digest import Earlier
from guardrails.core.text.plain_json import exact
from guardrails.session.calls.results import MAX_BYTES, OVERHEAD, Results


def earlier(size: int, mark: str = "x") -> Earlier:
    return Earlier("t", b"{}", mark.encode() * size, ok=True)


def test_the_latest_result_of_a_signature_is_found_in_its_own_session_only() -> None:
    results = Results()
    results.keep("a", 1, earlier(3, "x"))
    results.keep("a", 1, earlier(5, "y"))
    assert results.find("a", 1) == earlier(5, "y")
    assert (results.find("b", 1), results.find("a", 2), results.find("a", None)) == (None, None, None)


def test_what_was_not_used_the_longest_goes_first() -> None:
    results = Results(max_bytes=3 * (OVERHEAD + 102))
    for sig in range(3):
        results.keep("s", sig, earlier(100))
    results.find("s", 0)
    results.keep("s", 3, earlier(100))
    assert [results.find("s", sig) is not None for sig in range(4)] == [True, False, True, True]


def test_a_result_that_is_too_large_to_keep_leaves_no_older_one_behind() -> None:
    results = Results(max_bytes=1_000)
    results.keep("s", 1, earlier(10))
    results.keep("s", 1, earlier(2_000))
    assert (results.find("s", 1), results.size) == (None, 0)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1_500)), max_size=60))
def test_the_bytes_are_counted_exactly_and_never_pass_the_limit(story: list[tuple[int, int]]) -> None:
    results = Results(max_bytes=2_000)
    for sig, size in story:
        results.keep("s", sig, earlier(size))
        assert results.size <= 2_000
    found = [kept for sig in range(6) if (kept := results.find("s", sig))]
    assert results.size == sum(len(kept.payload) + len(kept.arguments) + OVERHEAD for kept in found)


@pytest.mark.parametrize("size", [1, 500, 9_000])
def test_the_memory_of_a_full_cache_is_what_was_set(size: int) -> None:
    """
    orjson's own bytes keep 4 KB each and more, whatever they hold.
    """
    results = Results()
    tracemalloc.start()
    try:
        for sig in range(2 * MAX_BYTES // (size + OVERHEAD)):
            results.keep(
                f"session-{sig}",
                sig << 40,
                Earlier("t", exact(orjson.dumps([sig])), exact(orjson.dumps("x" * size)), ok=True),
            )
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert results.size > 0.99 * MAX_BYTES - 10_000
    assert used < 1.1 * MAX_BYTES
