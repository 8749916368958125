"""
Markup: what is not markup is escaped, what cannot be seen is shown, and what is long is cut.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.offline.pages.markup import NAME, Markup, join, named, short, tag, visible, within


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", "a < b & c", Markup("<b>d</b>")) == "<p>a &lt; b &amp; c<b>d</b></p>"
    assert join(["<", Markup("<br>"), ">"], ", ") == "&lt;, <br>, &gt;"


def test_an_attribute_is_quoted_left_out_or_bare() -> None:
    made = tag("td", class_="n", title="\"'<>", data_x=1, hidden=True, id=None, role=False)
    assert made == '<td class="n" title="&quot;&#x27;&lt;&gt;" data-x="1" hidden></td>'


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain", "plain"),
        ("a\nb", "a\\nb"),
        ("\x00\x1b", "\\x00\\x1b"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("\ud800", "\\ud800"),
        ("\N{HEBREW LETTER ALEF}", "\N{HEBREW LETTER ALEF}"),
    ],
)
def test_what_cannot_be_seen_is_shown(text: str, seen: str) -> None:
    assert visible(text) == seen


@given(st.text(max_size=400))
def test_a_short_text_is_visible_and_short(text: str) -> None:
    cut = short(text)
    assert len(cut) <= NAME
    assert cut.isprintable()
    assert short(cut) == cut


def test_names_that_begin_alike_are_told_apart_by_their_ends() -> None:
    assert short("a" * 10_000 + "1") != short("a" * 10_000 + "2")


def test_a_name_that_is_empty_can_be_seen() -> None:
    assert named("") == "<bdi>(empty)</bdi>"


def test_parts_are_kept_while_they_fit() -> None:
    parts = [Markup("ab"), Markup("\N{EURO SIGN}"), Markup("c"), Markup("d")]
    assert within(parts, 5) == (parts[:2], 2)
    assert within(parts, 100) == (parts, 0)
    assert within([], 0) == ([], 0)
