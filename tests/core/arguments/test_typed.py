"""
pydantic models as definitions: coerced, plain data, no booleans as numbers.
"""

from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from typing import Annotated, Any

import pytest

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, RootModel, field_validator

from guardrails.core.arguments import arguments_of
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.types import Problem
from tests.tables import table


NOT_A_FLAG = "must be a number, not a boolean"


class Level(IntEnum):
    LOW = 1


@dataclass
class Point:
    x: int
    y: int = 0


class Guest(BaseModel):
    name: str
    age: int = 30
    born: date | None = None


class Booking(BaseModel):
    guest: Guest
    others: list[Guest] = []
    at: Point | None = None
    by_name: dict[str, Guest] = {}
    pair: tuple[Guest, int] | None = None
    ids: RootModel[list[Guest]] | None = None
    level: Level = Level.LOW
    anything: Any = None


class Search(BaseModel):
    """Find hotels."""

    city: Annotated[str, Field(min_length=1, description="where")]
    limit: Annotated[int, Field(ge=0, le=50)] = 10
    day: date = date(2025, 1, 1)


@table(
    ("sent", "coerced"),
    [
        ({"city": "x"}, {"city": "x", "limit": 10, "day": date(2025, 1, 1)}),
        ({"city": "x", "limit": "10"}, {"city": "x", "limit": 10, "day": date(2025, 1, 1)}),
        ({"city": "x", "limit": 10.0}, {"city": "x", "limit": 10, "day": date(2025, 1, 1)}),
        ({"city": "x", "day": "2025-01-02"}, {"city": "x", "limit": 10, "day": date(2025, 1, 2)}),
        ({"city": "x", "other": 1}, {"city": "x", "limit": 10, "day": date(2025, 1, 1)}),
        (Search(city="x", limit=3), {"city": "x", "limit": 3, "day": date(2025, 1, 1)}),
    ],
)
def test_arguments_that_mean_the_same_become_the_same_and_those_of_the_caller_stay(sent: Any, coerced: Any) -> None:
    arguments, before = arguments_of(Search), dict(sent)
    made: Any = arguments.check(sent)[0]
    assert made == coerced
    made["city"] = "y"
    assert dict(sent) == before
    assert arguments.check(coerced) == (coerced, ())


def test_nested_models_become_plain_data() -> None:
    guest = {"name": "A", "age": "3", "born": "2020-01-01"}
    plain = {"name": "A", "age": 3, "born": date(2020, 1, 1)}
    sent: dict[str, Any] = {
        "guest": guest,
        "others": [guest],
        "at": {"x": "1"},
        "by_name": {"a": guest},
        "pair": [guest, "2"],
    }
    coerced: dict[str, Any] = {
        "guest": plain,
        "others": [plain],
        "at": {"x": 1, "y": 0},
        "by_name": {"a": plain},
        "pair": (plain, 2),
    }
    sent |= {"ids": [guest], "anything": {"a": [1]}}
    coerced |= {"ids": [plain], "anything": {"a": [1]}, "level": Level.LOW}
    arguments = arguments_of(Booking)

    assert arguments.check(sent) == (coerced, ())
    assert arguments.check(coerced) == (coerced, ())


class Aliased(BaseModel):
    from_: str = Field(alias="from")
    limit: int = Field(1, validation_alias=AliasChoices("max", "top"))
    inner: "list[Aliased]" = []


class AliasedPlain(BaseModel):
    from_: str = Field(alias="from")
    limit: int = Field(1, alias="max")


@table("definition", [Aliased, AliasedPlain])
def test_the_model_sees_aliases_and_the_tool_gets_names(definition: type[BaseModel]) -> None:
    arguments = arguments_of(definition)
    coerced, problems = arguments.check({"from": "a", "max": "3"})

    assert list(arguments.schema()["properties"])[:2] == ["from", "max"]
    assert problems == ()
    assert coerced == {"from_": "a", "limit": 3} | ({"inner": []} if definition is Aliased else {})
    assert arguments.check(coerced) == (coerced, ())
    assert arguments.check({"from": "a", "max": True})[1] == (Problem("max", NOT_A_FLAG, "type"),)
    assert arguments.check({"from": "a", "limit": True})[1] == (Problem("limit", NOT_A_FLAG, "type"),)
    assert arguments.check({"from": "a", "max": "x"})[1] == (Problem("max", "must be a valid integer", "type"),)


class Flags(BaseModel):
    either: bool | int = 0
    count: int = 0
    ratio: float = 0
    or_text: int | str = 0
    level: Level = Level.LOW


@table("field", ["count", "ratio", "or_text", "level"])
def test_a_boolean_is_no_number(field: str) -> None:
    assert arguments_of(Flags).check({field: True})[1] == (Problem(field, NOT_A_FLAG, "type"),)
    assert arguments_of(Flags).check({"either": True})[1] == ()


class Broken(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def look_up(cls, name: str) -> str:
        return {"a": "b"}[name]


def test_a_validator_that_fails_is_a_problem_without_its_text() -> None:
    assert arguments_of(Broken).check({"name": "secret"})[1] == (
        Problem("", "the arguments cannot be checked (`KeyError`)", "value"),
    )


class Foreign:
    pass


class Unschematic(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    value: Foreign


class Undefined(BaseModel):
    value: "Nowhere"  # type: ignore[name-defined]  # noqa: F821


class Listed(RootModel[list[int]]):
    pass


@table(
    ("definition", "message"),
    [
        (Unschematic, "the arguments of `Unschematic` have no JSON Schema: "),
        (Undefined, "the arguments of `Undefined` have no JSON Schema: "),
        (Listed, "`Listed` is a `RootModel`; arguments need names"),
    ],
)
def test_a_model_without_a_schema_is_refused_when_made(definition: type[BaseModel], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        arguments_of(definition)
