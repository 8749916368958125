"""
Earlier results that can be given back.
"""

import threading

from hypothesis import given
from hypothesis import strategies as st

from guardrails.digest import Earlier
from guardrails.results import OVERHEAD, Results


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
