"""
Each statement of a report is made of the calls of which it is true, and not of near neighbours of which it is not.
"""

import json

from pathlib import Path

from typer.testing import CliRunner

from guardrails import Duplicates, Guard, Validation
from guardrails.cli import app
from tests.offline.report.planted import Sessions, lines, own
from tests.offline.report.statements import TEXT, Case, one
from tests.pages import document
from tests.tables import table


def printed(path: Path, *options: str) -> str:
    done = CliRunner(env={"COLUMNS": "100"}).invoke(app, ["report", str(path), "-q", *options])
    assert done.exit_code == 0, done.output
    return done.stdout if "--json" in options else " ".join(done.stdout.split())


@table("case", TEXT)
def test_a_sentence_is_said_where_it_is_true_and_only_there(case: Case, tmp_path: Path) -> None:
    path, page = tmp_path / "calls.jsonl", tmp_path / "page.html"
    for sessions, true in ((case.true, True), (case.false, False)):
        path.write_text(lines(sessions))
        text = printed(path)
        assert (case.says in text) is true
        found = json.loads(printed(path, "--json", "--html", str(page)))
        assert all(reason in text for tool in found["tools"] for reason in tool["reasons"])
        assert ("Redesign first" in text) is any(tool["wasted"] for tool in found["tools"])
        assert document(page.read_text())["data"] == found


REFUSED: list[tuple[str, list[Guard], Sessions, Sessions]] = [
    (
        "1 repeated a result",
        [Duplicates(rule="always", window=5)],
        one("t=1", "t=1"),
        one("t=1", "t x=1"),
    ),
    (
        "1 refused for wrong arguments",
        [Validation()],
        one("checked wrong=1"),
        one("checked right=1"),
    ),
    (
        "it waits for something: have it answer when there is news or say when to ask again",
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
