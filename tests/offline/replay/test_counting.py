"""
How one decision adds to the figures.
"""

from guardrails.offline.replay.counting import count_denied, count_denied_without_cap
from guardrails.offline.replay.evidence import Worth
from guardrails.offline.replay.result import Tally
from tests.tables import table


@table(
    "code, worth, row",
    [
        ("duplicates.window", "new", "wrong"),
        ("loops.cycle", "new", "wrong"),
        ("duplicates.window", "unknown", "unknown"),
        ("duplicates.window", "later", None),
        ("budget.max_calls", "new", "limit_stops"),
        ("rate.max_calls_per_second", "later", "limit_stops"),
        ("growth.max_tokens_per_minute", "new", "limit_stops"),
        ("streak.max_same", "unknown", "limit_stops"),
        ("tools.budget.max_calls", "new", "limit_stops"),
        ("tool_filter.deny", "new", None),
        ("denials.max_turns_in_a_row", "new", None),
    ],
)
def test_a_denial_is_wrong_unknown_a_limit_or_none_of_them(code: str, worth: Worth, row: str | None) -> None:
    tally = Tally("data")
    count_denied(tally, code, worth, further=False)
    assert tally.denied == {code: 1}
    rows = {name: getattr(tally, name) for name in ("wrong", "unknown", "limit_stops") if getattr(tally, name)}
    assert rows == ({} if row is None else {row: {code: 1}})


def test_a_further_call_of_an_exhausted_session_is_no_denial_of_its_own_but_may_be_a_pointless_one() -> None:
    tally = Tally("data")
    count_denied(tally, "budget.max_calls", "second", further=True)
    count_denied_without_cap(tally, "budget.max_calls", "later", further=True)
    assert (tally.denied, tally.after_exhaustion) == ({}, {"budget.max_calls": 1})
    assert (tally.stopped_second, tally.stopped_later_without_cap) == (1, 1)
    assert (tally.limit_stops, tally.wrong) == ({}, {})


def test_with_the_cap_off_wrong_denials_are_counted_apart() -> None:
    tally = Tally("data")
    count_denied_without_cap(tally, "duplicates.window", "new", further=False)
    assert (tally.denied_without_cap, tally.wrong_without_cap, tally.denied, tally.wrong) == (
        {"duplicates.window": 1},
        {"duplicates.window": 1},
        {},
        {},
    )
