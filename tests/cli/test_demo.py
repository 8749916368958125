"""
`guardrails demo`: the comparison, recorded chats, and what it says where it cannot run.
"""

import json
import sys

from pathlib import Path

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from guardrails.sinks import read
from guardrails.testing.scripted_openai import Calls, ScriptedOpenAI, Text, call


pytestmark = pytest.mark.system


TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def demo(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["demo", *arguments])


def transcript(name: str) -> str:
    return str(TRANSCRIPTS / name)


def test_the_demo_shows_both_runs_what_the_model_read_and_its_answer() -> None:
    shown = demo("--max-requests", "8")
    assert shown.exit_code == 0, shown.output
    rows = {line.split(" ")[0]: line.split()[1:] for line in shown.stdout.splitlines()}
    assert rows["requests"] == ["8", "7"]
    assert rows["executions"] == ["8", "2"]
    assert "Cost at $1.25 for a million tokens in and $10.00 out." in shown.stdout
    assert '"status":"duplicate_call_blocked","code":"duplicates.evidence"' in shown.stdout
    assert '"limit_message":"Every tool call of 3 turns in a' in shown.stdout
    assert "I found no hotel in Shibuya" in shown.stdout
    assert "\x1b" not in shown.stdout


def test_the_demo_is_data_for_another_program_and_writes_its_records(tmp_path: Path) -> None:
    shown = demo("--json", "--max-requests", "4", "--policy", "strict", "--records", str(tmp_path / "r.jsonl"))
    said = json.loads(shown.stdout)
    assert (said["policy"], said["usd_per_mtok"]) == ("strict", [1.25, 10.0])
    assert (said["unguarded"]["ended"], said["unguarded"]["requests"]) == ("stopped", 4)
    assert (said["guarded"]["ended"], said["guarded"]["executions"]) == ("forced", 1)
    records = list(read(tmp_path / "r.jsonl"))
    assert [record["n"] for record in records] == list(range(1, len(records) + 1))
    assert sum(record["event"] == "call" for record in records) == len(said["read"])


def test_recorded_chats_are_played_and_what_was_stopped_is_told() -> None:
    chats = ("--transcript", transcript("stuck_search.json.gz"), "--transcript", transcript("edit_and_test.json"))
    shown = demo(*chats)
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert lines[0] == "stuck_search.json.gz: 6 calls, 4 denied"
    assert [line.split()[:3] for line in lines[2:5]] == [
        *(["web_search", "ran"], ["web_search", "ran"], ["web_search", "denied", "duplicates.evidence"]),
    ]
    assert "edit_and_test.json: 6 calls, 0 denied" in lines


@pytest.mark.parametrize(
    ("file", "note"),
    [
        ("no_calls.json", "no tool calls in this chat"),
        ("truncated.json", "1 of 2 calls has no result"),
    ],
)
def test_what_a_recording_lacks_is_said(file: str, note: str) -> None:
    shown = demo("--transcript", transcript(file))
    assert shown.exit_code == 0
    assert note in " ".join(shown.stdout.split())


def test_without_the_openai_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # None in sys.modules is how Python itself marks a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "openai", None)
    failed = demo()
    assert failed.exit_code == 2
    assert failed.stderr == 'the demo needs `openai`: pip install "toolcall-guardrails[openai]"\n'


def test_a_real_endpoint_is_run_on_the_same_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    search = Calls(
        call("search_hotels", {"destination": "Shibuya", "max_price": 150, "check_in": "a", "check_out": "b"})
    )
    with ScriptedOpenAI([search, Text("none found"), search, Text("none found")]) as server:
        shown = demo("--json", "--base-url", server.base_url, "--model", "gpt-5-mini")
    said = json.loads(shown.stdout)
    for run in ("unguarded", "guarded"):
        assert (said[run]["requests"], said[run]["executions"], said[run]["ended"]) == (2, 1, "answered")
        assert said[run]["answer"] == "none found"
        # At the prices that genai-prices lists.
        assert 0 < said[run]["cost_usd"] < 0.01
    assert said["usd_per_mtok"] == [0.25, 2.0]


def test_openai_itself_is_asked_only_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    failed = demo("--model", "gpt-5-mini")
    assert failed.exit_code == 2
    assert failed.stderr.startswith("set OPENAI_API_KEY")


def test_a_model_that_never_answers_is_shown_with_the_digest(tmp_path: Path) -> None:
    def stubborn(body: dict[str, object], n: int) -> Calls:
        return Calls(call("search_hotels", {"destination": f"{n}", "max_price": 1, "check_in": "", "check_out": ""}))

    policy = tmp_path / "two.yaml"
    policy.write_text("version: 1\nenvelope: merged\nbudget: {max_calls: 2}\n")
    with ScriptedOpenAI(stubborn) as server:
        shown = demo("--base-url", server.base_url, "--model", "m", "--policy", str(policy), "--max-requests", "5")
    said = " ".join(shown.stdout.split())
    assert "ended stopped digest" in said
    assert "budget.max_calls" in said
    assert "1. []" in said
    assert "2 tool calls were made" in said
