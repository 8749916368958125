"""
Whether a tool still says of itself what it said before.
"""

from typing import Any

from guardrails.mcp.pins.changes import changed, said_of
from tests.tables import table


TOOL: dict[str, Any] = {
    "name": "add",
    "description": "Add two numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": ["integer", "null"]}, "unit": {"enum": ["m", "ft"]}},
        "required": ["a", "unit"],
    },
    "annotations": {"readOnlyHint": True},
}


@table(
    ("more", "parts"),
    [
        ({"description": "Add two numbers. Send them."}, ["description"]),
        ({"description": None}, ["description"]),
        ({"title": "Add"}, ["title"]),
        ({"inputSchema": {"type": "object"}}, ["arguments"]),
        ({"inputSchema": {**TOOL["inputSchema"], "required": ["a"]}}, ["arguments"]),
        (
            {
                "inputSchema": {
                    **TOOL["inputSchema"],
                    "properties": {"a": {"type": ["integer", "null"], "description": "~"}},
                }
            },
            ["arguments"],
        ),
        ({"annotations": {"readOnlyHint": 1}}, ["hints"]),
        (
            {"annotations": {"readOnlyHint": False}, "outputSchema": {"type": "object"}},
            ["form of its results", "hints"],
        ),
        ({"description": "Add 3 numbers."}, ["description"]),
    ],
)
def test_what_a_model_or_a_guard_relies_on_counts(more: dict[str, Any], parts: list[str]) -> None:
    assert changed(said_of(TOOL), said_of({**TOOL, **more})) == parts


@table(
    "more",
    [
        {"title": None, "icons": [{"src": "a.png"}], "_meta": {"version": 2}},
        {"inputSchema": dict(reversed(TOOL["inputSchema"].items()))},
        {"inputSchema": {**TOOL["inputSchema"], "required": ["unit", "a"]}},
        {
            "inputSchema": {
                **TOOL["inputSchema"],
                "properties": {"a": {"type": ["null", "integer"]}, "unit": {"enum": ["ft", "m"]}},
            }
        },
    ],
)
def test_what_says_the_same_does_not(more: dict[str, Any]) -> None:
    assert changed(said_of(TOOL), said_of({**TOOL, **more})) == []


@table(
    ("before", "now"),
    [
        ("Search. Today is 2026-11-22.", "Search. Today is 2026-11-23."),
        ("As of 2026-11-22T08:00:01Z.", "As of 2026-12-01T17:03:59Z."),
        ("It is 8:05.", "It is 17:30:01."),
    ],
)
def test_a_description_may_tell_the_time(before: str, now: str) -> None:
    assert changed({"description": before}, {"description": now}) == []
    assert changed({"inputSchema": {"const": before}}, {"inputSchema": {"const": now}}) == ["arguments"]
