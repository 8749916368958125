"""
Commands over files that hold no calls, and over some that do among others.
"""

import json
import os
import tarfile
import tempfile
import zipfile

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from tests.tables import table


CALL = {"session_id": "s", "tool": "a", "arguments": {}, "result": "Error: timeout", "is_error": True, "ts": 1.8e9}
LINE = json.dumps(CALL).encode() + b"\n"


def _archive(form: str) -> bytes:
    """
    An archive in which the lines stand as they are.
    """
    packed = BytesIO()
    if form == "zip":
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("calls.jsonl", LINE * 5)
    else:
        with tarfile.open(fileobj=packed, mode="w") as tape:
            member = tarfile.TarInfo("calls.jsonl")
            member.size = len(LINE * 5)
            tape.addfile(member, BytesIO(LINE * 5))
    return packed.getvalue()


NOTHING: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "blank": (b"\n\n", "empty"),
    "binary": (bytes(range(256)), "no calls that can be read"),
    "foreign": (
        b'{"level": "info"}\n' * 9,
        'no calls that can be read in 9 lines, the first is line 1: {"level": "info"}',
    ),
    "table": (b"a,b\n1,2\n", "no calls that can be read in 2 lines, the first is line 1: a,b"),
    "text": (b"hello\n", "no calls that can be read in 1 line, the first is line 1: hello"),
    "UTF-16": ("hello".encode("utf-16"), "no calls that can be read"),
    "UTF-16 without a mark": ((LINE * 3).decode().encode("utf-16-le"), "no calls that can be read"),
    "records of UTF-16": (
        b'{"schema_version": 1, "event": "call"}\n'.decode().encode("utf-16-be"),
        "no calls that can be read",
    ),
    "archive": (_archive("zip"), "no calls that can be read"),
    "tape": (_archive("tar"), "no calls that can be read"),
    "half a record": (
        b'{"schema_version": 1, "event": "call", "session_id": "s", "n": 1, "ts_ms": 1, "to',
        "no calls that can be read",
    ),
    "cut": (LINE[:40], "no calls that can be read in 1 line"),
    "no calls": (b'{"messages": [{"role": "user", "content": "hi"}]}', "chat"),
    "newer": (
        b'{"schema_version": 2, "event": "call", "session_id": "s", "n": 1, "ts_ms": 1, "tool": "a"}\n',
        "schema version",
    ),
}
EMPTY = NOTHING["empty"]
COMMANDS: dict[str, Callable[[Path, Path], list[str]]] = {
    "replay": lambda path, _: ["replay", "default", str(path)],
    "compare": lambda path, _: ["replay", "default", str(path), "--compare", "strict"],
    "exact": lambda path, _: ["replay", "default", str(path), "--exact"],
    "report": lambda path, _: ["report", str(path)],
    "suggest": lambda path, out: ["report", str(path), "--suggest", "-o", str(out / "o.yaml")],
    "init": lambda path, out: ["init", str(path), "-o", str(out / "o.yaml")],
    "train": lambda path, out: ["train", str(path), "-o", str(out / "m.json")],
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    path = tmp_path / "out"
    path.mkdir()
    return path


@table(
    "command, found, folder",
    [
        (each, *row)
        for each in COMMANDS.values()
        for row in [*((one, False) for one in NOTHING.values()), (EMPTY, True)]
    ],
)
def test_one_line_says_what_was_found(
    tmp_path: Path, out: Path, command: Callable[[Path, Path], list[str]], found: tuple[bytes, str], folder: bool
) -> None:
    data, said = found
    path = tmp_path / "given" / "x.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    shown = run(*command(path.parent if folder else path, out))
    exact = "--exact" in command(path, out)
    # Files of another form are none that `--exact` can be asked about.
    assert (shown.exit_code, shown.stdout) == (2 if exact else 1, "")
    assert shown.stderr.count("\n") == 1
    assert str(path) in shown.stderr
    if not exact:
        assert said in shown.stderr
        assert "what is read: guardrails records, " in shown.stderr or said == "schema version"
    assert not (out / "o.yaml").exists()


@table("command", COMMANDS.values())
def test_a_folder_without_files_is_not_green(
    tmp_path: Path, out: Path, command: Callable[[Path, Path], list[str]]
) -> None:
    none = Path(tempfile.mkdtemp(dir=tmp_path))
    os.mkfifo(none / "pipe")
    (none / "gone").symlink_to(tmp_path / "nowhere")
    shown = run(*command(none, out))
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "there are no files" in shown.stderr


@table("name", ["replay", "report", "train"])
def test_good_files_among_others_are_read_and_the_others_told(tmp_path: Path, out: Path, name: str) -> None:
    given = tmp_path / "given"
    given.mkdir(exist_ok=True)
    for number, (data, _) in enumerate(NOTHING.values()):
        (given / f"{number}.jsonl").write_bytes(data)
    lines = [
        {**CALL, "session_id": f"s{n}", "ts": 1.8e9 + 60 * n + at, "is_error": at == 0 or n % 2 == 0}
        for n in range(40)
        for at in range(2)
    ]
    (given / "good.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = run(*COMMANDS[name](given, out), "--json")
    assert shown.exit_code == 0, shown.stderr
    notices = json.loads(shown.stdout)["notes" if name == "train" else "notices"]
    for number in range(len(NOTHING)):
        assert any(f"{number}.jsonl" in notice for notice in notices), number


def test_json_is_printed_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").touch()
    for command in ("replay", "report"):
        shown = run(*COMMANDS[command](tmp_path, tmp_path), "--json")
        assert shown.exit_code == 1
        assert "no calls found" in shown.stderr
        assert json.loads(shown.stdout)["notices"]
