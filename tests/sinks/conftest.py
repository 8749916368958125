"""
What the tests of sinks share: a file, threads, another process.
"""

import subprocess
import sys
import threading

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrails.sinks import ReadReport, read


ROOT = Path(__file__).parents[2]
PATIENCE_S = 30
"""Longest wait for something that is to happen; only a failing test waits that long."""


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


def run(script: str, *arguments: object) -> tuple[str, str]:
    process = python(script, *arguments)
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors.decode()
    return output.decode(), errors.decode()


def numbers(path: Path, key: str = "n") -> list[Any]:
    report = ReadReport()
    found = [record[key] for record in read(path, report)]
    assert report.broken == []
    return found
