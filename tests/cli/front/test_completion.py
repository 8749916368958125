"""
What a shell is told of the words that can stand next.
"""

import os
import subprocess
import sys

import pytest

from guardrails.cli.codes import EXPLAINED
from guardrails.policy.file.folder import names


def completed(line: str) -> list[str]:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1), "_GUARDRAILS_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-m", "guardrails"], capture_output=True, text=True, check=False, env={**os.environ, **words}
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("guardrails po", ["policy"]),
        ("guardrails policy sh", ["show"]),
        ("guardrails policy show ", names()),
        ("guardrails replay st", ["strict"]),
        ("guardrails replay default --compare ob", ["observe"]),
        ("guardrails explain budget.max_c", ["budget.max_calls", "budget.max_cost_usd"]),
        ("guardrails run --sandbox ", ["auto", "bwrap", "none"]),
        ("guardrails run --wire ch", ["chat"]),
        ("guardrails hook ", ["install", "uninstall", "status"]),
        ("guardrails hook install ", ["claude", "codex", "gemini"]),
        ("guardrails hook install claude co", ["codex"]),
        ("guardrails mcp --policy def", ["default"]),
        ("guardrails mcp --rec", ["--records"]),
        ("guardrails train --dry", ["--dry-run"]),
    ],
)
def test_names_are_completed_where_they_are_known(line: str, words: list[str]) -> None:
    assert completed(line) == words


def test_every_code_is_completed() -> None:
    assert set(completed("guardrails explain ")) == set(EXPLAINED)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "guardrails", "--show-completion"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert done.returncode == 2  # without detection it needs the name
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "guardrails", "--show-completion", shell],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "_GUARDRAILS_COMPLETE" in done.stdout
