"""
The tools of an agent by name.
"""

import asyncio
import re

from typing import Annotated, Any, Literal

import pytest

from pydantic import BaseModel, Field

from guardrails import Budget, Policy, PolicyError, Tool, Validation
from guardrails.policy.tools import Registry
from tests.tables import table


class Booking(BaseModel):
    hotel: str
    nights: Annotated[int, Field(ge=1)] = 1


SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def search_hotels(city: str, stars: Literal[3, 4, 5] = 3) -> list[str]:
    """
    Find hotels.
    """
    return [city, str(stars)]


async def asearch(city: str) -> str:
    """
    Find hotels, later.
    """
    await asyncio.sleep(0)
    return city


def test_d2_schemas_are_sorted_by_name_in_the_form_of_each_wire() -> None:
    registry = Registry()
    for name in ("walk", "arrive", "depart"):
        registry.register(search_hotels, name=name, description=f"to {name}")
    chat, flat = registry.schemas(), registry.schemas("responses")
    assert [tool["function"]["name"] for tool in chat] == ["arrive", "depart", "walk"] == list(registry.entries)
    assert flat == [{"type": "function", **tool["function"], "strict": False} for tool in chat]


@table(("tool", "arguments", "result"), [
    ("search_hotels", {"city": "Kyoto"}, ["Kyoto", "3"]), ("search_hotels", '{"city": "Kyoto", "stars": 4}', ["Kyoto", "4"]),
    ("book", {"hotel": "h_1", "nights": "2"}, ("h_1", 2)), ("book_instance", {"hotel": "h_1"}, Booking(hotel="h_1")),
    ("read", {"path": "a"}, "read a"), ("raw", {"anything": 1}, ("raw", {"anything": 1})), ("late", {"city": "Nara"}, "Nara"),
])  # fmt: skip
def test_d2_a_function_a_model_a_schema_and_an_executor_are_all_tools(tool: str, arguments: Any, result: Any) -> None:
    registry = Registry([search_hotels])

    @registry.register(parameters=Booking)
    def book_instance(booking: Booking) -> Any:
        return booking

    registry.register(lambda hotel, nights: (hotel, nights), name="book", parameters=Booking)
    registry.register(lambda path: f"read {path}", name="read", parameters=SCHEMA)
    registry.register(asearch, name="late")
    # A server's schema that is none is nobody's mistake here.
    registry.add(Tool(name="raw", parameters={"type": "objct"}), lambda tool, arguments: (tool, arguments))
    assert asyncio.run(registry.aexecute(tool, arguments)) == result
    if tool != "late":
        assert registry.execute(tool, arguments) == result


def test_d4_a_call_that_cannot_run_is_an_envelope_and_no_exception() -> None:
    registry = Registry([search_hotels, asearch])
    for missing in (registry.execute("search_hotel", {}), asyncio.run(registry.aexecute("search_hotel", {}))):
        assert (missing.ok, missing.error_type, missing.retryable) == (False, "tool_missing", False)
        assert missing.next_action_hint == "Did you mean `search_hotels`?"
    for arguments in ({}, {"city": 3.5}, '{"city": "Ky', "[1]", None):
        refused = registry.execute("search_hotels", arguments)
        assert (refused.status, bool(refused.errors)) == ("validation_error", True)
    with pytest.raises(TypeError, match="`asearch` is asynchronous: use `aexecute`"):
        registry.execute("asearch", {"city": "Nara"})
    # As the executor of a session.
    session = Policy([Validation(), Budget(max_calls=3)], tools=registry.tools).session("trip")
    assert session.call("search_hotels", '{"city": "Kyoto"}', registry.execute).value == ["Kyoto", "3"]
    assert session.call("search_hotels", "{}", registry.execute).status == "validation_error"
    assert session.call("fly", {}, registry.execute).error_type == "tool_missing"


@table(("register", "error", "reason"), [
    (lambda r: r.register(lambda x: x), TypeError, "`<lambda>` is no name of a tool"),
    (lambda r: r.register(search_hotels, name="a b"), TypeError, "`a b` is no name of a tool"),
    (lambda r: r.register(search_hotels, timeout=-1), PolicyError, "timeout"), (lambda r: r.register("search"), TypeError, "use `add`"),
    (lambda r: r.register(search_hotels, parameters={"type": "array"}), PolicyError, "object"),
    (lambda r: r.add(Tool(name="x"), "run"), TypeError, "function of (tool, arguments)"),
])  # fmt: skip
def test_what_cannot_be_offered_is_said_at_once_and_changes_nothing(
    register: Any, error: type[Exception], reason: str
) -> None:
    registry = Registry([search_hotels])
    before = registry.entries
    with pytest.raises(error, match=re.escape(reason)):
        register(registry)
    assert registry.entries is before
