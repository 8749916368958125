"""
Rules, periods and warnings of a policy in the hooks of a coding CLI.
"""

from pathlib import Path

import pytest

from tests.hooks.driven import Claude, reason, refused


pytest.importorskip("cel_expr_python")

POLICY = """version: 1
budget: {max_calls: 5, per: day, zone: Europe/Berlin, warn_at: 0.8}
rules:
  - {tools: Bash, when: 'args.command.startsWith("deploy")', after: Read}
  - {tools: Bash, when: 'args.command == "stop"', deny: "it is Friday"}
"""


def test_a_coding_cli_is_held_to_rules_and_told_of_a_limit_that_is_near(tmp_path: Path) -> None:
    cli = Claude(tmp_path, POLICY)
    assert "it is Friday" in str(reason(cli.before("Bash", {"command": "stop"})))
    assert refused(cli.before("Bash", {"command": "deploy a"}))
    assert cli.ran("Read", {"file_path": "a"})
    assert cli.ran("Bash", {"command": "deploy a"})
    assert cli.ran("Bash", {"command": "ls"})
    cli.before("Bash", {"command": "make"})
    assert "Left: 1 call of 5 a day, Europe/Berlin." in str(cli.after())
    assert cli.ran("Bash", {"command": "make it"})
    assert "5 a day, Europe/Berlin" in str(cli.before("Bash", {"command": "more"}))
