"""
What a JSON text that is cut off says before the cut.
"""

import json

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails.offline.readers.text.cut_json import MAX_DEPTH, completed
from tests.tables import table


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def is_start_of(part: Any, whole: Any) -> bool:
    """
    Whether *part* is *whole* with something left out at its end.
    """
    if isinstance(part, dict) and isinstance(whole, dict):
        names = list(whole)[: len(part)]
        return list(part) == names and all(is_start_of(part[name], whole[name]) for name in names)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(is_start_of, part, whole))

    return bool(part == whole)


@given(st.lists(JSON, min_size=1, max_size=4) | st.dictionaries(st.text(max_size=4), JSON, min_size=1), st.data())
def test_a_cut_text_gives_a_start_of_its_value(value: Any, data: Any) -> None:
    text = json.dumps(value, indent=data.draw(st.sampled_from([None, 1]))).encode()
    cut = data.draw(st.integers(1, len(text) - 1))
    assert is_start_of(completed(text[:cut]), value)


@table("text", [b"", b"1", b'"a', b"{}", b"[1]", b"]", b"[}", b"{]", b"tru", b"\xff", b"[" * 2000])
def test_what_is_not_cut_gives_nothing(text: bytes) -> None:
    assert completed(text) is None


def test_time_and_depth_are_bounded() -> None:
    assert completed(b"[" * MAX_DEPTH) is not None
    assert completed(b'{"a": "' + b"\\" * 1_000_001) == {}
    assert len(completed(b"[" + b'"x",' * 200_000)) == 200_000
