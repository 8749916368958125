"""
What a short answer says, in whatever it is wrapped.
"""

import json

from collections.abc import Callable
from typing import Any

import orjson

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Tool
from guardrails.core.repetition.answers import carried, said_by
from guardrails.core.repetition.results import LITTLE, NOTHING, ZERO, emptiness
from guardrails.core.repetition.sketch import sketch_of
from guardrails.core.tools.tool_call import tool_call
from guardrails.core.values.types import ToolCall
from tests.core.guards.repeats.test_loops import said, session
from tests.tables import table


Form = Callable[[Any], Any]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


FORMS: dict[str, Form] = {
    "an object": lambda value: value,
    "JSON text": _text,
    "JSON text in lines": lambda value: value if isinstance(value, str) else json.dumps(value, indent=2),
    "a fenced block": lambda value: (
        value if not isinstance(value, (dict, list)) else f"```json\n{json.dumps(value)}\n```"
    ),
    "Python's text": lambda value: value if isinstance(value, str) else repr(value),
    "blocks of MCP": lambda value: [{"type": "text", "text": _text(value)}],
    "a result of MCP": lambda value: {"content": [{"type": "text", "text": _text(value)}], "isError": False},
    "an SDK's object": lambda value: {
        "meta": None,
        "content": [{"type": "text", "text": _text(value), "annotations": None, "meta": None}],
        "structured_content": None,
        "is_error": False,
        "result_type": "complete",
    },
    "an older SDK's object": lambda value: {
        "meta": None,
        "content": [{"type": "text", "text": _text(value), "annotations": None, "meta": None}],
        "structuredContent": {"result": value},
        "isError": False,
    },
    "structured content": lambda value: {
        "content": [{"type": "text", "text": _text(value)}],
        "structuredContent": {"result": value},
        "isError": False,
    },
}
EMPTY: list[Any] = [
    [],
    {},
    {"results": []},
    {"items": [], "total": 0},
    {"query": "inn", "hits": [], "page": 1, "took_ms": 12},
    {"status": "success", "data": []},
    {"results": [], "message": "No hotels found"},
    {"took": 3, "timed_out": False, "hits": {"total": {"value": 0}, "hits": []}},
    "No results found.",
    "[]",
]
LITTLE_ANSWERS: list[Any] = [
    False,
    True,
    0,
    7,
    "no",
    "ok",
    "up",
    "not found",
    "No table is free at 18:30.",
    {"available": False},
    {"status": "up"},
    {"count": 0},
    {"id": 7, "active": False},
    {"data": {"enabled": False, "rollout": 0}},
    {"read": True, "write": False, "delete": False},
    {"status": "ok", "checks": {"db": "ok", "cache": "ok"}, "took_ms": 4, "request_id": "ab12"},
    {"errors": []},
]
FULL: list[Any] = [
    ["Fuji Inn"],
    [{"id": 7, "title": "Stay in Shibuya"}],
    {"hotels": [{"name": "Fuji Inn"}], "total": 1},
    {"name": "Fuji Inn", "price": 120, "stars": 3},
    "The service is set up in three steps: the database, the users, and last of all the web server.",
    "name: Fuji Inn\nprice: 120",
    {"text": "The service is set up in three steps: the database, the users, and last of all the web server."},
]


def looked_at(tool: str = "get_it", arguments: Any = None) -> ToolCall:
    call = tool_call(tool, arguments or {"q": "x"}, "1", None)
    sketch_of(call)
    return call


def brings(value: Any, call: ToolCall | None = None) -> int:
    return emptiness(orjson.dumps(value), call)


@table("form", FORMS.values())
@table("value", EMPTY)
def test_nothing_is_nothing_in_whatever_it_stands(value: Any, form: Form) -> None:
    assert brings(form(value)) == NOTHING


@table("form", FORMS.values())
@table("value", LITTLE_ANSWERS)
def test_a_flag_or_a_few_values_are_little_in_whatever_they_stand(value: Any, form: Form) -> None:
    assert brings(form(value), looked_at()) in (1, LITTLE, 5)
    assert brings(form(value)) != NOTHING


@table("form", FORMS.values())
@table("value", FULL)
def test_a_list_or_a_text_is_neither(value: Any, form: Form) -> None:
    assert brings(form(value), looked_at()) == 0


def test_no_text_is_no_hit_of_a_search_and_a_file_or_a_command_that_is_done_else() -> None:
    assert brings("", looked_at("search_code")) == brings("", looked_at("mcp__repo__findFiles")) == NOTHING
    assert brings([{"type": "text", "text": ""}], looked_at("grep")) == NOTHING
    for tool in ("bash", "read_file", "search_replace", "find_and_delete", "research"):
        assert brings("", looked_at(tool)) == 1


@table(
    ("tool", "value", "idle"),
    [
        ("edit_file", "0 replacements", True),
        ("str_replace_editor", "No changes were made to src/a.py.", True),
        ("replace_in_file", {"replacements": 0}, True),
        ("apply_patch", {"success": True, "message": "0 hunks applied", "changed": False, "path": "a.py"}, True),
        ("edit_file", [{"type": "text", "text": "Replaced 0 occurrences in a.py"}], True),
        ("edit_file", "nothing to change", True),
        ("edit_file", "No changes were made to the file a.py", True),
        ("update_file", "0 rows affected", True),
        ("edit_file", "a.py is unchanged", True),
        ("edit_file", "The file was not modified.", True),
        ("edit_file", "Text not found in a.py", True),
        ("apply_patch", {"hunks_applied": 0}, True),
        ("edit_file", "a.py changed", False),
        ("edit_file", "total renamed, imports unchanged", False),
        ("edit_file", "1 row affected", False),
        ("edit_file", "No errors found", False),
        ("edit_file", "1 replacement", False),
        ("edit_file", "0 replacements in a.py, 3 in b.py", False),
        ("edit_file", "No changes to the imports; renamed total to sum.", False),
        ("edit_file", {"replacements": 0, "inserted": 3}, False),
        ("edit_file", {"replacements": 0, "created": True}, False),
        ("edit_file", {"ok": True}, False),
        ("edit_file", [], False),
        ("bash", "0 replacements", False),
        ("run_sql", {"affected": 0}, False),
    ],
)
def test_only_an_edit_that_says_nothing_else_changed_nothing(tool: str, value: Any, *, idle: bool) -> None:
    assert (brings(value, looked_at(tool, {"path": "a.py"})) == ZERO) is idle


SCALARS = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.sampled_from(["ok", "no", "off", "x7", "up"])
LITTLE_JSON = SCALARS | st.dictionaries(st.sampled_from(["enabled", "count", "status", "id", "n"]), SCALARS, max_size=2)
VALUES = (
    st.text(max_size=12) | st.integers() | st.uuids().map(str) | st.datetimes().map(lambda at: f"{at.isoformat()}Z")
)


@given(
    answer=LITTLE_JSON.filter(lambda value: value != {}),
    form=st.sampled_from(sorted(FORMS)),
    tool=st.sampled_from(["get_flag", "check", "is_free", "query_stock", "find_user"]),
    values=st.lists(VALUES, min_size=2, max_size=30, unique=True),
    read_only=st.booleans(),
)
def test_a_scan_of_scalar_answers_is_never_refused(
    answer: Any, form: str, tool: str, values: list[Any], *, read_only: bool
) -> None:
    one = session(lambda: 1_800_000_000.0, tools=[Tool(name=tool, read_only=read_only)])
    calls = [(tool, {"env": "prod", "app": "shop", "of": value}, FORMS[form](answer)) for value in values]
    assert all(code is None or code.startswith("nudge") for code in said(one, *calls))


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
)


@given(NESTED, st.integers(0, 12))
def test_no_answer_makes_it_fail(value: Any, layers: int) -> None:
    payload = orjson.dumps(value)
    for _ in range(layers):
        payload = orjson.dumps(payload.decode())
    said_by(carried(payload))
    emptiness(payload, looked_at())


def test_an_object_with_fields_of_the_same_names_keeps_them() -> None:
    page = {"content": [], "meta": {"page": 2}}
    assert carried(orjson.dumps(page)) == page
