"""
`guardrails demo`: the comparison, recorded chats, and what it says where it cannot run.
"""

import json

from functools import partial
from pathlib import Path

from guardrails.agent.demo import ANSWER
from tests.cli.command import guardrails


TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
demo = partial(guardrails, "demo", columns=80)


def test_the_demo_shows_both_runs_what_the_model_read_and_its_answer() -> None:
    shown = demo("--max-requests", "8")
    rows = {line.split(" ")[0]: line.split()[1:] for line in shown.stdout.splitlines()}
    assert (shown.exit_code, rows["requests"], rows["executions"]) == (0, ["8", "7"], ["8", "2"])
    assert "Cost at $1.25 for a million tokens in and $10.00 out." in shown.stdout
    assert '"status":"duplicate_call_blocked","code":"duplicates.evidence"' in shown.stdout
    assert '"limit_message":"Every tool call of 3 turns in a' in shown.stdout
    assert "I found no hotel in Shibuya" in shown.stdout
    assert "\x1b" not in shown.stdout


def test_a5_the_stuck_agent_is_stopped_with_an_answer_and_only_when_guarded() -> None:
    said = json.loads(demo("--json", "--max-requests", "12").stdout)
    free, held = said["unguarded"], said["guarded"]
    parts = ("requests", "executions", "ended", "code", "answer")
    assert [free[name] for name in parts] == [12, 12, "stopped", None, None]
    assert [held[name] for name in parts] == [7, 2, "forced", "denials.max_turns_in_a_row", ANSWER]
    assert (0 < held["cost_usd"] < free["cost_usd"], 0 < held["tokens"] < free["tokens"]) == (True, True)
    read = [json.loads(text) for text in said["read"]]
    assert [envelope["status"] for envelope in read] == ["success"] * 2 + ["duplicate_call_blocked"] * 4
    assert [envelope.get("limit_reached") for envelope in read] == [None] * 5 + [True]


def test_the_cost_counts_tools_that_have_a_price(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("version: 1\nbudget: {max_calls: 2}\ntools: [{match: 's*', cost_usd: 0.5}]\n")
    said = json.loads(demo("--json", "--max-requests", "3", "--policy", tmp_path / "p.yaml").stdout)
    assert said["guarded"]["executions"] == 2
    assert all(said[name]["cost_usd"] > 0.5 * said[name]["executions"] for name in ("guarded", "unguarded"))


def test_recorded_chats_are_played_and_what_was_stopped_is_told() -> None:
    chats = [f"--transcript={TRANSCRIPTS / name}" for name in ("stuck_search.json.gz", "edit_and_test.json")]
    shown = demo(*chats)
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert lines[0] == "stuck_search.json.gz: 6 calls, 4 denied"
    assert lines[4].split() == ["web_search", "deny", "duplicates.evidence"]
    assert "edit_and_test.json: 6 calls, 0 denied" in lines
    said = json.loads(demo(*chats, "--json").stdout)
    assert [call["decision"] for call in said["transcripts"][0]["calls"]] == ["allow", "nudge"] + ["deny"] * 4
