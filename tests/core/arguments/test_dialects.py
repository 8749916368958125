"""
A7: what models and strangers write otherwise than draft 2020-12, and is read all the same.
"""

import json
import logging

from typing import Any

import pytest

from pydantic import BaseModel

from guardrails import Policy, Tool
from guardrails.core.arguments import arguments_of, foreign_arguments
from guardrails.mcp.calls import ServerArguments
from tests.tables import table


EDITS = {
    "type": "object",
    "properties": {
        "edits": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        "note": {"type": "string"},
        "either": {"anyOf": [{"type": "array"}, {"type": "string"}]},
        "maybe": {"anyOf": [{"type": "object"}, {"type": "null"}]},
    },
}


class Edit(BaseModel):
    n: int = 0


class Edits(BaseModel):
    edits: list[Edit] = []
    note: str = ""
    either: list[int] | str = ""
    maybe: dict[str, int] | None = None


def edits(
    edits: list[Edit] = [],  # noqa: B006
    note: str = "",
    either: list[int] | str = "",
    maybe: dict[str, int] | None = None,
) -> None: ...


CHECKS = {
    "a schema": arguments_of(EDITS),
    "a server's schema": ServerArguments(EDITS),
    "a model": arguments_of(Edits),
    "a function": arguments_of(edits),
}


@pytest.mark.parametrize("kind", CHECKS)
@table(
    ("sent", "plain"),
    [
        ({"edits": '[{"n": 1}]'}, {"edits": [{"n": 1}]}),
        ({"edits": ['{"n": 1}', {"n": 2}]}, {"edits": [{"n": 1}, {"n": 2}]}),
        ({"edits": '["{\\"n\\": 1}"]'}, {"edits": [{"n": 1}]}),
        ({"maybe": ' {"a": 1}'}, {"maybe": {"a": 1}}),
        ({"note": "[1]", "either": "[1]"}, {"note": "[1]", "either": "[1]"}),
        ('{"edits": []}', {"edits": []}),
    ],
)
def test_json_text_is_read_once_where_the_schema_says_so(sent: Any, plain: Any, kind: str) -> None:
    checked, problems = CHECKS[kind].check(sent)
    assert problems == ()
    assert checked == CHECKS[kind].check(plain)[0]


@pytest.mark.parametrize("kind", ["a schema", "a model", "a function"])
@table(
    ("sent", "field"),
    [
        ({"edits": "[1"}, "edits"),
        ({"edits": "{}"}, "edits"),
        ({"edits": json.dumps(json.dumps([]))}, "edits"),
        ({"edits": '[{"n": "x"}]'}, "edits.0.n"),
    ],
)
def test_text_that_does_not_fit_is_told_and_stays(sent: Any, field: str, kind: str) -> None:
    checked, problems = CHECKS[kind].check(sent)
    assert checked is sent
    assert [problem.field for problem in problems] == [field]


def test_a_call_that_was_encoded_twice_is_the_same_call() -> None:
    session = Policy([], tools=[Tool(name="edit", parameters=EDITS)]).session("s")
    once = session.decide("edit", {"edits": [{"n": 1}]}).call
    assert session.decide("edit", {"edits": '[{"n": 1}]'}).call.signature == once.signature
    assert session.decide("edit", json.dumps(json.dumps({"edits": [{"n": 1}]}))).call.signature == once.signature


@table(
    ("schema", "right", "wrong"),
    [
        ({"type": "string", "nullable": True}, [None, "x"], [1]),
        ({"enum": ["a"], "nullable": True}, [None, "a"], ["b"]),
        ({"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}, [[1, "x"], [1, "x", 2]], [["x"]]),
        ({"type": "array", "items": [{"type": "integer"}], "additionalItems": False}, [[1]], [[1, 2]]),
        ({"type": "array", "prefixItems": [{"type": "integer"}], "items": False}, [[1]], [[1, 2]]),
        ({"type": "integer", "required": True}, [1], [None, "x"]),
        ({"type": "integer", "required": False}, [1], ["x"]),
        ({"default": {"nullable": True, "required": True}, "enum": [{"nullable": True}]}, [{"nullable": True}], [None]),
    ],
)
def test_habits_of_older_dialects_are_read(schema: Any, right: list[Any], wrong: list[Any]) -> None:
    arguments = arguments_of({"type": "object", "properties": {"a": schema}})
    assert [given for given in right if arguments.check({"a": given})[1]] == []
    assert [given for given in wrong if not arguments.check({"a": given})[1]] == []


def test_a_required_property_is_required_and_a_named_older_draft_keeps_its_tuples() -> None:
    fields = {"a": {"type": "integer", "required": True}, "b": {}, "required": {"required": True, "nullable": True}}
    arguments = arguments_of({"type": "object", "properties": fields, "required": ["b"]})
    assert arguments.schema()["required"] == ["a", "required", "b"]
    assert [problem.field for problem in arguments.check({})[1]] == ["a", "required", "b"]
    items, draft = {"type": "array", "items": [{"type": "integer"}]}, "http://json-schema.org/draft-07/schema#"
    arguments = arguments_of({"$schema": draft, "type": "object", "properties": {"a": items}})
    assert [bool(arguments.check({"a": each})[1]) for each in ([1], ["x"])] == [False, True]


def test_a_strangers_schema_that_is_none_is_one_warning_and_no_check(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            arguments = foreign_arguments("bad", {"type": "object", "properties": {"a": {"type": "nope"}}})
    assert caplog.text.count("the arguments of `bad` are not checked: ") == 1
    assert arguments is not None
    assert arguments.schema() == {"type": "object", "properties": {"a": {}}}
    assert arguments.check({"a": 1})[1] == ()
    assert foreign_arguments("none", None) is None
    assert foreign_arguments("odd", {"type": "array"}) is None
