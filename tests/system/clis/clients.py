"""
Three coding CLIs as the tests use them: their real programs, each in a home of its own, before a scripted model.
"""

import contextlib
import itertools
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from guardrails.testing.scripted_openai import Body, Calls, ScriptedCall, Text, call
from tests.children import PATIENCE_S, ran

from .model import Asked, Model


_IDS: Final = itertools.count()


@dataclass(frozen=True, slots=True)
class Ran:
    """
    One process of a CLI, from its start to its end.
    """

    code: int
    answer: str
    """The final answer, as a person reads it."""
    session: str


class Client:
    """
    A CLI in the folder *place*, which holds its home, the folder that it works in, and what our hook keeps.
    """

    name: ClassVar[str]
    before: ClassVar[str] = "PreToolUse"
    """The event before a call."""
    transcripts: ClassVar[str]
    """The files of its sessions, below its home."""
    shell_tool: ClassVar[str] = "Bash"
    """The tool that runs commands, as its hooks call it."""
    second: ClassVar[float] = 1
    """What a second is in its settings."""
    files: ClassVar[Mapping[str, str]] = {}
    """Below its home, its settings by which it finds the model; `URL` stands for where that is."""
    hooks: ClassVar[str]
    """The file of its hooks, below its home."""
    variables: ClassVar[Mapping[str, str]]
    """By which it finds the model, too."""
    cannot: ClassVar[Mapping[str, str]] = {}
    """By the names of tests, why they fail here: what the CLI does not offer."""

    def __init__(self, place: Path, packages: Path, model: Model) -> None:
        self.place, self.packages, self.model = place, packages, model
        self.home, self.work, self.kept = place / "home", place / "work", place / "kept"
        self.store, self.records = self.kept / "sessions.db", self.kept / "records.jsonl"
        for folder in (self.home / f".{self.name}", self.work, self.kept):
            folder.mkdir(parents=True)
        for name, text in self.files.items():
            (self.home / name).write_text(text.replace("URL", model.url))

    def command(self, prompt: str, resume: str | None) -> list[str]:
        """
        The command line of one run without a person.
        """
        raise NotImplementedError

    def read(self, code: int, out: str) -> Ran:
        """
        What it printed, read.
        """
        raise NotImplementedError

    def plain(self, text: str) -> str:
        """
        A result that its model reads, without what differs from run to run.
        """
        return text

    def report(self, text: str) -> Text:
        """
        What the model of a sub-agent says at its end.
        """
        return Text(text)

    def await_agents(self, asked: Asked) -> Calls | None:
        """
        What its model says to wait for the sub-agents that it started. Returns None if it need not.
        """
        return None

    def run(self, prompt: str = "go", *, resume: str | None = None) -> Ran:
        """
        One run, to its end, with all that it started.
        """
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile() as err:
            # To files: what outlives the CLI may keep a pipe open.
            options: Any = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, "start_new_session": True}
            process = subprocess.Popen(self.command(prompt, resume), cwd=self.work, env=self.environment(), **options)
            try:
                code = process.wait(PATIENCE_S)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            out.seek(0)
            printed = out.read()
        assert not self.model.faults, self.model.faults
        return self.read(code, printed)

    def environment(self) -> dict[str, str]:
        """
        All that it inherits: nothing of who runs the tests but the place of programs.
        """
        places = [str(Path(shutil.which("node") or "/usr/bin/node").parent), "/usr/local/bin", "/usr/bin", "/bin"]
        own = {"HOME": self.home, "TMPDIR": self.place, "XDG_RUNTIME_DIR": self.kept, "XDG_STATE_HOME": self.kept}
        own |= {"PATH": os.pathsep.join(places), "TERM": "xterm-256color", "LANG": "C.UTF-8"}  # type: ignore[dict-item]
        return {name: str(value).replace("URL", self.model.url) for name, value in (own | {**self.variables}).items()}

    def install(self, command: str, event: str, **more: Any) -> None:
        """
        Write *command* as the hook of *event*, as a person does by hand.
        """
        hook = {"hooks": [{"type": "command", "command": command, **more}]}
        file = self.home / self.hooks
        settings = json.loads(file.read_text()) if file.is_file() else {}
        file.write_text(json.dumps(settings | {"hooks": {event: [hook]}}))

    def guard(self, policy: str = "default", *options: str) -> None:
        """
        Put our hook before and after its calls, under *policy*: the name of a shipped one, or YAML.
        """
        if ":" in policy:
            (self.kept / "policy.yaml").write_text(policy)
            policy = str(self.kept / "policy.yaml")
        own = ["--policy", policy, "--store", self.store, "--records", self.records, *options]
        self.guardrails("hook", "install", self.name, *own)

    def guardrails(self, *words: object) -> str:
        """
        What a command of ours prints.
        """
        done = ran(sys.executable, "-I", "-m", "guardrails", *words, env=self.environment())
        assert not done.returncode, done.stderr
        return done.stdout

    def recorded(self) -> list[dict[str, Any]]:
        """
        The records so far of calls.
        """
        found = lines(self.records.read_text()) if self.records.is_file() else []
        return [record for record in found if record["event"] == "call"]

    def file(self, name: str, text: str) -> Path:
        """
        A file in the folder where it works.
        """
        (self.work / name).write_text(text)
        return self.work / name

    def program(self, name: str, text: str) -> str:
        """
        The command that runs a new program of the shell; each of its runs is counted by `runs`.
        """
        self.file(name, f'#!/bin/sh\necho "$@" >> {self.place}/runs-{name}\n{text}\n').chmod(0o755)
        return f"./{name}"

    def runs(self, name: str) -> int:
        """
        How often the program *name* ran.
        """
        told = self.place / f"runs-{name}"
        return len(told.read_text().splitlines()) if told.is_file() else 0


def lines(text: str) -> list[dict[str, Any]]:
    """
    The objects of a text that has one a line, among other lines.
    """
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Claude(Client):
    """
    Claude Code, whose program comes with the SDK's package, run with `-p`.
    """

    name, transcripts, hooks = "claude", ".claude/projects/*/*.jsonl", ".claude/settings.json"
    # Without IS_SANDBOX the superuser may not skip questions.
    variables: ClassVar = {
        "ANTHROPIC_BASE_URL": "URL",
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    }
    cannot: ClassVar = {
        "test_a_model_that_goes_on_is_made_to_answer": "Its hooks refuse calls, and cannot forbid the model to make "
        "them: each is refused, however often."
    }

    def command(self, prompt: str, resume: str | None) -> list[str]:
        machine = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
        program = self.packages / f"@anthropic-ai/claude-agent-sdk-{sys.platform}-{machine}/claude"
        again = ["--resume", resume] if resume else []
        output = ["--output-format", "stream-json", "--verbose"]
        return [str(program), "-p", prompt, *again, "--permission-mode", "bypassPermissions", *output]

    def read(self, code: int, out: str) -> Ran:
        last: Body = next((line for line in reversed(lines(out)) if line.get("type") == "result"), {})
        return Ran(code, last.get("result") or "", last.get("session_id", ""))

    def shell(self, command: str) -> ScriptedCall:
        return call("Bash", {"command": command, "description": "look"})

    def look(self, file: Path) -> ScriptedCall:
        return call("Read", {"file_path": str(file)})

    def edit(self, file: Path, old: str, new: str) -> ScriptedCall:
        return call("Edit", {"file_path": str(file), "old_string": old, "new_string": new})

    def spawn(self, task: str) -> Calls:
        asked = {"description": "look", "prompt": task, "subagent_type": "general-purpose"}
        return Calls(call("Agent", asked | {"run_in_background": False}))


class Codex(Client):
    """
    Codex CLI, run with `exec`.
    """

    name, transcripts, hooks = "codex", ".codex/sessions/**/rollout-*.jsonl", ".codex/hooks.json"
    variables: ClassVar = {"SCRIPTED_KEY": "dummy"}
    files: ClassVar = {
        ".codex/config.toml": 'model = "gpt-5"\nmodel_provider = "scripted"\n[model_providers.scripted]\nname = "scripted"\n'
        'base_url = "URL/v1"\nwire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n'
    }
    cannot: ClassVar = {
        **Claude.cannot,
        "test_a_circle_of_looks_is_broken": "Codex has no tool that only looks. Its commands may be work, so that a circle "
        "of them is told to the model and not refused.",
    }

    def command(self, prompt: str, resume: str | None) -> list[str]:
        program = ["node", str(self.packages / "@openai/codex/bin/codex.js"), "exec"]
        options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json"]
        # Else hooks that nobody has trusted by hand are left out, and nothing is said of that.
        options.append("--dangerously-bypass-hook-trust")
        return [*program, *(["resume"] if resume else []), *options, *([resume] if resume else []), prompt]

    def read(self, code: int, out: str) -> Ran:
        told = lines(out)
        session = next((line["thread_id"] for line in told if line.get("type") == "thread.started"), "")
        items = (line["item"] for line in reversed(told) if line.get("type") == "item.completed")
        return Ran(code, next((item["text"] for item in items if item.get("type") == "agent_message"), ""), session)

    def plain(self, text: str) -> str:
        return re.sub(r"Chunk ID: \w+|Wall time: [0-9.]+", "", text)

    def shell(self, command: str) -> ScriptedCall:
        return call("exec_command", {"cmd": command})

    def look(self, file: Path) -> ScriptedCall:
        # It has no tool of its own for this.
        return self.shell(f"cat {shlex.quote(str(file))}")

    def edit(self, file: Path, old: str, new: str) -> ScriptedCall:
        patch = f"*** Begin Patch\n*** Update File: {file.name}\n@@\n-{old}\n+{new}\n*** End Patch"
        return self.shell(f"apply_patch <<'EOF'\n{patch}\nEOF\n")

    def spawn(self, task: str) -> Calls:
        return self._of_agents("spawn_agent", {"message": task})

    def await_agents(self, asked: Asked) -> Calls | None:
        started = json.loads(asked.results[-1]).get("agent_id")
        return self._of_agents("wait_agent", {"targets": [started], "timeout_ms": 60_000}) if started else None

    def _of_agents(self, name: str, arguments: Body) -> Calls:
        n = next(_IDS)
        item: Body = {"id": f"fc_own_{n}", "type": "function_call", "status": "completed", "call_id": f"call_own_{n}"}
        return Calls(items=(item | {"namespace": "multi_agent_v1", "name": name, "arguments": json.dumps(arguments)},))


class Gemini(Client):
    """
    Gemini CLI, run with `-p`.
    """

    name, transcripts, hooks = "gemini", ".gemini/tmp/*/chats/session-*.jsonl", ".gemini/settings.json"
    shell_tool, before, second = "run_shell_command", "BeforeTool", 1000
    files: ClassVar = {hooks: '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'}
    variables: ClassVar = {
        "GEMINI_API_KEY": "dummy",
        "GOOGLE_GEMINI_BASE_URL": "URL",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "true",
    }

    def command(self, prompt: str, resume: str | None) -> list[str]:
        program = ["node", str(self.packages / "@google/gemini-cli/bundle/gemini.js")]
        options = ["-m", "gemini-2.5-flash", "--approval-mode", "yolo", "--output-format", "json"]
        return [*program, *options, *(["--resume", resume] if resume else []), "-p", prompt]

    def read(self, code: int, out: str) -> Ran:
        begun = out.find("{")
        told = json.loads(out[begun:]) if begun >= 0 else {}
        return Ran(code, told.get("response") or "", told.get("session_id", ""))

    def plain(self, text: str) -> str:
        return re.sub(r"Process Group PGID: \d+", "", text)

    def shell(self, command: str) -> ScriptedCall:
        return call("run_shell_command", {"command": command, "description": "look"})

    def look(self, file: Path) -> ScriptedCall:
        return call("read_file", {"file_path": str(file)})

    def edit(self, file: Path, old: str, new: str) -> ScriptedCall:
        changed = {"old_string": old, "new_string": new, "instruction": "change it"}
        return call("replace", {"file_path": str(file), **changed})

    def spawn(self, task: str) -> Calls:
        return Calls(call("invoke_agent", {"agent_name": "generalist", "prompt": task}))

    def report(self, text: str) -> Text:
        return Calls(call("complete_task", {"result": {"response": text}}))


Cli = Claude | Codex | Gemini
