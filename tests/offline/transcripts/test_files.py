"""
Opening transcripts.
"""

import gzip
import importlib.util
import io
import json
import random
import sys

from pathlib import Path
from typing import Any

import pytest

from guardrails.offline.transcripts import ReaderError, Report, open_calls
from guardrails.offline.transcripts import files as files_module
from tests.tables import table


LINE = json.dumps({"session_id": "s", "tool": "t", "arguments": {"n": 1}, "result": "ok"})


def calls_of(path: Any, **more: Any) -> tuple[list[Any], Report]:
    report = Report()
    return open_calls(path, report, **more), report


def write(folder: Path, data: bytes | str, name: str = "f.jsonl") -> Path:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_a_source_is_the_name_of_the_file_unless_another_is_given(files: Path, tmp_path: Path) -> None:
    assert calls_of(files / "cline.json")[0][0].source == "cline"
    assert calls_of(files / "cline.json", source="team-a")[0][0].source == "team-a"
    assert calls_of(write(tmp_path, gzip.compress(LINE.encode()), "my.log.jsonl.gz"))[0][0].source == "my.log"
    assert calls_of(write(tmp_path, LINE, ".jsonl"))[0][0].source == ".jsonl"


def test_gzip_that_unpacks_to_very_much_is_read_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "MAX_BYTES", 1 << 20)
    calls, report = calls_of(write(tmp_path, gzip.compress(LINE.encode() + b"\n" * (8 << 20)), "f.jsonl.gz"))
    assert len(calls) == 1
    assert any("are not read: split the file" in notice for notice in report.notices)


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    packed = gzip.compress(f"{LINE}\n".encode()) + b"\0" * 512 + gzip.compress(f"{LINE}\n".encode())
    calls, report = calls_of(write(tmp_path, packed, "plain.txt"))
    assert len(calls) == 2, "files that were packed one by one and joined are one"
    assert report.notices == []


@table("damage", ["cut", "spoilt", "garbage behind"])
def test_damaged_gzip_gives_what_stands_before_the_damage(tmp_path: Path, damage: str) -> None:
    lines = "".join(json.dumps({"session_id": "s", "tool": "t", "arguments": {"n": n}}) + "\n" for n in range(40_000))
    packed = bytearray(gzip.compress(lines.encode()))
    if damage == "cut":
        del packed[len(packed) // 2 :]
    elif damage == "spoilt":
        packed[len(packed) * 3 // 4 :] = random.Random(0).randbytes(len(packed) // 4)
    else:
        packed += b"garbage"
    calls, report = calls_of(write(tmp_path, bytes(packed)))
    assert [call.arguments["n"] for call in calls] == list(range(len(calls)))
    assert len(calls) > 5_000
    assert any("cut off or damaged" in notice for notice in report.notices)


@table("package", ["compression.zstd", "zstandard"])
def test_zstd_is_read_by_whichever_package_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    try:
        module = importlib.import_module(package)
    except ImportError:
        pytest.skip(f"`{package}` is not installed")
    packed = module.compress(f"{LINE}\n".encode())
    real = importlib.import_module

    def only(name: str) -> Any:
        if name != package:
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr(importlib, "import_module", only)
    calls, report = calls_of(write(tmp_path, packed + packed, "x.zst"))
    assert (len(calls), report.notices) == (2, [])
    calls, report = calls_of(write(tmp_path, packed + packed[:-3], "cut.zst"))
    assert len(calls) == 1
    # `zstandard` alone does not tell.
    assert package == "zstandard" or "the packed data is cut off or damaged" in report.notices[0]


def test_zstd_without_a_package_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", nothing)
    with pytest.raises(ReaderError, match=r'pip install "toolcall-guardrails\[zstd\]"'):
        calls_of(write(tmp_path, b"\x28\xb5\x2f\xfd" + b"x" * 20))


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


@table(
    "data, notice",
    [
        (b"", "skipped: empty"),
        (b"\xef\xbb\xbf", "skipped: empty"),
        (b"\n\n", "skipped: empty"),
        (b"\x00" * 1000, "no UTF-8 text, 1,000 bytes"),
        (b"\x89PNG\r\n", "skipped: it holds no calls"),
        ('{"a": 1}'.encode("utf-16"), "no UTF-8 text"),
        (gzip.compress(b"", mtime=0), "skipped: empty"),
        (b'{"session_id": "s", "call_index": 1, "tool": "t", "retry": "none"}', "keys `session_id`, `call_index`"),
    ],
)
def test_a_file_without_calls_is_skipped_with_a_notice(tmp_path: Path, data: bytes, notice: str) -> None:
    calls, report = calls_of(write(tmp_path, data))
    assert calls == []
    assert len(report.notices) == 1
    assert notice in report.notices[0]


def test_broken_lines_are_counted_and_named_by_their_number(tmp_path: Path) -> None:
    lines = [*[LINE] * 8, "{", LINE, "\x00\x00", LINE.replace('"t"', '"\\ud800'), LINE[:40]]
    data = "\n".join(lines).encode().replace(b"\x00\x00", b"\xff\xfe\x00")
    path = write(tmp_path, data)
    calls, report = calls_of(path)
    assert len(calls) == 9
    assert report.broken == [(str(path), 9), (str(path), 11), (str(path), 12), (str(path), 13)]
