"""
Calls that are worded alike.
"""

import re

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.repetition import sketch as sketching
from guardrails.core.repetition.sketch import NO_SKETCH, alike, sketch_of
from guardrails.core.tools.tool_call import tool_call
from guardrails.core.values.types import ToolCall
from tests.tables import table


def sketch(arguments: Any) -> int:
    return sketch_of(tool_call("tool", arguments, "1", None))


@table(
    ("one", "other", "expected"),
    [
        ("cheap hotel shibuya tokyo", "cheap hotels shibuya tokyo", True),
        ("погода в москве сегодня", "погоду москва сегодня узнать", True),
        ("东京涩谷便宜酒店五月预订", "东京涩谷便宜的酒店五月预订", True),
        ("الطقس في القاهرة اليوم", "الطقس القاهرة اليوم", True),
        ("read the news of today", "open an issue for billing", False),
        ("北京天气预报", "东京酒店预订", False),
    ],
)
def test_a_rewording_is_alike_in_any_alphabet(one: str, other: str, *, expected: bool) -> None:
    assert alike(sketch({"q": one}), sketch({"q": other})) is expected


@table(
    ("one", "other", "equal"),
    [
        ({"q": "a", "at": "2026-11-22T10:00:00Z"}, {"q": "a", "at": "2026-11-22T11:30:10Z"}, True),
        ({"q": "a", "description": "look"}, {"q": "a", "description": "look again"}, True),
        ({"q": "a", "at": 1800000000}, {"q": "a", "at": 1800000007}, True),
        ({"out": "/tmp/a1b2/x"}, {"out": "/tmp/zz/x"}, True),
        ({"page": 1}, {"page": 2}, False),
        ({"offset": 100}, {"offset": 200}, False),
        ({"text": "x" * 5000 + "a"}, {"text": "x" * 5000 + "b"}, False),
    ],
)
def test_only_volatile_arguments_are_left_out(one: Any, other: Any, *, equal: bool) -> None:
    assert (sketch(one) == sketch(other)) is equal


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=30) | st.integers() | st.none(), max_size=5))
def test_a_sketch_has_64_bits_and_is_the_same_with_and_without_the_canonical_form(arguments: dict[str, Any]) -> None:
    call = tool_call("tool", dict(arguments), "1", None)
    number = sketch_of(call)
    assert -(2**63) <= number < 2**63
    if len(call.canonical or b"") <= 512:
        assert sketch_of(ToolCall("tool", call.arguments, "1", None, call.sig)) == number


KEYS = st.sampled_from(["q", "file_path", "a-b", "é", 'a"', "x y", "Limit"])
TEXTS = st.sampled_from(
    [
        *(
            "",
            "Read",
            "the_NEWS",
            'say "q": now',
            "a\\b",
            'q":',
            "2026-11-22T10:00:00Z",
            "12:30:00.5",
            "/tmp/a.b-c",
            "x1800000000",
        ),
        *(
            "1800000000",
            "1800000000123",
            "18000000001",
            "0x123456ab",
            "00x123456",
            "12345678-9abc-def0-1234-56789abcdef0",
        ),
        *("a\tb", "a: b", "page 3", "a,b", "{}"),
    ]
)
VOLATILE = re.compile(
    rb"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:[Zz]|[+-]\d\d:?\d\d)?"
    rb"|\d\d:\d\d:\d\d(?:\.\d+)?"
    rb"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    rb"|(?<![0-9a-zA-Z])(?:\d{10}|\d{13}|\d{16}|\d{19}|0x[0-9a-fA-F]{6,16})(?![0-9a-zA-Z])"
    rb"|/tmp/[\w.-]+"
)
"""All that is volatile in one pattern, which takes three times as long."""


@given(st.dictionaries(KEYS, TEXTS | st.lists(TEXTS, max_size=2) | st.integers(), max_size=4))
def test_words_are_what_one_pattern_finds_but_keys_and_what_is_volatile(arguments: dict[str, Any]) -> None:
    call = tool_call("tool", arguments, "1", None)
    text = VOLATILE.sub(b" ", call.canonical or b"").lower()
    if text.isascii() and len(text) <= sketching.HEAD:
        assert sketching._words(call) == re.findall(rb'\w++(?!":)', text)


def test_what_nobody_looked_at_is_like_nothing() -> None:
    assert not alike(NO_SKETCH, NO_SKETCH)
