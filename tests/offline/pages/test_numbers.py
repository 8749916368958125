"""
Numbers: exact where they are counts, never a false nothing or a false everything.
"""

import pytest

from guardrails.offline.pages.numbers import NONE, change, of, per_1000, plural, share, usd


@pytest.mark.parametrize(
    ("n", "whole", "text"),
    [
        (0, 0, NONE),
        (0, 9, "0 %"),
        (1, 9_999, "<0.1 %"),
        (1, 8, "12.5 %"),
        (9_998, 9_999, ">99.9 %"),
        (9, 9, "100 %"),
    ],
)
def test_a_share_is_nothing_or_everything_only_where_it_is(n: int, whole: int, text: str) -> None:
    assert share(n, whole) == text


@pytest.mark.parametrize(
    ("n", "digits", "text"),
    [(1_234, 0, "+1,234"), (-3, 0, "\N{MINUS SIGN}3"), (0, 2, "±0.00"), (-0.001, 2, "±0.00"), (0.126, 2, "+0.13")],
)
def test_a_change_has_a_sign(n: float, digits: int, text: str) -> None:
    assert change(n, digits) == text


@pytest.mark.parametrize(
    ("micro", "text"), [(0, "$0.00"), (1_234, "$0.0012"), (999_999, "$1.0000"), (1_234_567_890, "$1,234.57")]
)
def test_money_is_in_dollars(micro: int, text: str) -> None:
    assert usd(micro) == text


def test_counts_are_words_with_their_number() -> None:
    assert [plural(1, "call"), plural(2_000, "call"), plural(2, "index", "indices")] == [
        "1 call",
        "2,000 calls",
        "2 indices",
    ]
    assert [of(2, 1_000), of(0, 0), per_1000(3, 2_000), per_1000(0, 0)] == ["2 of 1,000", NONE, "1.50", NONE]
