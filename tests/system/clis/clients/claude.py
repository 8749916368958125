"""
Claude Code, whose program comes with the SDK's package.
"""

import platform
import sys

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from guardrails.testing.scripted_openai import Body, Calls, ScriptedCall, call

from .base import Client, Ran, lines, write_hooks


class Claude(Client):
    """
    Claude Code, run with `-p`.
    """

    name = "claude"
    transcripts = ".claude/projects/*/*.jsonl"
    shell_tool = "Bash"
    before = "PreToolUse"
    cannot: ClassVar = {
        "test_a_model_that_goes_on_is_made_to_answer": "Its hooks refuse calls, and cannot forbid the model to make "
        "them: each is refused, however often."
    }

    def prepare(self) -> None:
        (self.home / ".claude").mkdir()

    def command(self, prompt: str, resume: str | None) -> list[str]:
        machine = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
        program = self.packages / f"@anthropic-ai/claude-agent-sdk-{sys.platform}-{machine}/claude"
        again = ["--resume", resume] if resume else []
        output = ["--output-format", "stream-json", "--verbose"]
        return [str(program), "-p", prompt, *again, "--permission-mode", "bypassPermissions", *output]

    def variables(self) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            # Without it the superuser may not skip questions.
            "IS_SANDBOX": "1",
        }

    def read(self, code: int, out: str, err: str) -> Ran:
        last: Body = next((line for line in reversed(lines(out)) if line.get("type") == "result"), {})
        return Ran(code, last.get("result") or "", last.get("session_id", ""), out + err)

    def shell(self, command: str, label: str = "look") -> ScriptedCall:
        return call("Bash", {"command": command, "description": label})

    def look(self, file: Path) -> ScriptedCall:
        return call("Read", {"file_path": str(file)})

    def edit(self, file: Path, old: str, new: str) -> ScriptedCall:
        return call("Edit", {"file_path": str(file), "old_string": old, "new_string": new})

    def spawn(self, task: str) -> Calls:
        asked = {"description": "look", "prompt": task, "subagent_type": "general-purpose"}
        return Calls(call("Agent", asked | {"run_in_background": False}))

    def install(self, command: str, events: Mapping[str, Mapping[str, Any]]) -> None:
        write_hooks(self.home / ".claude/settings.json", command, events)
