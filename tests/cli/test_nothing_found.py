"""
Commands over files that hold no calls, and over some that do among others.
"""

import json
import os
import tempfile

from pathlib import Path

import pytest

from typer.testing import Result

from tests.cli.command import guardrails
from tests.tables import table


CALL = {"session_id": "s", "tool": "a", "arguments": {}, "result": "Error: timeout", "is_error": True, "ts": 1.8e9}
TABLES = json.loads((Path(__file__).with_name("files") / "nothing.json").read_text())
NOTHING = {data.encode("latin-1"): look for data, look in TABLES["files"].items()}
"""Files, and their looks."""
COMMANDS = TABLES["commands"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(command: str, file: Path, *more: str) -> Result:
    return guardrails(*command.replace("FILE", str(file)).split(), *more)


@table("command, data", [(command, data) for command in COMMANDS for data in NOTHING])
def test_one_line_says_what_was_found(tmp_path: Path, command: str, data: bytes) -> None:
    path = tmp_path / "given" / "x.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    shown = run(command, path if data else path.parent)
    # Files of another form are none that `--exact` can be asked about.
    assert (shown.exit_code, shown.stdout, shown.stderr.count("\n")) == (2 if "--exact" in command else 1, "", 1)
    assert str(path) in shown.stderr
    assert "--exact" in command or NOTHING[data] in shown.stderr
    assert (
        "--exact" in command
        or "what is read: guardrails records, " in shown.stderr
        or NOTHING[data] == "schema version"
    )
    assert [one.name for one in tmp_path.iterdir()] == ["given"]


@table("command", COMMANDS)
def test_a_folder_without_files_is_not_green(tmp_path: Path, command: str) -> None:
    none = Path(tempfile.mkdtemp(dir=tmp_path))
    os.mkfifo(none / "pipe")
    (none / "gone").symlink_to(tmp_path / "nowhere")
    shown = run(command, none)
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "there are no files" in shown.stderr


@table("command", [COMMANDS[0], COMMANDS[3], COMMANDS[-1]])
def test_good_files_among_others_are_read_and_the_others_told(tmp_path: Path, command: str) -> None:
    given = tmp_path / "given"
    given.mkdir(exist_ok=True)
    lines = ({**CALL, "session_id": f"s{n // 2}", "ts": 1.8e9 + 30 * n, "is_error": n % 4 != 3} for n in range(80))
    good = "".join(json.dumps(line) + "\n" for line in lines).encode()
    for number, data in enumerate([*NOTHING, good]):
        (given / f"{number}.jsonl").write_bytes(data)
    shown = run(command, given, "--json")
    assert shown.exit_code == 0, shown.stderr
    notices = json.loads(shown.stdout)["notes" if "train" in command else "notices"]
    for number in range(len(NOTHING)):
        assert any(f"{number}.jsonl" in notice for notice in notices), number
