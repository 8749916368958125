"""
Names of members, whatever their spelling.
"""

from guardrails.core.paging.names import MAX_NAME, SPELLINGS, Kind, kind_of
from tests.tables import table


@table(
    "name",
    [
        "next_page_token",
        "nextPageToken",
        "NextPageToken",
        "NEXT_PAGE_TOKEN",
        "next-page-token",
        "next.page.token",
        "Next Page Token",
    ],
)
def test_a_name_is_known_by_its_letters(name: str) -> None:
    assert kind_of(name) is Kind.CURSOR


@table(
    "name",
    [
        "",
        "text_next",
        "next_steps",
        "next_run",
        "word_count",
        "context",
        "nextSyncToken",
        "next_page\ncursor",
        "next`page",
        "n" * 99,
    ],
)
def test_a_name_that_only_resembles_one_says_nothing(name: str) -> None:
    assert kind_of(name) is None


def test_each_usual_spelling_is_known_and_none_is_too_long() -> None:
    assert all(kind_of(name) is not None and len(name) <= MAX_NAME for name in SPELLINGS)
