"""
The same rules behind each client, in its own words; and what a client does not say in so many words.
"""

import json
import time

from pathlib import Path
from typing import Any

import pytest

from tests.hooks.driven import Claude, Codex, Gemini, reason, refused
from tests.tables import table


CLIENTS = pytest.mark.parametrize("client", [Claude, Codex, Gemini])
USAGE = {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 5}
BIG = "line\n" * 40_000


SCENES = json.loads(Path(__file__).with_name("scenes.json").read_text())
"""What clients tell, and the answers: whether a call is let through, a part of what is said, or all of it."""


@table("scene, client", [(scene, client) for scene in SCENES for client in scene["clients"]])
def test_a_client_and_its_person_are_answered_as_the_scene_says(tmp_path: Path, scene: Any, client: str) -> None:
    pytest.importorskip("cel_expr_python")
    pytest.importorskip("tree_sitter_bash")
    driven = {"Claude": Claude, "Codex": Codex, "Gemini": Gemini}[client](tmp_path, f"version: 1\n{scene['policy']}\n")
    steps = json.loads(json.dumps(scene["steps"]).replace("{folder}", str(driven.folder)))
    for at, (verb, given, expected) in enumerate(steps):
        method = getattr(driven, verb)
        made = method(**given) if isinstance(given, dict) else method(*given)
        if isinstance(expected, bool):
            assert (made if isinstance(made, bool) else not refused(made)) is expected, at
        elif isinstance(expected, str):
            assert expected in str(made), at
        else:
            assert expected is None or made == expected, at


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


def test_observed_calls_are_decided_recorded_and_never_answered(tmp_path: Path) -> None:
    driven = Claude(tmp_path, "version: 1\nbudget: {max_calls: 1}\n", observe=True)
    for n in range(3):
        assert driven.before(arguments={"command": f"ls {n}"}) == {}
        assert driven.after() == {}
    observed = [record.get("observed") for record in driven.records() if record["event"] == "call"]
    assert len(observed) == 3
    assert observed[0] != observed[2]


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
def test_a_model_that_goes_on_is_stopped_with_the_digest(together: bool, stops: list[bool], tmp_path: Path) -> None:
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


@table("text, failed", json.loads(Path(__file__).with_name("exits.json").read_text()))
def test_an_exit_code_of_gemini_counts_behind_the_output(text: str, failed: bool, tmp_path: Path) -> None:
    driven = Gemini(tmp_path)
    driven.before()
    answer = driven.after(f"<untrusted_context>\n{text}\n</untrusted_context>")
    assert [r["status"] for r in driven.records() if r["event"] == "settle"] == ["error" if failed else "ok"]
    assert ("additionalContext" in json.dumps(answer)) is failed


# What responses used


def test_a_count_of_codex_is_charged_once_however_often_it_is_written(tmp_path: Path) -> None:
    driven = Codex(tmp_path)
    for total in (100, 100, 200, 200):
        driven.count(total)
        driven.before(arguments={"command": f"ls {total}"})
        driven.after()
    assert driven.tokens() == 200
    charged = [record for record in driven.records() if record["event"] == "charge"]
    assert [(record["model"], record["cached_tokens"]) for record in charged] == [("gpt-5", 4), ("gpt-5", 4)]


STRANGE = Path(__file__).with_name("strange.jsonl").read_bytes().splitlines()


@table("line", [*STRANGE, b"{" * 100_000, b"\xff\xfe usage \x00"])
def test_what_anybody_has_written_into_a_transcript_harms_nothing(tmp_path: Path, line: bytes) -> None:
    driven = Claude(tmp_path)
    driven.transcript.write_bytes(line + b"\n")
    assert [driven.ran() for _ in range(3)] == [True, True, False]
    driven.tell("Stop", last_assistant_message="done")
    assert driven.tokens() == 0


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
    assert driven.tokens() == 115
