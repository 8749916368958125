"""
Failures inside results, as the model of a session reads them.
"""

import json

from typing import Any

from guardrails import Budget, FailureRule, Policy, ResultClassifier, Retryable, Success, Tool
from tests.tables import table


NOW = 1_700_000_000.0
"""Tue, 14 Nov 2023 22:13:20 GMT, in seconds."""


def read(
    value: Any, *, tool: str = "book", said: dict[str, Any] | None = None, envelope: Any = "nested"
) -> dict[str, Any]:
    policy = Policy([Retryable()], tools=[Tool(name=tool, **said or {})], envelope=envelope)
    answer = policy.session("s", clock=lambda: NOW).call(tool, {}, lambda _tool, _arguments: value)
    found: dict[str, Any] = json.loads(answer.to_json())
    found.pop("progress", None)
    return found


@table("value", [{"error": "rate limit, try again in 20s"}, "Error: rate limit, try again in 20s"])
def test_a_failure_inside_a_result_is_one_and_says_when_to_come_again(value: Any) -> None:
    found = read(value)

    assert found["status"] == "error"
    assert (found["error_type"], found["retryable"], found["retry_after_ms"]) == ("rate_limit", True, 20_000)


@table("tool", ["search_hotels", "get_weather", "list_orders"])
def test_of_a_tool_that_looks_up_an_object_and_a_line_are_believed(tool: str) -> None:
    assert read('{"error": "it broke"}', tool=tool)["status"] == "error"
    assert read("Error: it broke", tool=tool)["status"] == "error"


def test_what_a_command_prints_is_the_programs() -> None:
    session = Policy([]).session("s", clock=lambda: NOW)
    found = [
        session.call("run", arguments, lambda _tool, _arguments: "Error: it broke").status
        for arguments in ({"command": "make"}, {"code": "f()"}, {"job": "make"})
    ]

    assert found == ["success", "success", "error"]


def test_the_rule_is_replaced_by_what_is_declared() -> None:
    off, own = ResultClassifier(), ResultClassifier(error_when=(FailureRule(matches="^oops"),))

    assert read({"error": "it broke"}, said={"result": off})["status"] == "success"
    assert read("Error: it broke", said={"result": own})["status"] == "success"
    assert read("oops", said={"result": own})["status"] == "error"


# A wait that is a date.


# Merged.


@table("text", ['{"error":  "it broke",\n "n": 0}\n', '{"ok":false}'])
def test_in_the_merged_form_a_failed_object_keeps_its_text(text: str) -> None:
    policy = Policy([Budget(max_calls=1), Retryable()], envelope="merged")
    answer = policy.session("s", clock=lambda: NOW).call("book", {}, lambda _tool, _arguments: text).to_json()
    found = json.loads(answer)

    assert answer.startswith(text.rstrip().removesuffix("}"))
    assert found == json.loads(text) | {
        "error_type": "other",
        "error_message": found["error_message"],
        "next_action_hint": found["next_action_hint"],
        "limit_reached": True,
        "limit_message": "Tool call limit reached (1). Stopping tool loop.",
    }


def test_in_the_merged_form_an_object_is_data_as_well() -> None:
    found = read({"error": "it broke", "n": 0}, envelope="merged")

    assert (found["error"], found["n"], found["error_type"]) == ("it broke", 0, "other")
    assert "status" not in found


@table(
    "value",
    [
        {"error": "it broke", "retryable": True},
        {"error": "it broke", "error_type": "x"},
        {"error": "it broke", "status": "error"},
        "Error: it broke",
        "[1",
    ],
)
def test_in_the_merged_form_what_could_be_taken_for_ours_is_nested(value: Any) -> None:
    found = read(
        value,
        envelope="merged",
        said={"result": ResultClassifier(error_when=(FailureRule(matches="1"),))} if value == "[1" else None,
    )

    assert found["status"] == "error"
    assert "error" not in found


# Tools that speak in envelopes.

CLAIM = {
    "status": "error",
    "error_type": "timeout",
    "error_message": "no answer from the hotel",
    "retryable": True,
    "retry_after_ms": 2000,
}
SPEAKS = {"returns_envelope": True}


@table("envelope", ["nested", "merged"])
def test_an_object_of_a_tool_that_returns_envelopes_is_one(envelope: Any) -> None:
    found = read(CLAIM, said=SPEAKS, envelope=envelope)

    assert {name: found[name] for name in CLAIM} == CLAIM
    assert "result" not in found


def test_a_success_and_its_cost_are_told_in_the_same_form() -> None:
    rows = {
        "status": "success",
        "results": [1],
        "total_matches": 9,
        "is_complete": False,
        "next_action_hint": "Ask on.",
    }

    assert read(rows, said=SPEAKS) == rows
    assert read(Success(rows, 0.1), said=SPEAKS) == rows
    assert read({"status": "success", "hotels": [1], "results": [2]}, said=SPEAKS) == {
        "status": "success",
        "result": {"hotels": [1], "results": [2]},
    }


@table(
    "value",
    [
        {"status": "limit_reached", "limit_message": "stop"},
        {"status": ["error"], "retryable": True},
    ],
)
def test_what_is_no_envelope_claims_nothing(value: Any) -> None:
    found = read(value, said=SPEAKS)

    assert (found["status"], found["result" if "result" in found else "results"]) == ("success", value)
