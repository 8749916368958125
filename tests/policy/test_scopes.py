"""
Scopes in a policy file.
"""

from pathlib import Path

import pytest

from guardrails import Budget, Growth, Policy, PolicyError, Rate
from guardrails.cli.policy import chain_of
from tests.tables import table


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


@table(
    ("line", "said"),
    [
        ("scopes: {User: {budget: {max_calls: 1}}}", "2:10: a scope is named like `user`"),
        ("scopes: {rate: {budget: {max_calls: 1}}}", "2:10: a scope is named like `user`"),
        ("scopes: {user: {budget: {max_turns: 1}}}", "2:26: unknown key `max_turns`"),
        (
            "scopes: {user: {streak: {max_same: 1}}}",
            "2:17: unknown key `streak`, known here: `budget`, `growth`, `rate`",
        ),
        ("scopes: {user: {budget: {max_calls: x}}}", "2:37: scopes.user.budget.max_calls: not a whole number"),
        ("scopes: [user]", "2:9: scopes: not a map of keys"),
        ("messages: {user.budget.max_cals: {message: no}}", "2:12: no guard says"),
        (
            "messages: {user.budget.max_calls: {message: $limt}}\nscopes: {user: {budget: {}}}",
            "2:45: messages.user.budget.max_calls.message: `$limt` stands for nothing in any message, did you mean `limit`?",
        ),
        ("scopes: {user: {}}", "scopes.user: a scope without guards limits nothing"),
    ],
)
def test_what_is_wrong_with_scopes_is_told_with_its_place(line: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as raised:
        Policy.load(written(tmp_path, f"version: 1\n{line}\n"))
    assert said in str(raised.value)
