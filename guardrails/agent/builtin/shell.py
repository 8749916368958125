"""
The tool that runs commands in a workspace: exec_shell.
"""

import errno
import os
import re
import shutil

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Final

from annotated_types import Ge, Le

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.values.errors import SandboxUnavailable
from guardrails.core.values.logs import warn_once
from guardrails.processes.run import Ended, Started, Step, run
from guardrails.processes.sandbox import NAMES, Name, Sandbox, harmless
from guardrails.session.steps import current_session, seconds_left

from .failure import ToolFailure, ToolSet
from .files import Root


MAX_OUTPUT_BYTES: Final = 24_576
"""Half as long again where every character of it needs quoting, and it still fits into a result of 64 KiB."""
MAX_TIMEOUT_S: Final = 600


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
        self._root = root
        self._timeout = timeout
        self._environment = environment
        self._sandbox = sandbox
        self._network = network
        self._git = frozenset(git)
        self._bash = shutil.which("bash") or "/bin/sh"

    @property
    def sandbox(self) -> str | None:
        """
        The sandbox that confines commands here: `bwrap`, or None. Raises SandboxUnavailable if what was asked for does
        not work, or not in this workspace.
        """
        if self._sandbox == "none":
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
            reason = f"the command could not be started: {(error.strerror or 'unknown').lower()}"
            raise ToolFailure("too_large" if error.errno == errno.E2BIG else "unavailable", reason) from error
        except ValueError:
            raise ToolFailure("validation", "the command holds a NUL, or is not valid Unicode") from None
        return _result(ended, seconds, None if self._sandbox == "none" else "bwrap")

    def _start(self, words: Sequence[str], folder: str) -> Started:
        if self._sandbox == "none":
            environment = harmless(os.environ) if self._environment is None else self._environment
            # It says what cannot be found as a shell says it, and is the program from then on.
            return Started(("/bin/sh", "-c", 'exec "$@"', "sh", *words), environment, folder)
        writes_git = not self._git.isdisjoint(re.split(r"[^\w.-]+", " ".join(words)))
        return self._confined.started(words, folder, git=writes_git)

    @cached_property
    def _confined(self) -> Sandbox:
        rights = {"network": self._network, "read_only": self._sandbox == "read-only"}
        return Sandbox(self._root.path, environment=self._environment, **rights)


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
    from guardrails.core.commands import read

    found = read(command)
    fault = found.unreadable or found.not_plain
    if fault is None:
        return found.steps
    hint = f"{fault.advice[:1].upper()}{fault.advice[1:]}." if fault.advice else None
    raise ToolFailure("validation", f"the command was not run, since no shell is started here: {fault.reason}", hint)


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
    value |= {"background_processes": "killed"} if ended.left_behind else {}
    fields: dict[str, Any] = {"value": value, "sandbox": sandbox, "is_complete": ended.complete}
    if ended.exit_code is None:
        reason = f"the command did not end within {timeout:g} s and was killed; its output so far is in `result`"
        raise ToolFailure("timeout", reason, **{**fields, "is_complete": False})
    if ended.exit_code:
        by = "exit code" if ended.exit_code > 0 else "signal"
        raise ToolFailure("exec_nonzero", f"the command ended with {by} {abs(ended.exit_code)}", **fields)
    hint = None if ended.complete else "Write the output to a file and read a part of it, or filter it."
    return Envelope.success(**fields, next_action_hint=hint)
