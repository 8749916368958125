"""
Living through a case, and what is reported of it.
"""

import json

from pathlib import Path
from typing import Any

import yaml

from guardrails import Budget, Nudge, Policy
from guardrails.core.guards.base import Guard, guard
from guardrails.offline.policy_cases import Result, read_cases, run_case
from guardrails.offline.policy_cases.run import Suite, differing, filled, lines, to_dict
from tests.tables import table


TABLES = yaml.safe_load(Path(__file__).with_name("values.yaml").read_text(encoding="utf-8"))
STORIES = yaml.safe_load(Path(__file__).with_name("stories.yaml").read_text())


def run(policy: Policy, steps: str, tools: str = "[]", name: str = "a case") -> Result:
    [case] = read_cases(f"version: 1\ncases:\n- name: {name}\n  tools: {tools}\n  steps:\n{steps}").cases
    return run_case(policy, case)


@table("story", STORIES)
def test_a_case_is_lived_through(story: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(json.dumps({"version": 1, **story["policy"]}))
    result = run(Policy.load(tmp_path / "p.yaml"), story["steps"], story.get("tools", "[]"))
    assert [f"{failure.line}: {failure}" for failure in result.failures] == story.get("failures", [])


@guard
class Watch(Guard):
    """
    Nudges every call of `search`, fails on `broken`.
    """

    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Nudge | None:
        if call.tool == "broken":
            raise RuntimeError("no luck")
        return Nudge(code="watch.search", hint="Be brief.") if call.tool == "search" else None


def test_nudges_and_guards_that_fail_are_told() -> None:
    steps = """\
  - {call: search, expect: nudge, code: watch.search, envelope: {next_action_hint: Be brief.}}
  - {call: search}
  - {call: search, expect: nudge, code: x.y}
  - {call: broken, expect: deny, code: call.error}
  - {call: broken}
"""
    failures = [
        "expected allow; decided nudge watch.search",
        "expected nudge x.y; decided nudge watch.search",
        "expected allow; decided deny call.error, guard `watch` failed (RuntimeError: no luck)",
    ]
    assert [str(failure).partition(": ")[2] for failure in run(Policy([Watch()]), steps).failures] == failures
    assert run(Policy([Watch()], on_error="allow"), "  - {call: broken}").passed
    assert run(Policy([Watch()], mode="observe"), "  - {call: search, observed: watch.search}").passed


def test_a_failure_is_told_once_with_how_many_followed() -> None:
    result = run(Policy([]), "  - repeat: 30\n    steps:\n    - {call: a, status: error}")
    assert str(result) == (
        "<text>:8: a case: call `a` (repetition 1): expected status error; decided status success (and 29 more)"
    )
    assert (len(result.failures), result.failed_steps, result.steps) == (20, 30, 30)


@table("value, shown", TABLES["filled"])
def test_the_number_of_the_repetition_is_filled_in(value: Any, shown: Any) -> None:
    assert filled(value, 7) == shown


@table("wanted, got, paths", TABLES["compared"])
def test_an_envelope_is_compared_by_what_is_named(wanted: Any, got: Any, paths: list[str]) -> None:
    assert [path for path, _, _ in differing(wanted, got, "x")] == paths


def test_a_report_has_a_line_a_failed_case_and_the_same_as_data() -> None:
    policy = Policy([Budget(max_calls=2)])
    odd = "  - {call: a}\n  - {call: b, expect: deny, code: x.y}\n  - {call: c, status: error}\n"
    good, failed = run(policy, "  - {call: a}\n"), run(policy, odd, name='"<not> & \\"fine\\"\\a"')
    suites = [Suite("one", "good.yaml", [good]), Suite("two", "mixed.yaml", [good, failed])]
    assert lines(suites) == [
        '<text>:7: <not> & "fine"\a: call `b`: expected deny x.y; decided allow (and 1 more)',
        "3 cases, 2 passed, 1 failed",
    ]
    data: Any = to_dict(suites)
    assert [data[key] for key in ("ok", "cases", "passed", "failed")] == [False, 3, 2, 1]
    assert to_dict(suites[:1])["ok"] is True
    case = data["suites"][1]["cases"][1]
    assert (case["line"], case["failed_steps"]) == (3, 2)
    first = {"line": 7, "step": "call `b`", "expected": "deny x.y", "decided": "allow", "repetition": None}
    assert case["failures"][0] == first
    assert "deny budget.max_calls" in case["failures"][1]["decided"]
