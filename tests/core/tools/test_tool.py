"""
What is known about a tool before it is called.
"""

import functools

from typing import Any

import pytest

from pydantic import BaseModel

from guardrails import Duplicates, Policy, PolicyError, Rule, Tool, Validation
from guardrails.core.tools.tool import from_annotations
from tests.tables import table


def ok(*_: Any) -> str:
    return "ok"


def book(city: str, nights: int = 1) -> str:
    """
    Book a room.

    Longer text that the model is not told.
    """
    return f"{city} {nights}"


class Stay(BaseModel):
    city: str
    nights: int = 1


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "nights": {"type": "integer"}},
    "required": ["city"],
}


class Finder:
    """
    Cities.
    """

    def __call__(self, city: str) -> str:
        return city


@table(
    ("function", "name", "description", "parameters"),
    [
        (book, "book", "Book a room.", {"city", "nights"}),
        (functools.partial(book, nights=2), "book", "Book a room.", {"city"}),
        (Finder(), "Finder", "Cities.", {"city"}),
    ],
)
def test_a_tool_of_a_function_has_its_name_first_paragraph_and_parameters(
    function: Any, name: str, description: str, parameters: set[str]
) -> None:
    tool = Tool.of(function, cost_usd=0.2)
    assert (tool.name, tool.description, tool.cost) == (name, description, 200_000)
    assert tool.openai()["function"]["parameters"]["properties"].keys() == parameters
    assert Tool.of(function, name="reserve", description="d").name == "reserve"


def test_a_tool_of_a_function_leaves_out_what_the_host_passes(clock: Any) -> None:
    def rent(city: str, database: Finder) -> str:
        return city

    with pytest.raises(PolicyError, match=r"is bound by `functools\.partial`"):
        Tool.of(rent).openai()
    tool = Tool.of(rent, hidden=["database"])
    assert set(tool.openai()["function"]["parameters"]["properties"]) == {"city"}
    session = Policy([Validation()], tools=[tool]).session("s", clock=clock)
    assert session.call("rent", {"city": "Kyoto"}, ok).ok
    assert session.call("rent", {"city": "Kyoto", "database": "x"}, ok).status == "validation_error"


@table("parameters", [book, Stay, SCHEMA])
def test_a7_one_definition_gives_the_schema_the_model_sees_and_the_check(parameters: Any, clock: Any) -> None:
    tool = Tool(name="book", description="d", parameters=parameters)
    shown = tool.openai()
    assert (shown["type"], shown["function"]["name"], shown["function"]["description"]) == ("function", "book", "d")
    assert set(shown["function"]["parameters"]["properties"]) == {"city", "nights"}
    assert shown["function"]["parameters"]["required"] == ["city"]
    session = Policy([Validation()], tools=[tool]).session("s", clock=clock)
    assert session.call("book", {"city": "Kyoto"}, ok).ok
    wrong = session.call("book", {"nights": 2}, ok)
    assert (wrong.status, [error["field"] for error in wrong.errors or []]) == ("validation_error", ["city"])


def test_a_tool_without_parameters_takes_any_and_what_is_no_definition_is_refused() -> None:
    assert Tool(name="t").openai()["function"]["parameters"] == {"type": "object", "properties": {}}
    assert Tool(name="t").arguments() is None
    with pytest.raises(PolicyError):
        Tool(name="t", parameters=7).arguments()


@table(
    ("annotations", "hints"),
    [
        ({"readOnlyHint": True, "idempotentHint": False}, {"read_only": True, "idempotent": False}),
        ({"destructiveHint": False, "openWorldHint": True, "title": "x"}, {"destructive": False}),
        ({"readOnlyHint": "yes", "idempotentHint": None}, {}),
        # What may destroy is not read-only, whatever else is claimed.
        ({"destructiveHint": True, "readOnlyHint": True}, {"destructive": True, "read_only": False}),
        ({}, {}),
    ],
)
def test_mcp_annotations_mean_what_they_say_and_no_more(annotations: Any, hints: Any) -> None:
    assert from_annotations(annotations) == hints


def test_an_annotation_never_stands_above_a_declaration() -> None:
    declared = Tool(name="t", read_only=False)
    hint = {"annotations": {"readOnlyHint": True, "idempotentHint": True}}
    assert declared.override(hint) == Tool(name="t", read_only=False, idempotent=True)
    assert Tool(name="t").override(hint).repeats is None, "what is read-only may still be new each time"
    assert Tool(name="t").override({**hint, "read_only": False}).read_only is False


def test_a_tool_may_be_observed_while_the_rest_is_enforced(clock: Any) -> None:
    policy = Policy([Duplicates()], rules=[Rule(match=("poll_*",), declared={}, guards={}, mode="observe")])
    session = policy.session("s", clock=clock)
    assert [session.call("poll_x", {}, ok).ok for _ in range(3)] == [True] * 3
    assert [session.call("other", {}, ok).ok for _ in range(2)] == [True, False]
