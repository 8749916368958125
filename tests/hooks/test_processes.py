"""
The process of a hook: whatever is broken blocks nothing; at the same time a budget is exact, whoever of them is killed.
"""

import json
import signal
import subprocess
import sys

from pathlib import Path

import pytest

from guardrails import Policy, SqliteStore
from tests.hooks.processes import Home, answer, denied, event, policy


pytestmark = pytest.mark.system


DOOR = "from guardrails.hooks import main\nmain(sys.argv[1:])\n"


def run(home: Home, code: str, data: bytes, *options: object) -> "subprocess.CompletedProcess[bytes]":
    words = [sys.executable, "-c", code, *map(str, options)]
    return subprocess.run(words, input=data, capture_output=True, env=home.environment, check=True)


def test_what_is_wrong_is_told_to_people(home: Home) -> None:
    done = run(home, f"import sys\n{DOOR}", event("a"), "--policy", "mistyped")
    assert "no policy named `mistyped`" in json.loads(done.stdout)["hookSpecificOutput"]["permissionDecisionReason"]
    assert b"no policy named `mistyped`" in done.stderr


def test_a_changed_policy_holds_from_the_next_event_on(home: Home) -> None:
    rules = policy(home.folder / "p.yaml", 10)
    assert home.hook(event("a"), "--policy", rules) == {}
    policy(rules, 1)
    assert denied(home.hook(event("b", "make b"), "--policy", rules))


def test_an_installation_that_is_broken_blocks_nothing(home: Home) -> None:
    (home.folder / "orjson.py").write_text("raise ImportError('no orjson')\n")
    done = run(home, f"import sys; sys.path.insert(0, {str(home.folder)!r})\n{DOOR}", event("a"))
    assert done.stdout == b"{}\n"
    assert done.stderr == b"guardrails hook: ImportError: no orjson\n"


def test_a_folder_that_was_taken_away_blocks_nothing(home: Home) -> None:
    gone = str(home.folder / "gone")
    left = f"import os, sys; os.mkdir({gone!r}); os.chdir({gone!r}); os.rmdir({gone!r})\n"
    assert run(home, left + DOOR, event("a")).stdout == b"{}\n"
    assert run(home, left + DOOR, event("a"), "--policy", "./p.yaml").stdout == b"{}\n"


KILLED = """
import os, signal, sys
from guardrails import Policy, SqliteStore

class Killed(SqliteStore):
    def update(self, keys, step):
        def torn(states):
            made = step(states)
            os.kill(os.getpid(), signal.SIGKILL)
            return made
        return super().update(keys, torn)

Policy.load(sys.argv[1]).session("s", store=Killed(sys.argv[2])).decide("Bash", {"command": "x"}, claim=True)
"""
"""A process that dies in the middle of its write."""


def hook(home: Home, rules: Path, number: int) -> "subprocess.Popen[bytes]":
    return home.start(event(f"t{number}", f"make {number}"), "--policy", rules, "--store", home.folder / "hooks.db")


def test_of_eight_at_once_at_a_cap_of_five_exactly_five_run(home: Home) -> None:
    rules = policy(home.folder / "p.yaml", 5)
    started = [hook(home, rules, number) for number in range(8)]
    assert sorted(denied(answer(each)) for each in started) == [False] * 5 + [True] * 3


def test_one_that_is_killed_in_the_middle_of_its_write_has_written_nothing(home: Home) -> None:
    rules, store = policy(home.folder / "p.yaml", 5), home.folder / "hooks.db"
    assert not denied(answer(hook(home, rules, 0)))
    killed = subprocess.Popen([sys.executable, "-c", KILLED, str(rules), str(store)], env=home.environment)
    started = [hook(home, rules, number) for number in range(1, 8)]
    assert killed.wait(30) == -signal.SIGKILL
    assert sorted(denied(answer(each)) for each in started) == [False] * 4 + [True] * 3
    assert Policy.load(rules).session("s", store=SqliteStore(store)).ledger.progress["calls_used"] == 5
