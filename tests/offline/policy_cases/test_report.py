"""
Reports of a run of cases.
"""

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from guardrails import Budget, Policy
from guardrails.offline.policy_cases import read_cases, run_case
from guardrails.offline.policy_cases.report import Suite, junit, lines, summary, to_dict


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
    chain = Policy([Budget(max_calls=2)]).chain
    made = []
    for policy, file, text in (("one", "good.yaml", GOOD), ("two", "mixed.yaml", MIXED)):
        results = [run_case(chain, case) for case in read_cases(text, file).cases]
        for n, result in enumerate(results):
            result.seconds = 0.25 * (n + 1)
        made.append(Suite(policy, file, results))
    return made


@pytest.mark.parametrize(
    ("cases", "failed", "told"),
    [(12, 0, "12 cases, 12 passed"), (1, 0, "1 case, 1 passed"), (12, 2, "12 cases, 10 passed, 2 failed")],
)
def test_the_sum_is_one_line(cases: int, failed: int, told: str) -> None:
    assert summary(cases, failed) == told


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
        "said": "allow",
        "denials": (),
        "observed": (),
        "nudges": (),
    }
    assert failed["failures"][1]["denials"] == ("budget.max_calls",)


def test_a_build_server_reads_suites_cases_and_failures_with_their_places() -> None:
    text = junit(suites())
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ')
    root = ET.fromstring(text.encode())  # noqa: S314 (our own text)
    assert (root.tag, root.attrib) == (
        "testsuites",
        {
            "name": "guardrails policy test",
            "tests": "3",
            "failures": "1",
            "errors": "0",
            "skipped": "0",
            "time": "1.000",
        },
    )
    assert [suite.attrib for suite in root] == [
        {"name": policy, "file": file, "tests": n, "failures": failed, "errors": "0", "skipped": "0", "time": time}
        for policy, file, n, failed, time in (
            ("one", "good.yaml", "1", "0", "0.250"),
            ("two", "mixed.yaml", "2", "1", "0.750"),
        )
    ]
    for suite in root:
        assert suite.tag == "testsuite"
        assert {case.tag for case in suite} == {"testcase"}
        assert len(suite) == int(suite.attrib["tests"])
        assert len(suite.findall("testcase/failure")) == int(suite.attrib["failures"])
    fine, failed = root[1]
    assert list(fine) == []
    assert failed.attrib == {
        "classname": "two",
        "name": '<not> & "fine"\N{REPLACEMENT CHARACTER}',
        "file": "mixed.yaml",
        "line": "6",
        "time": "0.500",
    }
    [failure] = failed
    assert failure.attrib == {"type": "decision", "message": "call `b`: expected deny x.y; decided allow"}
    assert failure.text == (
        "mixed.yaml:9: call `b`: expected deny x.y; decided allow\n"
        "mixed.yaml:10: call `c`: expected allow; decided deny budget.max_calls"
    )
