"""
The figures flow back into decisions (MISSION A13): from records to suggestions, and those judged on the same records.

The records are of sessions that really ran, under a policy that refuses no repeat.
"""

import json

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from typer.testing import CliRunner

from guardrails import Budget, Policy, Summary
from guardrails.cli import app
from guardrails.offline.replay.run import judge_files
from guardrails.offline.replay.tally import Tally
from guardrails.offline.transcripts.files import inputs
from tests.tables import table


class Step(NamedTuple):
    """
    One call: what comes of it, and after how long.
    """

    tool: str
    arguments: Mapping[str, Any]
    outcome: Any
    """A value, or an exception that is raised."""
    seconds: float = 0.5
    pause: float = 1.0
    """Before the next one."""


Traffic = list[list[Step]]


def polling() -> Traffic:
    """
    20 sessions wait for a job, 100 ask for the same catalogue twice.
    """
    states = ["depot", "depot", "a van", "a van", "a van", "home"]
    waits = [[Step("parcel_place", {"job": n}, {"place": state}, pause=10) for state in states] for n in range(20)]
    return [*waits, *repeats()]


def repeats() -> Traffic:
    asked = [Step("catalogue", {"section": "hotels"}, {"items": ["a", "b"]})] * 2
    return [[*asked, Step("book", {"n": n}, {"booked": n})] for n in range(100)]


def cycles() -> Traffic:
    """
    Tests are run again after each edit, and say something else each time.
    """
    return [
        [step for n in range(4) for step in (Step("edit", {"n": n}, "ok"), Step("run_tests", {}, f"{9 - n} failed"))]
        for _ in range(12)
    ]


class Case(NamedTuple):
    traffic: Callable[[], Traffic]
    base: str
    expected: dict[str, dict[str, Any]]
    gain: str


ALWAYS_1 = {"duplicates": {"rule": "always", "window": 1}}
CASES = {
    "polling": Case(polling, "default", {"parcel_place": {"repeats": "allow"}, "catalogue": ALWAYS_1}, "both"),
    "window": Case(repeats, "default", {"catalogue": ALWAYS_1}, "stopped"),
    "rule": Case(cycles, "strict", {"run_tests": {"duplicates": {"rule": "evidence", "window": 20}}}, "wrong"),
}


NOTHING_REFUSED = Policy([Budget(max_calls=1000), Summary()])


def played(traffic: Traffic, path: Path, clock: Any, policy: Policy = NOTHING_REFUSED) -> None:
    """
    Run the sessions, guarded and recorded.
    """
    for number, steps in enumerate(traffic):
        script = iter(steps)

        def execute(tool: str, arguments: Any, script: Iterator[Step] = script) -> Any:
            step = next(script)
            clock.advance(step.seconds)
            if isinstance(step.outcome, Exception):
                raise step.outcome
            return step.outcome

        with policy.session(f"s{number}", records=path, clock=clock) as session:
            for step in steps:
                session.begin_turn()
                session.call(step.tool, dict(step.arguments), execute)
                clock.advance(step.pause)


def asked(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def judged(records: Path, *policies: str) -> list[Tally]:
    judged = judge_files([Policy.load(policy) for policy in policies], inputs([str(records)]))
    return [judgement.total for judgement in judged]


@table("name", CASES)
def test_a13_what_is_suggested_replays_better_than_what_was(name: str, tmp_path: Path, clock: Any) -> None:
    case = CASES[name]
    records, overrides = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.yaml"
    played(case.traffic(), records, clock)
    asked("report", records, "--policy", case.base, "--suggest", "-o", overrides, "-q")
    asked("policy", "check", overrides)

    suggested = Policy.load(overrides)
    found = {rule.match[0]: {**rule.declared, **rule.guards} for rule in suggested.chain.rules}
    assert {tool: found.get(tool) for tool in case.expected} == case.expected

    before, after = judged(records, case.base, str(overrides))
    worse = {code: n for code, n in after.wrong.items() if n > before.wrong[code]}
    assert worse == {}, "no new wrong denials"
    if case.gain in ("wrong", "both"):
        assert after.wrong.total() < before.wrong.total()
        assert after.wrong.total() == 0
    if case.gain in ("stopped", "both"):
        stopped = before.stopped_second + before.stopped_later
        assert after.stopped_second + after.stopped_later > stopped


@table("name", CASES)
def test_what_has_been_taken_over_is_not_suggested_again(name: str, tmp_path: Path, clock: Any) -> None:
    case = CASES[name]
    records, base = tmp_path / "calls.jsonl", case.base
    records.unlink(missing_ok=True)
    played(case.traffic(), records, clock)
    taken = set[tuple[str, str]]()
    for number in range(3):
        path = tmp_path / f"{number}.yaml"
        data = json.loads(asked("report", records, "--policy", base, "--suggest", "-o", path, "-q", "--json"))
        asked("policy", "check", path)
        found = {(one["tool"], key) for one in data["suggestions"] for key in one["settings"]}
        assert found.isdisjoint(taken)
        taken |= found
        base = str(path)
    assert taken
    assert not found


@table("mode, seen", [("observe", True), ("enforce", False)])
def test_a_policy_that_refuses_hides_what_one_that_watches_shows(
    mode: str, seen: bool, tmp_path: Path, clock: Any
) -> None:
    records, own, overrides = (tmp_path / file for file in (f"{mode}.jsonl", "own.yaml", "overrides.yaml"))
    own.write_text(f"version: 1\nextends: default\nmode: {mode}\n")
    played(polling(), records, clock, Policy.load(own))
    asked("report", records, "--suggest", "-o", overrides, "-q")
    assert Policy.load(overrides).chain.plan("parcel_place").tool.repeats == ("allow" if seen else None)
