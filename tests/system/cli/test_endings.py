"""
Readers that leave, disks that are full, Ctrl-C: how the commands end.
"""

import os
import signal
import subprocess
import sys
import time

from pathlib import Path

import pytest

from tests.children import child


GUARDRAILS = [sys.executable, "-m", "guardrails"]
BAD = "version: 1\nbudget:\n" + "".join(f"  wrong_{n}: 1\n" for n in range(3_000))


def piped(*words: str, cwd: Path, env: dict[str, str] | None = None) -> tuple[int, bytes]:
    """
    The exit code and the errors of a command whose reader takes one byte and leaves.
    """
    started = subprocess.Popen(
        [*GUARDRAILS, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env={**os.environ, **(env or {})},
    )
    assert started.stdout is not None
    assert started.stderr is not None
    with started:
        started.stdout.read(1)
        started.stdout.close()
        said = started.stderr.read()
    return started.returncode, said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bad.yaml").write_text(BAD)
    line = '{"session_id": "s%d", "tool": "read_%d", "arguments": {"n": %d}, "result": "ok", "ts": %d}\n'
    (tmp_path / "calls.jsonl").write_text("".join(line % (n // 5, n % 900, n, 1_800_000_000 + n) for n in range(3_000)))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--help",), 0),
        (("policy", "schema"), 0),
        (("policy", "show", "default", "--json"), 0),
        (("policy", "check", "bad.yaml"), 1),
        (("policy", "check", "bad.yaml", "--json"), 1),
        (("policy", "test", "--json"), 0),
        (("policy", "test", "--schema"), 0),
        (("explain",), 0),
        (("explain", "--json"), 0),
        (("replay", "default", "calls.jsonl", "--json"), 0),
        (("report", "calls.jsonl", "--json"), 0),
        (("report", "calls.jsonl"), 0),
        (("hook", "--help"), 0),
        (("mcp", "--help"), 0),
        (("mcp", "pins"), 0),
        (("doctor", "--json"), None),
    ],
    ids=str,
)
def test_a_reader_that_leaves_changes_no_exit_code_and_is_told_nothing(
    words: tuple[str, ...], code: int | None, folder: Path
) -> None:
    if code is None:
        code = subprocess.run([*GUARDRAILS, *words], cwd=folder, capture_output=True, check=False).returncode
    ended, said = piped(*words, cwd=folder)
    assert (ended, said) == (code, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "words",
    [
        ("policy", "schema"),
        ("explain",),
        ("policy", "show", "default"),
        ("--help",),
        ("run", "--help"),
        ("hook", "status"),
        ("hook", "install", "--help"),
        ("mcp", "--help"),
    ],
    ids=" ".join,
)
def test_a_full_disk_is_told_in_one_line(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*GUARDRAILS, *words], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.decode() == "cannot go on: No space left on device\n"


def interrupted(words: list[str], cwd: Path) -> tuple[int, str]:
    """
    The exit code and the errors of a command that waits for its input and gets Ctrl-C.
    """
    pipe = subprocess.PIPE
    with child(*GUARDRAILS, *words, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd) as started:
        _until_it_waits(started.pid)
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=60)
    return started.returncode, said


def _until_it_waits(pid: int) -> None:
    # Reading from the pipe: asleep, and its CPU time no longer grows.
    before = -1
    for _ in range(200):
        time.sleep(0.1)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        used = int(fields[11]) + int(fields[12])
        if fields[0] == "S" and used == before and used > 10:
            return
        before = used


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "words",
    [
        ["replay", "default", "-", "--html", "page.html"],
        ["report", "-", "--html", "page.html"],
        ["profile", "fifo"],
        ["run", "-", "--model", "m", "--conversation", "kept.db"],
    ],
    ids=str,
)
def test_ctrl_c_ends_in_one_line_with_130_and_leaves_nothing_half_written(words: list[str], tmp_path: Path) -> None:
    if "fifo" in words:
        os.mkfifo(tmp_path / "fifo")
    before = set(tmp_path.iterdir())
    code, said = interrupted(words, tmp_path)
    assert code == 130
    assert "Traceback" not in said
    assert said.splitlines()[0].startswith("interrupted")
    assert set(tmp_path.iterdir()) == before
