"""
Calls whose end a client does not tell, though its transcript has it.
"""

import json

from pathlib import Path
from typing import Any

import pytest

from guardrails.hooks.options import Options
from guardrails.hooks.respond import respond
from tests.hooks.driven import Claude, refused
from tests.hooks.test_noticing import count


def told(options: Options, event: dict[str, Any], name: str, **more: Any) -> dict[str, Any]:
    read = json.loads(respond(json.dumps({"hook_event_name": name, **event, **more}).encode(), options))
    assert isinstance(read, dict)
    return read


def test_a_patch_whose_end_codex_does_not_tell_excuses_no_repeats(tmp_path: Path) -> None:
    rollout, options = tmp_path / "rollout.jsonl", Options(client="codex", store=str(tmp_path / "sessions.db"))
    rollout.write_text("")
    said = []
    for n, command in enumerate(("apply_patch <<'EOF'", "make test", "make test", "make test")):
        own = {
            "session_id": "s",
            "turn_id": "t",
            "transcript_path": str(rollout),
            "cwd": str(tmp_path),
            "model": "gpt-5",
        }
        event = own | {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"call_{n}"}
        said.append(told(options, event, "PreToolUse"))
        if n:
            told(options, event, "PostToolUse", tool_response="1 failed\n")
        with rollout.open("a") as file:
            output = {"type": "function_call_output", "call_id": f"call_{n}", "output": "done"}
            file.write(json.dumps({"type": "response_item", "payload": output}) + "\n")
            file.write(json.dumps(count(100 * n + 100)) + "\n")
    assert [bool(one) for one in said] == [False, False, False, True]


@pytest.mark.parametrize("odd", [7, 1.5, True, {}, ["x"], "", None])
def test_an_id_that_is_no_text_is_as_good_as_none(tmp_path: Path, odd: Any) -> None:
    driven = Claude(tmp_path, "version: 1\nbudget: {max_calls: 3}\n")
    said = []
    for number in range(5):
        said.append(driven.before(arguments={"command": f"make {number}"}, tool_use_id=odd))
        driven.after()
    assert [refused(one) for one in said] == [False] * 3 + [True] * 2
