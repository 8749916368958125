"""
What the tests of sinks share: a file, what the log said, another process.
"""

import logging
import subprocess
import sys
import tempfile
import threading

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrails.sinks import JsonLines, ReadReport, Record, read


ROOT = Path(__file__).parents[2]
PATIENCE_S = 30
"""Longest wait for something that is to happen; only a failing test waits that long."""


class Heard(logging.Handler):
    """What the library's log said."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    log = logging.getLogger("guardrails")
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(heard)
    yield heard
    log.removeHandler(heard)
    log.setLevel(level)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


def together(*works: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def python(script: str, *arguments: object) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe)


def run(script: str, *arguments: object, code: int = 0) -> tuple[str, str]:
    process = python(script, *arguments)
    said, complained = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, complained.decode()
    return said.decode(), complained.decode()


def numbers(path: Path, key: str = "n") -> list[Any]:
    report = ReadReport()
    found = [record[key] for record in read(path, report)]
    assert report.broken == []
    return found


def written(record: Record, **settings: Any) -> Record:
    with tempfile.TemporaryDirectory() as folder:
        with JsonLines(Path(folder) / "one.jsonl", **settings) as sink:
            sink.put(record, 1)

        [line] = (Path(folder) / "one.jsonl").read_bytes().splitlines(keepends=True)
        assert line.endswith(b"}\n")
        [back] = read(Path(folder) / "one.jsonl")
        return back
