"""
The process of a hook: whatever is broken blocks nothing; at the same time a budget is exact, whoever of them is killed.
"""

import json
import os
import signal
import subprocess
import sys

from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy, SqliteStore
from tests.hooks.driven import ROOT, refused
from tests.tables import table


pytestmark = pytest.mark.system
DOOR = "import os, sys\n{}\nfrom guardrails.hooks import main\nmain(sys.argv[1:])\n"


def start(folder: Path, words: list[str], *options: object) -> "subprocess.Popen[bytes]":
    """
    A Python process of *words* in the home *folder*.
    """
    own = {name: str(folder) for name in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")} | {"PYTHONPATH": str(ROOT)}
    command, pipes = [sys.executable, *words, *map(str, options)], dict.fromkeys(("stdin", "stdout", "stderr"), -1)
    return subprocess.Popen(command, env={**os.environ, **own}, **pipes)  # type: ignore[call-overload,no-any-return]


def hook(folder: Path, number: int = 0, *options: object, code: str = "") -> "subprocess.Popen[bytes]":
    """
    A hook process that has read a call; with *code* what happens before it reads.
    """
    started = start(folder, ["-c", DOOR.format(code)] if code else ["-m", "guardrails", "hook"], *options)
    event: dict[str, Any] = {"session_id": "s", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "Bash"}
    event |= {"tool_input": {"command": f"make {number}"}, "tool_use_id": f"t{number}"}
    assert started.stdin is not None
    started.stdin.write(json.dumps(event).encode())
    started.stdin.close()
    started.stdin = None
    return started


def answer(started: "subprocess.Popen[bytes]") -> tuple[Any, str]:
    """
    The one object that a hook process has written, and what it says to people; its code is 0.
    """
    written, errors = started.communicate(timeout=150)
    assert (started.returncode, written.count(b"\n")) == (0, 1), errors
    return json.loads(written), errors.decode()


def capped(folder: Path, most: int) -> str:
    """
    The option of a policy of *most* calls.
    """
    (folder / "p.yaml").write_text(f"version: 1\nbudget: {{max_calls: {most}}}\n")
    return f"--policy={folder / 'p.yaml'}"


def test_what_is_wrong_is_told_to_people_and_a_changed_policy_holds_from_the_next_event_on(tmp_path: Path) -> None:
    said, errors = answer(hook(tmp_path, 0, "--policy", "mistyped"))
    assert "no policy named `mistyped`" in said["hookSpecificOutput"]["permissionDecisionReason"]
    assert "no policy named `mistyped`" in errors
    assert answer(hook(tmp_path, 0, capped(tmp_path, 10)))[0] == {}
    assert refused(answer(hook(tmp_path, 1, capped(tmp_path, 1)))[0])


GONE = "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')"


@table("code, policy, said", [
    ("sys.modules['orjson'] = None", "default", "guardrails hook: ModuleNotFoundError: import of orjson halted"),
    (GONE, "default", ""), (GONE, "./p.yaml", "guardrails hook: FileNotFoundError"),
])  # fmt: skip
def test_what_is_broken_or_gone_blocks_nothing(tmp_path: Path, code: str, policy: str, said: str) -> None:
    made, errors = answer(hook(tmp_path, 0, "--policy", policy, code=f"os.chdir({str(tmp_path)!r})\n{code}"))
    assert made == {}
    assert errors.startswith(said)


KILLED = Path(__file__).with_name("killed.py.txt").read_text()
"""A process that dies in the middle of its write."""


def test_of_eight_at_once_at_a_cap_of_five_five_run_and_one_killed_has_written_nothing(tmp_path: Path) -> None:
    rules, store = capped(tmp_path, 5), tmp_path / "hooks.db"
    started = [hook(tmp_path, number, rules) for number in range(8)]
    assert sorted(refused(answer(each)[0]) for each in started) == [False] * 5 + [True] * 3
    assert answer(hook(tmp_path, 0, rules, "--store", store))[0] == {}
    killed = start(tmp_path, ["-c", KILLED, rules, str(store)])
    started = [hook(tmp_path, number, rules, "--store", store) for number in range(1, 8)]
    assert killed.wait(150) == -signal.SIGKILL
    killed.communicate()
    assert sorted(refused(answer(each)[0]) for each in started) == [False] * 4 + [True] * 3
    session = Policy.load(tmp_path / "p.yaml").session("s", store=SqliteStore(store))
    assert session.ledger.progress["calls_used"] == 5


def test_the_benchmark_measures_and_counts_what_is_let_through(capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.hook import CAP, main  # which measures by this file

    main(["--rounds", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["hook"]["cpu_over_bare_ms"] > 0
    assert found["at_once"] == [CAP]
