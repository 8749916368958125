"""
The process of a hook: what it imports, what it costs, and that it works where Unix's modules are not.
"""

import json
import subprocess
import sys

import pytest

from tests.hooks.processes import Home, denied, event, policy


pytestmark = pytest.mark.system


DOOR = "from guardrails.hooks.door import main\nmain(sys.argv[1:])\n"


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
