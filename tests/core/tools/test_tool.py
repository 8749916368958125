"""
What is known about a tool before it is called, what a host hands over for one call, and the choice of the next request.
"""

import asyncio
import enum

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from guardrails import Budget, PolicyError, Tool, Validation
from guardrails.core.tool import TooManyError, from_annotations, named
from guardrails.errors import SessionError
from guardrails.session.final_answer import ToolChoice, forces
from tests.core.guards.calls import make, ok
from tests.tables import table


CASES = yaml.safe_load(Path(__file__).with_name("tools.yaml").read_text())


def book(city: str, nights: int = 1) -> str:
    """
    Book a room.

    Longer text that the model is not told.
    """
    return f"{city} {nights}"


class Stay(BaseModel):
    city: str
    nights: int = 1


FIELDS = {"city": {"type": "string"}, "nights": {"type": "integer"}}
SCHEMA = {"type": "object", "properties": FIELDS, "required": ["city"]}


class Finder:
    """
    Cities.
    """

    def __call__(self, city: str) -> str:
        return city


@table(("function", "name", "description", "parameters"), [
    (book, "book", "Book a room.", {"city", "nights"}), (partial(book, nights=2), "book", "Book a room.", {"city"}),
    (Finder(), "Finder", "Cities.", {"city"}),
])  # fmt: skip
def test_a_tool_has_the_name_and_words_of_its_function(
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
    session = make(clock, Validation(), tools=[tool])
    asked = ({"city": "Kyoto"}, {"city": "Kyoto", "database": "x"})
    assert [session.call("rent", one, ok).status for one in asked] == ["success", "validation_error"]


@table("parameters", [book, Stay, SCHEMA])
def test_a7_one_definition_gives_the_schema_the_model_sees_and_the_check(parameters: Any, clock: Any) -> None:
    tool = Tool(name="book", description="d", parameters=parameters)
    shown = tool.openai()
    function = shown["function"]
    assert (shown["type"], function["name"], function["description"]) == ("function", "book", "d")
    assert set(function["parameters"]["properties"]) == {"city", "nights"}
    assert function["parameters"]["required"] == ["city"]
    session = make(clock, Validation(), tools=[tool])
    assert session.call("book", {"city": "Kyoto"}, ok).ok
    wrong = session.call("book", {"nights": 2}, ok)
    assert (wrong.status, [error["field"] for error in wrong.errors or []]) == ("validation_error", ["city"])


def test_a_tool_without_parameters_takes_any_and_what_is_no_definition_is_refused() -> None:
    assert Tool(name="t").openai()["function"]["parameters"] == {"type": "object", "properties": {}}
    assert Tool(name="t").arguments() is None
    with pytest.raises(PolicyError):
        Tool(name="t", parameters=7).arguments()


@table(("annotations", "hints"), CASES["annotations"])
def test_mcp_annotations_mean_what_they_say_and_no_more(annotations: Any, hints: Any) -> None:
    assert from_annotations(annotations) == hints


def test_an_annotation_never_stands_above_a_declaration() -> None:
    hint = {"annotations": {"readOnlyHint": True, "idempotentHint": True}}
    assert Tool(name="t", read_only=False).override(hint) == Tool(name="t", read_only=False, idempotent=True)
    assert Tool(name="t").override(hint).repeats is None, "what is read-only may still be new each time"
    assert Tool(name="t").override({**hint, "read_only": False}).read_only is False
    for word, repeats in (("polling", "allow"), ("stable", "evidence")):
        assert Tool(name="a", **{word: True}).repeats == repeats  # type: ignore[arg-type]


@table(("arguments", "names", "expected"), CASES["named"])
def test_arguments_are_found_by_their_names(arguments: Any, names: list[str], expected: list[Any]) -> None:
    assert [[*pair] for pair in named(arguments, names)] == expected


def test_what_is_too_deep_or_too_many_is_refused() -> None:
    deep: Any = {"path": "a"}
    for _ in range(20):
        deep = [deep]
    for arguments in ({"a": deep}, {"a": [{"b": 1}] * 1_001}):
        with pytest.raises(TooManyError):
            list(named(arguments, ["a.b", "a.path"]))


# One call


class Name(enum.StrEnum):
    SEARCH = "search"


@table("way", ["call", "acall", "decide"])
@table(("tool", "settings", "raised", "message"), [
    *(("t", {"execute": wrong}, TypeError, r"function of \(tool, arguments\)") for wrong in (None, "search", 7)),
    *((odd, {}, TypeError, f"`tool` is the name of a tool, not `{type(odd).__name__}`") for odd in (None, b"t", ok)),
    *(("t", {"id": odd}, TypeError, f"`id` is the model's id of the call, text or None, not `{type(odd).__name__}`") for odd in (7, b"1")),
    ("t", {"id": ""}, SessionError, "must not be empty"),
])  # fmt: skip
def test_a_hosts_mistake_charges_nothing(
    way: str, tool: Any, settings: Any, raised: Any, message: str, clock: Any
) -> None:
    if way == "decide" and "execute" in settings:
        pytest.skip("nothing is run")
    session = make(clock, Budget(max_calls=1))
    given = settings if way == "decide" else {"execute": ok, **settings}
    ask = partial(getattr(session, way), tool, {}, **given)
    with pytest.raises(raised, match=message):
        asyncio.run(ask()) if way == "acall" else ask()
    assert session.ledger.progress["calls_used"] == 0


def test_a_member_of_a_string_enumeration_names_a_tool(clock: Any) -> None:
    call = make(clock, Budget(max_calls=1)).decide(Name.SEARCH, {}, id=Name.SEARCH).call
    assert (type(call.tool), call.tool, type(call.id)) == (str, "search", str)


@table(("text", "message"), CASES["texts"])
def test_a7_arguments_that_are_json_but_no_object_read_so(text: str, message: str, clock: Any) -> None:
    tool = Tool(name="t", parameters={"type": "object"})
    envelope = make(clock, Validation(), tools=[tool]).call("t", text, ok)
    assert (envelope.status, envelope.errors) == ("validation_error", [{"field": "", "message": message}])


# The next request


CHAT_NAMED = {"type": "function", "function": {"name": "search"}}
TOOLS = [{"type": "function", "name": "search"}]
ALLOWED: list[Callable[[str], Any]] = [
    lambda mode: {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": TOOLS}},
    lambda mode: {"type": "allowed_tools", "mode": mode, "tools": TOOLS},
]
FORCING: list[Any] = ["required", "any", "search", CHAT_NAMED, *(allowed("required") for allowed in ALLOWED)]
FORCING += [{"type": kind, "name": "search"} for kind in ("function", "tool", "custom", "mcp", "file_search", "shell")]
FORCING += [{"type": "custom", "custom": {"name": "sql"}}, {"type": "file_search"}]
FREE: list[Any] = [None, "auto", "none", {"type": "auto"}, {"type": "none"}, *(allowed("auto") for allowed in ALLOWED)]
choices = st.sampled_from(FORCING + FREE)


@table("choice", FORCING + FREE)
def test_c1_a_forcing_choice_is_kept_for_the_first_request_only_and_a_free_one_stays(
    choice: ToolChoice, clock: Any
) -> None:
    forcing, session = choice in FORCING, make(clock)
    assert forces(choice) is forcing
    assert session.tool_choice(choice, first=True) == choice
    assert session.tool_choice(choice, first=False) == (None if forcing else choice)


@given(requested=choices, strategic=st.none() | choices, first=st.booleans())
def test_c2_an_exhausted_session_says_none_above_everything(requested: Any, strategic: Any, first: bool) -> None:
    strategy = None if strategic is None else lambda call_count, turn_count: strategic
    session = make(lambda: 1_800_000_000.0, Budget(max_calls=1))
    session.call("t", {}, ok)
    assert session.tool_choice(requested, first=first, strategy=strategy) == "none"
