"""
The page of the rollout: its commands and its programs, as they stand, on a recorded week whose work is known to be honest or waste.
"""

import json
import re
import shlex

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from typer.testing import CliRunner

from guardrails import JsonLines, Policy
from guardrails.cli import app
from tests.conftest import FakeClock
from tests.docs.pages import DOCS, blocks


PAGE: Final = DOCS / "report.md"
MORE: Final = "..."
"""A shown output goes on, or leaves lines out."""
MONDAY: Final = 1_799_020_800
"""2027-01-04, 00:00 UTC."""
DAY_S: Final = 86_400

Calls = set[tuple[str, int]]
"""Recorded calls: the session, and the number in it."""


WEEK: Final[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("rollout.yaml").read_text())


def steps(kind: str, number: int) -> Iterator[dict[str, Any]]:
    """
    The calls of a session, each in a turn of its own.
    """
    text = json.dumps(WEEK["kinds"][kind])
    for step in json.loads(text.replace('"NUMBER"', str(number)).replace("NUMBER", str(number))):
        yield from [step] * step.get("times", 1)


def record(policy: Policy, folder: Path, days: list[dict[str, int]]) -> tuple[Calls, Calls]:
    """
    Record *days* under *policy*, each in its own file of *folder*. Returns the calls that were honest, and those that were waste.
    """
    calls: tuple[Calls, Calls] = (set(), set())
    folder.mkdir()
    for day, kinds in enumerate(days):
        clock = FakeClock(MONDAY + day * DAY_S + 9 * 3600)
        with JsonLines(folder / f"{day}.jsonl") as sink:
            for kind, n in ((kind, n) for kind, times in kinds.items() for n in range(times)):
                name = f"{day}-{kind}-{n}"
                with policy.session(name, records=sink, clock=clock) as session:
                    for index, step in enumerate(steps(kind, n)):

                        def execute(*_: Any, step: dict[str, Any] = step) -> Any:
                            if "raises" in step:
                                raise TimeoutError(step["raises"])
                            return step["result"]

                        clock.advance(step.get("after", 20))
                        session.begin_turn()
                        calls[step.get("waste", False)].add((name, index))
                        session.call(step["tool"], step["arguments"], execute)
    return calls


def run(command: str) -> str:
    """
    What a command of the page prints.
    """
    program, *arguments = shlex.split(command)
    assert program == "guardrails"
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})
    assert done.exit_code == 0, f"{command}\n{done.output}"
    return done.stdout


def refused(policy: str, records: str) -> Calls:
    run(f"guardrails replay {policy} {records} --decisions decisions.jsonl")
    lines = [json.loads(line) for line in Path("decisions.jsonl").read_text().splitlines()]
    return {(line["session_id"], line["call_index"]) for line in lines if line["decision"] == "deny"}


@pytest.fixture
def week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Calls, Calls]:
    monkeypatch.chdir(tmp_path)
    return record(Policy.load("observe"), Path("records"), WEEK["days"])


def test_the_page_runs_and_prints_what_is_shown(week: tuple[Calls, Calls]) -> None:
    printed, shown = "", 0
    names: dict[str, Any] = {}
    for language, text, _ in blocks(PAGE):
        if language == "sh":
            printed = "".join(map(run, text.splitlines()))
        elif language == "yaml":
            Path("overrides.cases.yaml").write_text(text)
        elif language == "python":
            exec(compile(text, "report.md", "exec"), names)
        elif language == "text":
            pattern = ".*".join(re.escape(part.rstrip("\n")) for part in re.split(rf"(?m)^{re.escape(MORE)}\n", text))
            assert re.search(pattern, printed, re.DOTALL), f"{text}\n--- is not in\n{printed}"
            shown += 1
    assert shown >= 5
    names["session"].close()
    assert (names["session"].ledger.policy.name, names["policy"].name) == ("observe", "overrides.yaml")


def test_the_suggested_policy_refuses_no_honest_work_and_most_of_the_waste(week: tuple[Calls, Calls]) -> None:
    honest, waste = week
    lines = [json.loads(line) for path in Path("records").iterdir() for line in path.read_text().splitlines()]
    calls = [line for line in lines if line["event"] == "call"]
    assert len(calls) == len(honest) + len(waste)
    assert {line["decision"] for line in calls} == {"allow"}
    run("guardrails report records --suggest -o overrides.yaml")
    found = refused("overrides.yaml", "records")
    assert found & honest == set()
    assert len(found & waste) > 0.95 * len(waste)
    # What the shipped policy refuses of the honest work is why one records a week first.
    assert refused("default", "records") & honest
    # The day after is enforced, and honest work goes on.
    _, waste = record(Policy.load("overrides.yaml"), Path("next"), WEEK["days"][:1])
    run("guardrails replay --exact overrides.yaml next/0.jsonl")
    assert refused("overrides.yaml", "next/0.jsonl") == waste
