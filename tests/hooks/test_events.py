"""
What Claude Code's hooks answer, event by event, with no SDK and in any process.
"""

import json

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Approve, Budget, Duplicates, MemorySink, Policy, Session, Truncate
from guardrails.hooks.events import answer, open_calls
from guardrails.hooks.results import cut
from tests.hooks.driven import reason
from tests.tables import table


def event(name: str, **said: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": "s", "transcript_path": "", "cwd": "", **said}


def call(name: str, n: int, tool: str = "Bash", arguments: Any = None, **said: Any) -> dict[str, Any]:
    given = {"command": f"ls {n}"} if arguments is None else arguments
    return event(name, tool_name=tool, tool_input=given, tool_use_id=f"toolu_{n}", **said)


def specific(output: dict[str, Any]) -> Any:
    return output.get("hookSpecificOutput", {})


def ran(session: Session, n: int, response: Any = "ok", **said: Any) -> dict[str, Any]:
    """
    What is answered after a call that was let run.
    """
    assert answer(session, call("PreToolUse", n, **said)) == {}
    return answer(session, call("PostToolUse", n, tool_response=response, **said))


def test_the_same_hook_asked_twice_charges_once_and_lets_the_call_run_twice() -> None:
    session = Policy([Budget(max_calls=5), Duplicates()]).session("s")
    assert answer(session, call("PreToolUse", 1)) == {}
    assert answer(session, call("PreToolUse", 1)) == {}
    twin = call("PreToolUse", 1) | {"tool_use_id": "toolu_2"}
    assert reason(answer(session, twin))["code"] == "call.in_flight"
    assert session.ledger.progress["calls_used"] == 1


# Results


def test_a_text_of_a_server_is_cut_in_place_and_reads_as_an_envelope_where_that_is_asked_for() -> None:
    session = Policy([Budget(max_calls=3), Truncate(max_bytes=2_048)]).session("s")
    big = specific(ran(session, 1, [{"type": "text", "text": "row " * 20_000}], tool="mcp__db__read"))
    [block] = big["updatedToolOutput"]
    assert (block["type"], len(block["text"]) < 2_100) == ("text", True)
    assert json.loads(big["additionalContext"])["is_complete"] is False
    found: dict[str, Any] = {"tool_response": [{"type": "text", "text": "found"}], "tool": "mcp__db__read"}
    made: list[dict[str, Any]] = []
    for n, envelopes in ((2, True), (3, False)):
        assert answer(session, call("PreToolUse", n, tool="mcp__db__read")) == {}
        made.append(specific(answer(session, call("PostToolUse", n, **found), envelopes=envelopes)))
    assert json.loads(made[0]["updatedToolOutput"][0]["text"])["result"] == "found"
    assert json.loads(made[1]["additionalContext"])["limit_reached"] is True


def test_images_stay_where_they_are_and_the_records_do_not_hold_them() -> None:
    sink = MemorySink()
    session = Policy([Budget(max_calls=1)]).session("s", records=sink)
    image = {"type": "image", "data": "QUJD" * 1_000, "mimeType": "image/png"}
    said = specific(ran(session, 1, [{"type": "text", "text": "a map"}, image]))
    assert "updatedToolOutput" not in said
    assert json.loads(said["additionalContext"])["limit_reached"] is True
    session.close()
    assert "QUJDQUJD" not in json.dumps(sink.records, default=str)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=3_000),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def is_part(made: Any, whole: Any) -> bool:
    """
    Whether *made* is *whole* with ends cut off: of texts and lists what stands first, of objects all members.
    """
    if isinstance(whole, str):
        return isinstance(made, str) and whole.startswith(made.partition("... [truncated: ")[0])
    if isinstance(whole, list):
        return isinstance(made, list) and all(is_part(*pair) for pair in zip(made, whole, strict=False))
    if isinstance(whole, dict):
        return made.keys() == whole.keys() and all(is_part(made[name], whole[name]) for name in made)
    return bool(made == whole)


@given(JSON, st.integers(256, 8_192))
def test_a_cut_is_a_part_of_the_same_form_and_leaves_the_original_alone(value: Any, limit: int) -> None:
    before = json.dumps(value)
    assert is_part(made := cut(value, limit), value)
    assert json.dumps(value) == before
    if len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()) <= limit:
        assert made == value


# Approvals and permissions


def test_a_call_that_a_person_allowed_in_claude_code_is_charged_once() -> None:
    session = Policy([Approve(tools=("Bash",)), Budget(max_calls=5)]).session("s")
    asked = specific(answer(session, call("PreToolUse", 1), asks=True))
    assert asked["permissionDecision"] == "ask"
    assert "approve.pending" in asked["permissionDecisionReason"]
    answer(session, call("PostToolUse", 1, tool_response="done"))
    assert (session.ledger.progress["calls_used"], open_calls(session), session.pending()) == (1, [], [])


# Sub-agents


def in_agent(n: int) -> dict[str, Any]:
    return {"agent_id": f"agent-{n}", "agent_type": "explore"}


def test_a_sub_agent_beyond_the_number_that_a_policy_allows_makes_no_call() -> None:
    session = Policy([Budget(max_children=2)]).session("s")
    for n in (1, 2):
        ran(session, n, **in_agent(n))
    refused = reason(answer(session, call("PreToolUse", 3, **in_agent(3))))
    assert (refused["status"], refused["code"]) == ("limit_reached", "budget.max_children")
    ran(session, 4, **in_agent(1))
    ran(session, 5)


def test_what_sub_agents_hold_that_nobody_ended_comes_back_when_the_agent_stops() -> None:
    session = Policy([Budget(max_calls=10)]).session("s")
    ran(session, 1, **in_agent(1))
    session.child("mine", max_calls=1)
    stop = event("Stop", stop_hook_active=False, last_assistant_message="x")
    for running, left in (([{"id": "b"}], 7), ([], 8)):
        answer(session, stop | {"background_tasks": running})
        assert session.ledger.progress["calls_left"] == left


@table("said", ["", "  ", None])
def test_a_person_reads_the_digest_where_the_model_ends_at_a_limit_without_a_word(said: Any) -> None:
    session = Policy([Budget(max_calls=1)]).session("s")
    stop = event("Stop", stop_hook_active=False, last_assistant_message=said)
    assert answer(session, stop) == {}
    ran(session, 1)
    assert answer(session, stop) == {"systemMessage": session.digest()}
    assert answer(session, stop | {"last_assistant_message": "I found it."}) == {}
