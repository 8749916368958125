"""
Arguments that do not fit the tool: what is named, and who is to put it right. The words of the advice are in `cases/`.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from guardrails import Budget, Envelope, Policy, Retryable, Tool, Validation
from guardrails.core.values.types import INVALID
from tests.core.guards.calls import make, said
from tests.core.retries.conftest import constant
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


def search(city: str, nights: Annotated[int, Field(ge=1)] = 1, sort: Literal["price", "rating"] = "price") -> str:
    return f"{city} {nights} {sort}"


KYOTO = {"city": "Kyoto"}


@table("parameters", [Search, SCHEMA, search])
@table(("arguments", "ask_user", "fields", "action"), [
    ({}, (), ["city"], "ask_user"),
    ({"city": 7}, (), ["city"], "fix_arguments"),
    ({**KYOTO, "sort": "size"}, (), ["sort"], "fix_arguments"),
    ({**KYOTO, "nights": "two"}, (), ["nights"], "fix_arguments"),
    ({**KYOTO, "nights": 0}, ("nights",), ["nights"], "ask_user"),
    ("{broken", ("nights",), [""], "fix_arguments"),
])  # fmt: skip
def test_a7_each_wrong_field_is_named(
    parameters: Any, arguments: Any, ask_user: Any, fields: list[str], action: str, clock: Any
) -> None:
    ran: list[Any] = []
    tool = Tool(name="search", parameters=parameters, ask_user=ask_user)
    session = make(clock, Validation(), Budget(max_calls=9), tools=[tool])
    envelope = session.call("search", arguments, lambda *_: ran.append(1))
    assert said(envelope, "status", "code") == ("validation_error", "validation.arguments")
    assert [error["field"] for error in envelope.errors] == fields
    assert all(error["message"] for error in envelope.errors)
    assert said(envelope, "retryable", "retryable_after_correction", "next_action") == (False, True, action)
    assert ("ask the user" in envelope.next_action_hint) is (action == "ask_user")
    assert envelope.user_facing_hint
    assert (ran, session.ledger.progress["calls_used"]) == ([], 0)


@table(("mode", "given", "seen"), [
    ("enforce", {**KYOTO, "nights": "2"}, {**KYOTO, "nights": 2}),
    ("observe", {"city": 7}, {"city": 7}), ("off", {"city": 7}, {"city": 7}),
])  # fmt: skip
def test_what_fits_runs_coerced_and_what_is_not_enforced_as_it_came(mode: Any, given: Any, seen: Any) -> None:
    ran: list[Any] = []
    session = Policy([Validation(mode=mode)], tools=[Tool(name="search", parameters=Search)]).session("s")
    assert session.call("search", given, lambda _, arguments: ran.append(arguments)).ok
    assert ran[0].items() >= seen.items()


# What is learned of refused calls

NO_CITY = {"nights": 2}
WRONG = {"city": "Nara", "nights": "two"}
OFTEN = (
    "Take what is missing from the conversation and call again: refused calls of `book` are corrected 4 times in 5. "
    "Ask the user only if it is not there; do not guess."
)
SELDOM = "Ask the user before the next try: refused calls of `book` are corrected 1 time in 10."


@table(("arguments", "share", "seen", "ask_user", "action", "hint"), [
    (NO_CITY, 0.8, 40, (), "fix_arguments", OFTEN),
    (WRONG, 0.1, 40, (), "ask_user", SELDOM),
    # Between them, of too few calls, and of what only the user can know the usual advice stays.
    (NO_CITY, 0.1, 40, (), "ask_user", None), (NO_CITY, 0.4, 40, (), "ask_user", None),
    (WRONG, 0.4, 40, (), "fix_arguments", None), (WRONG, 0.9, 40, (), "fix_arguments", None),
    (NO_CITY, 1.0, 4, (), "ask_user", None), (NO_CITY, 0.99, 40, ("city",), "ask_user", None),
])  # fmt: skip
def test_a11_past_corrections_decide(
    tmp_path: Path, arguments: Any, share: float, seen: float, ask_user: Any, action: str, hint: str | None
) -> None:
    def refused(corrections: Any) -> Envelope:
        model, tool = tmp_path / "model.json", Tool(name="book", parameters=SCHEMA, ask_user=ask_user)
        model.write_bytes(constant(0.0, corrections=corrections))
        policy = Policy([Validation(), Retryable(model=str(model))], tools=[tool])
        return policy.session("s").call("book", arguments, lambda *_: "ok")

    made, usual = refused({tool: {INVALID: [seen, seen * share]} for tool in ("", "book")}), refused({})
    assert said(made, "status", "next_action") == ("validation_error", action)
    assert ("ask the user" in str(made.next_action_hint)) is (action == "ask_user")
    assert made.user_facing_hint == (usual.user_facing_hint if hint is None else hint)
    assert hint is not None or made.to_json() == usual.to_json()
