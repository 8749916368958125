"""
Reports of a run of cases.
"""

from typing import Any

from guardrails import Budget, Policy
from guardrails.offline.policy_cases import read_cases, run_case
from guardrails.offline.policy_cases.report import Suite, lines, to_dict


GOOD = "version: 1\ncases:\n- {name: fine, steps: [{call: a}]}\n"
MIXED = """\
version: 1
cases:
- name: fine
  steps:
  - {call: a}
- name: "<not> & \\"fine\\"\\a"
  steps:
  - {call: a}
  - {call: b, expect: deny, code: x.y}
  - {call: c, status: error}
"""


def suites() -> list[Suite]:
    rules = Policy([Budget(max_calls=2)])
    made = []
    for policy, file, text in (("one", "good.yaml", GOOD), ("two", "mixed.yaml", MIXED)):
        made.append(Suite(policy, file, [run_case(rules, case) for case in read_cases(text, file).cases]))
    return made


def test_a_failed_case_is_one_line_with_its_place_and_all_codes() -> None:
    assert lines(suites()) == [
        'mixed.yaml:9: <not> & "fine"\a: call `b`: expected deny x.y; decided allow (and 1 more)',
        "3 cases, 2 passed, 1 failed",
    ]


def test_the_same_is_data_for_another_program() -> None:
    said: Any = to_dict(suites())
    assert {key: said[key] for key in ("ok", "cases", "passed", "failed")} == {
        "ok": False,
        "cases": 3,
        "passed": 2,
        "failed": 1,
    }
    assert to_dict(suites()[:1])["ok"] is True
    fine, failed = said["suites"][1]["cases"]
    assert (fine["passed"], fine["failures"], fine["steps"]) == (True, [], 1)
    assert (failed["line"], failed["failed_steps"]) == (6, 2)
    assert failed["failures"][0] == {
        "line": 9,
        "step": "call `b`",
        "expected": "deny x.y",
        "decided": "allow",
        "repetition": None,
    }
    assert "deny budget.max_calls" in failed["failures"][1]["decided"]
