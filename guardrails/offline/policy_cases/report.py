"""
The report on a run of cases: in lines for a person, and in JSON.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .run import Result


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
