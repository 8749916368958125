"""
What checking the arguments of a call costs: four constrained fields, as each of the three definitions.

The bare validator of each definition stands beside it; the difference is what this library adds.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pytest_benchmark.fixture import BenchmarkFixture

from guardrails.core.arguments import arguments_of


ARGUMENTS = {"city": "Shibuya", "limit": 10, "max_price": 150.0, "sort": "price"}

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1, "maxLength": 100},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50},
        "max_price": {"type": "number", "exclusiveMinimum": 0},
        "sort": {"enum": ["price", "stars"]},
    },
    "required": ["city"],
    "additionalProperties": False,
}

City = Annotated[str, Field(min_length=1, max_length=100)]
Limit = Annotated[int, Field(ge=1, le=50)]
Price = Annotated[float, Field(gt=0)]
Sort = Literal["price", "stars"]


class Search(BaseModel):
    model_config = ConfigDict(extra="forbid")

    city: City
    limit: Limit = 10
    max_price: Price = 100.0
    sort: Sort = "price"


class Checked(Search):
    """
    Has code of its own, so the model is built.
    """

    @model_validator(mode="after")
    def accept(self) -> "Checked":
        return self


def search(city: City, limit: Limit = 10, max_price: Price = 100.0, sort: Sort = "price") -> None: ...


DEFINITIONS: list[Any] = [
    pytest.param(Search, id="model"),
    pytest.param(Checked, id="model with a validator"),
    pytest.param(search, id="function"),
    pytest.param(SCHEMA, id="schema"),
]


def _run(benchmark: BenchmarkFixture, function: Callable[..., Any], *args: object, iterations: int = 1000) -> Any:
    pedantic: Any = benchmark.pedantic

    return pedantic(function, args=args, rounds=200, iterations=iterations, warmup_rounds=2)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_check_valid(benchmark: BenchmarkFixture, definition: Any) -> None:
    _, problems = _run(benchmark, arguments_of(definition).check, ARGUMENTS)

    assert not problems


def test_bare_pydantic_model(benchmark: BenchmarkFixture) -> None:
    _run(benchmark, Search.__pydantic_validator__.validate_python, ARGUMENTS)


def test_bare_jsonschema_rs(benchmark: BenchmarkFixture) -> None:
    _run(benchmark, jsonschema_rs.validator_for(SCHEMA).is_valid, ARGUMENTS)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_check_invalid(benchmark: BenchmarkFixture, definition: Any) -> None:
    _, problems = _run(benchmark, arguments_of(definition).check, {"limit": 0, "sort": "x"}, iterations=20)

    assert len(problems) == 3


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_make(benchmark: BenchmarkFixture, definition: Any) -> None:
    _run(benchmark, arguments_of, definition, iterations=1)
