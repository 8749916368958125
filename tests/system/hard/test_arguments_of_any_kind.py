"""
Arguments and results of any kind through the whole of a call: signature, validation, envelope and record.
"""

import copy
import datetime as dt
import json
import math
import uuid

from decimal import Decimal
from typing import Any

import orjson

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from guardrails import Budget, Duplicates, Policy, Retryable, Summary, Tool, Truncate, Validation
from guardrails.core.values.types import STATUSES
from guardrails.sinks import MemorySink
from guardrails.stores.memory import MemoryStore
from tests.tables import table


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 40}, "nights": {"type": "integer", "minimum": 1}},
    "required": ["city"],
}
POLICY = Policy(
    [Budget(max_calls=10), Duplicates(window=5), Validation(), Retryable(), Summary(), Truncate(max_bytes=2_000)],
    tools=[Tool(name="book", parameters=SCHEMA), Tool(name="free")],
)


class Odd:
    """
    An object that has no form in JSON, and does not like to be looked at.
    """

    def __repr__(self) -> str:
        raise RuntimeError("no")


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def circle() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["self"] = made
    return made


def hold(given: Any, result: Any) -> None:
    """
    What must be true of a call, whatever it is given and whatever its tool gives back.
    """
    sink = MemorySink()
    session = POLICY.session("s", records=sink, store=MemoryStore())
    for tool in ("book", "free"):
        ran: list[Any] = []

        def execute(_: str, got: Any, ran: list[Any] = ran) -> Any:
            ran.append(got)
            return result

        alike = copied(given)
        envelope = session.call(tool, given, execute)
        assert envelope.status in STATUSES
        assert json.loads(envelope.to_json())["status"] == envelope.status
        assert len(ran) == (envelope.status not in ("validation_error", "denied", "duplicate_call_blocked"))
        if tool == "book" and ran:
            assert isinstance(ran[0]["city"], str)
            assert len(ran[0]["city"]) <= 40
        again = session.decide(tool, alike).call.sig
        calls = (record for record in sink.records if record["event"] == "call" and record["tool"] == tool)
        assert again is None or again == next(calls)["sig"]
    session.close()
    for record in sink.records:
        assert json.loads(orjson.dumps(record))


def copied(given: Any) -> Any:
    try:
        return copy.deepcopy(given)
    except Exception:
        return given


LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary() | st.datetimes()
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(database=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.dictionaries(st.text(), VALUES, max_size=4) | st.text() | st.binary(), VALUES)
@example({"city": "\ud800"}, {"a": math.nan})
@example({1: "a", "1": "b", None: 2}, {dt.date(2026, 1, 1): uuid.UUID(int=1)})
@example('{"city": "x", "city": "y"}', Decimal("1e400"))
def test_a_call_never_raises_signs_alike_and_is_recorded_as_json(given: Any, result: Any) -> None:
    hold(given, result)


@table("levels", [100, 2_100, 100_000])
def test_nor_does_one_that_is_nested_deeply(levels: int) -> None:
    hold({"city": "x", "more": deep(levels)}, deep(levels))


def test_nor_does_one_that_holds_itself_is_large_or_cannot_be_shown() -> None:
    hold({"city": "x", "more": Odd()}, Odd())
    hold(circle(), circle())
    hold({"city": "x" * 10_000_000}, b"\xff" * 10_000_000)
