"""
The launcher: it becomes what it is told, or runs nothing.
"""

import json
import os
import signal
import subprocess
import sys

from pathlib import Path
from typing import Any

import pytest

from guardrails.processes.launch import PIECE, VARIABLE, told
from guardrails.processes.sandbox.order import bare, launcher


pytestmark = pytest.mark.skipif(os.name != "posix", reason="programs are started another way there")


def launched(order: dict[str, Any], folder: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    whole = {"environment": {"PATH": os.defpath}, "limits": {}, "counted": False, "make": [], "same": [], **order}
    whole.setdefault("folder", str(folder))
    return subprocess.run(  # noqa: S603
        launcher(), env={**bare(), **told(whole), **more}, cwd=folder, capture_output=True, text=True, check=False
    )


def test_it_becomes_the_program(tmp_path: Path) -> None:
    done = launched({"argv": ["sh", "-c", "pwd; env | sort; exit 7"]}, tmp_path)
    assert done.returncode == 7
    assert done.stdout.splitlines()[0] == str(tmp_path)
    assert VARIABLE not in done.stdout


def test_no_variable_and_no_file_changes_it(tmp_path: Path) -> None:
    for name in ("json.py", "os.py", "sitecustomize.py", "guardrails.py"):
        (tmp_path / name).write_text("raise SystemExit('taken over')")
    done = launched({"argv": ["true"]}, tmp_path, PYTHONPATH=str(tmp_path), PYTHONSTARTUP=str(tmp_path / "os.py"))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_long_order_goes_in_pieces(tmp_path: Path) -> None:
    words = ["x" * 90_000] * 5
    assert len(told({"argv": words})) == len(json.dumps({"argv": words})) // PIECE + 1
    done = launched({"argv": ["sh", "-c", 'printf %s "$@" | wc -c', "sh", *words]}, tmp_path)
    assert done.stdout.strip() == "450000"


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"argv": ["true"], "folder": "/no/such/folder"},
        {"argv": ["true"], "confine": {"landlock": {}}},
        {"argv": ["true"], "same": [["/", 0, 0]]},
        {"argv": ["true"], "temporary": "/no/such/folder/of/mine"},
        {"argv": ["true"], "tree": 5, "environment": None},
    ],
)
def test_nothing_runs_if_anything_is_wrong(tmp_path: Path, order: dict[str, Any]) -> None:
    done = launched(order, tmp_path)
    if order:
        assert done.returncode == 125
        assert "nothing was run" in done.stderr
    else:
        assert done.returncode != 0


def test_without_an_order_it_ends(tmp_path: Path) -> None:
    done = subprocess.run(launcher(), env=bare(), cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 125
    assert "nothing was run" in done.stderr


def test_signals_are_those_of_a_new_program(tmp_path: Path) -> None:
    status = "grep -E '^Sig(Ign|Blk)' /proc/self/status"
    # A shell that runs the tests in the background has it ignored, and so has all that they start.
    before = signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    try:
        done = launched({"argv": ["sh", "-c", status]}, tmp_path)
    finally:
        signal.signal(signal.SIGQUIT, before)
    if sys.platform == "linux":
        assert [int(line.split()[1], 16) for line in done.stdout.splitlines()] == [0, 0]


def test_it_is_light() -> None:
    code = "import sys; sys.path.append(sys.argv[1]); import guardrails.processes.launch; print(*sys.modules)"
    root = str(Path(__file__).parents[2])
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-I", "-S", "-c", code, root], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"subprocess", "asyncio", "dataclasses", "tempfile", "pathlib", "ctypes", "inspect"}
    ours = {name for name in loaded if name.startswith("guardrails")}
    assert ours == {"guardrails", "guardrails.processes", "guardrails.processes.launch"}
