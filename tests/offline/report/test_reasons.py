"""
Which tool to redesign first, and why.
"""

from collections import Counter
from typing import Any, get_args

from guardrails.core.retries.shrinkage import Count
from guardrails.core.values.types import ErrorType
from guardrails.offline.report.reasons import ranked, reasons
from guardrails.offline.report.rows import NEWS, REFUSED
from guardrails.offline.report.tally import Tally
from tests.tables import table


def told(**figures: Any) -> list[str]:
    return [str(reason) for reason in reasons(Tally("a", **figures))]


def test_tools_stand_by_what_they_waste_then_by_the_share_then_by_name() -> None:
    tools = [
        Tally("few", calls=10, wasted=1),
        Tally("large", calls=1_000, wasted=50),
        Tally("b", calls=60, wasted=50),
        Tally("a", calls=60, wasted=50),
        Tally("none", calls=9_000),
    ]
    assert [tally.tool for tally in ranked(tools)] == ["a", "b", "large", "few", "none"]


def test_a13_the_most_frequent_cause_is_told_first() -> None:
    errors = Counter(not_found=30, timeout=50, other=20)
    said = told(calls=200, wasted=140, errors=errors, idle=40, results=100, unsignalled=100)
    assert [one.partition(":")[0] for one in said] == [
        "50 failed with timeout",
        "40 repeated a result",
        "30 failed with not_found",
        "20 failed with other",
    ]


@table("kind", sorted({*get_args(ErrorType), REFUSED} - NEWS))
def test_every_kind_of_failure_has_a_cure(kind: str) -> None:
    (said,) = told(calls=10, wasted=5, errors=Counter({kind: 5}), corrections=Count(5, 5))
    what = "refused for wrong arguments" if kind == REFUSED else f"failed with {kind}"
    assert said.startswith(f"5 {what}: ")
    assert "Not your tool? " in said
