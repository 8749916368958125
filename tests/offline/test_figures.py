"""
Numbers: exact where they are counts, never a false nothing or a false everything.
"""

from guardrails.offline.figures import NONE, plural, share, usd


def test_a_share_is_nothing_or_everything_only_where_it_is() -> None:
    shares = [share(*one) for one in ((0, 0), (0, 9), (1, 9_999), (1, 8), (9_998, 9_999), (9, 9))]
    assert shares == [NONE, "0 %", "<0.1 %", "12.5 %", ">99.9 %", "100 %"]


def test_money_is_in_dollars_and_counts_are_words_with_their_number() -> None:
    assert [*map(usd, (0, 1_234, 999_999, 1_234_567_890))] == ["$0.00", "$0.0012", "$1.0000", "$1,234.57"]
    counts = [plural(1, "call"), plural(2_000, "call"), plural(2, "index", "indices")]
    assert counts == ["1 call", "2,000 calls", "2 indices"]
