"""
The arguments that declarations name.
"""

from typing import Any

import pytest

from guardrails.core.tools.tool import TooManyError, named
from tests.tables import table


@table(
    ("arguments", "names", "expected"),
    [
        ({"path": "a", "other": "b"}, ["path"], [("path", "a")]),
        ({"src_path": "a", "dst_path": "b"}, ["*_path"], [("src_path", "a"), ("dst_path", "b")]),
        ({"edits": [{"path": "a"}, {"path": "b"}]}, ["edits.path"], [("edits.path", "a"), ("edits.path", "b")]),
        ({"edits": {"path": "a"}}, ["path"], []),
        ({"edits": {"path": "a"}}, ["*path"], [("edits.path", "a")]),
        ({"paths": ["a", "b"]}, ["paths"], [("paths", ["a", "b"])]),
        ({"a": [[{"b": 1}]]}, ["a.b"], [("a.b", 1)]),
        ({1: "x"}, ["1"], [("1", "x")]),
        ("free text", ["anything"], [("", "free text")]),
        ("free text", [], []),
        ({}, ["path"], []),
    ],
)
def test_arguments_are_found_by_their_names(arguments: Any, names: list[str], expected: list[tuple[str, Any]]) -> None:
    assert list(named(arguments, names)) == expected


def test_what_is_too_deep_or_too_many_is_refused() -> None:
    deep: Any = {"path": "a"}
    for _ in range(20):
        deep = [deep]
    for arguments in ({"a": deep}, {"a": [{"b": 1}] * 1_001}):
        with pytest.raises(TooManyError):
            list(named(arguments, ["a.b", "a.path"]))
