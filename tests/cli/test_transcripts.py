"""
`guardrails replay`, `report` and `train` over transcripts of other programs, as a person calls them.
"""

import json

from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app


FILES = Path(__file__).parents[1] / "offline" / "readers" / "files"
CALLS = {
    "agents_session.json": 6,
    "atif.json": 6,
    "atif_codex.json": 6,
    "langsmith.jsonl": 5,
    "openhands.jsonl": 2,
    "openhands_2025.json": 4,
    "openinference.jsonl": 3,
    "openinference_otlp.jsonl": 3,
    "swe_agent.json": 4,
    "swe_agent_2024.json": 4,
    "traj.json": 4,
}


def run(*arguments: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, [*map(str, arguments)])


@pytest.mark.parametrize("file", CALLS)
def test_replay_and_report_count_the_calls_of_each_format(file: str) -> None:
    replayed = run("replay", "default", FILES / file, "--json")
    assert replayed.exit_code == 0, replayed.output
    assert json.loads(replayed.stdout)["total"]["calls"] == CALLS[file]
    reported = run("report", FILES / file, "--json")
    assert reported.exit_code == 0, reported.output
    assert json.loads(reported.stdout)["calls"] == CALLS[file]


def test_it_is_said_what_each_file_was_read_as_and_why_one_was_not(tmp_path: Path) -> None:
    for name in ("openhands.jsonl", "swe_agent.json", "swe_agent_2024.json"):
        (tmp_path / name).write_bytes((FILES / name).read_bytes())
    (tmp_path / "notes.txt").write_text("what I have seen")
    read = {
        "openhands.jsonl": "openhands conversation",
        "swe_agent.json": "swe-agent trajectory",
        "swe_agent_2024.json": "swe-agent trajectory",
    }
    said = f"Read: 2 files as swe-agent trajectory, `{tmp_path}/openhands.jsonl` as openhands conversation; no calls in 1 file."
    page = tmp_path.with_name("page.html")
    for command in (["report"], ["replay", "default"], ["replay", "default", "--compare", "strict"]):
        done = run(*command, tmp_path, "--quiet")
        assert said in " ".join(done.stdout.split())
        found = json.loads(run(*command, tmp_path, "--json", "--html", page).stdout)
        for each in found.get("judgements", [found]):
            assert each["read_as"] == {str(tmp_path / name): kind for name, kind in read.items()}
            assert each["without_calls"] == {str(tmp_path / "notes.txt"): "text, 1 line, 16 bytes"}
        assert "2 files as swe-agent trajectory" in page.read_text()


def openhands(number: int) -> str:
    """
    A conversation in which a call fails and works when it is made again, four times over; so are the ones below.
    """
    events: list[dict[str, Any]] = []
    for n in range(8):
        call_id, at = f"{number}-{n}", f"2026-03-01T{number:02}:{n:02}"
        base = {"id": call_id, "tool_name": "fetch", "tool_call_id": call_id}
        wire = {"id": call_id, "name": "fetch", "arguments": json.dumps({"n": n // 2})}
        events.append({**base, "kind": "ActionEvent", "source": "agent", "timestamp": f"{at}:00", "tool_call": wire})
        seen = {"content": [{"type": "text", "text": _told(n)}], "is_error": n % 2 == 0}
        events.append({**base, "kind": "ObservationEvent", "source": "environment", "observation": seen})
        events[-1]["timestamp"] = f"{at}:01"
    return "".join(json.dumps(event) + "\n" for event in events)


def swe_agent(number: int) -> str:
    steps = [{"action": f"fetch {n // 2}", "thought": "", "observation": _told(n)} for n in range(8)]
    return json.dumps({"trajectory": steps, "environment": str(number)})


def atif(number: int) -> str:
    steps = []
    for n in range(8):
        made = {"tool_call_id": f"c{n}", "function_name": "fetch", "arguments": {"n": n // 2}}
        results = [{"source_call_id": f"c{n}", "content": _told(n)}]
        steps.append({"source": "agent", "tool_calls": [made], "observation": {"results": results}})
    return json.dumps({"schema_version": "ATIF-v1.7", "session_id": f"s{number}", "steps": steps})


def traj(number: int) -> str:
    messages: list[dict[str, Any]] = []
    for n in range(8):
        wire = {"id": f"c{n}", "function": {"name": "fetch", "arguments": json.dumps({"n": n // 2})}}
        messages.append({"role": "assistant", "tool_calls": [wire]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": _told(n)})
    return json.dumps([{"task_id": number, "trial": 0, "traj": messages}])


def _told(n: int) -> str:
    return "503 Service Unavailable" if n % 2 == 0 else f"page {n}"


@pytest.mark.parametrize("write", [openhands, swe_agent, atif, traj])
def test_train_counts_the_retries_of_each_format(tmp_path: Path, write: Any) -> None:
    for number in range(20):
        (tmp_path / f"{number}.jsonl").write_text(write(number))
    result = run("train", tmp_path, "-o", tmp_path / "m.json", "--dry-run")
    assert "all 80 retries in these records worked" in result.output
