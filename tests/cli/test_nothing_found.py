"""
Commands over files that hold no calls, and over some that do among others.
"""

import json
import os
import tarfile
import tempfile

from io import BytesIO
from pathlib import Path

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from tests.tables import table


CALL = {"session_id": "s", "tool": "a", "arguments": {}, "result": "Error: timeout", "is_error": True, "ts": 1.8e9}
LINE = json.dumps(CALL).encode() + b"\n"
NONE = "no calls that can be read"


def tape() -> bytes:
    """
    An archive in which the lines stand as they are.
    """
    packed, member = BytesIO(), tarfile.TarInfo("calls.jsonl")
    member.size = len(LINE * 5)
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(member, BytesIO(LINE * 5))
    return packed.getvalue()


RECORD = b'{"schema_version": 2, "event": "call", "session_id": "s", "n": 1, "ts_ms": 1, "tool": "a"}\n'
NOTHING = {
    b"": "empty",
    bytes(range(256)): NONE,
    b'{"level": "info"}\n' * 9: f'{NONE} in 9 lines, the first is line 1: {{"level": "info"}}',
    b"hello\n": f"{NONE} in 1 line, the first is line 1: hello",
    (LINE * 3).decode().encode("utf-16-le"): NONE,
    RECORD.decode().encode("utf-16-be"): NONE,
    tape(): NONE,
    RECORD[:60]: NONE,
    LINE[:40]: f"{NONE} in 1 line",
    b'{"messages": [{"role": "user", "content": "hi"}]}': "chat",
    RECORD: "schema version",
}
"""Files, and their looks."""
COMMANDS = {
    "replay": "replay default FILE",
    "compare": "replay default FILE --compare strict",
    "exact": "replay default FILE --exact",
    "report": "report FILE",
    "suggest": "report FILE --suggest -o OUT/o.yaml",
    "init": "init FILE -o OUT/o.yaml",
    "train": "train FILE -o OUT/m.json",
}


def run(command: str, file: Path, out: Path, *more: str) -> Result:
    words = [word.replace("FILE", str(file)).replace("OUT", str(out)) for word in COMMANDS[command].split()]
    return CliRunner().invoke(app, [*words, *more])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    path = tmp_path / "out"
    path.mkdir()
    return path


@table("command, data", [(command, data) for command in COMMANDS for data in NOTHING])
def test_one_line_says_what_was_found(tmp_path: Path, out: Path, command: str, data: bytes) -> None:
    path = tmp_path / "given" / "x.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    shown = run(command, path if data else path.parent, out)
    # Files of another form are none that `--exact` can be asked about.
    assert (shown.exit_code, shown.stdout) == (2 if command == "exact" else 1, "")
    assert shown.stderr.count("\n") == 1
    assert str(path) in shown.stderr
    if command != "exact":
        assert NOTHING[data] in shown.stderr
        assert "what is read: guardrails records, " in shown.stderr or data == RECORD
    assert not [*out.iterdir()]


@table("command", COMMANDS)
def test_a_folder_without_files_is_not_green(tmp_path: Path, out: Path, command: str) -> None:
    none = Path(tempfile.mkdtemp(dir=tmp_path))
    os.mkfifo(none / "pipe")
    (none / "gone").symlink_to(tmp_path / "nowhere")
    shown = run(command, none, out)
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "there are no files" in shown.stderr


@table("name", ["replay", "report", "train"])
def test_good_files_among_others_are_read_and_the_others_told(tmp_path: Path, out: Path, name: str) -> None:
    given = tmp_path / "given"
    given.mkdir(exist_ok=True)
    for number, data in enumerate(NOTHING):
        (given / f"{number}.jsonl").write_bytes(data)
    with (given / "good.jsonl").open("w") as file:
        for n in range(80):
            line = {**CALL, "session_id": f"s{n // 2}", "ts": 1.8e9 + 30 * n, "is_error": n % 4 != 3}
            file.write(json.dumps(line) + "\n")
    shown = run(name, given, out, "--json")
    assert shown.exit_code == 0, shown.stderr
    notices = json.loads(shown.stdout)["notes" if name == "train" else "notices"]
    for number in range(len(NOTHING)):
        assert any(f"{number}.jsonl" in notice for notice in notices), number
