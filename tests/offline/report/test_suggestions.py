"""
Which settings the figures of one tool support, and which they do not.
"""

from typing import Any

from guardrails import Duplicates, Loops, Policy, Tool
from guardrails.core.retries.shrinkage import Count
from guardrails.offline.report.suggestions import SESSIONS, suggestion
from guardrails.offline.report.tally import Tally
from tests.tables import table


EVIDENCE = Duplicates(rule="evidence", window=20)
ALWAYS = Duplicates(window=5)


def settings(tally: Tally, *guards: Any, **declared: Any) -> dict[str, Any]:
    """
    What is suggested for *tally* under a policy of *guards* that declares the tool so, repeats in enough sessions given.
    """
    vars(tally)["repeat_sessions"] = tally.repeat_sessions or SESSIONS
    policy = Policy(list(guards), tools=[Tool(name=tally.tool, **declared)])
    made = suggestion(tally, policy.chain.plan(tally.tool))
    if made is None:
        return {}
    assert list(made.evidence) == list(made.settings)
    assert all(made.evidence.values())
    return made.settings


def test_without_figures_nothing_is_suggested() -> None:
    assert settings(Tally("a"), EVIDENCE, Loops()) == {}
    assert settings(Tally("a"), ALWAYS) == {}


@table("name", ["", "x" * 201, "a\nb", "a\x00", "\u202ea", "\u2028"])
def test_a_name_that_no_file_should_hold_gets_no_rule(name: str) -> None:
    tally = Tally(name, polls=Count(20, 20), poll_sessions=20)
    plan = Policy([]).chain.plan("any")
    assert suggestion(tally, plan) is None


def test_a_tool_that_polls_gets_no_rule_against_repeats() -> None:
    tally = Tally("job", polls=Count(20, 20), poll_sessions=20, always={1: Count(200, 200)})
    assert settings(tally, EVIDENCE, read_only=True) == {"repeats": "allow"}


@table(
    "always, expected",
    [
        ({1: Count(35, 35)}, {"rule": "always", "window": 1}),
        ({1: Count(34, 34)}, None),
        ({1: Count(30, 30), 4: Count(10, 10)}, {"rule": "always", "window": 4}),
        ({1: Count(100, 100), 9: Count(10, 2)}, {"rule": "always", "window": 1}),
        ({1: Count(100, 80)}, None),
        ({1: Count(100, 90), 2: Count(5, 5)}, None),
    ],
)
def test_any_repeat_is_refused_as_far_back_as_hardly_one_brought_something(
    always: dict[int, Count], expected: dict[str, Any] | None
) -> None:
    assert settings(Tally("a", always=always), EVIDENCE).get("duplicates") == expected


@table(
    "always, expected",
    [
        ({1: Count(50, 50)}, None),
        ({2: Count(20, 10)}, {"rule": "evidence", "window": 20}),
        ({2: Count(2, 0)}, None),
        ({1: Count(60, 60), 9: Count(40, 40)}, {"rule": "always", "window": 9}),
    ],
)
def test_a_rule_that_refuses_any_repeat_is_widened_or_gives_way(
    always: dict[int, Count], expected: dict[str, Any] | None
) -> None:
    assert settings(Tally("a", always=always), ALWAYS).get("duplicates") == expected


@table("sessions, expected", [(1, set()), (2, set()), (3, {"duplicates"})])
def test_repeats_of_few_sessions_support_nothing(sessions: int, expected: set[str]) -> None:
    tally = Tally("a", always={1: Count(90, 90)}, repeat_sessions=sessions)
    assert set(settings(tally, EVIDENCE)) == expected
