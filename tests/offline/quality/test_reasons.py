"""
Which tool to redesign first, and why.
"""

from collections import Counter
from typing import Any, get_args

from guardrails.core.values.types import ErrorType
from guardrails.offline.quality.reasons import ranked, reasons
from guardrails.offline.quality.tally import NEWS, REFUSED, Odds, Tally
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
    said = told(calls=200, wasted=140, errors=errors, pointless_second=40, results=100, unsignalled=100)
    assert [one.partition(":")[0] for one in said] == [
        "50 failed with timeout",
        "40 repeated a result",
        "30 failed with not_found",
        "20 failed with other",
    ]


def test_rare_causes_and_news_of_the_work_are_left_out() -> None:
    errors = Counter(not_found=91, timeout=9, exec_nonzero=500, code_error=500, cancelled=500)
    said = told(calls=2_000, wasted=100, errors=errors)
    assert [one.partition(":")[0] for one in said] == ["91 failed with not_found"]


@table("kind", sorted({*get_args(ErrorType), REFUSED} - NEWS))
def test_every_kind_of_failure_has_a_cure(kind: str) -> None:
    (said,) = told(calls=10, wasted=5, errors=Counter({kind: 5}), corrections=Odds(5, 5))
    what = "were refused for wrong arguments" if kind == REFUSED else f"failed with {kind}"
    assert said.startswith(f"5 {what}: ")


@table(
    ("figures", "expected"),
    [
        (
            {"results": 50, "unsignalled": 50},
            "say in the result that it is complete and the same call brings the same; 50 of 50 results do not",
        ),
        (
            {"results": 50, "unsignalled": 6},
            "say in the result that it is complete and the same call brings the same; 6 of 50 results do not",
        ),
        (
            {"results": 50, "unsignalled": 0},
            "its results say already whether they are complete: let the policy refuse the repeat (`duplicates`)",
        ),
        ({"results": 50, "dead_ends": 20}, "say in incomplete results how to go on; 20 of 50 results do not"),
        (
            {"results": 50, "unsignalled": 50, "polls": Odds(20, 20), "poll_sessions": 20},
            "it waits for something: declare it as polling, and have it answer when there is news or say when to ask again",
        ),
        ({}, "say in the result that it is complete and the same call brings the same"),
    ],
)
def test_a_tool_is_told_to_say_only_what_it_does_not_say_already(figures: dict[str, Any], expected: str) -> None:
    assert told(calls=90, wasted=30, pointless_second=30, **figures) == [f"30 repeated a result: {expected}"]


def test_repeats_of_an_error_are_the_fault_of_the_error() -> None:
    said = told(calls=90, wasted=30, pointless_second=30, idle_failures=20, results=10, unsignalled=10)
    assert said[0] == "20 repeated an error: say in it that the same call fails again, and what to do instead"
    assert said[1].startswith("10 repeated a result: ")


def test_refused_repeats_are_told_with_those_that_ran() -> None:
    (said,) = told(calls=90, wasted=30, pointless_second=10, refused_repeats=20)
    assert said.startswith("30 repeated a result (20 of them were refused): ")


def test_waiting_is_no_reason() -> None:
    assert told(calls=90, pointless_later=30, waits=30) == []


@table(("worked", "said"), [(2, True), (3, False)])
def test_errors_that_do_not_teach_are_told(worked: int, said: bool) -> None:
    found = told(calls=10, wasted=5, errors=Counter(validation=5), corrections=Odds(5, worked))
    assert (f"{worked} of 5 calls with wrong arguments were corrected by the next one" in " ".join(found)) is said
