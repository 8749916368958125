"""
`guardrails demo`: the comparison, recorded chats, and what it says where it cannot run.
"""

import json

from functools import partial
from pathlib import Path

from tests.cli.command import guardrails


TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
demo = partial(guardrails, "demo", columns=80)


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


def test_the_demo_is_data_for_another_program() -> None:
    shown = demo("--json", "--max-requests", "4", "--policy", "strict")
    said = json.loads(shown.stdout)
    assert (said["policy"], said["usd_per_mtok"]) == ("strict", [1.25, 10.0])
    assert (said["unguarded"]["ended"], said["unguarded"]["requests"]) == ("stopped", 4)
    assert (said["guarded"]["ended"], said["guarded"]["executions"]) == ("forced", 1)


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
