"""
Numbers: exact where they are counts, never a false nothing or a false everything.
"""

from guardrails.offline.figures import NONE, plural, share, usd
from tests.tables import table


@table(
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


@table(("micro", "text"), [(0, "$0.00"), (1_234, "$0.0012"), (999_999, "$1.0000"), (1_234_567_890, "$1,234.57")])
def test_money_is_in_dollars(micro: int, text: str) -> None:
    assert usd(micro) == text


def test_counts_are_words_with_their_number() -> None:
    assert [plural(1, "call"), plural(2_000, "call"), plural(2, "index", "indices")] == [
        "1 call",
        "2,000 calls",
        "2 indices",
    ]
