"""
The page of how failures resolve.
"""

from pathlib import Path

from guardrails.core.retries.profiles import Profile
from guardrails.core.retries.shrinkage import Count
from guardrails.offline.pages.profiles import COLUMNS, profile_page
from guardrails.offline.pages.script import SCRIPT
from tests.pages import EVIL, Page, in_browser


OFTEN = Profile(
    tool="search", error="timeout", retries=40, successes=30, rate=0.74, low=0.6, high=0.86, corrected=Count(8, 2)
)
SELDOM = Profile(tool="book", error="conflict", retries=1, successes=1, rate=0.5, low=0.2, high=1.0)


def test_a_page_has_each_kind_of_failure_with_its_figures() -> None:
    seen = Page(profile_page([OFTEN, SELDOM], "retry.json"))
    rows = {row[0]: row[1:] for row in seen.drawn()}
    assert rows["search"][:4] == ["timeout", "40", "74 %", "60-86 %"]
    assert rows["search"][-1] == "2 of 8"
    assert "2 kinds of failure of 2 tools, by the model retry.json" in seen.text
    assert "timeouts of `search` resolve on retry 74 % of the time (30 of 40 retries worked" in seen.text


def test_of_few_retries_the_counts_are_told_and_no_share() -> None:
    (row,) = Page(profile_page([SELDOM], "m")).drawn()
    assert row[2:4] == ["1", "1 of 1"]


def test_every_column_is_explained() -> None:
    text = Page(profile_page([], "m")).text
    for column in COLUMNS:
        assert f"{column.name}{column.meaning}" in text


def test_names_stay_text_with_and_without_a_browser(tmp_path: Path) -> None:
    text = profile_page([Profile(tool=EVIL, error="other", retries=9, successes=9, rate=1, low=0.7, high=1)], EVIL)
    seen = Page(text)
    assert seen.raw["script"] == SCRIPT
    assert not [tag for tag, _ in seen.elements if tag == "img"]
    drawn = Page(in_browser(text, tmp_path))
    assert not [tag for tag, _ in drawn.elements if tag == "img"]
    assert "onerror=alert(1)" in drawn.text
