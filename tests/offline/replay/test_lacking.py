"""
What transcripts lack, and what is not judged for it.
"""

from collections.abc import Callable

from guardrails import Budget, Denials, Duplicates, Loops, Policy, Rate
from guardrails.core.chain import Rule
from guardrails.core.guards.base import Guard
from guardrails.offline.transcripts import RecordedCall
from tests.offline.judging import judged
from tests.tables import table


Calls = Callable[..., list[RecordedCall]]

RULES = [Rule(match=("a",), guards={"budget": {"max_elapsed": 5.0}, "rate": {"max_calls_per_second": 1}})]


def test_reasons_name_the_sources(calls: Calls) -> None:
    policy = Policy([Rate(max_calls_per_second=1), Denials()], rules=RULES)
    told = [
        *calls("a=1", source="one", timed=False),
        *calls("a=1", source="two", turn=1, tokens_in=1),
        *calls("a=1", source="two", session_id="other"),
    ]
    said = judged(policy, told).not_judged
    assert said["rate"] == said["tools.budget.max_elapsed"] == "no times in sessions of one"
    assert said["denials"] == "no word on which response made a call in sessions of any source"


def test_what_no_source_holds_is_said_so_and_many_are_counted(calls: Calls) -> None:
    policy = Policy([Rate(max_calls_per_second=1), Budget(max_tokens=5, max_cost_usd=1.0)])
    said = judged(policy, [call for n in range(8) for call in calls("a=1", source=f"s{n}", timed=n > 6)]).not_judged
    assert said["rate"] == "no times in sessions of s0, s1, s2, s3, s4, s5 and 1 more sources"
    assert said["budget.max_tokens"] == "no token usage in any source"
    assert said["budget.max_cost_usd"] == "no costs, nor prices in the policy, in any source"


def test_limits_that_sessions_share_are_not_judged(calls: Calls) -> None:
    policy = Policy([Budget(max_calls=1)], scopes={"user": [Budget(max_calls=1)]})
    assert judged(policy, calls("a=1 a=2")).not_judged == {"scopes.user": "no transcript says whose a session is"}


def test_calls_whose_arguments_are_not_known_are_no_repeats() -> None:
    made = [RecordedCall("s", "a", None, result="x", is_error=False, ts_ms=n) for n in range(2)]
    found = judged(Policy([Duplicates(rule="always")]), made)
    told = {"duplicates": f"no arguments to tell repeats by in {made[0].source}"}
    assert (found.total.refused, found.not_judged) == (0, told)


@table("guards, told", [([Loops(), Denials()], True), ([Denials(), Duplicates()], False), ([Loops(mode="off")], False)])
def test_sessions_that_do_not_tell_responses_apart_are_told(calls: Calls, guards: list[Guard], told: bool) -> None:
    found = judged(
        Policy(guards),
        [
            *calls("a=1", "a=1", source="bare", timed=False),
            *calls("a=1", source="bare", session_id="turned", timed=False, turn=1),
            *calls("a=1", source="timed"),
            *calls("a=1", source="turned", turn=1),
        ],
    )
    reason = "no times and no word on which response made a call in sessions of bare: it sees calls one by one"
    assert found.not_judged.get("loops") == (reason if told else None)
