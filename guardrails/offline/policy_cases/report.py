"""
The report on a run of cases: in lines for a person, in JSON, and as JUnit XML for a build server.
"""

import re

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from .run import Result


# What XML 1.0 has no way to write, section 2.2.
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Suite:
    """
    The cases of one file, run by one policy.
    """

    policy: str
    file: str
    results: Sequence[Result]

    @property
    def failed(self) -> list[Result]:
        """
        The cases that did not pass.
        """
        return [result for result in self.results if not result.passed]


def lines(suites: Iterable[Suite]) -> list[str]:
    """
    Returns one line for each failed case, then the sum.
    """
    suites = list(suites)
    failed = [str(result) for suite in suites for result in suite.failed]
    return [*failed, summary(sum(len(suite.results) for suite in suites), len(failed))]


def summary(cases: int, failed: int) -> str:
    """
    Returns `12 cases, 12 passed`, `12 cases, 11 passed, 1 failed`.
    """
    told = f"{cases} case{'' if cases == 1 else 's'}, {cases - failed} passed"
    return f"{told}, {failed} failed" if failed else told


def to_dict(suites: Iterable[Suite]) -> dict[str, Any]:
    """
    Returns the same for another program.
    """
    suites = list(suites)
    cases, failed = sum(len(suite.results) for suite in suites), sum(len(suite.failed) for suite in suites)
    return {
        "ok": not failed,
        "cases": cases,
        "passed": cases - failed,
        "failed": failed,
        "suites": [
            {"policy": suite.policy, "file": suite.file, "cases": [_case(result) for result in suite.results]}
            for suite in suites
        ],
    }


def _case(result: Result) -> dict[str, Any]:
    failures = [asdict(failure) for failure in result.failures]
    return {
        "name": result.case.name,
        "line": result.case.line,
        "passed": result.passed,
        "steps": result.steps,
        "failed_steps": result.failed_steps,
        "failures": failures,
    }


def junit(suites: Iterable[Suite]) -> str:
    """
    Returns JUnit XML as build servers read it: a `testsuite` for each file, and a `testcase` for each case. Each case
    that failed has a `failure`, with the file and line of its first failing step.
    """
    from xml.etree import ElementTree as ET

    suites = list(suites)
    root = ET.Element("testsuites", {"name": "guardrails policy test", **_counts(suites)})
    for suite in suites:
        named = {"name": _xml(suite.policy), "file": _xml(suite.file)}
        element = ET.SubElement(root, "testsuite", {**named, **_counts([suite])})
        for result in suite.results:
            case = ET.SubElement(
                element,
                "testcase",
                classname=_xml(suite.policy),
                name=_xml(result.case.name),
                file=_xml(result.case.file),
                line=str(result.case.line),
                time=f"{result.seconds:.3f}",
            )
            if not result.passed:
                first, told = str(result.failures[0]), (f"{result.case.file}:{f.line}: {f}" for f in result.failures)
                ET.SubElement(case, "failure", type="decision", message=_xml(first)).text = _xml("\n".join(told))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _counts(suites: Sequence[Suite]) -> dict[str, str]:
    seconds = sum(result.seconds for suite in suites for result in suite.results)
    return {
        "tests": str(sum(len(suite.results) for suite in suites)),
        "failures": str(sum(len(suite.failed) for suite in suites)),
        "errors": "0",
        "skipped": "0",
        "time": f"{seconds:.3f}",
    }


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
