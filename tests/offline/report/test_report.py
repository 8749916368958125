"""
Each statement of a report is made of the calls of which it is true, and not of near neighbours of which it is not.
"""

import json

from collections import Counter
from pathlib import Path
from typing import Any, get_args

import yaml

from typer.testing import CliRunner

from guardrails import Budget, Duplicates, Guard, Policy, Tool, Validation
from guardrails.cli import app
from guardrails.core.retries.model import Count
from guardrails.core.values.types import ErrorType
from guardrails.offline.report.reasons import ranked, reasons
from guardrails.offline.report.rows import NEWS, REFUSED
from guardrails.offline.report.tally import Tally
from tests.offline.recorded import lines, played
from tests.pages import document
from tests.tables import table


STATEMENTS = yaml.safe_load(Path(__file__).with_name("statements.yaml").read_text())


def printed(path: Path, *options: str) -> str:
    done = CliRunner(env={"COLUMNS": "100"}).invoke(app, ["report", str(path), "-q", *options])
    assert done.exit_code == 0, done.output
    return done.stdout if "--json" in options else " ".join(done.stdout.split())


@table("case", STATEMENTS)
def test_a_sentence_is_said_where_it_is_true_and_only_there(case: dict[str, Any], tmp_path: Path) -> None:
    path, page = tmp_path / "calls.jsonl", tmp_path / "page.html"
    path.write_text(lines(case["not_of"]))
    assert case["says"] not in printed(path)
    path.write_text(lines(case["of"]))
    text = printed(path)
    assert case["says"] in text
    found = json.loads(printed(path, "--json", "--html", str(page)))
    assert all(reason in text for tool in found["tools"] for reason in tool["reasons"])
    assert ("Redesign first" in text) is any(tool["wasted"] for tool in found["tools"])
    assert document(page.read_text())["data"] == found


WAITS = "it waits for something: have it answer when there is news or say when to ask again"


@table(
    "says, guard, true, false",
    [
        ("1 repeated a result", Duplicates(rule="always", window=5), ["t=1", "t=1"], ["t=1", "t x=1"]),
        ("1 refused for wrong arguments", Validation(), ["checked wrong=1"], ["checked right=1"]),
        ("it waits for something", Duplicates(rule="always", window=5), ["sleep=1", "sleep=1"], ["t=1", "t=1"]),
    ],
)
def test_what_was_refused_is_told_where_it_was(
    says: str, guard: Guard, true: list[str], false: list[str], tmp_path: Path
) -> None:
    schema = {"type": "object", "properties": {"of": {"enum": ["right", "x", "y"]}}}
    for steps in (true, false):
        policy = Policy([Budget(max_calls=10_000), guard], tools=[Tool(name="checked", parameters=schema)])
        played(tmp_path / "r.jsonl", policy, [steps])
        assert (says in printed(tmp_path / "r.jsonl")) is (steps is true)


def test_tools_stand_by_what_they_waste_then_by_the_share_then_by_name() -> None:
    figures = {"few": (10, 1), "large": (1_000, 50), "b": (60, 50), "a": (60, 50), "none": (9_000, 0)}
    tools = [Tally(name, calls=calls, wasted=wasted) for name, (calls, wasted) in figures.items()]
    assert [tally.tool for tally in ranked(tools)] == ["a", "b", "large", "few", "none"]


def sentences(**figures: Any) -> list[str]:
    return [str(reason) for reason in reasons(Tally("a", **figures))]


def test_a13_the_most_frequent_cause_is_told_first() -> None:
    errors = Counter(not_found=30, timeout=50, other=20)
    reasons = sentences(calls=200, wasted=140, errors=errors, idle=40, results=100, unsignalled=100)
    causes = ["50 failed with timeout", "40 repeated a result", "30 failed with not_found", "20 failed with other"]
    assert [one.partition(":")[0] for one in reasons] == causes


@table("kind", sorted({*get_args(ErrorType), REFUSED} - NEWS))
def test_every_kind_of_failure_has_a_cure(kind: str) -> None:
    (sentence,) = sentences(calls=10, wasted=5, errors=Counter({kind: 5}), corrections=Count(5, 5))
    what = "refused for wrong arguments" if kind == REFUSED else f"failed with {kind}"
    assert sentence.startswith(f"5 {what}: ")
    assert "Not your tool? " in sentence
