"""
Arguments whose check would be out of all proportion to their size.
"""

import json
import subprocess
import sys

from typing import Annotated, Any, Literal

import pytest

from pydantic import BaseModel, Field

from guardrails.core.arguments import arguments_of
from guardrails.core.arguments.visits import LARGE


NODE = {"$ref": "#/$defs/node"}


def alternatives(*branches: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": NODE}, "$defs": {"node": {"anyOf": list(branches)}}}


def branch(**more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": NODE}, "required": ["x"], **more}


EXPONENTIAL = alternatives(branch(), branch(title="again"), {"type": "string"})


def nested(depth: int, innermost: Any = 0) -> Any:
    for _ in range(depth):
        innermost = {"x": innermost}

    return innermost


class Leaf(BaseModel):
    kind: Literal["leaf"] = "leaf"
    value: int


class Both(BaseModel):
    kind: Literal["both"] = "both"
    left: "Expression"
    right: "Expression"


class Either(BaseModel):
    kind: Literal["either"] = "either"
    left: "Expression"
    right: "Expression"


Expression = Annotated[Leaf | Both | Either, Field(discriminator="kind")]


class A(BaseModel):
    x: "A | B | str"


class B(BaseModel):
    x: "A | B | str"
    y: int = 0


class Listed(BaseModel):
    next: "Listed | None" = None
    more: "list[Listed]" = []


class Given(BaseModel, extra="forbid"):
    numbers: list[int] = []
    unions: list[int | bool | list[int]] = []
    named: dict[str, int] = {}
    inner: list[list[int]] = []
    x: A | B | str = ""
    expression: Expression | None = None
    listed: Listed | None = None


# Each in a child with little memory and time: an abort is one failed test.
CHILD = """
import json, resource, sys
from tests.core.arguments.test_visits import EXPONENTIAL, Given, branch, alternatives, nested
from guardrails.core.arguments import arguments_of
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (300 << 20),) * 2)
strings = {"type": "array", "items": {"type": "string"}}
union = {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "boolean"}]}}
arrays = {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "null"}}]}
many = 1_000_000
chain = {**{str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}] * 20} for n in range(6)}, "6": {"type": "integer"}}
lacking = {"type": "object", "required": [f"k{n}" for n in range(300)]}
depending = {"type": "object", "dependentRequired": {"a": [f"k{n}" for n in range(300)]}}
cases = {
    "alternatives in each other": (EXPONENTIAL, {"x": nested(200)}),
    "the same with oneOf": ({**EXPONENTIAL, "$defs": {"node": {"oneOf": EXPONENTIAL["$defs"]["node"]["anyOf"]}}}, {"x": nested(60)}),
    "alternatives found by an id": ({"$id": "http://a/b", "properties": {"x": {"anyOf": [{"$ref": "http://a/b"}, {"$ref": "/b"}]}}, "required": ["y"]}, nested(60, {})),
    "references to references": ({"properties": {"x": {"$ref": "#/$defs/0"}}, "$defs": chain}, {"x": "a"}),
    "many missing fields": ({"properties": {"x": {"type": "array", "items": lacking}}}, {"x": [{}] * 9_000}),
    "many missing fields by others": ({"properties": {"x": {"type": "array", "items": depending}}}, {"x": [{"a": 1}] * 9_000}),
    "many wrong items": ({"properties": {"x": strings}}, {"x": [0] * many}),
    "many wrong items behind right ones": ({"properties": {"x": strings}}, {"x": ["a"] * 9_000 + [0] * many}),
    "many items of no alternative": ({"properties": {"x": union}}, {"x": [0] * many}),
    "an array of no alternative": ({"properties": {"x": arrays}}, {"x": [0] * many}),
    "many unknown names": ({"properties": {"a": {}}, "additionalProperties": False}, {f"k{n}": 0 for n in range(300_000)}),
    "nested wrong items": ({"properties": {"x": {"type": "array", "items": strings}}}, {"x": [[0] * 1_000] * 1_000}),
    "models in each other": (Given, {"x": nested(200)}),
    "many wrong numbers": (Given, {"numbers": ["a"] * many}),
    "many wrong numbers behind right ones": (Given, {"numbers": [1] * 20_000 + ["a"] * many}),
    "many wrong unions": (Given, {"unions": ["a"] * many}),
    "many wrong values": (Given, {"named": {f"k{n}": "a" for n in range(300_000)}}),
    "rows of wrong numbers": (Given, {"inner": [["a"] * 1_000] * 1_000}),
    "many unknown fields": (Given, {f"k{n}": 0 for n in range(300_000)}),
}
kind, given = cases[sys.argv[1]]
print(json.dumps(arguments_of(kind).check(given)[1]))
"""
CASES = [line.split('"')[1] for line in CHILD.splitlines() if line.startswith('    "')]


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="limits and sizes of Linux")
@pytest.mark.parametrize("case", CASES)
def test_what_fits_nowhere_is_told_in_bounded_time_and_space(case: str) -> None:
    ran = subprocess.run([sys.executable, "-c", CHILD, case], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr[-500:]
    assert json.loads(ran.stdout)


@pytest.mark.parametrize("size", [50, LARGE * 5])
def test_a_wrong_item_is_named_however_many_there_are(size: int) -> None:
    wrong = [1] * size + ["wrong"]
    schema = {"type": "object", "properties": {"numbers": {"type": "array", "items": {"type": "integer"}}}}

    assert [problem.field for problem in arguments_of(schema).check({"numbers": wrong})[1]] == [f"numbers.{size}"]
    assert [problem.field for problem in arguments_of(Given).check({"numbers": wrong})[1]] == [f"numbers.{size}"]


def expression(depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": "leaf", "value": 1}

    for level in range(depth):
        made = {"kind": ("both", "either")[level % 2], "left": made, "right": {"kind": "leaf", "value": "2"}}

    return made


@pytest.mark.parametrize(
    "given",
    [
        {"expression": expression(60)},
        {"x": nested(10, "text")},
        {"listed": {"more": [{"more": [{}] * 100}] * 100}},
        {"numbers": ["1"] * (LARGE * 3), "named": {str(n): n for n in range(LARGE)}},
    ],
    ids=["a tagged union", "alternatives", "a tree", "many numbers"],
)
def test_what_is_deep_or_large_and_right_passes(given: dict[str, Any]) -> None:
    checked, problems = arguments_of(Given).check(given)

    assert problems == ()
    assert isinstance(checked, dict)
