"""
Commands in several arguments, held against an allow list.
"""

from typing import Any

from guardrails import Shell, Tool
from guardrails.core.guards.base import Facts
from guardrails.core.state import SessionState
from guardrails.core.values.types import Denial, ToolCall
from tests.tables import table


@table(
    ("arguments", "expected"),
    [
        ({"command": "git", "args": ["status", "--short"]}, None),
        ({"command": "git", "args": "status --short"}, None),
        ({"command": "git status"}, None),
        ({"command": ["git", "status"], "args": ["-s"]}, None),
        ({"command": "git", "args": ["push"]}, "shell.allow"),
        ({"command": "git", "args": "push"}, "shell.allow"),
        ({"command": "git", "args": []}, "shell.allow"),
        ({"command": "git", "args": "status; id"}, "shell.allow"),
        ({"command": "git status; id", "args": ["-s"]}, "shell.allow"),
        ({"command": "x/../git", "args": ["status"]}, "shell.allow"),
        ({"command": "bash", "args": "-c id"}, "shell.allow"),
        ({"command": "bash", "args": ["-c", "id"]}, "shell.allow"),
    ],
)
def test_a_command_in_several_arguments_can_be_allowed(arguments: dict[str, Any], expected: str | None) -> None:
    tool = Tool(name="exec", commands=("command+args",))
    guard = Shell(allow=("git status *", "bash *"))
    said = guard.check(ToolCall("exec", arguments, "1", None, None), SessionState(), None, Facts(0, tool))
    assert (said.code if isinstance(said, Denial) else None) == expected
