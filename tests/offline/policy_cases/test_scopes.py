"""
Cases of policies with scopes: the case is the only session in them.
"""

from pathlib import Path

from typer.testing import CliRunner

from guardrails import Budget, Growth, Policy
from guardrails.cli import app
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


def test_a_scope_that_is_not_expected_is_told() -> None:
    assert failures("call: t\ncall: t\ncall: t") == ["call `t`: expected allow; decided deny user.budget.max_calls"]


def test_the_command_asks_the_scopes_of_the_policy(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("version: 1\nscopes: {user: {budget: {max_calls: 1}}}\n")
    steps = "[{call: t}, {call: t, expect: deny, code: user.budget.max_calls}]"
    (tmp_path / "c.yaml").write_text(f"version: 1\ncases: [{{name: a, steps: {steps}}}]\n")
    tested = CliRunner().invoke(app, ["policy", "test", str(tmp_path / "p.yaml"), str(tmp_path / "c.yaml")])
    assert tested.exit_code == 0, tested.output
