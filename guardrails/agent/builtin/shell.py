"""
The tool that runs commands in a workspace: exec_shell.
"""

import errno
import os
import re
import shutil
import signal

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Final

from annotated_types import Ge, Le

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.values.errors import SandboxUnavailable
from guardrails.core.values.logs import warn_once
from guardrails.processes.environment import harmless
from guardrails.processes.needs import confinement_for
from guardrails.processes.run import Ended, Started, Step, run
from guardrails.processes.sandbox import Confinement, Name, choose, started
from guardrails.session.steps import current_session, seconds_left

from .failure import ToolFailure, ToolSet, correctable
from .files import Root


MAX_OUTPUT_BYTES: Final = 24_576
"""Half as long again where every character of it needs quoting, and it still fits into a result of 64 KiB."""
MAX_TIMEOUT_S: Final = 600
WALLS: Final = ("Could not resolve", "name resolution", "Network is unreachable", "Read-only file system")
"""The words of programs that meet the walls of a sandbox."""
LIMITED: Final = (
    "/bin/sh",
    "-c",
    '{ ulimit -c 0; ulimit -d 4194304; ulimit -f 8388608; ulimit -t 3600; } 2>/dev/null; exec "$@"',
    "sh",
)
"""The start of each program in a sandbox: it may have 4 GiB of memory, files of 4 GiB and an hour of CPU time."""


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
        self._root = root
        self._timeout = timeout
        self._environment = environment
        self._sandbox = sandbox
        self._network = network
        self._git = frozenset(git)
        self._bash = shutil.which("bash") or "/bin/sh"

    @property
    def sandbox(self) -> str:
        """
        The sandbox that confines commands here: `bwrap` or `none`. Raises SandboxUnavailable if what was asked for does
        not work, or not in this workspace.
        """
        if (name := choose(self._sandbox)) != "none":
            self._start(("true",), self._root.path)
        return name

    def exec_shell(self, command: str, timeout: Annotated[int, Ge(1), Le(MAX_TIMEOUT_S)] | None = None) -> Envelope:
        """
        Run a bash command in the workspace and give its output; what it starts in the background ends with it.
        """
        if "\0" in command:
            raise ToolFailure("validation", "the command holds a NUL", retryable=False)
        seconds, left = self._timeout if timeout is None else timeout, seconds_left()
        # What the session has no time for ends with it.
        seconds = seconds if left is None else min(seconds, round(left, 3))
        try:
            steps = self._steps(command)
            ended = run(steps, self._start, self._root.path, timeout=seconds, limit=MAX_OUTPUT_BYTES)
        except SandboxUnavailable as error:
            return _refusal(error)
        except OSError as error:
            kind = "too_large" if error.errno == errno.E2BIG else "unavailable"
            reason = (error.strerror or "unknown").lower()
            raise ToolFailure(kind, f"the command could not be started: {reason}") from error  # type: ignore[arg-type]
        except ValueError:
            raise ToolFailure("validation", "the command is not valid Unicode", retryable=False) from None
        return _result(ended, seconds, None if self._sandbox == "none" else "bwrap")

    def _steps(self, command: str) -> Sequence[Step]:
        """
        Returns the programs of *command*. Raises ToolFailure if no shell may be started, and it is not plain.
        """
        if not _has_allow_list(self.names[0]):
            return [(";", [[self._bash, "-c", command]])]
        from guardrails.core.commands import read

        found = read(command)
        fault = found.unreadable or found.not_plain
        if fault is None:
            return found.steps
        hint = f"{fault.advice[:1].upper()}{fault.advice[1:]}." if fault.advice else None
        reason = f"the command was not run, since no shell is started here: {fault.reason}"
        raise correctable("validation", reason, hint)

    def _start(self, words: Sequence[str], folder: str) -> Started:
        if self._sandbox == "none":
            environment = harmless(os.environ) if self._environment is None else self._environment
            return Started(arguments=tuple(words), environment=environment, folder=folder)
        text = words[2] if words[0] == self._bash else words[0]
        writes_git = not self._git.isdisjoint(re.split(r"[^\w.-]+", text))
        return started(self._sandbox, replace(self._confinement, git=writes_git), (*LIMITED, *words), folder)

    @cached_property
    def _confinement(self) -> Confinement:
        """
        Returns the confinement of commands. Found once: later on they could change what it is told by.
        """
        return confinement_for(
            self._root.path,
            network=self._network,
            read_only=self._sandbox == "read-only",
            environment=self._environment,
        )


def _refusal(error: SandboxUnavailable) -> Envelope:
    warn_once("exec_shell refused", "exec_shell is refused: %s; `guardrails doctor` says more", error)
    return Envelope(
        "denied",
        code=SandboxUnavailable.code,
        error_type="unavailable",
        message="No command can be run here.",
        retryable=False,
        next_action="ask_user",
        next_action_hint="Do what you can with other tools, and tell the user that commands cannot be run.",
    )


def _result(ended: Ended, timeout: float, sandbox: str | None) -> Envelope:
    value: dict[str, Any] = {"output": ended.output, "exit_code": ended.exit_code, "seconds": ended.seconds}
    if ended.left_behind:
        value["background_processes"] = "killed"
    fields: dict[str, Any] = {"value": value, "sandbox": sandbox, "is_complete": ended.complete}
    if ended.exit_code is None:
        reason = f"the command did not end within {timeout:g} s and was killed; its output so far is in `result`"
        raise ToolFailure("timeout", reason, **{**fields, "is_complete": False})
    if ended.exit_code:
        walls = sandbox is not None and any(words in ended.output for words in WALLS)
        hint = (
            "A sandbox holds commands: the workspace and $TMPDIR are what they have, `.git` is git's, and no network."
        )
        raise ToolFailure("exec_nonzero", _exit(ended.exit_code), **fields, next_action_hint=hint if walls else None)
    hint = "Write the output to a file and read a part of it, or filter it."
    return Envelope.success(**fields, next_action_hint=None if ended.complete else hint)


def _exit(code: int) -> str:
    if code > 0:
        return f"the command ended with exit code {code}"
    try:
        return f"the command was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"the command was ended by signal {-code}"


def _has_allow_list(tool: str) -> bool:
    """
    Returns whether the commands of *tool* are held to an allow list in the session whose call runs here. If not it may
    be called by another name: then any tool that is held to one counts.
    """
    session = current_session()
    if session is None:
        return False
    from guardrails.core.guards.shell import Shell

    chain, plan = session.ledger.chain, session.ledger.plan(tool)
    plans = [plan] if plan.tool.commands else list(chain.plans.values())
    guards = (guard for plan in plans if plan.tool.commands for guard in plan.guards)
    return any(isinstance(guard, Shell) and guard.allow and guard.mode == "enforce" for guard in guards)
