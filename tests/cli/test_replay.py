"""
`guardrails replay`, and with `report` and `train` over transcripts of other programs.
"""

import json

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from guardrails import Duplicates, Policy
from guardrails.sinks import JsonLines
from tests.cli.command import guardrails


replay = partial(guardrails, "replay", columns=80)


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path, look = tmp_path / "calls.jsonl", {"source": "lab", "tool": "look", "arguments": {"q": 1}, "is_error": False}
    told = [
        {"session_id": "s", "result": "Oslo", "ts": 1.8e9 + n, "tokens_in": 5, "tokens_out": 1, "cost_usd": 0.01}
        for n in range(4)
    ]
    told += [{"session_id": "t", "result": result} for result in "12"]
    path.write_text("".join(json.dumps(look | one) + "\n" for one in told) + "{broken\n")
    return path


@pytest.fixture
def records(tmp_path: Path, clock: Any) -> Path:
    path = tmp_path / "records.jsonl"
    with JsonLines(path) as sink:
        session = Policy.load("default").session("trip-42", records=sink, clock=clock)
        for _ in range(4):
            session.charge(model="m", usage={"prompt_tokens": 10})
            session.call("look", {"q": 1}, lambda *_: "Oslo")
    return path


def test_the_table_tells_what_would_have_been_refused_by_which_guard_and_what_was_not_judged(transcript: Path) -> None:
    shown = replay("default", transcript)
    assert (shown.exit_code, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert lines[0] == "default on 6 recorded calls of 2 sessions"
    rows = [line.split() for line in lines]
    assert rows[2:8] == [
        *(["calls", "default"], ["refused", "2"], ["duplicates.evidence", "2"]),
        *(["refused,", "a", "repeat", "2"], ["duplicates.evidence", "2"], ["run", "with", "a", "hint", "1"]),
    ]
    assert "default refuses 2 calls; 0 of them had worked (0.00 in 1,000 calls)." in shown.stdout
    assert max(len(line) for line in lines if str(transcript) not in line) <= 80
    words = " ".join(replay("strict", transcript).stdout.split())
    assert "budget.max_elapsed: no times in sessions of lab" in words
    # A long path is broken at the width of the terminal.
    assert f"`{transcript}`:couldnotread1line,thefirstisline7" in words.replace(" ", "")
    said = json.loads(replay("default", transcript, "--json").stdout)
    assert (said["policy"], said["broken_lines"], said["total"]["denied"]) == ("default", 1, {"duplicates.evidence": 2})
    assert [[part["source"] for part in said[name]] for name in ("sources", "tools")] == [["lab"], ["look"]]


def test_records_of_a_policy_that_observed_say_what_it_would_have_refused(tmp_path: Path, clock: Any) -> None:
    path, news = tmp_path / "records.jsonl", iter("1123")
    with JsonLines(path) as sink:
        session = Policy([Duplicates(window=5)], mode="observe").session("s", records=sink, clock=clock)
        for _ in range(4):
            session.call("look", {"q": 1}, lambda *_: next(news))
    said = " ".join(replay("default", path).stdout.split())
    assert "guards observed them: they would have refused 3, of which 2 had worked." in said


def test_two_policies_are_shown_side_by_side(transcript: Path) -> None:
    shown = replay("default", transcript, "--compare", "strict").stdout
    rows = [line.split() for line in shown.splitlines()]
    for row in (["refused", "2", "4"], ["duplicates.window", "0", "4"], ["refused,", "had", "worked", "0", "1"]):
        assert row in rows
    assert "strict would refuse, though it had worked\n  lab: t, call 1: look, duplicates.window" in shown
    assert "`guardrails explain duplicates.window` says how to loosen it" in " ".join(shown.split())
    better = replay("strict", transcript, "--compare", "default").stdout
    assert "default refuses none that had worked." in better
    both = json.loads(replay("default", transcript, "--compare", "strict", "--json").stdout)["judgements"]
    assert [one["policy"] for one in both] == ["default", "strict"]
    observing = replay("observe", transcript).stdout
    assert ["only", "observed", "2"] in [line.split() for line in observing.splitlines()]


def test_records_of_ours_are_decided_again_exactly_and_what_differs_is_shown(records: Path) -> None:
    shown = replay("default", records, "--exact")
    assert shown.exit_code == 0
    said = " ".join(shown.stdout.split())
    assert "policy default sessions 1 calls 4 differing 0" in said
    assert json.loads(replay("default", records, "--exact", "--json").stdout)["exact"] is True
    other = replay("strict", records, "--exact")
    assert other.exit_code == 1
    first = "n: 7, tool: look, recorded: nudge (nudge loops.identical), replayed: deny (duplicates.window)"
    assert first in " ".join(other.stdout.split())
    assert json.loads(replay("strict", records, "--exact", "--json").stdout)["differing"] == 3


def test_what_an_earlier_run_wrote_into_the_folder_of_transcripts_is_not_read(transcript: Path) -> None:
    folder = transcript.parent
    outputs: list[str | Path] = ["--decisions", folder / "d.jsonl", "--html", folder / "page.html"]
    first, second = (replay("default", folder, *outputs) for _ in range(2))
    assert (first.exit_code, first.stdout) == (second.exit_code, second.stdout) == (0, first.stdout)


def test_a_full_disk_for_the_page_does_not_cost_the_figures(transcript: Path) -> None:
    shown = replay("default", transcript, "--html", "/dev/full")
    assert (shown.exit_code, "6 recorded calls" in shown.stdout) == (2, True)
    assert "No space left on device" in shown.stderr
