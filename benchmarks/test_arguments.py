"""
What checking and signing the arguments of a call costs: four constrained fields, as each of the three definitions.

The bare validator of each definition stands beside it; the difference is what this library adds.
"""

import statistics
import timeit

from collections.abc import Callable
from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pytest_benchmark.fixture import BenchmarkFixture

from guardrails.core.arguments import arguments_of
from guardrails.core.text.signature import masked_result_hash, parse_arguments, sign


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


# What signing a call and hashing a result costs, in units of R too. Some rows say what they may cost at most; nothing fails here.

R_US = 0.85
"""R in microseconds where the limits were set."""

SMALL = {"city": "Shibuya", "max_price": 150, "guests": 2}
NESTED = {
    "destination": {"city": "Shibuya", "ward": "Tokyo", "country": "JP", "zip": "150-0002", "floor": 35},
    "dates": {"check_in": "2026-11-21", "check_out": "2026-11-23", "flexible": True, "nights": 2},
    "guests": [{"name": "Ada Lovelace", "age": 36, "child": False}, {"name": "Alan", "age": 41, "child": False}],
    "filters": ["wifi", "breakfast", "pool"],
    "page": 1,
    "sort": "price",
}
FLAT = {f"field_{i}": i if i % 2 else f"value {i}" for i in range(20)}
LARGE = {"path": "src/app.py", "content": "x" * 100_000}
ERROR = b"ValueError in line 12 of app.py: boom\n" * 11
HUGE = "a" * 10_000_000


def reference() -> int:
    stored = {}
    for i in range(20):
        stored[i] = i
    return sum(stored.values())


CASES: dict[str, tuple[Callable[[], Any], float | None]] = {
    "sign 3 fields": (lambda: sign("search", SMALL), 0.6),
    "sign 20 leaves, nested": (lambda: sign("search", NESTED), 2.5),
    "sign 20 leaves, flat": (lambda: sign("search", FLAT), 2.5),
    "sign 100 KB of ASCII": (lambda: sign("write_file", LARGE), 10.0),
    "sign beyond ASCII": (lambda: sign("search", {"都市": "渋谷", "q": "ホテル"}), None),
    "sign text to normalise": (lambda: sign("search", {"q": "cafe\u0301", "n": 3}), None),
    "sign floats": (lambda: sign("search", {"lat": 35.66, "lon": 139.7, "zoom": 12}), None),
    "sign integral floats": (lambda: sign("search", {"max_price": 150.0, "guests": 2}), None),
    "sign a set": (lambda: sign("search", {"tags": {"wifi", "pool"}, "guests": 2}), None),
    "hash of a failure, 0.4 KB": (lambda: masked_result_hash(ERROR), None),
    "hash of a failure, 10 MB": (lambda: masked_result_hash(HUGE), None),
    "parse arguments": (lambda: parse_arguments('{"city": "Shibuya", "max_price": 150, "guests": 2}'), None),
}


@pytest.mark.parametrize("name", CASES)
def test_cost(name: str, benchmark: BenchmarkFixture) -> None:
    case, limit = CASES[name]
    pedantic: Any = benchmark.pedantic
    pedantic(case, rounds=200, iterations=100, warmup_rounds=5)
    if benchmark.stats is None:
        return
    ratio = statistics.median(
        timeit.timeit(case, number=100) / timeit.timeit(reference, number=100) for _ in range(200)
    )
    benchmark.extra_info["x_R"] = round(ratio, 2)
    at_most = "" if limit is None else f"   (at most {limit} us, {limit / R_US:.1f} R)"
    print(f"\n{name:24s} {benchmark.stats.stats.median * 1e6:7.2f} us {ratio:7.2f} R{at_most}")
