"""
Cases of policies with scopes: the case is the only session in them.
"""

from guardrails import Budget, Growth, Policy
from guardrails.offline.policy_cases import read_cases, run_case
from tests.tables import table


POLICY = Policy(
    [Budget(max_calls=9)],
    scopes={
        "user": [Budget(max_calls=2, max_cost_usd=0.5), Growth(max_requests_per_second=3)],
        "tenant": [Budget(max_tokens=40)],
    },
)


def failures(steps: str) -> list[str]:
    lines = "".join(f"  - {{{step}}}\n" for step in steps.splitlines())
    [case] = read_cases(f"version: 1\ncases:\n- name: a case\n  steps:\n{lines}").cases
    return [str(failure) for failure in run_case(POLICY, case).failures]


@table(
    "steps",
    [
        "call: t\ncall: t, envelope: {progress: {calls_left: 0}}\ncall: t, expect: deny, code: user.budget.max_calls",
        "call: t, cost_usd: 0.5\nexhausted: user.budget.max_cost_usd",
        "charge: {tokens: 40}\ncall: t, expect: deny, code: tenant.budget.max_tokens",
        "request: 4\nexhausted: user.growth.max_requests_per_second",
        "call: t\nexhausted: null",
    ],
)
def test_what_scopes_say_is_expected_like_what_the_session_says(steps: str) -> None:
    assert failures(steps) == []
