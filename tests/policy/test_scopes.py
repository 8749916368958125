"""
Scopes in a policy file.
"""

from pathlib import Path

from guardrails import Budget, Growth, Policy, Rate
from guardrails.cli.policy import chain_of


GOOD = """
version: 1
scopes:
  user:
    budget: {max_calls: 10, max_total_cost_usd: 1.5, max_elapsed: 30d}
    rate: {max_calls_per_minute: 30}
  tenant:
    growth: {max_tokens_per_minute: 1000000}
messages:
  user.budget.max_calls: {message: "All $limit calls of today are used."}
"""


def written(tmp_path: Path, text: str, name: str = "policy.yaml") -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


def test_a_file_names_scopes_and_their_guards(tmp_path: Path) -> None:
    policy = Policy.load(written(tmp_path, GOOD))
    assert {name: chain.guards for name, chain in policy.scopes.items()} == {
        "tenant": (Growth(max_tokens_per_minute=1_000_000),),
        "user": (Budget(max_calls=10, max_cost_usd=1.5, max_elapsed=2_592_000.0), Rate(max_calls_per_minute=30)),
    }
    session = policy.session("s", scopes={"user": "u1", "tenant": "acme"})
    for n in range(10):
        last = session.call("t", {"n": n}, lambda *_: "ok")
    assert last.limit_message == "All 10 calls of today are used."


def test_a_file_that_extends_another_changes_single_settings_of_its_scopes(tmp_path: Path) -> None:
    written(tmp_path, GOOD, "base.yaml")
    text = "version: 1\nextends: ./base.yaml\nscopes: {user: {budget: {max_calls: 20}}}\n"
    (budget, rate) = Policy.load(written(tmp_path, text)).scopes["user"].guards
    assert (budget, rate) == (
        Budget(max_calls=20, max_cost_usd=1.5, max_elapsed=2_592_000.0),
        Rate(max_calls_per_minute=30),
    )


def test_a_policy_is_shown_with_its_scopes(tmp_path: Path) -> None:
    policy = Policy.load(written(tmp_path, GOOD))
    assert chain_of(policy)["scopes"]["tenant"] == [{"guard": "growth", "max_tokens_per_minute": 1_000_000}]
    assert "scope `user`" in str(policy)
