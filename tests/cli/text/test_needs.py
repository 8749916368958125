"""
What a policy needs that is not here.
"""

import importlib.util

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner

from guardrails.cli import app
from guardrails.policy.models import COLD
from tests.tables import table


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """
    Have a package be missing.
    """

    def hide(package: str) -> None:
        real = importlib.util.find_spec
        monkeypatch.setattr("guardrails.cli.policy.find_spec", lambda name: None if name == package else real(name))

    return hide


def check(path: Path, text: str) -> tuple[int, str]:
    path.write_text(text)
    shown = CliRunner().invoke(app, ["policy", "check", str(path)])
    return shown.exit_code, shown.stdout


@pytest.mark.parametrize(
    ("package", "text", "said"),
    [
        ("genai_prices", "version: 1\nbudget: {max_cost_usd: 1}\n", ":2:10: budget.max_cost_usd: no model has a price"),
        (
            "genai_prices",
            "version: 1\nscopes: {user: {budget: {max_cost_usd: 1}}}\n",
            "scopes.user.budget.max_cost_usd:",
        ),
    ],
)
def test_a_missing_package_is_found(
    without: Callable[[str], None], tmp_path: Path, package: str, text: str, said: str
) -> None:
    assert check(tmp_path / "p.yaml", text)[0] == 0
    without(package)
    code, told = check(tmp_path / "p.yaml", text)
    assert (code, said in told) == (1, True), told


@table(
    "text",
    [
        "version: 1\nbudget: {max_calls: 1}\n",
        "version: 1\nbudget: {max_cost_usd: 1}\nprices: {m: {input_mtok: 1, output_mtok: 1}}\n",
        "version: 1\nbudget: {max_cost_usd: 1, on_unpriced: warn}\n",
        "version: 1\ntools: [{match: a, cost_usd: 0.1, budget: {max_cost_usd: 1}}]\n",
    ],
)
def test_a_policy_that_asks_no_list_of_prices_needs_none(
    without: Callable[[str], None], tmp_path: Path, text: str
) -> None:
    without("genai_prices")
    assert check(tmp_path / "p.yaml", text)[0] == 0


MODEL = COLD.read_bytes()
POLICIES = {
    "guard": "version: 1\nretryable:\n  model: m.json\n",
    "rule": "version: 1\ntools:\n- match: a\n  retryable: {model: m.json}\n",
}


@table("text", POLICIES.values())
@table(
    ("data", "said"),
    [
        (MODEL[:200], "cannot be used: not JSON"),
        (MODEL.replace(b'"version":4', b'"version":9', 1), "upgrade this library, or train it again"),
        (MODEL.replace(b'"intercept":', b'"intercept": 1', 1).replace(b": 1-", b": -1", 1), "the hash does not fit"),
        (b"", "cannot be used"),
        (b"\x00\x01", "cannot be used"),
    ],
)
def test_a_model_that_is_no_good_is_found(tmp_path: Path, text: str, data: bytes, said: str) -> None:
    (tmp_path / "m.json").write_bytes(data)
    code, told = check(tmp_path / "p.yaml", text)
    assert (code, said in told) == (1, True), told
    assert "retryable.model: the model `" in told


@table("text", POLICIES.values())
def test_a_good_model_and_one_that_is_not_trained_yet_are_no_mistake(tmp_path: Path, text: str) -> None:
    assert check(tmp_path / "p.yaml", text)[0] == 0
    (tmp_path / "m.json").write_bytes(MODEL)
    assert check(tmp_path / "p.yaml", text)[0] == 0


def test_a_folder_in_place_of_a_model_is_found(tmp_path: Path) -> None:
    (tmp_path / "m.json").mkdir()
    code, told = check(tmp_path / "p.yaml", POLICIES["guard"])
    assert (code, "cannot be read: Is a directory" in told) == (1, True)


def test_mistakes_of_the_surroundings_stand_in_json_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(POLICIES["guard"])
    (tmp_path / "m.json").write_bytes(b"{}")
    shown: Any = CliRunner().invoke(app, ["policy", "check", "--json", str(tmp_path / "p.yaml")])
    assert '"line": 3' in shown.stdout


@table(
    ("text", "lines"),
    [
        ("budget: {max_calls: 5, max_elapsed: 9s}\n", []),
        ("budget:\n  max_turns: 5\n  max_tokens: 9\n", ["3:3: budget.max_turns", "4:3: budget.max_tokens"]),
        ("budget: {max_tokens: 9}\ntools: [{match: a, tokens: 3}]\n", []),
        ("scopes: {user: {growth: {max_tokens_per_minute: 9}}}\n", ["2:26: scopes.user.growth.max_tokens_per_minute"]),
        ("tools: [{match: a, budget: {max_tokens: 9}}]\n", ["2:29: tools.0.budget.max_tokens"]),
        ("tools: [{match: a, timeout: 9s}]\n", []),
    ],
)
def test_a_limit_that_a_host_cannot_hold_is_refused_for_that_host(text: str, lines: list[str], tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(f"version: 1\n{text}")
    for host in ("mcp", "fastmcp", "proxy"):
        shown = CliRunner().invoke(app, ["policy", "check", "--host", host, str(file)])
        told = [line.removeprefix(f"{file}:") for line in shown.stdout.splitlines() if line.startswith(f"{file}:")]
        found = [line for line in told if f": `{host}` tells of no model response" in line]
        assert (shown.exit_code, [line.rpartition(": `")[0].partition(": `")[0] for line in found]) == (
            1 if lines else 0,
            lines,
        )
    shown = CliRunner().invoke(app, ["policy", "check", "--host", "claude-agent-sdk", str(file)])
    assert ("tools.0.timeout: `claude-agent-sdk` ends no tool that runs" in shown.stdout) is ("timeout" in text)
    assert CliRunner().invoke(app, ["policy", "check", "--host", "langchain", str(file)]).exit_code == 0
    assert CliRunner().invoke(app, ["policy", "check", "--host", "lnagchain", str(file)]).exit_code == 2
