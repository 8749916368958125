"""
What is tried: the reader and the runner of the language, or one with a fault, for the tests of the fuzzer itself.
"""

import json
import os
import re
import sys
import time

from dataclasses import dataclass
from typing import Any, Protocol, cast


class RefusedError(Exception):
    """
    A text that is not in the language, and the kind of thing that is not.
    """


@dataclass(frozen=True, slots=True)
class Told:
    """
    What a command would do, as it was judged.
    """

    runs: list[tuple[tuple[str, ...], bool, tuple[str, ...]]]
    """The words of each program, whether some are known only when it runs, and the folders where it may run."""
    writes: frozenset[str]


class Subject(Protocol):
    def read(self, text: str) -> Any:
        """
        What is run of *text*. Raises RefusedError.
        """

    def told(self, tree: Any) -> Told | None:
        """
        What the judge says of *tree*. Returns None if it refuses it; it is run all the same: the runner holds by itself.
        """

    def run(self, tree: Any) -> int:
        """
        The exit code of *tree*, in a process of its own, in the workspace.
        """


class Language:
    """
    The language of the package.
    """

    def __init__(self) -> None:
        from guardrails.core.commands.grammar.syntax import UnreadableError
        from guardrails.core.commands.language.judged import judged
        from guardrails.core.commands.language.reading import read
        from guardrails.core.commands.language.tree import to_data
        from guardrails.processes import tree

        self._runner: Any = tree
        self._refusal, self._read, self._to_data, self._judged = UnreadableError, read, to_data, judged

    def read(self, text: str) -> Any:
        try:
            script = self._read(text)
        except self._refusal as error:
            raise RefusedError(getattr(error, "kind", "too long")) from error
        return json.loads(json.dumps(self._to_data(script))), self._told(script)

    def _told(self, script: Any) -> Told | None:
        try:
            found = self._judged(script)
        except self._refusal:
            return None
        runs = [(run.words, any("\0" in word for word in run.commands[0].words), run.folders) for run in found.runs]
        return Told(runs, frozenset(found.writes))

    def told(self, tree: Any) -> Told | None:
        return cast("Told | None", tree[1])

    def run(self, tree: Any) -> int:
        runner, told = self._runner, self._runner.say

        def say(text: str) -> None:
            # What it says itself is told from what programs write.
            line = "guardrails: " + text.replace("\n", " ")
            with open("/log/said", "ab") as log:
                log.write(line.encode("utf-8", "surrogateescape") + b"\n")
            told(line)

        runner.say = say
        return int(runner.run(tree[0], "/world/ws", dict(os.environ)))


class Faulty:
    """
    bash itself, behind a reader of plain words and patterns, with one *fault*; without one it agrees with bash.
    """

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def read(self, text: str) -> Any:
        if self.fault == "raises" and "b" in text:
            raise KeyError(text)
        if self.fault == "hangs" and "*" in text:
            while time.process_time() < 60:
                pass
        plain = r"[ -~\n]*" if self.fault == "accepts" else r"[A-Za-z0-9 ./*;|\n-]*"
        if (
            not re.fullmatch(plain, text)
            or "cd" in text
            or ".." in text
            or "/*" in text
            or "*/" in text
            or "-o" in text
        ):
            raise RefusedError("not plain")
        return text

    def told(self, tree: Any) -> Told | None:
        return Told([], frozenset()) if self.fault == "judges" else None

    def run(self, tree: Any) -> int:
        text = str(tree)
        match self.fault:
            case "drops":
                text = text.replace(" -n", "")
            case "adds":
                text = text.replace("a.txt", "a.txt more")
            case "writes":
                text += " > /world/outside/made" if text.endswith("t") else ""
            case "reads":
                text = text.replace("a.txt", "a.txt < /world/outside/read.txt")
            case "codes":
                return 9 if "nosuch" in text else self._bash(text)
            case "makes":
                text += "\n> made"
            case "prints":
                os.write(1, b"more\n")
            case "variables":
                text = "export MORE=1\n" + text
            case "accepts":
                text = re.sub(r"[$`(){}&<>]", "", text)
        return self._bash(text)

    @staticmethod
    def _bash(text: str) -> int:
        environment = {**os.environ, "BASH_ENV": "/fuzz/setup.bash"}
        os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-c", "--", text, "sh"], environment)


def subject(name: str) -> Subject:
    """
    The subject called *name*: `language`, or a fault.
    """
    return Language() if name == "language" else Faulty(name)


def loaded() -> list[str]:
    """
    The modules of the package that are loaded; proves that nothing but the language is tried.
    """
    return sorted(name for name in sys.modules if name.startswith("guardrails."))
