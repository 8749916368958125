"""
The page of the rollout: its commands, as they stand, on a recorded week, and on real days where they are at hand.
"""

import json
import re
import shlex

from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner

from guardrails import Policy
from guardrails.cli import app

from .week import DAYS, NEXT, Week, record


PAGE = Path(__file__).parents[3] / "docs" / "report.md"
MORE = "..."
"""A shown output goes on, or leaves lines out."""


def blocks() -> list[tuple[str, str]]:
    """
    (language, text) of each block of the page.
    """
    return re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    return [line for language, text in blocks() if language == "sh" for line in text.splitlines()]


def run(command: str) -> str:
    """
    What a command of the page prints.
    """
    program, *arguments = shlex.split(command)
    assert program == "guardrails"
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})
    assert done.exit_code == 0, f"{command}\n{done.output}"
    return done.stdout


def shows(printed: str, shown: str) -> bool:
    """
    Whether the lines that are *shown* stand in what was *printed*, in their order.
    """
    at = 0
    for part in re.split(rf"^{re.escape(MORE)}\n", shown, flags=re.MULTILINE):
        at = printed.find(part.rstrip("\n"), at)
        if at < 0:
            return False
    return True


def decided(policy: str, records: str) -> dict[tuple[str, int], str]:
    """
    What *policy* decides of each recorded call.
    """
    run(f"guardrails replay {policy} {records} --decisions decisions.jsonl")
    lines = [json.loads(line) for line in Path("decisions.jsonl").read_text().splitlines()]
    Path("decisions.jsonl").unlink()
    return {(line["session_id"], line["call_index"]): line["decision"] for line in lines}


@pytest.fixture
def week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Week:
    monkeypatch.chdir(tmp_path)
    Path("records").mkdir()
    return record(Policy.load("observe"), Path("records"))


def test_a_week_is_recorded_day_by_day_and_nothing_is_refused(week: Week) -> None:
    assert sorted(path.stem for path in Path("records").iterdir()) == list(DAYS)
    lines = [json.loads(line) for path in Path("records").iterdir() for line in path.read_text().splitlines()]
    calls = [line for line in lines if line["event"] == "call"]
    assert len(calls) == len(week.honest) + len(week.waste)
    assert {line["decision"] for line in calls} == {"allow"}
    assert any(line["observed"] for line in calls)


def test_each_command_of_the_page_runs_and_prints_what_is_shown(week: Week) -> None:
    printed, shown = "", 0
    for language, text in blocks():
        if language == "sh":
            printed = "".join(map(run, text.splitlines()))
        elif language == "yaml":
            Path("overrides.cases.yaml").write_text(text)
        elif language == "text":
            assert shows(printed, text), f"{text}\n--- is not in\n{printed}"
            shown += 1
    assert shown >= 5


def test_the_python_of_the_page_runs_where_its_commands_have_run(week: Week) -> None:
    programs = [text for language, text in blocks() if language == "python"]
    run("guardrails report records --suggest -o overrides.yaml")
    names: dict[str, Any] = {}
    for program in programs:
        exec(compile(program, "report.md", "exec"), names)
    assert names["session"].call("stock", {}, lambda *_: "none").ok
    names["session"].close()
    assert (names["session"].ledger.policy.name, names["policy"].name) == ("observe", "overrides.yaml")


def test_the_suggested_policy_refuses_none_of_the_honest_work_and_most_of_the_waste(week: Week) -> None:
    run("guardrails report records --suggest -o overrides.yaml")
    said = decided("overrides.yaml", "records")
    refused = {call for call, decision in said.items() if decision == "deny"}
    assert refused & week.honest == set()
    assert len(refused & week.waste) > 0.95 * len(week.waste)
    # What the shipped policy refuses of the honest work is why one records a week first.
    assert {call for call, decision in decided("default", "records").items() if decision == "deny"} & week.honest


def test_the_day_after_is_enforced_and_honest_work_goes_on(week: Week) -> None:
    run("guardrails report records --suggest -o overrides.yaml")
    Path("next").mkdir()
    week_after = record(Policy.load("overrides.yaml"), Path("next"), (NEXT,))
    lines = [json.loads(line) for line in Path("next", f"{NEXT}.jsonl").read_text().splitlines()]
    numbers = dict[str, int]()
    refused = set()
    for line in lines:
        if line["event"] == "call":
            number = numbers[line["session_id"]] = numbers.get(line["session_id"], -1) + 1
            if line["decision"] == "deny":
                refused.add((line["session_id"], number))
    assert refused == week_after.waste
    assert "recorded calls" in run(f"guardrails report next/{NEXT}.jsonl")
