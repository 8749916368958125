"""
Periods of the calendar.
"""

from guardrails.core.values.units import Period


def test_a_period_of_a_zone_that_changes_its_time_begins_at_its_own_midnight() -> None:
    # In Berlin the clocks go back on 2026-10-25, a day of 25 hours from 22:00 UTC on.
    period, begins = Period("day", "Europe/Berlin"), 1_792_879_200_000
    later = [period.since(begins + hours * 3_600_000) - begins for hours in (0, 12, 24, 25)]
    assert later == [0, 0, 0, 25 * 3_600_000]
    # In Havana midnight is told twice on 2024-11-03: at 04:00 and 05:00 UTC.
    period, begins = Period("day", "America/Havana"), 1_730_606_400_000
    assert [period.since(begins + minutes * 60_000) - begins for minutes in (0, 30, 60, 90, 120)] == [0] * 5
