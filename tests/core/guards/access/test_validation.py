"""
Arguments that do not fit the tool.
"""

from typing import Any, Literal

from pydantic import BaseModel, Field

from guardrails import Budget, Policy, Tool, Validation
from tests.tables import table


class Search(BaseModel):
    city: str
    nights: int = Field(default=1, ge=1)
    sort: Literal["price", "rating"] = "price"


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "nights": {"type": "integer", "minimum": 1},
        "sort": {"enum": ["price", "rating"]},
    },
    "required": ["city"],
    "additionalProperties": False,
}


def search(city: str, nights: int = 1, sort: Literal["price", "rating"] = "price") -> str:
    return f"{city} {nights} {sort}"


def make(clock: Any, parameters: Any = Search, ask_user: tuple[str, ...] = (), **settings: Any) -> Any:
    tool = Tool(name="search", parameters=parameters, ask_user=ask_user)
    return Policy([Validation(), Budget(max_calls=9)], tools=[tool], **settings).session("s", clock=clock)


def ok(*_: Any) -> str:
    return "ok"


@table("parameters", [Search, SCHEMA, search])
@table(
    ("arguments", "fields"), [({}, ["city"]), ({"city": 7}, ["city"]), ({"city": "Kyoto", "sort": "size"}, ["sort"])]
)
def test_a7_each_field_that_does_not_fit_is_named(
    parameters: Any, arguments: Any, fields: list[str], clock: Any
) -> None:
    ran: list[Any] = []
    session = make(clock, parameters)
    envelope = session.call("search", arguments, lambda *_: ran.append(1))
    assert (envelope.status, envelope.code) == ("validation_error", "validation.arguments")
    assert [error["field"] for error in envelope.errors] == fields
    assert all(error["message"] for error in envelope.errors)
    assert (envelope.retryable, envelope.retryable_after_correction, ran) == (False, True, [])
    assert session.ledger.progress["calls_used"] == 0


@table(
    ("arguments", "ask_user", "action"),
    [
        ({}, (), "ask_user"),
        ({"city": "Kyoto", "nights": "two"}, (), "fix_arguments"),
        ({"city": "Kyoto", "sort": "size"}, (), "fix_arguments"),
        ({"city": "Kyoto", "nights": 0}, (), "fix_arguments"),
        ({"city": "Kyoto", "nights": 0}, ("nights",), "ask_user"),
        ("{broken", ("nights",), "fix_arguments"),
    ],
)
def test_a7_the_answer_says_whether_to_ask_the_user_or_to_correct_oneself(
    arguments: Any, ask_user: tuple[str, ...], action: str, clock: Any
) -> None:
    envelope = make(clock, ask_user=ask_user).call("search", arguments, ok)
    assert envelope.next_action == action
    assert ("ask the user" in envelope.next_action_hint) is (action == "ask_user")
    assert envelope.user_facing_hint


def test_what_fits_runs_with_coerced_arguments(clock: Any) -> None:
    seen: list[Any] = []
    envelope = make(clock).call("search", {"city": "Kyoto", "nights": "2"}, lambda _, given: seen.append(given))
    assert envelope.ok
    assert seen[0]["nights"] == 2


@table("mode", ["observe", "off"])
def test_where_it_is_not_enforced_the_tool_gets_the_arguments_as_they_came(mode: Any, clock: Any) -> None:
    seen: list[Any] = []
    tool = Tool(name="search", parameters=Search)
    session = Policy([Validation(mode=mode)], tools=[tool]).session("s", clock=clock)
    assert session.call("search", {"city": 7}, lambda _, given: seen.append(given)).ok
    assert seen == [{"city": 7}]
