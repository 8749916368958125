"""
The text of HTML pages, however broken.
"""

import itertools
import time

from pathlib import Path

import pytest
import yaml

from hypothesis import given
from hypothesis import strategies as st

from guardrails.agent.builtin.page_text import page_text


BITS: list[str] = yaml.safe_load(Path(__file__).with_name("html_bits.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<title> A\n b </title><p>x</p>", ("A b", "x")),
        ("<p>a<script>b</script>c", ("", "ac")),
        ("<style>x</style><script>y", ("", "")),
        ("a&lt;b&#x20;c &amp d", ("", "a<b c & d")),
        ("<ul><li>a<li>b</ul>", ("", "a\nb")),
        ("<head><meta x></head><body>a", ("", "a")),
        ("<head>no end<body>a", ("", "a")),
        ("<head><title>t</title><meta x><p>a", ("t", "a")),
        ("<!-- <p>x</p> -->y", ("", "y")),
        ("</p></div><<>>< a", ("", "<<>>< a")),
        ("a\n\n\n\n\n  b", ("", "a\n\nb")),
        ("<p title='a>b' x=\"c>d\">e", ("", "e")),
        ('<p a="b>c</p>', ("", "c")),
        ("<a ' b>c", ("", "c")),
        ("<SCRIPT>a</b></ScRiPt >c", ("", "c")),
        ("<script>'</scripts>'</script>c", ("", "c")),
        ("<title>a<b>c</title>d", ("a<b>c", "d")),
        ("<svg><title>icon</title></svg><title>page</title>", ("page", "")),
        ("<textarea><b>x</textarea>", ("", "<b>x")),
        ("<title>no end<p>a", ("", "no end\na")),
        ("<svg><svg>a</svg>b", ("", "b")),
        ("a<![CDATA[b]]>c<?php d ?>e<!doctype f>g", ("", "aceg")),
        ("1 < 2 && 3 > 2 &unknown; &", ("", "1 < 2 && 3 > 2 &unknown; &")),
        ("a<p", ("", "a")),
        ("&#xd800;&#0;&#27;", ("", "\ufffd\ufffd")),
        ("", ("", "")),
    ],
)
def test_text_is_what_a_reader_sees(html: str, expected: tuple[str, str]) -> None:
    assert page_text(html) == expected


def test_a_character_of_thousands_of_digits_is_none() -> None:
    assert page_text("&#" + "9" * 5_000 + ";")[1].startswith("\ufffd999")
    assert page_text("&#x" + "f" * 5_000 + ";")[1].startswith("\ufffdfff")


def test_deep_nesting_is_read() -> None:
    assert page_text("<div>" * 50_000 + "x") == ("", "x")


@pytest.mark.parametrize("bit", BITS)
def test_a_page_takes_time_that_grows_with_its_length_alone(bit: str) -> None:
    # What grows with the square takes minutes for this much.
    page = (bit * (300_000 // len(bit) + 1))[:300_000]
    started = time.process_time()
    page_text(page)
    page_text(f"<html><head><title>x</title><p a='{page}")
    assert time.process_time() - started < 3


@pytest.mark.system
def test_any_two_pieces_of_pages_take_no_more_together() -> None:
    for pair in itertools.permutations(BITS, 2):
        bit = "".join(pair)
        started = time.process_time()
        page_text(bit * (15_000 // len(bit)))
        assert time.process_time() - started < 1, pair


@given(st.lists(st.sampled_from(BITS), max_size=30).map("".join))
def test_any_pieces_are_read_to_text_that_is_no_longer(page: str) -> None:
    title, text = page_text(page)
    assert len(text) <= 2 * len(page)
    assert len(title) <= 300


@given(st.recursive(st.sampled_from(["one", "two", "&lt;", "x y"]), lambda inner: st.lists(inner, max_size=4)))
def test_the_words_of_a_page_come_in_their_order(tree: object) -> None:
    def page(node: object) -> str:
        if isinstance(node, list):
            return f"<div class='a>b'>{''.join(map(page, node))}</div><script>if (a<b) x('</p>')</script>"
        return f"<b>{node}</b> "

    def words(node: object) -> list[str]:
        if isinstance(node, list):
            return [word for each in node for word in words(each)]
        return str(node).replace("&lt;", "<").split()

    assert page_text(page(tree))[1].split() == words(tree)
