"""
Gemini CLI.
"""

import json
import re

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from guardrails.testing.scripted_openai import Calls, ScriptedCall, Text, call

from ..wires.asked import Asked
from .base import Client, Ran, write_hooks


class Gemini(Client):
    """
    Gemini CLI, run with `-p`.
    """

    name = "gemini"
    transcripts = ".gemini/tmp/*/chats/session-*.jsonl"
    shell_tool = "run_shell_command"
    before = "BeforeTool"
    second = 1000
    cannot: ClassVar = {
        "test_the_model_goes_on_beside_a_call_that_waits_for_a_person": "Gemini CLI without a person ends the run, with no "
        "answer, if a hook asks for one."
    }

    def prepare(self) -> None:
        folder = self.home / ".gemini"
        folder.mkdir()
        (folder / "settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')

    def command(self, prompt: str, resume: str | None) -> list[str]:
        program = ["node", str(self.packages / "@google/gemini-cli/bundle/gemini.js")]
        options = ["-m", "gemini-2.5-flash", "--approval-mode", "yolo", "--output-format", "json"]
        return [*program, *options, *(["--resume", resume] if resume else []), "-p", prompt]

    def variables(self) -> dict[str, str]:
        return {
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": self.model.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        }

    def read(self, code: int, out: str, err: str) -> Ran:
        begun = out.find("{")
        told = json.loads(out[begun:]) if begun >= 0 else {}
        return Ran(code, told.get("response") or "", told.get("session_id", ""), out + err)

    def shell(self, command: str, label: str = "look") -> ScriptedCall:
        return call("run_shell_command", {"command": command, "description": label})

    def plain(self, text: str) -> str:
        return re.sub(r"Process Group PGID: \d+", "", text)

    def look(self, file: Path) -> ScriptedCall:
        return call("read_file", {"file_path": str(file)})

    def edit(self, file: Path, old: str, new: str) -> ScriptedCall:
        changed = {"old_string": old, "new_string": new, "instruction": "change it"}
        return call("replace", {"file_path": str(file), **changed})

    def spawn(self, task: str) -> Calls:
        return Calls(call("invoke_agent", {"agent_name": "generalist", "prompt": task}))

    def report(self, asked: Asked, text: str) -> Text | Calls:
        return Calls(call("complete_task", {"result": {"response": text}}))

    def install(self, command: str, events: Mapping[str, Mapping[str, Any]]) -> None:
        write_hooks(self.home / ".gemini/settings.json", command, events)
