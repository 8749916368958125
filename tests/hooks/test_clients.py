"""
The same rules behind each client, in its own words.
"""

import json

from pathlib import Path
from typing import Any

import pytest

from guardrails.hooks.clients import shell_failed
from tests.hooks.driven import Claude, Codex, Gemini, reason, refused


CLIENTS = pytest.mark.parametrize("client", [Claude, Codex, Gemini])
SHORT = "version: 1\nbudget: {max_calls: 2}\n"
BIG = "line\n" * 40_000


@CLIENTS
def test_a_repeat_that_brings_nothing_is_refused(client: Any, tmp_path: Path) -> None:
    driven = client(tmp_path)
    assert [driven.ran() for _ in range(4)] == [True, True, False, False]


@CLIENTS
def test_a_refused_repeat_is_free_again_after_work(client: Any, tmp_path: Path) -> None:
    driven = client(tmp_path)
    assert [driven.ran() for _ in range(3)] == [True, True, False]
    edit = {"file_path": str(tmp_path / "a.py"), "old_string": "a", "new_string": "b"}
    assert driven.ran("replace" if client is Gemini else "Edit", edit, "The file was changed.")
    assert driven.ran(), "tests run again after an edit"


@CLIENTS
def test_what_is_said_at_a_limit_asks_for_the_answer(client: Any, tmp_path: Path) -> None:
    driven = client(tmp_path, SHORT)
    answers = [driven.before(arguments={"command": f"ls {n}"}) for n in range(4)]
    assert [refused(answer) for answer in answers] == [False, False, True, True]
    assert "final answer" in json.dumps(reason(answers[2]))
    assert all("continue" not in answer for answer in answers), "the model is to write it"


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
    else:
        assert answer.keys() == {"decision", "reason"}
        assert answer["decision"] == ("block" if client is Codex else "deny")
        text = answer["reason"]
        assert "smaller part" in text
    assert text.startswith("line\nline\n")
    assert len(text) < 70_000


@pytest.mark.parametrize("client", [Claude, Codex])
def test_identical_calls_in_parallel_are_two_by_their_ids(client: Any, tmp_path: Path) -> None:
    driven = client(tmp_path, "version: 1\nbudget: {max_calls: 99}\n")
    assert driven.before() == {}
    first = driven.last
    assert driven.before() == {}
    assert driven.after() == {}
    driven.last = first
    assert driven.after() == {}
    assert [record["event"] for record in driven.records()] == ["call", "call", "settle", "settle"]


def test_gemini_meets_the_ends_of_identical_calls_though_they_have_no_ids(tmp_path: Path) -> None:
    driven = Gemini(tmp_path, "version: 1\nbudget: {max_calls: 99}\n")
    same = {"command": "make"}
    assert [driven.before(arguments=same), driven.before(arguments=same)] == [{}, {}]
    assert [driven.after(), driven.after()] == [{}, {}]
    records = driven.records()
    assert [record["event"] for record in records] == ["call", "call", "settle", "settle"]
    assert len({record["id"] for record in records if record["event"] == "call"}) == 2
    assert {r["seq"] for r in records if r["event"] == "settle"} == {r["seq"] for r in records if r["event"] == "call"}


def test_arguments_that_another_hook_has_changed_find_their_call(tmp_path: Path) -> None:
    driven = Gemini(tmp_path)
    assert driven.before(arguments={"command": "a"}) == {}
    assert driven.after(tool_input={"command": "b"}) == {}
    assert [record["event"] for record in driven.records()] == ["call", "settle"]


def test_a_command_that_failed_is_a_failure_by_its_exit_code(tmp_path: Path) -> None:
    driven = Gemini(tmp_path)
    driven.before()
    answer = driven.after("<untrusted_context>\nOutput: bad\nExit Code: 3\nProcess Group PGID: 7\n</untrusted_context>")
    assert "exec_nonzero" in answer["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("Output: a\nError: (none)\nExit Code: 0\nSignal: 0\nBackground PIDs: (none)\nProcess Group PGID: 7", False),
        ("Output: a\nError: (none)\nExit Code: 2\nSignal: 0\nBackground PIDs: (none)\nProcess Group PGID: 7", True),
        ("Output: a\nError: (none)\nExit Code: (none)\nSignal: 9\nProcess Group PGID: 7", True),
        ("Output: a\nSignal: SIGTERM", True),
        ("Output: the log ends in\nExit Code: 1\nas it should\nProcess Group PGID: 7", False),
    ],
)
def test_an_exit_code_counts_behind_the_output_and_if_it_is_not_0(text: str, failed: bool, tmp_path: Path) -> None:
    assert shell_failed("run_shell_command", text) is failed
    driven = Gemini(tmp_path)
    driven.before()
    driven.after(f"<untrusted_context>\n{text}\n</untrusted_context>")
    assert [r["status"] for r in driven.records() if r["event"] == "settle"] == ["error" if failed else "ok"]


def test_a_failure_that_claude_tells_is_one(tmp_path: Path) -> None:
    driven = Claude(tmp_path)
    driven.before()
    said = driven.tell("PostToolUseFailure", **driven.last, error="Exit code 3\nbad")
    assert "exec_nonzero" in said["hookSpecificOutput"]["additionalContext"]


ASKING = "version: 1\napprove: {tools: ['*']}\n"


def test_a_person_is_asked_in_the_way_of_each_client(tmp_path: Path) -> None:
    for number, client in enumerate((Claude, Codex, Gemini)):
        folder = tmp_path / str(number)
        folder.mkdir()
        answer = client(folder, ASKING).before()
        if client is Claude:
            assert answer["hookSpecificOutput"]["permissionDecision"] == "ask"
        elif client is Gemini:
            assert answer["decision"] == "ask"
            assert answer["reason"] == answer["systemMessage"]
        else:
            assert refused(answer), "Codex would run what is asked about"


def test_gemini_may_call_nothing_once_a_limit_is_used_up(tmp_path: Path) -> None:
    driven = Gemini(tmp_path, SHORT)
    assert driven.tell("BeforeToolSelection", llm_request={}) == {}
    for n in range(3):
        driven.ran(arguments={"command": f"ls {n}"})
    said = driven.tell("BeforeToolSelection", llm_request={})
    assert said == {"hookSpecificOutput": {"hookEventName": "BeforeToolSelection", "toolConfig": {"mode": "NONE"}}}


def test_observed_calls_are_decided_recorded_and_never_answered(tmp_path: Path) -> None:
    driven = Claude(tmp_path, "version: 1\nbudget: {max_calls: 1}\n", observe=True)
    for n in range(3):
        assert driven.before(arguments={"command": f"ls {n}"}) == {}
        assert driven.after() == {}
    observed = [record.get("observed") for record in driven.records() if record["event"] == "call"]
    assert len(observed) == 3
    assert observed[0] != observed[2]


# Sub-agents


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


# Workspaces


PLACED = "version: 1\nextends: default\nworkspace: {root: .}\n"


def test_the_workspace_is_where_the_session_began(tmp_path: Path) -> None:
    inside, outside = tmp_path / "project", tmp_path / "other"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    driven = Claude(tmp_path, PLACED)
    driven.project = str(inside)

    def ran(path: Path | str, cwd: Path) -> bool:
        return driven.ran("Read", {"file_path": str(path)}, "text", cwd=str(cwd))

    assert ran(inside / "a", inside)
    assert not ran(outside / "a", inside)
    assert ran(inside / "b", inside / "sub"), "an agent in a folder below has all of its project"
    assert ran("../c", inside / "sub"), "and names paths from where it is"
    assert not ran("../../other/a", inside / "sub")
    assert not ran(outside / "a", outside), "whoever goes out has not taken the workspace along"


def test_the_commands_of_each_client_are_read_where_a_policy_speaks_of_them(tmp_path: Path) -> None:
    pytest.importorskip("tree_sitter_bash")
    for number, client in enumerate((Claude, Codex, Gemini)):
        folder = tmp_path / str(number)
        folder.mkdir()
        driven = client(folder, "version: 1\nshell: {deny: [halt]}\n")
        assert refused(driven.before(arguments={"command": "sh -c 'halt'"}))
        assert not refused(driven.before(arguments={"command": "ls"}))
