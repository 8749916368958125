"""
Each statement of a report is made of the calls of which it is true, and not of near neighbours of which it is not.
"""

import json
import re
import shutil

from pathlib import Path

from typer.testing import CliRunner

from guardrails import Duplicates, Guard, Loops, Validation
from guardrails.cli import app
from tests.offline.report.planted import FORMATS, Sessions, own
from tests.offline.report.statements import FIGURES, SUGGESTED, TEXT, Case, one
from tests.pages import document
from tests.tables import table


def reported(folder: Path, sessions: Sessions, kind: str, *options: str) -> str:
    """
    What the command prints of the calls, its lines put together.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    # A rollout of Codex holds one session.
    parts = re.split(r'(?=^\{"type": "session_meta")', FORMATS[kind](sessions), flags=re.MULTILINE)
    for number, part in enumerate(filter(None, parts)):
        (folder / f"{number}.jsonl").write_text(part)
    return printed(folder, *options)


def printed(path: Path, *options: str) -> str:
    done = CliRunner(env={"COLUMNS": "100"}).invoke(app, ["report", str(path), "-q", *options])
    assert done.exit_code == 0, done.output
    return done.stdout if "--json" in options else " ".join(done.stdout.split())


@table("case, kind", [(case, kind) for case in TEXT for kind in case.formats])
def test_a_sentence_is_said_where_it_is_true_and_only_there(case: Case, kind: str, tmp_path: Path) -> None:
    assert case.says in reported(tmp_path / "true", case.true, kind)
    assert case.says not in reported(tmp_path / "false", case.false, kind)


@table("case", TEXT)
def test_the_text_and_the_json_give_the_same_reasons_and_the_page_draws_these(case: Case, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for name, sessions in (("true", case.true), ("false", case.false)):
        found = json.loads(reported(tmp_path / name, sessions, case.formats[0], "--json", "--html", str(page)))
        text, drawn = printed(tmp_path / name), document(page.read_text())
        for tool in found["tools"]:
            for reason in tool["reasons"]:
                assert reason in text
        wasted = any(tool["wasted"] for tool in found["tools"])
        assert ("Redesign first" in text, drawn["data"]) == (wasted, found)


@table("kind", FORMATS)
@table("name, value, true, false", FIGURES)
def test_a_figure_is_that_of_the_calls(
    name: str, value: object, true: Sessions, false: Sessions, kind: str, tmp_path: Path
) -> None:
    found: list[object] = []
    for sessions in (true, false):
        tools = json.loads(reported(tmp_path / str(len(found)), sessions, kind, "--json"))["tools"]
        found.append(next(tool[name] for tool in tools if tool["tool"] == "t"))
    assert found[0] == value
    assert found[1] != value


@table("says, true, false", SUGGESTED)
def test_a_setting_is_suggested_where_the_calls_support_it(
    says: str, true: Sessions, false: Sessions, tmp_path: Path
) -> None:
    for name, sessions, said in (("true", true, True), ("false", false, False)):
        text = reported(tmp_path / name, sessions, "claude", "--suggest")
        assert (says in text.partition("# The rules of the policy that this extends")[0]) is said


REFUSED: list[tuple[str, list[Guard], Sessions, Sessions]] = [
    (
        "1 repeated a result",
        [Duplicates(rule="always", window=5)],
        one("t=1", "t=1"),
        one("t=1", "t x=1"),
    ),
    (
        "1 was refused for wrong arguments",
        [Validation()],
        one("checked wrong=1"),
        one("checked right=1"),
    ),
    (
        "were refused for going round in circles",
        [Loops()],
        one(*(f"t {n}!validation" for n in range(12))),
        one(*(f"t {n}=1" for n in range(12))),
    ),
    (
        "it polls: have it answer when there is news, or say when to ask again",
        [Duplicates(rule="always", window=5)],
        one("sleep=1", "sleep=1"),
        one("t=1", "t=1"),
    ),
]


@table("says, guards, true, false", REFUSED)
def test_what_was_refused_is_told_where_it_was(
    says: str, guards: list[Guard], true: Sessions, false: Sessions, tmp_path: Path
) -> None:
    for name, sessions, said in (("true", true, True), ("false", false, False)):
        path = tmp_path / f"{name}.jsonl"
        path.unlink(missing_ok=True)
        own(path, guards, sessions)
        assert (says in printed(path)) is said
