"""
What every definition of arguments promises: one schema, one check, no exception.
"""

import json
import subprocess
import sys

from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, model_validator

from guardrails.core.arguments import arguments_of
from guardrails.core.guards.validation import advice
from guardrails.core.tool import tool_call
from tests.tables import table


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Guest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1)]
    age: Annotated[int, Field(ge=0, le=150)] | None = None


class Stay(BaseModel):
    check_in: date
    check_out: date
    rooms: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def ends_after_it_begins(self) -> "Stay":
        if self.check_out <= self.check_in:
            raise ValueError("check_out must be after check_in")

        return self


def no_parameters() -> None: ...


def scalars(name: str, count: int = 10, ratio: float = 0.5, flag: bool = False) -> None: ...


def bounded(
    city: Annotated[str, Field(min_length=1, max_length=20)],
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
    price: Annotated[float, Field(ge=0, le=1e6)] | None = None,
) -> None: ...


def choices(order: Literal["price", "stars"], colour: Colour = Colour.RED, level: Literal[1, 2] = 1) -> None: ...


def containers(tags: list[str], scores: dict[str, float], matrix: list[list[int]] | None = None) -> None: ...


def unions(value: int | str, either: list[int] | bool = True) -> None: ...


def models(guest: Guest, others: list[Guest] = []) -> None: ...  # noqa: B006


def dates(start: date, end: date | None = None) -> None: ...


def positional(first: int, /, second: str = "x", *rest: int, third: float = 1.0) -> None: ...


def open_ended(name: str, **limits: int) -> None: ...


def untyped(anything, *, other=3): ...  # type: ignore[no-untyped-def]


def odd_names(json: int, schema: str = "", copy: bool = False, model_config: int = 1, _hidden: int = 0) -> None: ...


FUNCTIONS: list[Callable[..., Any]] = [no_parameters, scalars, bounded, choices, containers, unions, models, dates]
FUNCTIONS += [positional, open_ended, untyped, odd_names]

KINDS = {"n": {"type": "integer"}, "text": {"type": "string"}, "rows": {"type": "array"}}
SCHEMA = {"type": "object", "properties": KINDS, "additionalProperties": True}
DEFINITIONS: list[Any] = [Stay, Guest, *FUNCTIONS, SCHEMA]


POOL: list[Any] = [
    *(None, True, False, 0, 1, 1.0, 7, 150, -1, 0.5, 1e6, "", "x", "x" * 21, "red", "price", "2025-01-02", "2025-01-01"),
    *([], ["a"], [1], [[1]], {}, {"a": 1}, {"a": 0.5}, {"name": "A"}, {"name": "A", "age": 3}, [{"name": "B"}], "é"),
]  # fmt: skip
"""Values of which each property of the schemas here takes some."""


@table("definition", FUNCTIONS)
@given(data=st.data())
def test_a7_what_the_model_sees_is_what_the_check_accepts(definition: Callable[..., Any], data: st.DataObject) -> None:
    arguments = arguments_of(definition)
    schema = arguments.schema()
    loose = jsonschema_rs.validator_for({**schema, "required": []}, validate_formats=True)
    names = (*schema["properties"], "more")
    fits = {name: [one for one in POOL if loose.is_valid({name: one})] for name in names}
    drawn = {name: st.sampled_from(some) for name, some in fits.items() if some}
    required = {name: drawn.pop(name) for name in schema.get("required", ())}
    sent = data.draw(st.fixed_dictionaries(required, optional=drawn))
    assert jsonschema_rs.is_valid(schema, sent, validate_formats=True)
    coerced, problems = arguments.check(sent)
    assert problems == ()
    assert arguments.check(coerced) == (coerced, ())


class Hostile:
    """
    Raises wherever it is looked at.
    """

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    __str__ = __repr__ = __len__ = __iter__ = __bool__ = __getattribute__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


class Shouting(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(name)


class Loud(metaclass=Shouting):
    pass


def _nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"name": value, "tags": [value], "guest": value, "kids": [value]}
    return value


def _cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {"name": "x"}
    value |= dict.fromkeys(("guest", "tags", "kids", "anything", "limits"), value)
    return value


class Node(BaseModel):
    name: Any = None
    kids: "list[Node] | Node | None" = None


FIELDS = ("name", "city", "text", "anything", "count", "ratio", "limit", "rooms", "n", "check_in", "tags", "rows")
"""Of all definitions."""
HOSTILE: list[Any] = [
    *(dict.fromkeys(FIELDS, one) for one in (float("nan"), float("-inf"), "\ud800", "x" * 10_000_000, 10**5_000, 1e300, list(range(200_000)))),
    *(dict.fromkeys(FIELDS, one) for one in ({1, 2}, b"\xff\xfe", {1: 2, (1, 2): b"x"}, Loud())),
    dict.fromkeys(("name", "city", "anything", "n", "rooms", "rows"), Hostile()),
    _nested(2_000), _cyclic(), {"\ud800": 1, "x" * 10_000_000: 1, 1: 2, None: 3, (1, 2): 4}, {f"key{n}": n for n in range(20_000)},
    Hostile(), object(), Stay, scalars, "[" * 100_000, "[" + " " * 2_000_000, "1" * 5_000,
]  # fmt: skip


@table("definition", [*DEFINITIONS, Node])
@pytest.mark.parametrize("at", range(len(HOSTILE)))
def test_d4_no_arguments_make_the_check_raise(definition: Any, at: int) -> None:
    problems = tool_call("t", HOSTILE[at], "-", arguments_of(definition)).problems
    assert len(problems) <= 20
    assert all(len(problem.message) <= 200 and len(problem.field) <= 1_000 for problem in problems)
    json.dumps(problems, ensure_ascii=False).encode()
    action, hint = advice(problems, frozenset({"name"})) if problems else ("fix_arguments", "")
    assert action in {"ask_user", "fix_arguments"}
    assert len(hint) < 3_000


@table("definition", DEFINITIONS)
def test_the_schema_is_one_that_providers_take(definition: Any) -> None:
    arguments = arguments_of(definition)
    schema = arguments.schema()

    assert schema["type"] == "object"
    assert isinstance(schema["properties"], dict)
    assert schema.keys().isdisjoint({"anyOf", "oneOf", "allOf", "not", "enum", "$ref", "$schema", "title"})
    assert jsonschema_rs.meta.is_valid(schema)
    assert json.dumps(schema) == json.dumps(arguments_of(definition).schema())

    schema["properties"]["broken"] = 1
    assert "broken" not in arguments.schema()["properties"]


# In a child with little memory and time: an abort is a failed test.
CHILD = """
import json, resource
from pydantic import BaseModel
from guardrails.core.arguments import arguments_of

class Given(BaseModel, extra="forbid"):
    rows: list[int] = []
    unions: list[int | bool | list[int]] = []
    inner: list[list[int]] = []

resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (300 << 20),) * 2)
item = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
fields = {"rows": {"type": "array", "items": {"type": "integer"}}, "unions": {"type": "array", "items": item}}
fields["inner"] = {"type": "array", "items": fields["rows"]}
lacking = {"type": "object", "required": [f"k{n}" for n in range(300)]}
schema = {"type": "object", "properties": fields | {"x": {"type": "array", "items": lacking}}, "additionalProperties": False}
wrong = [
    {"rows": ["a"] * 100_000},
    {"rows": [1] * 20_000 + ["a"] * 100_000},
    {"unions": ["a"] * 100_000},
    {"inner": [["a"] * 1_000] * 300},
    {"x": [{}] * 9_000},
    {f"k{n}": 0 for n in range(100_000)},
]
print(json.dumps([len(arguments_of(kind).check(given)[1]) for kind in (Given, schema) for given in wrong]))
"""


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="limits and sizes of Linux")
def test_what_fits_nowhere_is_told_in_bounded_time_and_space() -> None:
    ran = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-500:]
    assert all(0 < problems <= 20 for problems in json.loads(ran.stdout))
