"""
What the tests ask of a coding CLI, whichever it is: its real program, in a home of its own, before a scripted model.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from guardrails.testing.scripted_openai import Calls, ScriptedCall, Text

from ..model import Model
from ..wires.asked import Asked


ROOT: Final = Path(__file__).parents[4]
LIMIT: Final = 90.0
"""Seconds after which a CLI is killed with all that it started."""


@dataclass(frozen=True, slots=True)
class Ran:
    """
    One process of a CLI, from its start to its end.
    """

    code: int
    answer: str
    """The final answer, as a person reads it."""
    session: str
    said: str
    """All that it printed."""


class Client:
    """
    A CLI in the folder *place*, which holds its home, the folder that it works in, and what our hook keeps.
    """

    name: ClassVar[str]
    before: ClassVar[str]
    """The event before a call."""
    transcripts: ClassVar[str]
    """The files of its sessions, below its home."""
    shell_tool: ClassVar[str]
    """The tool that runs commands, as its hooks call it."""
    second: ClassVar[float] = 1
    """What a second is in its settings."""
    cannot: ClassVar[Mapping[str, str]] = {}
    """By the names of tests, why they fail here: what the CLI does not offer."""

    def __init__(self, place: Path, packages: Path, model: Model) -> None:
        self.place, self.packages, self.model = place, packages, model
        self.home, self.work, self.kept = place / "home", place / "work", place / "kept"
        for folder in (self.home, self.work, self.kept):
            folder.mkdir()
        self.prepare()

    # What each CLI says for itself

    def prepare(self) -> None:
        """
        Write the settings by which it finds the model.
        """
        raise NotImplementedError

    def command(self, prompt: str, resume: str | None) -> list[str]:
        """
        The command line of one run without a person.
        """
        raise NotImplementedError

    def variables(self) -> dict[str, str]:
        """
        The environment variables by which it finds the model.
        """
        raise NotImplementedError

    def read(self, code: int, out: str, err: str) -> Ran:
        """
        What it printed, read.
        """
        raise NotImplementedError

    def shell(self, command: str, label: str = "look") -> ScriptedCall:
        """
        The call by which its model runs *command*; *label* is free text, where there is a field for it.
        """
        raise NotImplementedError

    def plain(self, text: str) -> str:
        """
        A result that its model reads, without what differs from run to run.
        """
        return text

    def look(self, file: Path) -> ScriptedCall:
        """
        The call by which its model reads *file*.
        """
        raise NotImplementedError

    def edit(self, file: Path, old: str, new: str) -> ScriptedCall:
        """
        The call by which its model changes *file*.
        """
        raise NotImplementedError

    def spawn(self, task: str) -> Calls:
        """
        What its model says to start a sub-agent.
        """
        raise NotImplementedError

    def report(self, asked: Asked, text: str) -> Text | Calls:
        """
        What the model of a sub-agent says at its end.
        """
        return Text(text)

    def await_agents(self, asked: Asked) -> Calls | None:
        """
        What its model says to wait for the sub-agents that it started. Returns None if it need not.
        """
        return None

    def install(self, command: str, events: Mapping[str, Mapping[str, Any]]) -> None:
        """
        Write *command* as the hook of each of the *events*, as a person does by hand.
        """
        raise NotImplementedError

    # What all share

    def run(self, prompt: str = "go", *, resume: str | None = None, seconds: float = LIMIT) -> Ran:
        """
        One run, to its end. TimeoutError where that takes longer than *seconds*.
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            # To files: what outlives the CLI may keep a pipe open.
            process = subprocess.Popen(
                self.command(prompt, resume),
                cwd=self.work,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(process)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        if code is None:
            raise TimeoutError(f"{self.name} runs after {seconds} s: {texts}")
        assert not self.model.faults, self.model.faults
        return self.read(code, *texts)

    def environment(self) -> dict[str, str]:
        """
        All that it inherits: nothing of who runs the tests but the place of programs.
        """
        node = shutil.which("node")
        path = os.pathsep.join(([str(Path(node).parent)] if node else []) + ["/usr/local/bin", "/usr/bin", "/bin"])
        own = {
            "HOME": str(self.home),
            "PATH": path,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TMPDIR": str(self.place),
            "XDG_RUNTIME_DIR": str(self.kept),
            "XDG_STATE_HOME": str(self.kept),
        }
        return own | self.variables()

    def guard(self, policy: str = "default", *options: str) -> None:
        """
        Put our hook before and after its calls, under *policy*: the name of a shipped one, or YAML.
        """
        if "\n" in policy or ":" in policy:
            file = self.kept / "policy.yaml"
            file.write_text(policy, encoding="utf-8")
            policy = str(file)
        own = ["--policy", policy, "--store", str(self.store), "--records", str(self.records)]
        install = [sys.executable, "-I", "-m", "guardrails", "hook", "install", self.name, *own, *options]
        done = subprocess.run(install, env=self.environment(), capture_output=True, text=True, check=False)
        assert not done.returncode, done.stderr

    @property
    def store(self) -> Path:
        """
        Where our hook keeps the states of sessions.
        """
        return self.kept / "sessions.db"

    @property
    def records(self) -> Path:
        """
        Where it writes what it decided.
        """
        return self.kept / "records.jsonl"

    def recorded(self) -> list[dict[str, Any]]:
        """
        The records so far.
        """
        return lines(self.records.read_text()) if self.records.is_file() else []

    def file(self, name: str, text: str, *, runs: bool = False) -> Path:
        """
        A file in the folder where it works; one that *runs* is a program.
        """
        path = self.work / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if runs else 0o644)
        return path

    def program(self, name: str, text: str) -> str:
        """
        The command that runs a new program of the shell; each of its runs is counted by `runs`.
        """
        self.file(name, f'#!/bin/sh\necho "$@" >> {self.place}/runs-{name}\n{text}\n', runs=True)
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


def write_hooks(file: Path, command: str, events: Mapping[str, Mapping[str, Any]]) -> None:
    """
    Add *command* to a settings file as the hook of *events*, each with what else its entry says.
    """
    settings = json.loads(file.read_text()) if file.is_file() else {}
    hooks = settings.setdefault("hooks", {})
    for event, more in events.items():
        hooks.setdefault(event, []).append({"hooks": [{"type": "command", "command": command, **more}]})
    file.write_text(json.dumps(settings))


def _end(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
