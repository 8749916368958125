"""
Which files are read, and how they are opened.
"""

import gzip
import io
import json
import os
import sys

from pathlib import Path
from typing import Any

import pytest
import yaml

from guardrails.offline.transcripts import Report, open_calls
from guardrails.offline.transcripts.files import MANY, inputs, values_of
from tests.tables import table


TABLES = yaml.safe_load(Path(__file__).with_name("values.yaml").read_text(encoding="utf-8"))
LINE = json.dumps({"session_id": "s", "tool": "t", "arguments": {"n": 1}, "result": "ok"}) + "\n"
PACKED = gzip.compress(LINE.encode())


def calls_of(path: Any) -> tuple[list[Any], Report]:
    report = Report()
    return open_calls(path, report), report


def write(folder: Path, data: bytes, name: str = "f.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@table(
    "name, data, source, count",
    [
        ("f.jsonl", LINE.encode(), "f", 1),
        (".jsonl", LINE.encode(), ".jsonl", 1),
        ("my.log.jsonl.gz", PACKED, "my.log", 1),
        # gzip is known by its content; files that were packed one by one and joined are one.
        ("plain.txt", PACKED + b"\0" * 512 + PACKED, "plain.txt", 2),
    ],
)
def test_a_source_is_the_name_of_the_file(tmp_path: Path, name: str, data: bytes, source: str, count: int) -> None:
    calls, report = calls_of(write(tmp_path, data, name))
    assert [call.source for call in calls] == [source] * count
    assert report.notices == []


def test_standard_input_and_a_pipe_are_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    stdin, pipe = inputs(["-", tmp_path / "pipe"])
    assert (stdin.path, pipe.from_folder) == ("-", False)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINE.encode())))
    assert [(call.source, call.session_id) for call in calls_of("-")[0]] == [("stdin", "s")]


def test_a_file_that_cannot_be_opened_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        calls_of(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no file or folder `.*none`"):
        inputs([tmp_path / "none"])
    for end in (20, -1):
        with pytest.raises(OSError, match="cut off or damaged"):
            calls_of(write(tmp_path, PACKED[:end]))


@table("text, notice", TABLES["notices"])
def test_a_file_without_calls_is_skipped_with_a_notice(tmp_path: Path, text: str, notice: str) -> None:
    for data in (text.encode("latin-1"), gzip.compress(text.encode("latin-1"))):
        calls, report = calls_of(write(tmp_path, data))
        assert (calls, len(report.notices)) == ([], 1)
        assert notice in report.notices[0]


@table("text, found, broken", TABLES["values"])
def test_a_document_and_lines_are_known_from_each_other(text: str, found: Any, broken: list[int]) -> None:
    assert values_of(text.encode()) == ([*map(tuple, found)], broken)


def test_files_are_read_once_in_the_order_of_their_names_or_as_they_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b.jsonl", "a.jsonl", ".hidden", "sub/c.jsonl", ".git/d.jsonl"):
        write(tmp_path, b"x", name)
    a, b, c = (str(tmp_path / name) for name in ("a.jsonl", "b.jsonl", "sub/c.jsonl"))
    assert [(each.path, each.from_folder, each.folder) for each in inputs([tmp_path])] == [
        (path, True, None) for path in (a, b, c)
    ]
    assert [each.path for each in inputs([b, a, str(tmp_path), b])] == [b, a, c]
    monkeypatch.chdir(tmp_path)
    for path in ("a.jsonl", "./a.jsonl", f"{tmp_path}//a.jsonl", f"{tmp_path}/./a.jsonl"):
        assert [each.path for each in inputs([path, a])] == [path]
    # Many files of one folder are one source.
    for n in range(MANY):
        write(tmp_path / "sub", b"x", f"{n}.jsonl")
    assert [each.folder for each in inputs([tmp_path])] == [None] * 2 + ["sub"] * (MANY + 1)
