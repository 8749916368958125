"""
Hook processes at the same time: a budget is exact, whoever of them is killed.
"""

import os
import signal
import subprocess
import sys

from pathlib import Path

import pytest

from guardrails import Policy, SqliteStore
from tests.hooks.processes import Home, answer, denied, event, policy


pytestmark = pytest.mark.system


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


def test_one_that_is_killed_before_it_answers_has_charged_one_call_at_most(home: Home) -> None:
    rules, store = policy(home.folder / "p.yaml", 5), home.folder / "hooks.db"
    killed = hook(home, rules, 0)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=30)
    started = [hook(home, rules, number) for number in range(1, 8)]
    ran = [denied(answer(each)) for each in started].count(False)
    assert ran in (4, 5)
    assert Policy.load(rules).session("s", store=SqliteStore(store)).ledger.progress["calls_used"] == 5
