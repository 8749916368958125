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


def test_training_writes_a_better_model_and_says_so(trained: tuple[Result, Path], log: Path, tmp_path: Path) -> None:
    result, path = trained
    assert result.exit_code == 0, result.output
    said, before = " ".join(result.stdout.split()), path.read_bytes()
    assert "verdict better by" in said
    assert f"model {read_model(path).name}" in said
    assert "written false" in " ".join(guardrails("train", log, "-o", path).stdout.split())
    assert path.read_bytes() == before
    made = json.loads(guardrails("train", log, "-o", tmp_path / "m.json", "--dry-run", "--json").stdout)
    verdict = made["verdict"]
    assert (made["better"], made["written"], verdict["new"] < verdict["present"]) == (True, False, True)
    assert verdict["gain"] > 2 * verdict["error"]
    assert not (tmp_path / "m.json").exists()


def test_a_model_file_that_is_no_good_is_told_of_and_replaced(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "retry.json"
    for content, said in (
        (b"{}", "no retry model"),
        (b'{"format": "guardrails.retry-model", "version": 0}', "version `0`, this library reads 4: train it again"),
        (b" " * (MAX_BYTES + 1), "bytes (at most 8,388,608)"),
    ):
        path.write_bytes(content)
        shown = guardrails("profile", path)
        assert (shown.exit_code, said in " ".join(shown.stderr.split())) == (2, True)
        result = guardrails("train", log, "-o", path)
        assert (result.exit_code, said in " ".join(result.stdout.split())) == (0, True)
        assert read_model(path).evidence


def test_a11_profiles_are_printed_as_sentences(trained: tuple[Result, Path]) -> None:
    _, path = trained
    said = " ".join(guardrails("profile", path).stdout.split())
    assert "`timeout` of `search_hotels` resolves on retry" in said
    assert "`server_error` of `legacy` has hardly ever resolved on retry (0 of" in said
    page = path.with_name("page.html")
    assert f"written to `{page}`" in guardrails("profile", path, "--html", page).stderr
    drawn = document(page.read_text())
    assert drawn == {"command": "profile", "data": json.loads(guardrails("profile", path, "--json").stdout)}
    assert [wait for wait, _ in drawn["data"][0]["curve"]] == [0, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000]
    assert guardrails("profile", path, "--html", path).exit_code == 2
    [legacy] = json.loads(guardrails("profile", path, "--tool", "legacy", "--json").stdout)
    assert (legacy["tool"], legacy["sentence"].split()[0]) == ("legacy", "`server_error`")
    assert "knows no failures of `nosuch`" in guardrails("profile", path, "--tool", "nosuch").stdout
