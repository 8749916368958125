"""
Which settings the figures of one tool support, and which they do not.
"""

from typing import Any

from guardrails import Duplicates, Policy, Tool
from guardrails.core.retries.shrinkage import Count
from guardrails.offline.report.suggestions import SESSIONS, suggestion
from guardrails.offline.report.tally import Tally
from tests.tables import table


EVIDENCE = Duplicates(rule="evidence", window=20)
ALWAYS = Duplicates(window=5)


def settings(tally: Tally, guard: Duplicates, **declared: Any) -> dict[str, Any]:
    """
    What is suggested for *tally* under a policy of *guard* that declares the tool so.
    """
    policy = Policy([guard], tools=[Tool(name=tally.tool, **declared)])
    made = suggestion(tally, policy.chain.plan(tally.tool))
    assert made is None or (list(made.evidence) == list(made.settings) and all(made.evidence.values()))
    return {} if made is None else made.settings


@table("name", ["", "x" * 201, "a\nb", "a\x00", "\u202ea", "\u2028"])
def test_a_name_that_no_file_should_hold_gets_no_rule(name: str) -> None:
    tally = Tally(name, polls=Count(20, 20), poll_sessions=20)
    assert suggestion(tally, Policy([]).chain.plan("any")) is None


def test_a_tool_that_polls_gets_no_rule_against_repeats() -> None:
    tally = Tally("job", polls=Count(20, 20), poll_sessions=20, always=[(1, True)] * 200, repeat_sessions=9)
    assert settings(tally, EVIDENCE, read_only=True) == {"repeats": "allow"}


def repeats(back: int, n: int, pointless: int) -> list[tuple[int, bool]]:
    return [(back, True)] * pointless + [(back, False)] * (n - pointless)


@table(
    "guard, always, expected",
    [
        (EVIDENCE, repeats(1, 35, 35), {"rule": "always", "window": 1}),
        (EVIDENCE, repeats(1, 34, 34), None),
        (EVIDENCE, repeats(1, 30, 30) + repeats(4, 10, 10), {"rule": "always", "window": 4}),
        (EVIDENCE, repeats(1, 100, 100) + repeats(9, 10, 2), {"rule": "always", "window": 1}),
        (EVIDENCE, repeats(1, 200, 199), None),
        (ALWAYS, repeats(1, 50, 50), None),
        (ALWAYS, repeats(1, 60, 60) + repeats(9, 40, 40), {"rule": "always", "window": 9}),
        (ALWAYS, repeats(2, 20, 10), {"rule": "evidence", "window": 20}),
        (ALWAYS, repeats(2, 100, 90), {"rule": "evidence", "window": 20}),
        (ALWAYS, repeats(2, 30, 27), None),
        (ALWAYS, repeats(2, 2, 0), None),
    ],
)
def test_few_repeats_prove_nothing_and_one_that_brought_something_outweighs_many(
    guard: Duplicates, always: list[tuple[int, bool]], expected: dict[str, Any] | None
) -> None:
    assert settings(Tally("a", always=always, repeat_sessions=SESSIONS), guard).get("duplicates") == expected
    assert settings(Tally("a", always=always, repeat_sessions=SESSIONS - 1), guard) == {}
