"""
Bins: all stops are in one, and there are never too many of them.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.offline.judge.page.spans import DAY, HOUR, MOST, WEEK, positions, span
from guardrails.offline.judge.result import Stop


NOON = 1_770_000_000_000


def stop(index: int, code: str = "loops.same") -> Stop:
    return Stop("source", "session", index, "tool", "deny", code, None, pointless=True)


@pytest.mark.parametrize(
    ("length", "unit", "first"),
    [
        (0, "hour", "2026-02-02 02:00"),
        (2 * DAY - 1, "hour", "2026-02-02 02:00"),
        (2 * DAY, "day", "2026-02-02"),
        (80 * DAY, "day", "2026-02-02"),
        (200 * DAY, "week", "2026-02-02"),
        (3_650 * DAY, "8 weeks", "2025-12-22"),
    ],
)
def test_the_width_follows_the_length(length: int, unit: str, first: str) -> None:
    found = span([NOON, NOON + length])
    assert found is not None
    assert found.unit == unit
    assert found.label(0) == first


@given(st.lists(st.integers(min_value=-(10**18), max_value=10**18), min_size=1, max_size=20))
def test_every_time_has_its_bin_and_there_are_few(times: list[int]) -> None:
    found = span(times)
    assert found is not None
    assert 0 < found.bins <= MOST
    places = [found.place(at) for at in times]
    assert min(places) == 0
    assert max(places) == found.bins - 1
    assert all(found.label(n) for n in range(found.bins))


def test_without_times_there_are_no_bins() -> None:
    assert span([]) is None


def test_a_week_begins_on_a_monday() -> None:
    found = span([NOON, NOON + 300 * DAY])
    assert found is not None
    assert (found.width, found.start % WEEK) == (WEEK, 4 * DAY)
    assert found.start % HOUR == 0


def test_positions_are_in_bins_that_grow() -> None:
    found = positions([stop(0), stop(4), stop(5), stop(120), stop(199, "budget.max_calls")])
    assert [name for name, _ in found] == ["0-4", "5-9", "10-19", "20-49", "50-99", "100-199"]
    assert found[0][1] == {"loops.same": 2}
    assert found[-1][1] == {"loops.same": 1, "budget.max_calls": 1}
    assert positions([]) == []


@pytest.mark.parametrize("index", [-1, 10**30])
def test_a_position_that_cannot_be_has_a_bin_all_the_same(index: int) -> None:
    assert sum(sum(codes.values()) for _, codes in positions([stop(index)])) == 1
