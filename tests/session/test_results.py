"""
Earlier results that can be given back.
"""

import tracemalloc

import orjson
import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.text.plain_json import exact
from guardrails.session.results import MAX_BYTES, OVERHEAD, Earlier, Results


def earlier(size: int, mark: str = "x") -> Earlier:
    return Earlier(b"{}", mark.encode() * size)


def test_the_latest_result_of_a_signature_is_found_in_its_own_session_only() -> None:
    results = Results()
    results.keep("a", 1, *earlier(3, "x"))
    results.keep("a", 1, *earlier(5, "y"))
    assert results.find("a", 1) == earlier(5, "y")
    assert (results.find("b", 1), results.find("a", 2), results.find("a", None)) == (None, None, None)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 500)), max_size=60))
def test_what_is_found_is_the_latest_and_what_fits_in_half_of_the_room_is_found(story: list[tuple[int, int]]) -> None:
    results = Results(max_bytes=4_000)
    for number, (sig, size) in enumerate(story):
        results.keep("s", sig, *earlier(size, str(number % 10)))
    latest = {sig: earlier(size, str(number % 10)) for number, (sig, size) in enumerate(story)}
    assert all(results.find("s", sig) in (None, kept) for sig, kept in latest.items())
    room = 2_000
    for sig, size in reversed(story):
        room -= size + 2 + OVERHEAD
        if room >= 0:
            assert results.find("s", sig) == latest[sig]


@pytest.mark.parametrize("size", [1, 500, 9_000])
def test_the_memory_of_a_full_cache_is_what_was_set(size: int) -> None:
    """
    orjson's own bytes keep 4 KB each and more, whatever they hold.
    """
    results = Results()
    tracemalloc.start()
    try:
        for sig in range(2 * MAX_BYTES // (size + OVERHEAD)):
            texts = exact(orjson.dumps([sig])), exact(orjson.dumps("x" * size))
            results.keep(f"session-{sig}", sig << 40, *texts)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.4 * MAX_BYTES < used < 1.1 * MAX_BYTES
