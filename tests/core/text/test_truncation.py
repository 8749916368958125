"""
Results in a bounded number of bytes (MISSION D3).
"""

import json

from typing import Any

import orjson

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.text.plain_json import LIMIT
from guardrails.core.text.truncation import Rendered, leading, render
from tests.tables import table


CHARACTERS = st.sampled_from('a"\\/\n\t\x00\x1f\x7fé€😀\u2028\ufffd\ud800\udfff')
TEXTS = st.builds(
    lambda text, times: text * times, st.text(st.characters() | CHARACTERS, max_size=30), st.sampled_from([1, 10, 100])
)
NUMBERS = st.integers() | st.integers(2**63, 2**200) | st.floats()
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
SETS = st.frozensets(st.integers() | st.text(max_size=3))
NUMBERLIKE = st.decimals() | st.fractions() | st.complex_numbers()
ODD = NUMBERLIKE | st.binary() | st.datetimes() | st.uuids() | SETS | st.builds(object)
KEYS = st.text(CHARACTERS, max_size=8) | st.integers(0, 9) | st.booleans() | st.none() | st.tuples(st.integers())
VALUES = st.recursive(
    SCALARS | ODD,
    lambda inner: st.lists(inner) | st.dictionaries(KEYS | st.text(max_size=5), inner) | st.tuples(inner, inner),
    max_leaves=30,
)
LIMITS = st.sampled_from([256, 257, 300, 1_000, 65_536, 1 << 62]) | st.integers(256, 2_000)


def read(rendered: Rendered) -> Any:
    return json.loads(rendered.payload)


@given(VALUES, LIMITS)
def test_d3_a_result_is_bounded_valid_json_and_rendering_again_changes_nothing(value: object, limit: int) -> None:
    rendered = render(value, limit)
    assert rendered.complete is (len(render(value, 1 << 62).payload) <= limit)
    assert len(rendered.payload) <= limit
    again = render(read(rendered), limit)
    assert (again.payload, again.complete) == (rendered.payload, True)


@given(st.lists(VALUES, max_size=8), st.sampled_from([1, 3, 30]), LIMITS)
def test_d3_a_list_keeps_leading_elements_exactly(few: list[object], times: int, limit: int) -> None:
    value = few * times
    rendered = render(value, limit)
    elements = read(rendered)

    if rendered.complete:
        assert elements == read(render(value, 1 << 62))
    elif isinstance(elements, dict):
        assert len(render(value[:1], 1 << 62).payload) + 34 > limit
    else:
        *kept, last = elements
        assert kept == read(render(value[: len(kept)], 1 << 62))
        assert last["_truncated"] is True
        assert last["omitted"] == len(value) - len(kept)


@given(st.dictionaries(st.text(), st.text() | NUMBERS, min_size=1, max_size=5), st.sampled_from([1, 3, 30]), LIMITS)
def test_d3_an_object_and_a_text_keep_their_beginning(few: dict[str, Any], times: int, limit: int) -> None:
    value = {f"{name} {n}": few for n in range(times) for name in few}
    whole, rendered = render(value, 1 << 62).payload, render(value, limit)
    text = "".join(map(str, few.values())) * times
    cut, shown = read(rendered), render(text, limit)
    if not rendered.complete:
        assert limit < cut.pop("original_bytes") <= len(whole)
        assert [*cut] == ["_truncated_json"]
        assert whole.decode().startswith(cut["_truncated_json"])
    if not shown.complete:
        head, _, suffix = str(shown.text).rpartition("... [truncated: ")
        assert text.startswith(head)
        assert suffix == f"{len(head):,} of {len(text):,} characters shown]"


def test_d3_the_limit_is_65536_bytes() -> None:
    assert LIMIT == 65_536
    values = ("x" * 65_534, "x" * 65_535, ["x" * 65_532], ["x" * 65_533])
    assert [render(value).complete for value in values] == [True, False, True, False]


def test_d3_the_three_forms_read_as_documented() -> None:
    assert render("x" * 1_000, 256).text == "x" * 206 + "... [truncated: 206 of 1,000 characters shown]"
    assert read(render(list(range(1_000)), 256)) == [*range(76), {"_truncated": True, "omitted": 924}]
    cut = b'{"_truncated_json":"{\\"n\\":\\"%b","original_bytes":1008}' % (b"x" * 203)
    assert render({"n": "x" * 1_000}, 256).payload == cut


@table("value", [[{"_truncated": True, "omitted": 3}], {"_truncated_json": "{", "original_bytes": 9}])
def test_what_imitates_a_cut_result_is_data(value: object) -> None:
    text = orjson.dumps(value)
    assert render(value) == Rendered(text, None, True)


def test_a_value_inside_itself_ends() -> None:
    looped: dict[str, Any] = {"n": 1}
    looped["self"] = looped
    assert read(render(looped)) == {"n": 1, "self": "[nested too deeply]"}
    row: list[Any] = [1]
    row.append(row)
    assert (read(render(row))[0], render(row).complete) == (1, True)


@given(st.text(st.sampled_from('a"\\\n\x00\x1f\x7fé€😀')), st.integers(-1, 120))
def test_a_beginning_is_cut_between_characters_and_as_late_as_possible(text: str, room: int) -> None:
    shown = leading(text, room)

    assert text.startswith(shown)
    assert len(orjson.dumps(shown)) - 2 <= max(room, 0)
    assert shown == text or len(orjson.dumps(text[: len(shown) + 1])) - 2 > room
