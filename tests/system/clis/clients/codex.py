"""
Codex CLI.
"""

import itertools
import json
import re
import shlex

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from guardrails.testing.scripted_openai import Body, Calls, ScriptedCall, call

from ..wires.asked import Asked
from .base import Client, Ran, lines, write_hooks


AGENTS: Final = "multi_agent_v1"
_IDS: Final = itertools.count()


class Codex(Client):
    """
    Codex CLI, run with `exec`.
    """

    name = "codex"
    transcripts = ".codex/sessions/**/rollout-*.jsonl"
    shell_tool = "Bash"
    before = "PreToolUse"
    cannot: ClassVar = {
        "test_a_model_that_goes_on_is_made_to_answer": "Its hooks refuse calls, and cannot forbid the model to make "
        "them: each is refused, however often.",
        "test_a_circle_of_looks_is_broken": "Codex has no tool that only looks. Its commands may be work, so that a circle "
        "of them is told to the model and not refused.",
    }

    def prepare(self) -> None:
        folder = self.home / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(
            'model = "gpt-5"\nmodel_provider = "scripted"\n'
            f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{self.model.url}/v1"\n'
            'wire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n'
        )

    def command(self, prompt: str, resume: str | None) -> list[str]:
        program = ["node", str(self.packages / "@openai/codex/bin/codex.js"), "exec"]
        options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json"]
        # Else hooks that nobody has trusted by hand are left out, and nothing is said of that.
        options.append("--dangerously-bypass-hook-trust")
        return [*program, *(["resume"] if resume else []), *options, *([resume] if resume else []), prompt]

    def variables(self) -> dict[str, str]:
        return {"SCRIPTED_KEY": "dummy"}

    def read(self, code: int, out: str, err: str) -> Ran:
        told = lines(out)
        session = next((line["thread_id"] for line in told if line.get("type") == "thread.started"), "")
        items = (line["item"] for line in reversed(told) if line.get("type") == "item.completed")
        answer = next((item["text"] for item in items if item.get("type") == "agent_message"), "")
        return Ran(code, answer, session, out + err)

    def shell(self, command: str, label: str = "look") -> ScriptedCall:
        return call("exec_command", {"cmd": command})

    def plain(self, text: str) -> str:
        return re.sub(r"Chunk ID: \w+|Wall time: [0-9.]+", "", text)

    def look(self, file: Path) -> ScriptedCall:
        # It has no tool of its own for this.
        return self.shell(f"cat {shlex.quote(str(file))}")

    def edit(self, file: Path, old: str, new: str) -> ScriptedCall:
        patch = f"*** Begin Patch\n*** Update File: {file.name}\n@@\n-{old}\n+{new}\n*** End Patch"
        return self.shell(f"apply_patch <<'EOF'\n{patch}\nEOF\n")

    def spawn(self, task: str) -> Calls:
        return Calls(items=(_of(AGENTS, "spawn_agent", {"message": task}),))

    def await_agents(self, asked: Asked) -> Calls | None:
        started = json.loads(asked.results[-1])
        if "agent_id" not in started:
            return None
        return Calls(items=(_of(AGENTS, "wait_agent", {"targets": [started["agent_id"]], "timeout_ms": 20_000}),))

    def install(self, command: str, events: Mapping[str, Mapping[str, Any]]) -> None:
        write_hooks(self.home / ".codex/hooks.json", command, events)


def _of(namespace: str, name: str, arguments: Body) -> Body:
    n = next(_IDS)
    return {
        "id": f"fc_own_{n}",
        "type": "function_call",
        "status": "completed",
        "call_id": f"call_own_{n}",
        "namespace": namespace,
        "name": name,
        "arguments": json.dumps(arguments),
    }
