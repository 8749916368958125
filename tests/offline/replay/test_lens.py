"""
What of a chain a transcript can judge.
"""

from guardrails import Budget, Denials, Duplicates, Growth, Policy, Rate, Retryable, Summary, Truncate
from guardrails.core.chain import Chain, Rule
from guardrails.offline.replay.lens import lens
from tests.tables import table


FULL = Policy(
    [
        Budget(max_calls=5, max_turns=2, max_elapsed=60.0),
        Growth(max_calls_per_second=5, max_requests_per_second=2),
        Rate(max_calls_per_second=2),
        Denials(),
        Duplicates(),
        Retryable(),
        Summary(),
        Truncate(),
    ],
    rules=[
        Rule(
            match=("a",),
            declared={"polling": True},
            guards={
                "budget": {"max_calls": 2, "max_elapsed": 5.0},
                "rate": {"max_calls_per_second": 1},
                "truncate": {"max_bytes": 300},
            },
        )
    ],
    messages={"duplicates.window": {"message": "again"}},
).chain


def names(chain: Chain) -> list[str]:
    return [guard.name for guard in chain.guards]


@table(
    "timed, turned, left",
    [
        (True, True, ["budget", "growth", "rate", "denials", "duplicates", "retryable"]),
        (True, False, ["budget", "growth", "rate", "duplicates", "retryable"]),
        (False, True, ["budget", "denials", "duplicates", "retryable"]),
        (False, False, ["budget", "duplicates", "retryable"]),
    ],
)
def test_what_a_transcript_lacks_is_taken_out(timed: bool, turned: bool, left: list[str]) -> None:
    seen = lens(FULL, timed=timed, turned=turned)
    assert names(seen.engine.chain) == left
    [budget] = [guard for guard in seen.engine.chain.guards if isinstance(guard, Budget)]
    assert (budget.max_elapsed is None, budget.max_turns is None) == (not timed, not turned)


def test_what_rules_say_of_it_is_taken_out_too() -> None:
    plan = lens(FULL, timed=False, turned=False).engine.chain.plan("a")
    assert [str(guard) for guard in plan.guards] == [
        "Budget(max_calls=5)",
        "ToolBudget(amount=2)",
        "Duplicates(settled_for=None)",
        "Retryable()",
    ]
    assert plan.tool.repeats == "allow"
    timed = lens(FULL, timed=True, turned=True).engine.chain.plan("a")
    assert {guard.name for guard in timed.guards} >= {"rate", "tools.budget"}
    assert not {guard.name for guard in timed.guards} & {"truncate", "summary"}


def test_what_the_policy_declares_stands_above_what_was_declared_where_the_tool_ran() -> None:
    policy = Policy(rules=[Rule(match=("a",), declared={"read_only": False}, guards={})])
    seen = lens(policy.chain, timed=True, turned=True)
    assert seen.plan("a", True, False).changes
    assert not seen.plan("b", True, False).changes
    assert seen.plan("b", None, True).tool.repeats == "allow"
    assert seen.plan("b", None, False).tool is seen.engine.chain.plan("b").tool
