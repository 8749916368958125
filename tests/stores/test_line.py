"""
Processes that take turns at a file.
"""

import subprocess
import sys
import time

from pathlib import Path

import pytest

from guardrails.stores.line import Line


pytestmark = [pytest.mark.system, pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")]

COMES = """
import sys, time
from guardrails.stores.line import Line
line = Line(sys.argv[1])
print("came", line.wait(time.monotonic() + float(sys.argv[2])), flush=True)
sys.stdin.read()
line.leave()
"""
LONG = time.monotonic() + 600


def another(path: Path, seconds: float = 60) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COMES, str(path), str(seconds)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def stands(line: Line, place: int) -> None:
    """
    Wait until somebody stands there.
    """
    assert line._opened()
    while line._take(place):
        line._let_go(place)


def said(one: subprocess.Popen[str]) -> str:
    assert one.stdout is not None
    return one.stdout.readline().strip()


def ended(one: subprocess.Popen[str]) -> None:
    one.communicate(timeout=60)


def test_who_has_just_had_the_file_comes_after_those_that_wait(tmp_path: Path) -> None:
    line = Line(str(tmp_path / "a"))
    assert line.wait(LONG)
    first = another(tmp_path / "a")
    stands(line, 1)
    second = another(tmp_path / "a")
    stands(line, 2)
    line.leave()
    assert said(first) == "came True"
    assert not line.wait(time.monotonic()), "two are before it, and one of them has the file"
    ended(first)
    assert said(second) == "came True"
    ended(second)
    assert line.wait(LONG)
    line.close()


def test_who_is_killed_in_line_holds_nobody_up(tmp_path: Path) -> None:
    line = Line(str(tmp_path / "a"))
    head = another(tmp_path / "a")
    assert said(head) == "came True"
    waiting = another(tmp_path / "a")
    stands(line, 1)
    for one in (waiting, head):
        one.kill()
        ended(one)
    assert line.wait(LONG)
    line.close()


def test_a_folder_that_cannot_be_written_has_no_line(tmp_path: Path) -> None:
    line = Line(str(tmp_path / "missing" / "a"))
    assert line.wait(LONG)
    line.leave()
    line.close()
