"""
The stuck agent, unguarded and guarded; recorded chats, of which honest calls come out unchanged.
"""

import json

from pathlib import Path
from typing import Any

from guardrails import Budget, Duplicates, MemorySink, Policy, Rate, Rule
from guardrails.agent.demo import ANSWER, LACKING, compare, play
from guardrails.offline.transcripts import Report
from tests.tables import table


TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"


def test_a5_the_stuck_agent_is_stopped_with_an_answer_and_only_when_guarded() -> None:
    sink = MemorySink()
    compared = compare(Policy.load("default"), max_requests=12, records=sink)
    unguarded, guarded = compared.unguarded, compared.guarded
    assert (unguarded.requests, unguarded.executions, unguarded.ended) == (12, 12, "stopped")
    assert unguarded.answer is None
    assert (guarded.requests, guarded.executions, guarded.ended) == (7, 2, "forced")
    assert (guarded.code, guarded.answer) == ("denials.max_turns_in_a_row", ANSWER)
    assert 0 < guarded.cost_usd < unguarded.cost_usd
    assert 0 < guarded.tokens < unguarded.tokens
    read = [json.loads(text) for text in compared.read]
    assert [envelope["status"] for envelope in read] == ["success"] * 2 + ["duplicate_call_blocked"] * 4
    assert [envelope.get("limit_reached") for envelope in read] == [None] * 5 + [True]
    events = [record["event"] for record in sink.records]
    assert (events.count("request"), events.count("settle")) == (guarded.requests, guarded.executions)


def test_the_cost_counts_tools_that_have_a_price_and_the_policy_stays_as_it_is() -> None:
    rule = Rule(match=("search_*",), declared={"cost_usd": 0.5}, guards={})
    policy = Policy([Budget(max_calls=2)], rules=[rule])
    compared = compare(policy, max_requests=3)
    assert compared.guarded.executions == 2
    for run in (compared.unguarded, compared.guarded):
        assert run.cost_usd > 0.5 * run.executions
    assert policy.prices == {}


# Recorded chats


def played(policy: Policy, file: Path) -> dict[str, Any]:
    [one] = play(policy, str(file), Report())
    return one


TIMED: dict[str, Any] = {"rate": {"max_calls_per_second": 1}, "budget": {"max_elapsed": 1.0}}


@table(
    "policy, file, decisions, code",
    [
        (None, "edit_and_test.json", ["ran"] * 6, None),
        (None, "stuck_search.json.gz", ["ran"] * 2 + ["denied"] * 4, "denials.max_turns_in_a_row"),
        (None, "truncated.json", ["ran"] * 2, None),
        (Policy([Budget(max_calls=2)]), "edit_and_test.json", ["ran"] * 2, "budget.max_calls"),
        # Only time can judge it.
        (
            Policy([Budget(max_elapsed=1.0), Rate(max_calls_per_second=1)], rules=[Rule(match=("*",), guards=TIMED)]),
            "edit_and_test.json",
            ["ran"] * 6,
            None,
        ),
    ],
)
def test_a2_a6_honest_calls_come_out_byte_for_byte_until_the_session_is_over(
    policy: Policy | None, file: str, decisions: list[str], code: str | None, tmp_path: Path
) -> None:
    if policy is None:
        (tmp_path / "merged.yaml").write_text("version: 1\nextends: default\nenvelope: merged\n")
        policy = Policy.load(tmp_path / "merged.yaml")
    chat = played(policy, TRANSCRIPTS / file)
    assert ([call["decision"] for call in chat["calls"]], chat["code"]) == (decisions, code)
    if decisions == ["ran"] * chat["recorded_calls"] and policy.name == "merged":
        for call in chat["calls"]:
            lacking = call["recorded"] is None
            assert json.loads(call["read"])["error_message"] == LACKING if lacking else call["read"] == call["recorded"]


def test_the_result_of_a_denied_call_is_never_read(tmp_path: Path) -> None:
    wire = [{"id": n, "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}} for n in "12"]
    results = [{"role": "tool", "tool_call_id": n, "content": text} for n, text in (("1", "old"), ("2", "new"))]
    turns = [{"role": "assistant", "content": None, "tool_calls": [one]} for one in wire]
    file = tmp_path / "chat.json"
    file.write_text(json.dumps([{"role": "user", "content": "go"}, turns[0], results[0], turns[1], results[1]]))
    call = played(Policy([Duplicates()]), file)["calls"][1]
    assert (call["code"], call["recorded"]) == ("duplicates.window", "new")
    assert json.loads(call["read"])["previous_result"] == "old"
