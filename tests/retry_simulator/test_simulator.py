"""
The simulator that the retry model is judged by, and the bound that goes with it.
"""

import itertools
import math

import pytest

from benchmarks.retries.bayes import Belief, Filter
from benchmarks.retries.sessions import World


def judged(sessions_a_day: int) -> list[tuple[float, bool, str]]:
    """
    What the filter thought of each retry, whether it succeeded, and the error before it.
    """
    found = []
    world = World(seed=7)
    for day in (3, 17):
        for calls in world.sessions(day, sessions_a_day):
            filter_ = Filter(calls[0].start)
            failed: dict[int, tuple[str, Belief]] = {}
            for call in calls:
                if before := failed.pop(call.signature, None):
                    found.append((before[1].success(call.start), call.error is None, before[0]))
                belief = filter_.observe(call)
                if call.error is not None:
                    failed[call.signature] = (call.error, belief)
    return found


def test_a_session_is_the_same_each_time() -> None:
    assert World(seed=3).session(5, 2) == World(seed=3).session(5, 2)
    assert World(seed=3).session(5, 2) != World(seed=4).session(5, 2)


@pytest.mark.slow
def test_the_bound_is_calibrated_in_each_part_of_its_range_and_for_each_error() -> None:
    rows = judged(1_500)
    groups: dict[object, list[tuple[float, bool]]] = {}
    for chance, worked, error in rows:
        groups.setdefault(int(chance * 10), []).append((chance, worked))
        groups.setdefault(error, []).append((chance, worked))
    assert len(rows) > 15_000
    for name, group in groups.items():
        deviation = math.sqrt(sum(p * (1 - p) for p, _ in group)) + 1
        assert abs(sum(p for p, _ in group) - sum(worked for _, worked in group)) < 4 * deviation, name


def test_waiting_longer_never_makes_a_retry_less_likely_to_succeed_in_a_known_window() -> None:
    world = World(seed=7)
    for calls in world.sessions(0, 200):
        filter_ = Filter(calls[0].start)
        for call in calls:
            belief = filter_.observe(call)
            if call.error == "rate_limit":
                chances = [belief.success(call.end + seconds) for seconds in (0, 1, 5, 15, 60, 300, 600)]
                # An outage may begin meanwhile, which is rarer than one ends.
                assert all(later > sooner - 0.02 for sooner, later in itertools.pairwise(chances))
