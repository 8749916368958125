"""
Looking into results.
"""

from collections import UserDict
from types import SimpleNamespace
from typing import Any

from guardrails.core.outcome.result_views import (
    MISSING,
    PARSE_CHARS,
    SCAN_CHARS,
    as_number,
    first_value_at,
    is_found,
    is_mcp_error,
    is_same,
    mcp_text,
    says_something,
    value_at,
    views_of,
)
from tests.tables import table


TREE = {"a": {"b": [10, {"c": None}]}, "": 1, "1": "one"}


@table(
    ("path", "value"),
    [
        ("", TREE),
        ("a.b.0", 10),
        ("a.b.1.c", None),
        ("1", "one"),
        ("a.b.2", MISSING),
        ("a.b.-1", MISSING),
        ("a.b.x", MISSING),
        ("a.b.0.c", MISSING),
        ("z", MISSING),
        ("a." + "9" * 5000, MISSING),
    ],
)
def test_a_dotted_path_leads_to_a_value(path: str, value: object) -> None:
    assert value_at(TREE, path) == value
    assert value_at(UserDict(TREE), path) == value


def test_the_first_structure_that_has_the_path_counts() -> None:
    assert first_value_at(({"b": 1}, {"a": 2}, {"a": 3}), "a") == 2
    assert first_value_at((), "a") is MISSING


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@table(
    ("value", "is_error", "words"),
    [
        ({"isError": True, "content": [text("no"), {"type": "image"}, text("way")]}, True, "no\nway"),
        ({"isError": False, "content": [text("no")]}, False, "no"),
        ({"isError": True, "content": []}, True, None),
        ({"isError": True, "content": "no"}, False, None),
        ({"isError": True}, False, None),
        ({"isError": "true", "content": []}, False, None),
        ({"isError": 1, "content": []}, False, None),
        (SimpleNamespace(isError=True, content=[SimpleNamespace(type="text", text="no")]), True, "no"),
        (SimpleNamespace(is_error=True, content=[text("no")]), True, "no"),
        (SimpleNamespace(is_error=False, content=[]), False, None),
        (["isError"], False, None),
        (None, False, None),
    ],
)
def test_an_mcp_result_is_known_by_the_shape_of_its_protocol(value: Any, is_error: bool, words: str | None) -> None:
    assert is_mcp_error(value) is is_error
    assert mcp_text(value) == words


def test_an_object_that_fails_when_looked_at_is_no_mcp_error() -> None:
    class Broken:
        @property
        def isError(self) -> bool:  # noqa: N802
            raise OSError

    assert not is_mcp_error(Broken())


@table(
    ("value", "words", "views"),
    [
        ({"a": 1}, None, ({"a": 1},)),
        ('{"a": 1}', '{"a": 1}', ({"a": 1},)),
        ("[1]", "[1]", ([1],)),
        ("{a", "{a", ()),
        ("text", "text", ()),
        ("[" * 100_000, "[" * 100_000, ()),
        ('{"a": "' + "x" * PARSE_CHARS + '"}', '{"a": "' + "x" * PARSE_CHARS + '"}', ()),
        ({"structuredContent": {"b": 2}}, "{}", ({"b": 2}, {}, {"structuredContent": {"b": 2}})),
        (7, None, (7,)),
    ],
)
def test_fields_are_looked_for_in_structures_and_in_json_texts(value: Any, words: str | None, views: Any) -> None:
    assert views_of(value, words) == views


@table(
    ("value", "number"),
    [
        (1, 1),
        (1.5, 1.5),
        ("400", 400),
        ("4e2", None),
        (True, None),
        (None, None),
        (10**400, None),
        ("-1", None),
        ([], None),
    ],
)
def test_numbers_may_be_written_as_text(value: Any, number: float | None) -> None:
    assert as_number(value) == number


@table(
    ("value", "wanted", "same"),
    [(1, 1.0, True), (1, True, False), (True, True, True), (False, 0, False), ("1", 1, False), ("a", "a", True)],
)
def test_true_is_not_one(value: Any, wanted: Any, same: bool) -> None:
    assert is_same(value, wanted) is same


@table(
    ("value", "says"),
    [(None, False), (False, False), ("", False), ([], False), ({}, False), (0, False), ("x", True), ({"a": 1}, True)],
)
def test_an_empty_field_says_nothing(value: Any, says: bool) -> None:
    assert says_something(value) is says


def test_a_pattern_sees_only_the_head_of_a_text() -> None:
    assert is_found("b", "a" * (SCAN_CHARS - 1) + "b")
    assert not is_found("b", "a" * SCAN_CHARS + "b")
