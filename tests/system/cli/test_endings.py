"""
Readers that leave, disks that are full, Ctrl-C: how the commands end.
"""

import os
import signal
import subprocess
import sys
import time

from pathlib import Path
from typing import Any

import pytest

from tests.children import PATIENCE_S, child, ran, until
from tests.tables import table


GUARDRAILS = [sys.executable, "-m", "guardrails"]
BAD = "version: 1\nbudget:\n" + "".join(f"  wrong_{n}: 1\n" for n in range(3_000))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bad.yaml").write_text(BAD)
    line = '{"session_id": "s%d", "tool": "read_%d", "arguments": {"n": %d}, "result": "ok", "ts": %d}\n'
    (tmp_path / "calls.jsonl").write_text("".join(line % (n // 5, n % 900, n, 1_800_000_000 + n) for n in range(3_000)))
    return tmp_path


@table("words", [
    *("--help", "policy schema", "policy check bad.yaml --json", "explain --json", "replay default calls.jsonl --json"),
    *("report calls.jsonl", "hook --help", "mcp pins"),
])  # fmt: skip
def test_a_reader_that_leaves_changes_no_exit_code_and_is_told_nothing(words: str, folder: Path) -> None:
    pipe = subprocess.PIPE
    with child(*GUARDRAILS, *words.split(), stdout=pipe, stderr=pipe, cwd=folder) as started:
        out: Any = started.stdout
        out.read(1)
        out.close()
        assert started.communicate(timeout=PATIENCE_S)[1] == ""
        assert started.returncode == ("bad.yaml" in words)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@table("words", ["policy schema", "--help", "run --help", "hook status", "mcp --help"])
def test_a_full_disk_is_told_in_one_line(words: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = ran(*GUARDRAILS, *words.split(), capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, "cannot go on: No space left on device\n")


def waits(pid: int) -> bool:
    """
    Whether a process has begun, and then sleeps for half a second without a tick on a processor: it reads from its pipe.
    """
    seen = set()
    for _ in range(5):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        seen.add((fields[0], int(fields[11]) + int(fields[12])))
        time.sleep(0.1)
    [(state, used), *more] = seen
    return not more and state == "S" and used > 10


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@table("words", ["replay default - --html page.html", "profile fifo", "run - --model m --conversation kept.db"])
def test_ctrl_c_ends_in_one_line_with_130_and_leaves_nothing_half_written(words: str, tmp_path: Path) -> None:
    if "fifo" in words:
        os.mkfifo(tmp_path / "fifo")
    before, pipe = set(tmp_path.iterdir()), subprocess.PIPE
    with child(*GUARDRAILS, *words.split(), stdin=pipe, stdout=pipe, stderr=pipe, cwd=tmp_path) as started:
        until(lambda: waits(started.pid))
        started.send_signal(signal.SIGINT)
        _, errors = started.communicate(timeout=PATIENCE_S)
    assert (started.returncode, errors.startswith("interrupted"), "Traceback" in errors) == (130, True, False)
    assert set(tmp_path.iterdir()) == before
