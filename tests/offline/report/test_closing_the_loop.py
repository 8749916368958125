"""
The figures flow back into decisions (MISSION A13): from records to suggestions, and those judged on the same records.

The records are of sessions that really ran, under a policy that refuses no repeat.
"""

import json

from pathlib import Path
from typing import Any, Final

from typer.testing import CliRunner

from guardrails import Budget, Policy, Summary
from guardrails.cli import app
from guardrails.offline.replay.run import judge_files
from guardrails.offline.transcripts.files import inputs
from tests.offline.recorded import Sessions, played
from tests.tables import table


WATCHED: Final = Policy([Budget(max_calls=1000), Summary()])
PLACES: Final = ("depot", "depot", "a van", "a van", "a van", "home")
REPEATS: Final = [["catalogue hotels=a, b", "catalogue hotels=a, b", f"book {n}=done"] for n in range(100)]
POLLING: Final = [[f"parcel_place {n}={place}" for place in PLACES] for n in range(20)] + REPEATS
CYCLES: Final = [[step for n in range(4) for step in (f"edit {n}=ok", f"run_tests={9 - n} failed")] for _ in range(12)]
"""Tests are run again after each edit, and say something else each time."""


ALWAYS_1: Final = {"duplicates": {"rule": "always", "window": 1}}
CASES: Final = [
    (POLLING, "default", {"parcel_place": {"repeats": "allow"}, "catalogue": ALWAYS_1}),
    (REPEATS, "default", {"catalogue": ALWAYS_1}),
    (CYCLES, "strict", {"run_tests": {"duplicates": {"rule": "evidence", "window": 20}}}),
]


def asked(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@table("traffic, base, expected", CASES)
def test_a13_what_is_suggested_replays_better_than_what_was_and_is_not_suggested_again(
    traffic: Sessions, base: str, expected: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    records = tmp_path / "calls.jsonl"
    played(records, WATCHED, traffic)
    policies, taken = [base], set[tuple[str, str]]()
    for number in range(3):
        path = tmp_path / f"{number}.yaml"
        data = json.loads(asked("report", records, "--policy", policies[-1], "--suggest", "-o", path, "-q", "--json"))
        asked("policy", "check", path)
        found = {(one["tool"], key) for one in data["suggestions"] for key in one["settings"]}
        assert found.isdisjoint(taken)
        taken |= found
        policies.append(str(path))
    assert not found
    suggested = Policy.load(policies[1])
    rules = {rule.match[0]: {**rule.declared, **rule.guards} for rule in suggested.chain.rules}
    assert {tool: rules.get(tool) for tool in expected} == expected
    judgements = judge_files([Policy.load(policy) for policy in policies[:2]], inputs([str(records)]))
    before, after = (judgement.total for judgement in judgements)
    assert {code: n for code, n in after.wrong.items() if n > before.wrong[code]} == {}, "no new wrong denials"
    if before.wrong:
        assert after.wrong.total() == 0
    if "catalogue" in expected:
        assert after.repeats.total() > before.repeats.total()


def test_a_policy_that_refuses_hides_what_one_that_watches_shows(tmp_path: Path) -> None:
    records, own, overrides = (tmp_path / file for file in ("calls.jsonl", "own.yaml", "overrides.yaml"))
    for mode, seen in (("observe", "allow"), ("enforce", None)):
        own.write_text(f"version: 1\nextends: default\nmode: {mode}\n")
        played(records, Policy.load(own), POLLING)
        asked("report", records, "--suggest", "-o", overrides, "-q")
        assert Policy.load(overrides).chain.plan("parcel_place").tool.repeats == seen
