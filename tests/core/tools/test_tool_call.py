"""
What a host hands over for one call.
"""

import asyncio
import enum

from typing import Any

import pytest

from guardrails import Budget, Policy, SessionError, Tool, Validation
from tests.tables import table


class Name(enum.StrEnum):
    SEARCH = "search"


def ok(*_: Any) -> str:
    return "ok"


def ask(session: Any, way: str, tool: Any, execute: Any = ok, **settings: Any) -> Any:
    if way == "decide":
        return session.decide(tool, {}, **settings)
    made = getattr(session, way)(tool, {}, execute, **settings)
    return asyncio.run(made) if way == "acall" else made


@table("way", ["call", "acall", "decide"])
@table(
    ("tool", "settings", "raised", "message"),
    [
        *(("t", {"execute": wrong}, TypeError, r"function of \(tool, arguments\)") for wrong in (None, "search", 7)),
        (None, {}, TypeError, "`tool` is the name of a tool, not `NoneType`"),
        (b"t", {}, TypeError, "`tool` is the name of a tool, not `bytes`"),
        (ok, {}, TypeError, "`tool` is the name of a tool, not `function`"),
        ("t", {"id": 7}, TypeError, "`id` is the model's id of the call, text or None, not `int`"),
        ("t", {"id": b"1"}, TypeError, "not `bytes`"),
        ("t", {"id": ""}, SessionError, "must not be empty"),
    ],
)
def test_a_hosts_own_mistake_is_raised_and_charges_nothing(
    way: str, tool: Any, settings: Any, raised: Any, message: str, clock: Any
) -> None:
    if way == "decide" and "execute" in settings:
        pytest.skip("nothing is run")
    session = Policy([Budget(max_calls=1)]).session("s", clock=clock)
    with pytest.raises(raised, match=message):
        ask(session, way, tool, **settings)
    assert session.ledger.progress["calls_used"] == 0


def test_a_member_of_a_string_enumeration_names_a_tool(clock: Any) -> None:
    session = Policy([Budget(max_calls=1)]).session("s", clock=clock)
    decision = session.decide(Name.SEARCH, {}, id=Name.SEARCH)
    assert (type(decision.call.tool), decision.call.tool, type(decision.call.id)) == (str, "search", str)


@table(
    ("text", "message"),
    [
        ('"x"', "the arguments must be a JSON object, not text"),
        ('"[1]"', "the arguments must be a JSON object, not text"),
        ("[1]", "the arguments must be an object, not an array"),
        ("7", "the arguments must be an object, not an integer"),
    ],
)
def test_a7_arguments_that_are_json_but_no_object_read_so(text: str, message: str, clock: Any) -> None:
    tool = Tool(name="t", parameters={"type": "object"})
    envelope = Policy([Validation()], tools=[tool]).session("s", clock=clock).call("t", text, ok)
    assert (envelope.status, envelope.errors) == ("validation_error", [{"field": "", "message": message}])
