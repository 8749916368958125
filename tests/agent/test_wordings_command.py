"""
The command that compares words: its mistakes, its page, and other models.
"""

import json

from pathlib import Path

import pytest

from benchmarks.wordings import __main__ as command
from benchmarks.wordings.scenes import SCENES
from benchmarks.wordings.tables import ALL
from benchmarks.wordings.topics import TOPICS
from benchmarks.wordings.wordings import BIDS
from guardrails.testing.scripted_openai import ScriptedOpenAI, Text
from tests.agent.test_wordings import BY_NAME, reads


def test_without_the_model_the_command_says_how_to_get_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main("--python", str(tmp_path / "python")) == 2
    assert "python3 dev.py model" in capsys.readouterr().err


def test_a_model_that_does_not_start_is_an_error_with_its_last_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\n[ "$1" = -c ] && exit 0\necho out of memory >&2\nexit 1\n')
    python.chmod(0o755)
    assert command.main("--python", str(python)) == 2
    assert "the model did not start: out of memory; `python3 dev.py model`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["duplicates.all"], "there is no scene `duplicates.all`; there are budget.max_calls, "),
        (["--seeds", "0"], "--seeds takes a number of at least 1, not 0"),
        (["loops.reread", "--write"], "--write takes all scenes"),
        (["--server", "http://127.0.0.1:1", "--write"], "--write takes the model of the page"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(*arguments)
    assert said in capsys.readouterr().err


def test_the_tables_go_between_the_marks_of_the_page_and_the_figures_into_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, figures = tmp_path / "wordings.md", tmp_path / "figures.json"
    page.write_text(f"# Words\n\n{command.BEGIN}old\n{command.END}\nThe end.\n")
    monkeypatch.setattr(command, "PAGE", page)
    monkeypatch.setattr(command, "TOPICS", TOPICS[:1])
    assert command.main("--write", "--json", str(figures), "--seeds", "1", ask=reads("Answer the user now")) == 0
    shown = capsys.readouterr()
    assert page.read_text() == f"# Words\n\n{command.BEGIN}{shown.out}{command.END}\nThe end.\n"
    assert "a repeat is refused, search_hotels, bids: 1/1" in shown.err
    told_of = {(one["scene"], one["wording"]): one for one in json.loads(figures.read_text())}
    assert told_of["a repeat is refused", BIDS]["obeyed"] == 1
    assert {scene for scene, _ in told_of} == set(BY_NAME)


def test_the_page_has_a_row_for_each_scene() -> None:
    shown = command.PAGE.read_text(encoding="utf-8").partition(command.BEGIN)[2].partition(command.END)[0]
    rows = [line.split(" | ")[0].lstrip("| ") for line in shown.partition("\n* ")[0].splitlines()[2:]]
    assert [row for row in rows if row] == [*(scene.name for scene in SCENES), ALL]


def test_another_model_is_asked_at_its_server_and_one_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "TOPICS", TOPICS[:1])
    answers = str(tmp_path / "answers.jsonl")
    arguments = ("duplicates.evidence", "--seeds", "1", "--answers", answers)
    said = '{"answer": "The Sakura Inn."}'
    with ScriptedOpenAI(lambda body, n: Text(said)) as model:
        assert command.main(*arguments, "--server", model.base_url.removesuffix("/v1")) == 0
    assert "| 100 % (21 to 100) |" in capsys.readouterr().out
    # Its answers are not those of another one.
    assert command.main(*arguments, "--server", "http://127.0.0.1:1") == 2
    assert "http://127.0.0.1:1 did not answer" in capsys.readouterr().err
