"""
Figures: right, wrong and neither add up, and many rows become few without losing a call.
"""

from collections import Counter

import pytest

from guardrails.offline.judge.page.figures import Side, by_source, rows, sides, verdict, verdicts, watches
from guardrails.offline.judge.result import Judgement, Kind, Stop, Tally


def side(**figures: Counter[str]) -> Side:
    tally = Tally("source", 1, 100)
    for name, counter in figures.items():
        setattr(tally, name, counter)
    return Side("policy", Judgement("policy", [tally]), tally)


def test_the_verdicts_of_denials_add_up() -> None:
    found = side(
        denied=Counter({"duplicates.window": 5, "loops.cycle": 4, "budget.max_calls": 2, "validation.arguments": 1}),
        wrong=Counter({"duplicates.window": 2}),
        unknown=Counter({"loops.cycle": 1}),
        limit_stops=Counter({"budget.max_calls": 2}),
    )
    assert verdicts(found, found.total) == (6, 2, 1, 2, 1)
    assert sum(verdicts(found, found.total)) == found.total.denials


def test_a_policy_that_only_watches_is_judged_by_its_objections() -> None:
    found = side(
        observed=Counter({"loops.cycle": 4, "streak.max_same": 3, "validation.arguments": 1}),
        wrong_observed=Counter({"loops.cycle": 1}),
    )
    assert watches(found)
    assert verdicts(found, found.total) == (3, 1, 0, 3, 1)


def test_figures_that_do_not_fit_are_never_negative() -> None:
    found = side(denied=Counter({"own.code": 1}), wrong=Counter({"own.code": 3}), limit_stops=Counter({"own.code": 2}))
    assert min(verdicts(found, found.total)) >= 0


@pytest.mark.parametrize(
    ("decision", "code", "pointless", "said"),
    [
        ("deny", "duplicates.window", True, "pointless repeat"),
        ("deny", "budget.max_calls", True, "pointless repeat"),
        ("deny", "duplicates.window", False, "wrong"),
        ("observe", "loops.cycle", False, "wrong"),
        ("deny", "loops.cycle", None, "no result recorded"),
        ("deny", "budget.max_calls", False, ""),
        ("nudge", "loops.cycle", False, ""),
    ],
)
def test_only_what_a_result_shows_is_said_of_a_stop(
    decision: Kind, code: str, pointless: bool | None, said: str
) -> None:
    assert verdict(Stop("source", "session", 1, "tool", decision, code, None, pointless)) == said


def test_rows_beyond_the_most_are_summed_up() -> None:
    first = {f"tool {n}": Tally(f"tool {n}", calls=n) for n in range(10)}
    second = {"tool 0": Tally("tool 0", calls=100), "tool 3": Tally("tool 3", calls=1), "new": Tally("new")}
    found = rows([first, second], 3)
    assert [name for name, _ in found] == ["tool 0", "tool 8", "tool 9", "all others (8)"]
    assert [tally.calls for tally in found[-1][1]] == [28, 1]
    assert sum(tallies[0].calls for _, tallies in found) == 45


def test_sources_of_one_name_are_one() -> None:
    parts = [Tally("a", 1, 2), Tally("b", 1, 3), Tally("a", 2, 5)]
    found = by_source(Judgement("policy", parts))
    assert {name: (tally.sessions, tally.calls) for name, tally in found.items()} == {"a": (3, 7), "b": (1, 3)}
    assert parts[0].calls == 2


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [("a", "b", ["a", "b"]), ("a", "a", ["a (1)", "a (2)"]), ("", "b", ["policy", "b"])],
)
def test_two_policies_have_names_that_tell_them_apart(first: str, second: str, names: list[str]) -> None:
    assert [each.name for each in sides(Judgement(first), Judgement(second))] == names
