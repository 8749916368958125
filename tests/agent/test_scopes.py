"""
Conversations of one user that share a budget.
"""

from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner, Result

from guardrails.agent.agent import how_to_go_on
from guardrails.cli import app
from guardrails.testing.scripted_openai import Calls, ScriptedOpenAI, Text, call


pytestmark = pytest.mark.system


POLICY = "version: 1\nextends: default\nscopes: {user: {budget: {max_calls: 3}}}\n"


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "tools.py").write_text("def look(n: int) -> str:\n    return f'found {n}'\n")
    (tmp_path / "work").mkdir()


def run(server: ScriptedOpenAI, folder: Path, *arguments: str) -> Result:
    given = ["run", *arguments, "--base-url", server.base_url, "--workspace", str(folder / "work"), "--no-builtins"]
    return CliRunner().invoke(app, given)


def twice(body: Any, n: int) -> Any:
    turns = sum(1 for message in body["messages"] if message["role"] == "assistant")
    if turns >= 2 or body.get("tool_choice") == "none":
        return Text("that is all")
    return Calls(call("look", {"n": n}, id=f"call_{n}"))


def test_the_conversations_of_a_user_share_a_budget_that_can_be_raised(tmp_path: Path) -> None:
    new = ["--model", "m", "--policy", str(tmp_path / "policy.yaml"), "--tools", str(tmp_path / "tools.py")]
    with ScriptedOpenAI(twice) as server:
        first = run(server, tmp_path, "one", *new, "--scope", "user=me")
        second = run(server, tmp_path, "two", *new, "--scope", "user=me")
        other = run(server, tmp_path, "three", *new, "--scope", "user=you")
        assert [each.exit_code for each in (first, second, other)] == [0, 1, 0], second.output
        assert "user.max_calls=AMOUNT" in second.stderr
        chat = next(word for line in second.stderr.splitlines() if "--resume" in line for word in [_after(line)])
        again = run(server, tmp_path, "--resume", chat, "--extend", "user.max_calls=5")
        assert again.exit_code == 0, again.output
        assert "limits raised: user.max_calls by 5" in again.stderr


def _after(line: str) -> str:
    return line.partition("--resume ")[2].split()[0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "the scopes of the policy are `user`, and the session says none"),
        (["--scope", "me"], "`--scope` takes NAME=ID, such as `user=me`, not `me`"),
        (["--scope", "user=a/b"], "the id of the scope `user` must not hold `..`, `/`"),
        (
            ["--scope", "user=me", "--scope", "team=us"],
            "the scopes of the policy are `user`, and the session says team, user",
        ),
    ],
)
def test_whose_a_conversation_is_must_be_said(given: list[str], said: str, tmp_path: Path) -> None:
    with ScriptedOpenAI(twice) as server:
        shown = run(server, tmp_path, "one", "--model", "m", "--policy", str(tmp_path / "policy.yaml"), *given)
    assert (shown.exit_code, said in shown.output) == (2, True), shown.output


@pytest.mark.parametrize(
    ("cause", "option"),
    [
        ("budget.max_calls", "--extend max_calls=AMOUNT"),
        ("user.budget.max_cost_usd", "--extend user.max_cost_usd=AMOUNT"),
        ("budget.unpriced", "--forgive"),
        ("user.budget.unpriced", "--extend user.max_cost_usd=0"),
        ("denials.max_turns_in_a_row", "--forgive"),
        ("loop.max_iterations", '"go on"'),
        (None, "--forgive"),
    ],
)
def test_how_a_conversation_goes_on_is_told_by_what_ended_it(cause: str | None, option: str) -> None:
    assert how_to_go_on(cause) == option


def test_a_conversation_whose_model_has_no_price_says_so_and_goes_on_once_it_has_one(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nextends: default\nbudget: {max_cost_usd: 0.5}\n")
    new = ["--model", "m", "--policy", str(policy), "--tools", str(tmp_path / "tools.py")]
    with ScriptedOpenAI(twice) as server:
        ended = run(server, tmp_path, "one", *new)
        assert ended.exit_code == 1
        assert "The cost limit ($0.50) cannot be held any more" in ended.stderr
        assert "1 response of unknown price" in ended.stderr
        assert "ended by budget.unpriced" in ended.stderr
        chat = next(_after(line) for line in ended.stderr.splitlines() if "--resume" in line)
        assert "--forgive" in ended.stderr
        policy.write_text(f"{policy.read_text()}prices: {{m: {{input_mtok: 1.0}}}}\n")
        again = run(server, tmp_path, "--resume", chat, "--forgive", "--policy", str(policy), "and now?")
    assert "that is all" in again.stdout, again.output
