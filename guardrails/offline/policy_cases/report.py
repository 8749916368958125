"""
The report on a run of cases: in lines for a person, and in JSON.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from guardrails.offline.figures import plural

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
    results = [result for suite in suites for result in suite.results]
    failed = [str(result) for result in results if not result.passed]
    text = f"{plural(len(results), 'case')}, {len(results) - len(failed)} passed"
    return [*failed, f"{text}, {len(failed)} failed" if failed else text]


def to_dict(suites: Iterable[Suite]) -> dict[str, Any]:
    """
    Returns the same for another program.
    """
    listed: list[dict[str, Any]] = [
        {"policy": suite.policy, "file": suite.file, "cases": [_case(result) for result in suite.results]}
        for suite in suites
    ]
    passed = [case["passed"] for suite in listed for case in suite["cases"]]
    sums = {"cases": len(passed), "passed": sum(passed), "failed": len(passed) - sum(passed)}
    return {"ok": all(passed), **sums, "suites": listed}


def _case(result: Result) -> dict[str, Any]:
    """
    One case and the steps of it that failed.
    """
    case, counts = result.case, {"steps": result.steps, "failed_steps": result.failed_steps}
    failures = [asdict(failure) for failure in result.failures]
    return {"name": case.name, "line": case.line, "passed": result.passed, **counts, "failures": failures}
