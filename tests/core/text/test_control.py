"""
JSON text without control characters.
"""

import json

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
