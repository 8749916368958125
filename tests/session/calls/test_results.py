"""
Earlier results that can be given back.
"""

import os
import signal
import threading
import tracemalloc
import warnings

from typing import Any

import orjson
import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.records.digest import Earlier
from guardrails.core.text.jsonable import exact
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


def test_threads_share_one_cache_without_losing_count(quick_switches: None) -> None:
    results = Results(max_bytes=5_000)

    def work(session: str) -> None:
        for number in range(300):
            results.keep(session, number % 7, earlier(number))
            results.find(session, (number + 3) % 7)

    threads = [threading.Thread(target=work, args=(f"s{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = [results.find(f"s{number}", sig) for number in range(6) for sig in range(7)]
    assert results.size == sum(len(kept.payload) + 2 + OVERHEAD for kept in left if kept) <= 5_000


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


@pytest.mark.system
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_can_keep_results_while_a_thread_of_its_parent_is_in_the_cache() -> None:
    results = Results()
    results.keep("s", 1, earlier(3))
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with results._lock:
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(10)
    child = forked(results)
    leave.set()
    thread.join(10)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def forked(results: Results) -> Any:
    with warnings.catch_warnings():
        # Later Pythons warn of the very thing this is about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.alarm(5)
        results.keep("s", 2, earlier(3))
        os._exit(0 if results.find("s", 1) == earlier(3) and results.size == 2 * (5 + OVERHEAD) else 1)
    return child
