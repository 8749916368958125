"""
pydantic models as definitions: coerced, plain data, no booleans as numbers; and their errors in words for a model.
"""

import json

from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
import yaml

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, RootModel, field_validator, model_validator

from guardrails.core.arguments import arguments_of
from guardrails.core.tool import tool_call
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.types import Problem
from tests.core.arguments.test_arguments import Stay
from tests.tables import table


MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text())
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


X = {"city": "x", "limit": 10, "day": date(2025, 1, 1)}


@table(("sent", "coerced"), [
    ({"city": "x"}, X), ({"city": "x", "limit": "10"}, X), ({"city": "x", "limit": 10.0}, X), ({"city": "x", "other": 1}, X),
    ({"city": "x", "day": "2025-01-02"}, {**X, "day": date(2025, 1, 2)}), (Search(city="x", limit=3), {**X, "limit": 3}),
])  # fmt: skip
def test_arguments_that_mean_the_same_become_the_same_and_those_of_the_caller_stay(sent: Any, coerced: Any) -> None:
    arguments, before = arguments_of(Search), dict(sent)
    made: Any = tool_call("t", sent, "-", arguments).arguments
    assert made == coerced
    made["city"] = "y"
    assert dict(sent) == before
    assert arguments.check(coerced) == (coerced, ())


def test_nested_models_become_plain_data() -> None:
    def booking(guest: Any, number: Any, pair: Any, at: Any) -> dict[str, Any]:
        made = {"guest": guest, "others": [guest], "by_name": {"a": guest}, "ids": [guest], "anything": {"a": [1]}}
        return {**made, "pair": pair([guest, number]), "at": {"x": number, **at}}

    sent = booking({"name": "A", "age": "3", "born": "2020-01-01"}, "2", list, {})
    coerced = booking({"name": "A", "age": 3, "born": date(2020, 1, 1)}, 2, tuple, {"y": 0}) | {"level": Level.LOW}
    arguments = arguments_of(Booking)
    assert arguments.check(sent) == arguments.check(coerced) == (coerced, ())


class Aliased(BaseModel):
    from_: str = Field(alias="from")
    limit: int = Field(1, validation_alias=AliasChoices("max", "top"))
    inner: "list[Aliased]" = []


class AliasedPlain(BaseModel):
    from_: str = Field(alias="from")
    limit: int = Field(1, alias="max")


@table(("definition", "more"), [(Aliased, {"inner": []}), (AliasedPlain, {})])
def test_the_model_sees_aliases_and_the_tool_gets_names(definition: type[BaseModel], more: Any) -> None:
    arguments = arguments_of(definition)
    coerced = {"from_": "a", "limit": 3, **more}
    assert list(arguments.schema()["properties"])[:2] == ["from", "max"]
    assert arguments.check({"from": "a", "max": "3"}) == arguments.check(coerced) == (coerced, ())
    for given, message in (({"limit": True}, NOT_A_FLAG), ({"max": "x"}, INTEGER)):
        assert arguments.check({"from": "a", **given})[1] == (Problem(next(iter(given)), message, "type"),)


class Foreign:
    pass


class Unschematic(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    value: Foreign


class Listed(RootModel[list[int]]):
    pass


@table(("definition", "message"), [
    (Unschematic, "the arguments of `Unschematic` have no JSON Schema: "),
    (Listed, "`Listed` is a `RootModel`; arguments need names"),
])  # fmt: skip
def test_a_model_without_a_schema_is_refused_when_made(definition: type[BaseModel], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        arguments_of(definition)


# Mistakes


class Cat(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    bark: str
    size: int


class Trip(BaseModel):
    model_config = ConfigDict(extra="forbid")

    city: Annotated[str, Field(max_length=5)] = "x"
    order: Literal["price", "stars"] = "price"
    nights: Annotated[int, Field(ge=1)] = 1
    pet: Cat | Dog | None = None
    tagged: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None
    many: list[int | Stay] = []
    value: int | list[int] = 0
    stays: dict[str, Stay] = {}
    key: UUID | None = None
    even: int = 0
    word: str = "plain"
    nested: str = ""
    ratio: float = 0
    or_text: int | str = 0
    level: Level = Level.LOW
    either: bool | int = 0

    @field_validator("even", "word")
    @classmethod
    def refuses(cls, value: Any) -> Any:
        if value == 1:
            raise AssertionError("must be even")
        if value == "silent":
            raise ValueError
        return {"broken": 1}[value] if value == "secret" else value

    @field_validator("nested")
    @classmethod
    def validates_inside(cls, value: str) -> str:
        return str(Cat.model_validate({"kind": value, "lives": 1}).kind) if value else value

    @model_validator(mode="after")
    def makes_sense(self) -> "Trip":
        if self.nights > 30:
            raise ValueError("Trips are never that long")
        return self


INTEGER = "must be an integer, not a string"


@table(("arguments", "expected"), MISTAKES["trips"])
def test_a7_a_mistake_is_named_with_its_path(arguments: Any, expected: tuple[Any, Any, Any]) -> None:
    checked, problems = arguments_of(Trip).check(arguments)
    assert checked is arguments
    assert problems == (Problem(*expected),)


@table("field", ["nights", "pet", "tagged", "value", "stays", "key", "order", "even", "nested"])
def test_no_message_repeats_a_value_or_links_anywhere(field: str) -> None:
    _, problems = arguments_of(Trip).check({field: "sk-secret"})
    assert problems
    assert not {"secret", "http"} & {word for word in ("secret", "http") if word in json.dumps(problems)}
