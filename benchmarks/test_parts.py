"""
What the parts of a call cost, each by itself: its arguments checked and signed, its result written and cut, its record, the look for a loop.

The bare validators and the bare `orjson.dumps` stand beside ours; the difference is what this library adds.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jsonschema_rs
import orjson
import pytest

from pydantic import BaseModel, Field

from benchmarks.conftest import Measure, times
from guardrails import JsonLines, Policy
from guardrails.core.arguments import arguments_of
from guardrails.core.guards.similarity import sketch_of
from guardrails.core.text.signature import sign
from guardrails.core.text.truncation import render
from guardrails.sinks import Erasing, Record, to_line


ARGUMENTS = {"city": "Shibuya", "limit": 10, "max_price": 150.0}
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1, "maxLength": 100},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50},
        "max_price": {"type": "number", "exclusiveMinimum": 0},
    },
    "required": ["city"],
    "additionalProperties": False,
}
City = Annotated[str, Field(min_length=1, max_length=100)]
Limit = Annotated[int, Field(ge=1, le=50)]
Price = Annotated[float, Field(gt=0)]


class Search(BaseModel):
    city: City
    limit: Limit = 10
    max_price: Price = 100.0


def search(city: City, limit: Limit = 10, max_price: Price = 100.0) -> None: ...


DEFINITIONS: dict[str, Any] = {"model": Search, "function": search, "schema": SCHEMA}
ROWS = [{"id": n, "name": f"row number {n}", "score": 0.5, "ok": True} for n in range(150_000)]
RECORD: Record = {
    "event": "call",
    "session_id": "trip-42",
    "n": 17,
    "ts_ms": 1_770_000_000_000,
    "tool": "search_hotels",
    "arguments": orjson.Fragment(b'{"city":"Shibuya","guests":2,"password":"hunter2hunter2"}'),
}
TEN_MEGABYTES: dict[str, Any] = {
    "a text": "x" * 10_000_000,
    "rows": ROWS,
    "an object": {"ok": True, "content": "x" * 10_000_000},
}
CASES: dict[str, tuple[Callable[[], Any], int]] = {
    "bare pydantic model": (partial(Search.__pydantic_validator__.validate_python, ARGUMENTS), 1_000),
    "bare jsonschema-rs": (partial(jsonschema_rs.validator_for(SCHEMA).is_valid, ARGUMENTS), 1_000),
    **{f"check by {name}": (partial(arguments_of(one).check, ARGUMENTS), 1_000) for name, one in DEFINITIONS.items()},
    "name what is wrong": (partial(arguments_of(SCHEMA).check, {"limit": 0, "max_price": "x"}), 20),
    "sign 3 fields": (partial(sign, "search", ARGUMENTS), 100),
    "sign 20 leaves": (partial(sign, "search", {f"field_{n}": f"value {n}" for n in range(20)}), 100),
    "sign 100 KB": (partial(sign, "write_file", {"path": "app.py", "content": "x" * 100_000}), 100),
    "the sketch of a call": (partial(sketch_of, {"limit": 10, "query": "cheap hotel in shibuya tokyo"}), 100),
    "bare orjson, 2 KB of rows": (partial(orjson.dumps, ROWS[:20]), 100),
    "render 2 KB of rows": (partial(render, ROWS[:20]), 100),
    **{f"render 10 MB, {name}": (partial(render, value), 1) for name, value in TEN_MEGABYTES.items()},
    "a line": (lambda: to_line(Erasing((), "full", redact_secrets=False)(RECORD)), 100),
    "a line without secrets": (lambda: to_line(Erasing((), "full", redact_secrets=True)(RECORD)), 100),
}
"""What is timed, and how often in one round."""


@pytest.mark.parametrize("name", CASES)
def test_part(name: str, measure: Measure) -> None:
    case, each = CASES[name]
    assert case() is not None
    measure(times(case, each), each)


def test_put(measure: Measure, tmp_path: Path) -> None:
    with JsonLines(tmp_path / "records.jsonl") as sink:

        def puts() -> None:
            for _ in range(1_000):
                sink.put(RECORD, 400)
            assert sink.flush()

        measure(puts, 1_000)
    assert sink.dropped == 0


@pytest.mark.parametrize("name", TEN_MEGABYTES)
def test_a_call_whose_result_has_ten_megabytes(measure: Measure, default: Policy, name: str) -> None:
    session, pages = default.session("large"), iter(range(10**9))

    def call() -> None:
        session.call("read", {"page": next(pages)}, lambda *_: TEN_MEGABYTES[name]).to_json()

    measure(times(call, 5), 5)
