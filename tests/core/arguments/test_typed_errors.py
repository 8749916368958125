"""
The errors of pydantic in words for a model.
"""

import json

from datetime import date
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from guardrails.core.arguments import arguments_of
from guardrails.core.values.types import Problem
from tests.tables import table


class Cat(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    bark: str
    size: int


class Stay(BaseModel):
    check_in: date
    check_out: date

    @model_validator(mode="after")
    def in_order(self) -> "Stay":
        if self.check_out <= self.check_in:
            raise ValueError("check_out must be after check_in")

        return self


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
    ids: dict[int, str] = {}
    key: UUID | None = None
    even: int = 0
    word: str = "plain"
    nested: str = ""

    @field_validator("even")
    @classmethod
    def is_even(cls, value: int) -> int:
        if value % 2:
            raise AssertionError("must be even")

        return value

    @field_validator("word")
    @classmethod
    def is_plain(cls, value: str) -> str:
        if value == "silent":
            raise ValueError

        return value

    @field_validator("nested")
    @classmethod
    def validates_inside(cls, value: str) -> str:
        return str(Cat.model_validate({"kind": value, "lives": 1}).kind) if value else value

    @model_validator(mode="after")
    def makes_sense(self) -> "Trip":
        if self.nights > 30:
            raise ValueError("nights must be at most 30 in all" if self.nights < 40 else "Trips are never that long")

        return self


STAY = {"check_in": "2025-01-02", "check_out": "2025-01-01"}


@table(
    ("arguments", "expected"),
    [
        ({"city": ["x"]}, [("city", "must be a valid string, not an array", "type")]),
        ({"nights": "two"}, [("nights", "must be a valid integer", "type")]),
        ({"nights": 1.5}, [("nights", "must be a valid integer, got a number with a fractional part", "type")]),
        ({"nights": False}, [("nights", "must be greater than or equal to 1", "value")]),
        ({"even": 1}, [("even", "must be even", "value")]),
        ({"word": "silent"}, [("word", "is refused (`ValueError`)", "value")]),
        ({"nights": 99}, [("", "Trips are never that long", "value")]),
        ({"stays": {"a": STAY}}, [("stays.a.check_out", "check_out must be after check_in", "value")]),
        (
            {"stays": {"a": {}}},
            [("stays.a.check_in", "is required", "missing"), ("stays.a.check_out", "is required", "missing")],
        ),
        ({"citty": 1}, [("citty", "is unknown; did you mean `city`?", "unknown")]),
        (
            {"pet": {"kind": "cat", "lives": 9, "live": 1}},
            [("pet.live", "is unknown; did you mean `lives`?", "unknown")],
        ),
        ({"pet": {"kind": "cat"}}, [("pet.lives", "is required", "missing")]),
        ({"tagged": {"kind": "cow"}}, [("tagged", "must have a `kind` of 'cat', 'dog'", "type")]),
        ({"value": [1, "x"]}, [("value.1", "must be a valid integer", "type")]),
        ({"many": [1, STAY]}, [("many.1.check_out", "check_out must be after check_in", "value")]),
        ({"nested": "secret"}, [("nested", "must be 'cat'", "type")]),
    ],
)
def test_a7_a_mistake_is_named_with_its_path(arguments: Any, expected: list[tuple[str, str, str]]) -> None:
    checked, problems = arguments_of(Trip).check(arguments)

    assert checked is arguments
    assert list(problems) == [Problem(*each) for each in expected]  # type: ignore[arg-type]


@table("field", ["nights", "pet", "tagged", "value", "stays", "key", "order", "even", "nested"])
def test_no_message_repeats_a_value_or_links_anywhere(field: str) -> None:
    _, problems = arguments_of(Trip).check({field: "sk-secret"})

    assert problems
    assert "secret" not in json.dumps(problems)
    assert "http" not in json.dumps(problems)
