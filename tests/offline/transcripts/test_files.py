"""
Opening transcripts.
"""

import gzip
import io
import json
import sys

from pathlib import Path
from typing import Any

import pytest

from guardrails.offline.transcripts import Report, open_calls
from guardrails.offline.transcripts.files import values_of
from tests.tables import table


LINE = json.dumps({"session_id": "s", "tool": "t", "arguments": {"n": 1}, "result": "ok"})


def calls_of(path: Any) -> tuple[list[Any], Report]:
    report = Report()
    return open_calls(path, report), report


def write(folder: Path, data: bytes | str, name: str = "f.jsonl") -> Path:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_a_source_is_the_name_of_the_file(files: Path, tmp_path: Path) -> None:
    assert calls_of(files / "cline.json")[0][0].source == "cline"
    assert calls_of(write(tmp_path, gzip.compress(LINE.encode()), "my.log.jsonl.gz"))[0][0].source == "my.log"
    assert calls_of(write(tmp_path, LINE, ".jsonl"))[0][0].source == ".jsonl"


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    packed = gzip.compress(f"{LINE}\n".encode()) + b"\0" * 512 + gzip.compress(f"{LINE}\n".encode())
    calls, report = calls_of(write(tmp_path, packed, "plain.txt"))
    assert len(calls) == 2, "files that were packed one by one and joined are one"
    assert report.notices == []


def test_standard_input_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    class Piped:
        buffer = io.BytesIO(f"{LINE}\n".encode())

    monkeypatch.setattr(sys, "stdin", Piped)
    calls, _ = calls_of("-")
    assert [(call.source, call.session_id) for call in calls] == [("stdin", "s")]


def test_a_file_that_cannot_be_opened_is_an_os_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(OSError):  # noqa: PT011  the kind is the whole contract
            calls_of(path)


@table("end", [20, -1])
def test_a_packed_file_that_is_cut_off_is_an_os_error(tmp_path: Path, end: int) -> None:
    with pytest.raises(OSError, match="cut off or damaged"):
        calls_of(write(tmp_path, gzip.compress(f"{LINE}\n".encode())[:end]))


@table(
    "data, notice",
    [
        (b"", "skipped: empty"),
        (b"\xef\xbb\xbf", "skipped: empty"),
        (b"\n\n", "skipped: empty"),
        (b"\x00" * 1000, "skipped: no calls that can be read in 1 line, "),
        (b"\x89PNG\r\n", "skipped: no calls"),
        ('{"a": 1}'.encode("utf-16"), "skipped: no calls"),
        (gzip.compress(b"", mtime=0), "skipped: empty"),
        (
            b'\n{"messages": [{"role": "user", "content": "hi"}]}\n',
            'skipped: no tool calls in this chat of 1 line, the first is line 2: {"messages": [{"role": "user"',
        ),
        (
            b'{"session_id": "s", "call_index": 1, "tool": "t", "retry": "none"}',
            'in 1 line, the first is line 1: {"session_id": "s", "call',
        ),
    ],
)
def test_a_file_without_calls_is_skipped_with_a_notice(tmp_path: Path, data: bytes, notice: str) -> None:
    calls, report = calls_of(write(tmp_path, data))
    assert calls == []
    assert len(report.notices) == 1
    assert notice in report.notices[0]


@table(
    "text, found, broken",
    [
        ('{"a": 1}', [(1, {"a": 1})], []),
        ('\n\n{"a": 1}\n', [(3, {"a": 1})], []),
        ('{\n "a": 1\n}\n', [(1, {"a": 1})], []),
        ('\n{\n "a": 1\n}\n', [(2, {"a": 1})], []),
        ('[{"a": 1},\n{"a": 2}]', [(1, [{"a": 1}, {"a": 2}])], []),
        ('{"a": 1}\n{"a": 2}\n', [(1, {"a": 1}), (2, {"a": 2})], []),
        ('{"a": \n{"a": 2}\n{"a": 3', [(2, {"a": 2})], [1, 3]),
        ('{"a": 1}\n7\nx\n{"a": 2}', [(1, {"a": 1}), (2, 7), (4, {"a": 2})], [3]),
        ("}{", [], [1]),
        (" \n\n ", [], []),
    ],
)
def test_a_document_and_lines_are_known_from_each_other(text: str, found: Any, broken: list[int]) -> None:
    assert values_of(text.encode()) == (found, broken)
