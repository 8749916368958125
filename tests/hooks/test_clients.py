"""
The same rules behind each client, in its own words; and what a client does not say in so many words.
"""

import json
import time

from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy, SqliteStore
from tests.hooks.driven import Claude, Codex, Gemini, reason, refused
from tests.tables import table


CLIENTS = pytest.mark.parametrize("client", [Claude, Codex, Gemini])
USAGE = {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 5}
BIG = "line\n" * 40_000


@CLIENTS
def test_a_repeat_that_brings_nothing_is_refused_and_free_again_after_work(client: Any, tmp_path: Path) -> None:
    driven = client(tmp_path)
    assert [driven.ran() for _ in range(4)] == [True, True, False, False]
    edit = {"file_path": str(tmp_path / "a.py"), "old_string": "a", "new_string": "b"}
    assert driven.ran("replace" if client is Gemini else "Edit", edit, "The file was changed.")
    assert driven.ran(), "tests run again after an edit"


HONEST = json.loads(Path(__file__).with_name("honest.json").read_text())
"""Looks that find nothing, and failures."""


@CLIENTS
def test_other_commands_are_not_refused_for_what_those_before_them_found(client: Any, tmp_path: Path) -> None:
    for command, shown in HONEST:
        driven = client(tmp_path)
        for n in range(12):
            assert not refused(driven.before(arguments={"command": command.format(n)})), command
            if shown is not None:
                driven.after({"stdout": shown, "stderr": "", "interrupted": False} if client is Claude else shown)
            elif client is Claude:
                driven.tell("PostToolUseFailure", **driven.last, error="Exit code 1")
            else:
                driven.after("<untrusted_context>\nOutput: (empty)\nExit Code: 1\n</untrusted_context>")


def test_a_command_of_codex_in_another_folder_is_another_call(tmp_path: Path) -> None:
    driven = Codex(tmp_path)
    places = [str(tmp_path / name) for name in ("a", "b", "c")]
    event = {"tool_name": "Bash", "tool_input": {"command": "git status --short"}}
    ids = [(place, f"call_{number}") for number, place in enumerate(places)]
    begun = [driven.tell("PreToolUse", **event, cwd=place, tool_use_id=key) for place, key in ids]
    ended = [driven.tell("PostToolUse", **event, cwd=place, tool_use_id=key, tool_response="") for place, key in ids]
    assert [*begun, *ended] == [{}] * 6
    twins = [driven.tell("PreToolUse", **event, cwd=places[0], tool_use_id=f"call_{n}") for n in range(3, 5)]
    assert [refused(one) for one in twins] == [False, True]


def test_observed_calls_are_decided_recorded_and_never_answered(tmp_path: Path) -> None:
    driven = Claude(tmp_path, "version: 1\nbudget: {max_calls: 1}\n", observe=True)
    for n in range(3):
        assert driven.before(arguments={"command": f"ls {n}"}) == {}
        assert driven.after() == {}
    observed = [record.get("observed") for record in driven.records() if record["event"] == "call"]
    assert len(observed) == 3
    assert observed[0] != observed[2]


def test_a_person_is_asked_in_the_way_of_each_client(tmp_path: Path) -> None:
    asking = "version: 1\napprove: {tools: ['*']}\n"
    claude, codex, gemini = (client(tmp_path, asking).before() for client in (Claude, Codex, Gemini))
    assert claude["hookSpecificOutput"]["permissionDecision"] == "ask"
    assert gemini["decision"] == "ask"
    assert gemini["reason"] == gemini["systemMessage"]
    assert refused(codex), "Codex would run what is asked about"


# At a limit


@CLIENTS
def test_a_refusal_is_a_sentence_above_the_envelope_and_asks_for_the_answer(client: Any, tmp_path: Path) -> None:
    driven = client(tmp_path, "version: 1\nbudget: {max_calls: 2}\n")
    answers = [driven.before(arguments={"command": f"ls {n}"}) for n in range(4)]
    assert [refused(answer) for answer in answers] == [False, False, True, True]
    said = answers[2].get("reason") or answers[2]["hookSpecificOutput"]["permissionDecisionReason"]
    assert said.startswith("Tool call limit reached (2)")
    assert "final answer" in json.dumps(reason(answers[2]))
    assert all("continue" not in answer for answer in answers), "the model is to write it"


@table("together, stops", [(True, [False] * 4), (False, [False, False, True, True])])
def test_a_model_that_goes_on_is_stopped_and_its_person_reads_the_digest(
    together: bool, stops: list[bool], tmp_path: Path
) -> None:
    driven, stopped = Claude(tmp_path, "version: 1\nbudget: {max_calls: 1}\n"), []
    if together:
        driven.said("msg_1", USAGE, *(f"toolu_{n}" for n in range(1, 5)))
    for n in range(1, 5):
        if not together:
            driven.said(f"msg_{n}", USAGE, f"toolu_{n}")
        said = driven.before(arguments={"command": f"ls {n}"})
        assert refused(said) == (n > 1)
        if n == 1:
            driven.after()
        driven.result(f"toolu_{n}")
        stopped.append("continue" in said)
    # The second call reads the reason, the third is made nevertheless.
    assert stopped == stops
    assert together or said["stopReason"].startswith("1 tool call was made:\n- Bash done\n")


def test_gemini_may_call_nothing_once_a_limit_is_used_up(tmp_path: Path) -> None:
    driven = Gemini(tmp_path, "version: 1\nbudget: {max_calls: 2}\n")
    assert driven.tell("BeforeToolSelection", llm_request={}) == {}
    for n in range(3):
        driven.ran(arguments={"command": f"ls {n}"})
    said = driven.tell("BeforeToolSelection", llm_request={})
    assert said == {"hookSpecificOutput": {"hookEventName": "BeforeToolSelection", "toolConfig": {"mode": "NONE"}}}


@CLIENTS
@pytest.mark.parametrize("more", ["budget: {max_calls: 4}", "budget: {}", ""])
def test_a_limit_that_the_policy_raises_opens_the_session_with_the_next_message(
    tmp_path: Path, client: Any, more: str
) -> None:
    prompt = "BeforeAgent" if client is Gemini else "UserPromptSubmit"
    made = client(tmp_path, "version: 1\nbudget: {max_calls: 2}\n")
    assert [made.ran(arguments={"command": f"make {n}"}) for n in range(3)] == [True, True, False]
    made.tell(prompt)
    assert not made.ran(arguments={"command": "make 3"})
    made.policy.write_text(f"version: 1\n{more}\n")
    made.tell(prompt)
    assert [made.ran(arguments={"command": f"make {n}"}) for n in range(4, 7)] == [True, True, "4" not in more]


RULES = Path(__file__).with_name("rules.yaml").read_text()


def test_a_coding_cli_is_held_to_rules_and_told_of_a_limit_that_is_near(tmp_path: Path) -> None:
    pytest.importorskip("cel_expr_python")
    cli = Claude(tmp_path, RULES)
    assert "it is Friday" in str(reason(cli.before("Bash", {"command": "stop"})))
    assert refused(cli.before("Bash", {"command": "deploy a"}))
    assert cli.ran("Read", {"file_path": "a"})
    assert [cli.ran("Bash", {"command": command}) for command in ("deploy a", "ls")] == [True, True]
    cli.before("Bash", {"command": "make"})
    assert "Left: 1 call of 5 a day, Europe/Berlin." in str(cli.after())
    assert cli.ran("Bash", {"command": "make it"})
    assert "5 a day, Europe/Berlin" in str(cli.before("Bash", {"command": "more"}))


# Results and the calls that they are of


@CLIENTS
def test_a_result_is_cut_in_the_form_of_its_client(client: Any, tmp_path: Path) -> None:
    driven = client(tmp_path)
    assert driven.before() == {}
    given: Any = {"stdout": BIG, "stderr": "", "interrupted": False} if client is Claude else BIG
    answer = driven.after(given)
    if client is Claude:
        kept = answer["hookSpecificOutput"]["updatedToolOutput"]
        assert kept.keys() == given.keys()
        text = kept["stdout"]
        assert json.loads(answer["hookSpecificOutput"]["additionalContext"])["is_complete"] is False
    else:
        assert answer.keys() == {"decision", "reason"}
        assert answer["decision"] == ("block" if client is Codex else "deny")
        text = answer["reason"]
        assert "smaller part" in text
    assert text.startswith("line\nline\n")
    assert len(text) < 70_000


@CLIENTS
def test_identical_calls_in_parallel_are_two(client: Any, tmp_path: Path) -> None:
    driven = client(tmp_path, "version: 1\nbudget: {max_calls: 99}\n")
    assert driven.before() == {}
    first = driven.last
    assert driven.before() == {}
    assert driven.after() == {}
    driven.last = first
    assert driven.after() == {}
    records = driven.records()
    assert [record["event"] for record in records] == ["call", "call", "settle", "settle"]
    assert len({record["id"] for record in records if record["event"] == "call"}) == 2
    assert {r["seq"] for r in records if r["event"] == "settle"} == {r["seq"] for r in records if r["event"] == "call"}


EXITS = json.loads(Path(__file__).with_name("exits.json").read_text())


@table("text, failed", EXITS)
def test_an_exit_code_of_gemini_counts_behind_the_output(text: str, failed: bool, tmp_path: Path) -> None:
    driven = Gemini(tmp_path)
    driven.before()
    answer = driven.after(f"<untrusted_context>\n{text}\n</untrusted_context>")
    assert [r["status"] for r in driven.records() if r["event"] == "settle"] == ["error" if failed else "ok"]
    assert ("additionalContext" in json.dumps(answer)) is failed


# Sub-agents and workspaces


@pytest.mark.parametrize("client", [Claude, Codex])
def test_a_sub_agent_draws_from_who_started_it_and_has_seen_nothing_yet(client: Any, tmp_path: Path) -> None:
    driven = client(tmp_path, "version: 1\nextends: default\nbudget: {max_calls: 6}\n")
    assert [driven.ran() for _ in range(3)] == [True, True, False]
    driven.tell("SubagentStart", agent_id="a", agent_type="x")
    assert driven.ran(agent_id="a"), "it has a context of its own"
    for n in range(9):
        driven.ran(arguments={"command": f"ls {n}"}, agent_id="a")
    driven.tell("SubagentStop", agent_id="a", agent_type="x", last_assistant_message="done")
    kept = [driven.ran(arguments={"command": f"cat {n}"}) for n in range(4)]
    assert kept.count(True) == 1, "the last call is its parent's"


def test_the_workspace_is_where_the_session_began(tmp_path: Path) -> None:
    inside, outside = tmp_path / "project", tmp_path / "other"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    driven = Claude(tmp_path, "version: 1\nextends: default\nworkspace: {root: .}\n")
    driven.project = str(inside)

    def ran(path: Path | str, cwd: Path) -> bool:
        return driven.ran("Read", {"file_path": str(path)}, "text", cwd=str(cwd))

    assert ran(inside / "a", inside)
    assert not ran(outside / "a", inside)
    assert ran(inside / "b", inside / "sub"), "an agent in a folder below has all of its project"
    assert ran("../c", inside / "sub"), "and names paths from where it is"
    assert not ran("../../other/a", inside / "sub")
    assert not ran(outside / "a", outside), "whoever goes out has not taken the workspace along"


@CLIENTS
def test_the_commands_of_each_client_are_read_where_a_policy_speaks_of_them(client: Any, tmp_path: Path) -> None:
    pytest.importorskip("tree_sitter_bash")
    driven = client(tmp_path, "version: 1\nshell: {deny: [halt]}\n")
    assert refused(driven.before(arguments={"command": "sh -c 'halt'"}))
    assert not refused(driven.before(arguments={"command": "ls"}))


def tokens(driven: Any) -> int:
    session = Policy.load(driven.options.policy).session("s", store=SqliteStore(driven.options.store))
    found: int = session.ledger.read(lambda state, _: state.tokens)
    return found


# Calls whose end nobody tells


FOLLOWS = {
    Claude: ("UserPromptSubmit", "Stop", "SessionStart"),
    Codex: ("UserPromptSubmit", "Stop"),
    Gemini: ("BeforeAgent", "AfterAgent"),
}


@table("client, event", [(client, event) for client, events in FOLLOWS.items() for event in events])
def test_the_same_call_waits_for_the_first_or_what_follows_it(client: Any, event: str, tmp_path: Path) -> None:
    driven = client(tmp_path)
    assert driven.before() == {}
    assert reason(driven.before())["code"] == "call.in_flight"
    driven.tell(event)
    assert driven.before() == {}, "it may be made again"


def test_a_call_whose_result_stands_in_the_transcript_is_over(tmp_path: Path) -> None:
    driven = Claude(tmp_path)
    driven.said("msg_1", USAGE, "toolu_1")
    assert driven.before() == {}
    driven.result("toolu_1", "The user doesn't want to proceed")
    assert driven.before() == {}
    driven.result("somebody else's")
    assert refused(driven.before()), "that of another call says nothing"


def count(driven: Any, total: int) -> dict[str, Any]:
    last = {"input_tokens": 90, "cached_input_tokens": 4, "output_tokens": 10, "reasoning_output_tokens": 2}
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}
    return {"timestamp": driven.now(), "type": "event_msg", "payload": {"type": "token_count", "info": info}}


@table("client", [Codex, Gemini])
def test_a_call_whose_end_nobody_tells_is_over_with_the_response_after_it(client: Any, tmp_path: Path) -> None:
    driven = client(tmp_path)
    for n in range(1, 4):
        assert driven.before("mcp__a__b", {"q": 1}) == {}, "it is tried again"
        if client is Gemini:
            driven.answered(100 * n)
        else:
            driven.write(count(driven, 100 * n))


def test_a_call_that_the_client_refused_never_ran(tmp_path: Path) -> None:
    driven = Claude(tmp_path, "version: 1\nbudget: {max_calls: 1}\n")
    assert driven.before() == {}
    driven.tell("PermissionDenied", **driven.last, reason="no")
    assert driven.before() == {}


# What responses used


def test_a_response_of_claude_is_charged_once_whatever_is_told(tmp_path: Path) -> None:
    driven = Claude(tmp_path)
    driven.tell("SessionStart", source="startup")
    driven.said("msg_1", {**USAGE, "output_tokens": 1})
    driven.said("msg_1", USAGE, "toolu_1")
    driven.before()
    assert tokens(driven) == 0, "it may not be whole"
    driven.result("toolu_1")
    for _ in range(3):
        driven.before(arguments={"command": "ls"})
        assert tokens(driven) == 115
    driven.said("msg_2", USAGE)
    driven.tell("Stop", last_assistant_message="done")
    driven.tell("Stop", last_assistant_message="done")
    assert tokens(driven) == 230


def test_a_count_of_codex_is_charged_once_however_often_it_is_written(tmp_path: Path) -> None:
    driven = Codex(tmp_path)
    for total in (100, 100, 200, 200):
        driven.write(count(driven, total))
        driven.before(arguments={"command": f"ls {total}"})
        driven.after()
    assert tokens(driven) == 200
    charged = [record for record in driven.records() if record["event"] == "charge"]
    assert [(record["model"], record["cached_tokens"]) for record in charged] == [("gpt-5", 4), ("gpt-5", 4)]


def test_a_response_of_gemini_is_charged_by_its_last_piece(tmp_path: Path) -> None:
    driven = Gemini(tmp_path)
    for over in (False, False, True):
        driven.answered(100, over=over)
    assert tokens(driven) == 100


STRANGE = Path(__file__).with_name("strange.jsonl").read_bytes().splitlines()


@table("line", [*STRANGE, b"{" * 100_000, b"\xff\xfe usage \x00"])
def test_what_anybody_has_written_into_a_transcript_harms_nothing(tmp_path: Path, line: bytes) -> None:
    driven = Claude(tmp_path)
    driven.transcript.write_bytes(line + b"\n")
    assert [driven.ran() for _ in range(3)] == [True, True, False]
    driven.tell("Stop", last_assistant_message="done")
    assert tokens(driven) == 0


def test_a_huge_transcript_costs_no_more_than_its_end(tmp_path: Path) -> None:
    driven = Claude(tmp_path)
    with driven.transcript.open("wb") as file:
        file.truncate(3 << 30)
        file.seek(3 << 30)
        file.write(b"\n")
    driven.said("msg_1", USAGE, "toolu_1")
    driven.result("toolu_1")
    started = time.process_time()
    driven.before()
    assert time.process_time() - started < 2
    assert tokens(driven) == 115
