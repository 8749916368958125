"""
Honest work that looks like a loop by its results alone runs.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.hooks.driven import Claude, Codex, Gemini, refused
from tests.tables import table


COMMANDS = {
    "searches that find nothing": ('bd search "topic {} of many" --json', "[]"),
    "looks that find nothing": ("rg name{} src || true", ""),
    "pages without content": ("curl -s http://localhost/{}", '{"items": []}'),
}


@pytest.mark.parametrize("driven", [Claude, Codex, Gemini])
@pytest.mark.parametrize(("command", "shown"), COMMANDS.values(), ids=COMMANDS)
def test_other_commands_are_not_refused_for_what_those_before_them_found(
    tmp_path: Path, driven: Any, command: str, shown: str
) -> None:
    made = driven(tmp_path)
    response = {"stdout": shown, "stderr": "", "interrupted": False} if driven is Claude else shown
    assert [made.ran(arguments={"command": command.format(n)}, response=response) for n in range(12)] == [True] * 12


@table("driven", [Claude, Gemini])
def test_other_commands_are_not_refused_for_failures_of_those_before_them(tmp_path: Path, driven: Any) -> None:
    made = driven(tmp_path)
    for number in range(10):
        assert not refused(made.before(arguments={"command": f"which tool{number}"}))
        if driven is Claude:
            made.tell("PostToolUseFailure", **made.last, error="Exit code 1")
        else:
            made.after("<untrusted_context>\nOutput: (empty)\nExit Code: 1\n</untrusted_context>")


def test_a_command_of_codex_in_another_folder_is_another_call(tmp_path: Path) -> None:
    driven = Codex(tmp_path)
    places = [str(tmp_path / name) for name in ("a", "b", "c")]
    event = {"tool_name": "Bash", "tool_input": {"command": "git status --short"}}
    ids = [(place, f"call_{number}") for number, place in enumerate(places)]
    begun = [driven.tell("PreToolUse", **event, cwd=place, tool_use_id=key) for place, key in ids]
    ended = [driven.tell("PostToolUse", **event, cwd=place, tool_use_id=key, tool_response="") for place, key in ids]
    assert [*begun, *ended] == [{}] * 6
    twins = [driven.tell("PreToolUse", **event, cwd=places[0], tool_use_id=f"call_{n}") for n in range(3, 5)]
    assert [refused(one) for one in twins] == [False, True]
