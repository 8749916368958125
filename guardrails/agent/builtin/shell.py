"""
The tool that runs commands in a workspace, exec_shell: each in process groups that end with it or at its time limit, its
output bounded.
"""

import atexit
import os
import re
import shutil
import signal
import subprocess
import threading
import time

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from annotated_types import Ge, Le

from guardrails.core.envelope import Envelope
from guardrails.core.values.errors import SandboxUnavailable
from guardrails.core.values.logs import warn_once
from guardrails.processes.sandbox import NAMES, Name, Sandbox, Started, harmless
from guardrails.session.steps import current_session, seconds_left

from .failure import ToolFailure, ToolSet, failure_of
from .files import Root


MAX_OUTPUT_BYTES: Final = 24_576
"""Half as long again where every character of it needs quoting, and it still fits into a result of 64 KiB."""
MAX_TIMEOUT_S: Final = 600
GRACE_S: Final = 1.0
"""Until an output that somebody still holds is given up."""
Step = tuple[str, Sequence[Sequence[str]]]
"""`;`, `&&` or `||`, and behind it the words of commands that are piped into each other."""
Start = Callable[[Sequence[str], str], Started]
_groups: set[int] = set()
"""Process groups that run now."""


class Shell(ToolSet):
    """
    Runs commands in the workspace *root*, each for *timeout* seconds at most unless the call says otherwise.

    They are confined by *sandbox*: `auto` and `bwrap` are bubblewrap, `read-only` is the same with a workspace that is
    only read. A command that cannot be confined so is refused (`sandbox.unavailable`). In a sandbox commands reach the
    *network* only if they are let, and see what is listed of the process's own environment. There `.git` is only read,
    but by commands that name a program of *git*. With `none` a command may do what the process may, and sees all
    variables but those named like a secret. *environment* replaces what they see.

    In a session whose guard `shell` has an allow list no shell is started: plain commands run program by program, and
    other text is refused.
    """

    names = ("exec_shell",)

    def __init__(
        self,
        root: Root,
        *,
        timeout: float = 120,
        environment: Mapping[str, str] | None = None,
        sandbox: Name = "auto",
        network: bool = False,
        git: Collection[str] = ("git",),
    ) -> None:
        if sandbox not in NAMES:
            raise ValueError(f"there is no sandbox `{sandbox}`: it is one of {', '.join(NAMES)}")
        rights = {"network": network, "read_only": sandbox == "read-only"}
        self._confined = None if sandbox == "none" else Sandbox(root.path, environment=environment, **rights)
        self._root, self._timeout, self._environment, self._git = root, timeout, environment, frozenset(git)
        self._bash = shutil.which("bash") or "/bin/sh"

    @property
    def sandbox(self) -> str | None:
        """
        The sandbox that confines commands here: `bwrap`, or None. Raises SandboxUnavailable if what was asked for does
        not work, or not in this workspace.
        """
        if self._confined is None:
            return None
        self._start(("true",), self._root.path)
        return "bwrap"

    def exec_shell(self, command: str, timeout: Annotated[int, Ge(1), Le(MAX_TIMEOUT_S)] | None = None) -> Envelope:
        """
        Run a bash command in the workspace and give its output; what it starts in the background ends with it. A sandbox
        may hold it: then the workspace and $TMPDIR are what it has, `.git` is git's, and there may be no network.
        """
        seconds, left = self._timeout if timeout is None else timeout, seconds_left()
        # What the session has no time for ends with it.
        seconds = seconds if left is None else min(seconds, round(left, 3))
        try:
            steps = _plain_steps(command) if _has_allow_list() else [(";", [[self._bash, "-c", command]])]
            ended = run(steps, self._start, self._root.path, timeout=seconds, limit=MAX_OUTPUT_BYTES)
        except SandboxUnavailable as error:
            return _refusal(error)
        except OSError as error:
            raise failure_of(error, "the command could not be started") from error
        return _result(ended, seconds, "bwrap" if self._confined else None)

    def _start(self, words: Sequence[str], folder: str) -> Started:
        if self._confined is None:
            environment = harmless(os.environ) if self._environment is None else self._environment
            # It says what cannot be found as a shell says it, and is the program from then on.
            return Started(("/bin/sh", "-c", 'exec "$@"', "sh", *words), environment, folder)
        writes_git = not self._git.isdisjoint(re.split(r"[^\w.-]+", " ".join(words)))
        return self._confined.started(words, folder, git=writes_git)


def _has_allow_list() -> bool:
    """
    Returns whether commands are held to an allow list in the session whose call runs here.
    """
    from guardrails.core.guards.shell import Shell

    session = current_session()
    guards = () if session is None else session.ledger.plan("exec_shell").guards
    return any(isinstance(guard, Shell) and guard.allow and guard.mode == "enforce" for guard in guards)


def _plain_steps(command: str) -> Sequence[Step]:
    """
    Returns the programs of *command*. Raises ToolFailure if it is not plain.
    """
    from guardrails.core.commands import Fault, plain_steps, read

    script = read(command)
    fault = script.unreadable or script.not_plain or plain_steps(command)
    if not isinstance(fault, Fault):
        return fault
    raise ToolFailure(
        "validation", f"no shell is started here, and the command is not plain: {fault.reason}", fault.advice
    )


def _refusal(error: SandboxUnavailable) -> Envelope:
    warn_once("exec_shell refused", "exec_shell is refused: %s; `guardrails doctor` says more", error)
    hint = "Do what you can with other tools, and tell the user that commands cannot be run."
    words: Any = {"message": "No command can be run here.", "next_action": "ask_user", "next_action_hint": hint}
    return Envelope("denied", code=error.code, error_type="unavailable", retryable=False, **words)


def _result(ended: "Ended", timeout: float, sandbox: str | None) -> Envelope:
    value = {"output": ended.output, "exit_code": ended.exit_code}
    fields: dict[str, Any] = {"value": value, "sandbox": sandbox, "is_complete": ended.complete}
    if ended.exit_code is None:
        reason = f"the command did not end within {timeout:g} s and was killed; its output so far is in `result`"
        more = "It may have done a part of its work. Give it a longer `timeout`, or less to do."
        raise ToolFailure("timeout", reason, more, **{**fields, "is_complete": False, "next_action": "fix_arguments"})
    if ended.exit_code:
        by = "exit code" if ended.exit_code > 0 else "signal"
        raise ToolFailure("exec_nonzero", f"the command ended with {by} {abs(ended.exit_code)}", **fields)
    hint = None if ended.complete else "Write the output to a file and read a part of it, or filter it."
    return Envelope.success(**fields, next_action_hint=hint)


# The run of a command


@dataclass(slots=True)
class Bounded:
    """
    The beginning and the end of an output, *limit* bytes together.
    """

    limit: int
    ends: bytearray = field(default_factory=bytearray)
    total: int = 0

    def drain(self, reading: int) -> None:
        """
        Take in all that comes from the descriptor *reading*, and close it; what lies between is forgotten.
        """
        half = self.limit // 2
        with open(reading, "rb", buffering=0) as pipe:
            while data := pipe.read(1 << 16):
                self.total += len(data)
                self.ends += data
                del self.ends[half:-half]

    def text(self) -> str:
        """
        Returns the output, with a line that says how much is missing.
        """
        left_out, half = self.total - len(self.ends), self.limit // 2
        between = f"\n[... {left_out:,} bytes left out ...]\n".encode() if left_out else b""
        return (self.ends[:half] + between + self.ends[half:]).decode(errors="replace")


class Ended(NamedTuple):
    """
    The end of a command.
    """

    output: str
    """stdout and stderr as they came."""
    complete: bool
    """Nothing of the output was left out."""
    exit_code: int | None
    """Negative: the signal that ended it; None: it was killed at its time limit."""


def run(steps: Iterable[Step], start: Start, folder: str, *, timeout: float, limit: int) -> Ended:
    """
    Run *steps*, which begin in *folder*, for at most *timeout* seconds; `start(words, folder)` is the program of *words* in
    its sandbox. Of their output *limit* bytes are held, however much there is.

    `cd` is the one command of a shell that is known here. Raises OSError if a command is too long to be started.
    """
    deadline, output = time.monotonic() + timeout, Bounded(limit)
    code: int | None = 0
    reading, writing = os.pipe()
    # Who left its group may hold the pipe for ever: the thread closes it when that ends, and nobody waits.
    reader = threading.Thread(target=output.drain, args=(reading,), daemon=True)
    reader.start()
    try:
        for sign, stages in steps:
            if code is None or (sign == "&&" and code) or (sign == "||" and not code):
                continue
            program, *words = stages[0]
            if program == "cd" and len(stages) == 1:
                given = " ".join(words)
                place = os.path.normpath(Path(folder, given))
                code = 0 if Path(place).is_dir() else 1
                fault = f"cd: {given}: there is no such folder\n" if code else ""
                os.write(writing, fault.encode(errors="replace"))
                folder = folder if code else place
            else:
                code = _pipeline([start(words, folder) for words in stages], writing, deadline)
    finally:
        os.close(writing)
        reader.join(GRACE_S)
    return Ended(output.text(), output.total <= limit, code)


def _pipeline(programs: Sequence[Started], writing: int, deadline: float) -> int | None:
    """
    Returns the exit code of the last of *programs*, None if they have not ended by the *deadline*. Each has a session of its
    own, so that no terminal is asked anything, and what it leaves behind is killed.
    """
    running: list[subprocess.Popen[bytes]] = []
    code = None
    try:
        for program in programs:
            before = running[-1].stdout if running else None
            process = subprocess.Popen(
                program.arguments,
                cwd=program.folder,
                env=program.environment,
                stdin=before or subprocess.DEVNULL,
                stdout=writing if program is programs[-1] else subprocess.PIPE,
                stderr=writing,
                start_new_session=True,
            )
            _groups.add(process.pid)
            running.append(process)
            if before is not None:
                before.close()
        for process in running:
            code = process.wait(max(0, deadline - time.monotonic()))
            # At once: later on its number may be another's.
            _end(process.pid)
        return code
    except subprocess.TimeoutExpired:
        return None
    finally:
        for process in running:
            _end(process.pid)
            process.wait()


def _end(*groups: int) -> None:
    """
    Kill the process *groups* that were not killed before; without any, all.
    """
    for group in groups or tuple(_groups):
        with suppress(KeyError, ProcessLookupError, PermissionError):
            _groups.remove(group)
            os.killpg(group, signal.SIGKILL)


# A command runs in a thread of its own if its tool has a time limit; Ctrl-C does not reach that thread.
atexit.register(_end)
