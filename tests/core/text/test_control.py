"""
JSON text without control characters.
"""

import json
import re

from typing import Any

import orjson

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.text.control import cleaned, sanitise
from tests.tables import table


values = st.recursive(
    st.none()
    | st.integers(-9, 9)
    | st.text(alphabet=st.characters(codec="utf-8"), max_size=20)
    | st.text('\\u0\x00\x1b\x7fbf"n:'),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('a\\\x00\x7f:"', max_size=3), inner, max_size=4)
    ),
    max_leaves=15,
)


def clean(value: Any) -> Any:
    if isinstance(value, str):
        return sanitise(value)
    if isinstance(value, list):
        return [clean(one) for one in value]
    return {key: clean(one) for key, one in value.items()} if isinstance(value, dict) else value


@given(values)
def test_d9_texts_lose_their_control_characters_and_nothing_else_changes(value: Any) -> None:
    text = cleaned(orjson.dumps(value).decode())
    assert json.loads(text) == clean(value)
    assert "\x7f" not in text
    assert cleaned(text) == text


@table(
    ("text", "expected"),
    [
        (r'{"a":"C:\\bin\\u0000","b":"\n\t\r"}', r'{"a":"C:\\bin\\u0000","b":"\n\t\r"}'),
        (r'{"a":"\\\u001b[31m\b\f"}', r'{"a":"\\[31m"}'),
        (r'{"a\u0000":1,"a":2}', r'{"a\u0000":1,"a":2}'),
        ('{"a\x7f":"\x7f\u0085"}', '{"a\\u007f":"\u0085"}'),
        (r'["\u0000"]', '[""]'),
    ],
)
def test_escapes_that_are_none_stay_and_names_are_never_made_equal(text: str, expected: str) -> None:
    assert cleaned(text) == expected


@table(("text", "clean"), [
    ("a\x00b\x7fc\x1bd\x0be", "abcde"), ("line\r\n\ttab", "line\r\n\ttab"), ("\x00é\x1f", "é"), ("a\ud800b", "a\ufffdb"),
    ("\ud83d\ude00", "\N{GRINNING FACE}"), ("caf\u00e9 \u0085", "caf\u00e9 \u0085"), ("", ""),
])  # fmt: skip
def test_d9_control_characters_are_stripped_and_newline_return_and_tab_kept(text: str, clean: str) -> None:
    assert sanitise(text) == clean


@given(st.text(st.characters(exclude_categories=[])))
def test_d9_sanitised_text_always_encodes_and_has_no_control_characters(text: str) -> None:
    clean = sanitise(text)

    clean.encode()
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", clean)
    assert sanitise(clean) == clean
    assert re.sub(r"[^\n\r\t]", "", clean) == re.sub(r"[^\n\r\t]", "", text)
