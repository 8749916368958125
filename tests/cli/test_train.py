"""
`guardrails train` and `guardrails profile`.
"""

import json

from pathlib import Path

import pytest

from typer.testing import Result

from guardrails.core.retries.model import MAX_BYTES
from guardrails.policy.models import read_model
from tests.cli.command import guardrails
from tests.offline.learning.faulty_tools import play
from tests.pages import document


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records") / "log.jsonl"
    play(path, days=3, sessions=25)
    return path


@pytest.fixture(scope="module")
def trained(log: Path) -> tuple[Result, Path]:
    path = log.with_name("retry.json")
    return guardrails("train", log, "-o", path), path


def test_training_says_what_was_learned_and_writes_the_model(trained: tuple[Result, Path]) -> None:
    result, path = trained
    assert result.exit_code == 0, result.output
    name = read_model(path).name
    assert "verdict better by" in " ".join(result.stdout.split())
    assert f"model {name}" in " ".join(result.stdout.split())


def test_training_again_leaves_the_file_and_says_so(trained: tuple[Result, Path], log: Path) -> None:
    _, path = trained
    before = path.read_bytes()
    result = guardrails("train", log, "-o", path)
    assert result.exit_code == 0
    assert "written false" in " ".join(result.stdout.split())
    assert path.read_bytes() == before


def test_json_holds_every_figure(log: Path, tmp_path: Path) -> None:
    result = guardrails("train", log, "-o", tmp_path / "m.json", "--dry-run", "--json")
    made = json.loads(result.stdout)
    assert made["better"] is True
    assert made["written"] is False
    assert made["verdict"]["new"] < made["verdict"]["present"]
    assert made["verdict"]["gain"] > 2 * made["verdict"]["error"]
    assert not (tmp_path / "m.json").exists()


def test_a_model_file_that_is_no_good_is_told_of_and_replaced(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "retry.json"
    for content, said in (
        (b"{}", "no retry model"),
        (
            b'{"format": "guardrails.retry-model", "version": 0}',
            "version `0`, this library reads 4: train it again",
        ),
        (b" " * (MAX_BYTES + 1), "bytes (at most 8,388,608)"),
    ):
        path.write_bytes(content)
        shown = guardrails("profile", path)
        assert shown.exit_code == 2
        assert said in " ".join(shown.stderr.split())
        result = guardrails("train", log, "-o", path)
        assert result.exit_code == 0
        assert said in " ".join(result.stdout.split())
        assert read_model(path).evidence


def test_a11_profiles_are_printed_as_sentences(trained: tuple[Result, Path]) -> None:
    _, path = trained
    result = guardrails("profile", path)
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "`timeout` of `search_hotels` resolves on retry" in said
    assert "`server_error` of `legacy` has hardly ever resolved on retry (0 of" in said
    page = path.with_name("page.html")
    assert f"written to `{page}`" in guardrails("profile", path, "--html", page).stderr
    drawn = document(page.read_text())
    assert drawn == {"command": "profile", "data": json.loads(guardrails("profile", path, "--json").stdout)}
    assert [wait for wait, _ in drawn["data"][0]["curve"]] == [0, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000]
    assert guardrails("profile", path, "--html", path).exit_code == 2
    one = guardrails("profile", path, "--tool", "legacy", "--json")
    (legacy,) = json.loads(one.stdout)
    assert legacy["tool"] == "legacy"
    assert legacy["sentence"].startswith("`server_error` of `legacy`")
    assert "knows no failures of `nosuch`" in guardrails("profile", path, "--tool", "nosuch").stdout
