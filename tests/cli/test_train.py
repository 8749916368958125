"""
`guardrails train` and `guardrails profile`.
"""

import json

from pathlib import Path

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from guardrails.model_files import read_model
from tests.learning.faulty_tools import play


def run(*arguments: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records") / "log.jsonl"
    play(path, days=3, sessions=25)
    return path


@pytest.fixture(scope="module")
def trained(log: Path) -> tuple[Result, Path]:
    path = log.with_name("retry.json")
    return run("train", log, "-o", path), path


def test_training_says_what_was_learned_and_writes_the_model(trained: tuple[Result, Path]) -> None:
    result, path = trained
    assert result.exit_code == 0, result.output
    name = read_model(path).name
    assert "3 days" in result.stdout
    assert "log loss" in result.stdout
    assert "Gate: better by" in result.stdout
    assert f"is now the model {name}" in " ".join(result.stdout.split())


def test_training_again_leaves_the_file_and_says_so(trained: tuple[Result, Path], log: Path) -> None:
    _, path = trained
    before = path.read_bytes()
    result = run("train", log, "-o", path)
    assert result.exit_code == 0
    assert "the new model says the same" in " ".join(result.stdout.split())
    assert path.read_bytes() == before


def test_json_holds_every_figure(log: Path, tmp_path: Path) -> None:
    result = run("train", log, "-o", tmp_path / "m.json", "--dry-run", "--json")
    made = json.loads(result.stdout)
    assert made["better"] is True
    assert made["written"] is False
    assert made["verdict"]["new"]["log_loss"] < made["verdict"]["present"]["log_loss"]
    assert made["skew"] == {"logged": 0.0, "differing": 0.0, "share": 0.0}
    assert not (tmp_path / "m.json").exists()


def test_a_policy_says_what_decisions_cost(log: Path, tmp_path: Path) -> None:
    dear = tmp_path / "dear.yaml"
    dear.write_text("version: 1\nretryable: {retry_cost: 5.0}\n")
    result = run("train", log, "-o", tmp_path / "m.json", "--dry-run", "--json", "--policy", dear)
    assert json.loads(result.stdout)["verdict"]["new"]["value"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "nowhere", "-o", "m.json"], "no file or folder `nowhere`"),
        (["train", ".", "-o", "m.json", "--master", "local[2]"], "goes with `--engine spark`"),
        (["train", ".", "-o", "m.json", "--half-life", "0"], "more than 0 days"),
        (["train", ".", "-o", "m.json", "--policy", "nosuch"], "nosuch"),
        (["profile", "nowhere.json"], "cannot read `nowhere.json`"),
        (["profile", "bad.json"], "`bad.json`: no retry model"),
    ],
)
def test_a_use_that_cannot_work_says_why(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text("{}")
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_records_without_failures_say_so(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    result = run("train", empty, "-o", tmp_path / "m.json")
    assert result.exit_code == 2
    assert "nothing to learn" in result.stderr


def test_skew_and_drift_are_found(log: Path, trained: tuple[Result, Path], tmp_path: Path) -> None:
    from guardrails.cli.train_text import trained_text
    from guardrails.learning.drift import Drift
    from guardrails.learning.train import train

    made = train([log], tmp_path / "m.json", dry_run=True)
    learned = made.learned
    object.__setattr__(learned, "logged", 50.0)
    object.__setattr__(learned, "skewed", 1.0)
    object.__setattr__(learned, "drifts", [Drift("pay", "timeout", 40, 2, 21, -6.0)])
    text = " ".join(trained_text(made, dry_run=True).split())
    assert "in 1 of 50 failures (2 %)" in text
    assert "`pay` after `timeout`: 2 of 40 retries worked, 21 were predicted (z -6.0)" in text


def test_a11_profiles_are_printed_as_sentences_and_as_a_table(trained: tuple[Result, Path]) -> None:
    _, path = trained
    result = run("profile", path)
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "timeouts of `search_hotels` resolve on retry" in said
    assert "server errors of `legacy` do not resolve on retry (0 of" in said
    assert "best wait" in said
    one = run("profile", path, "--tool", "legacy", "--json")
    (document,) = json.loads(one.stdout)
    assert document["tool"] == "legacy"
    assert document["sentence"].startswith("server errors of `legacy`")
    assert "knows no failures of `nosuch`" in run("profile", path, "--tool", "nosuch").stdout
