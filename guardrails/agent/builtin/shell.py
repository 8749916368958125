"""
The tool that runs commands in a workspace: exec_shell.
"""

import errno
import os
import shutil
import signal

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final

from annotated_types import Ge, Le

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.values.errors import SandboxUnavailable
from guardrails.core.values.logs import warn_once
from guardrails.processes.environment import harmless
from guardrails.processes.run import Ended, Started, Step, run
from guardrails.session.steps import current_session, seconds_left

from .failure import ToolFailure, ToolSet
from .rooted import Root


if TYPE_CHECKING:
    from guardrails.processes.sandbox import Confinement, Name

MAX_OUTPUT_BYTES: Final = 24_576
"""Half as long again where every character of it needs quoting, and it still fits into a result of 64 KiB."""
MAX_TIMEOUT_S: Final = 600
UNREACHED: Final = (
    *("Could not resolve", "Temporary failure in name resolution", "Name or service not known", "EAI_AGAIN"),
    *("Network is unreachable", "ENOTFOUND", "Failed to establish a new connection"),
)
UNWRITTEN: Final = ("Read-only file system", "Permission denied", "EROFS", "EACCES")
"""What programs print that meet the walls of a sandbox."""
NOT_CHOSEN: Final = (
    'exec_shell runs commands with all rights of this process, since no sandbox was chosen: say `sandbox="auto"`, or '
    '`sandbox="none"` if that is meant'
)
LIMITED: Final = (
    "/bin/sh",
    "-c",
    '{ ulimit -c 0; ulimit -d 4194304; ulimit -f 8388608; ulimit -t 3600; } 2>/dev/null; exec "$@"',
    "sh",
)
"""The start of each program in a sandbox: it may have 4 GiB of memory, files of 4 GiB and an hour of CPU time."""


class Refused(ToolFailure):
    """
    A command that cannot be confined as it is to be, so that it was not run.
    """

    def __init__(self, error: SandboxUnavailable) -> None:
        super().__init__("unavailable", "No command can be run here.")
        warn_once("exec_shell refused", "exec_shell is refused: %s; `guardrails doctor` says more", error)

    def envelope(self) -> Envelope:
        """
        See `ToolFailure.envelope`.
        """
        return Envelope(
            "denied",
            code=SandboxUnavailable.code,
            error_type=self.error_type,
            message=str(self),
            retryable=False,
            next_action="ask_user",
            next_action_hint="Do what you can with other tools, and tell the user that commands cannot be run.",
        )


class Shell(ToolSet):
    """
    Runs commands in the workspace *root*, each for *timeout* seconds at most unless the call says otherwise.

    They are confined by *sandbox*: `auto` and `bwrap` are bubblewrap. A command that cannot be confined so is refused
    (`sandbox.unavailable`). In it they reach the *network* only if they are let, write into the workspace unless it is
    *read_only*, and see what is listed of the process's own environment. With `none` a command may do what the process
    may, and sees all variables but those named like a secret. None says nothing, which is `none` and a line in the log.
    *environment* replaces what they see.

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
        sandbox: "Name | None" = None,
        network: bool = False,
        read_only: bool = False,
    ) -> None:
        self._root = root
        self._timeout = timeout
        self._environment = environment
        self._sandbox = sandbox
        self._network = network
        self._read_only = read_only
        self._bash = shutil.which("bash") or "/bin/sh"
        if sandbox is None:
            warn_once("exec_shell without a sandbox", NOT_CHOSEN)

    @property
    def sandbox(self) -> str:
        """
        The sandbox that confines commands here: `bwrap` or `none`. Raises SandboxUnavailable if what was asked for does
        not work, or not in this workspace.
        """
        if self._sandbox in (None, "none"):
            return "none"
        self._start(("true",), self._root.path)
        return "bwrap"

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
            raise Refused(error) from None
        except OSError as error:
            long = error.errno == errno.E2BIG
            reason = (error.strerror or "unknown").lower()
            raise ToolFailure(
                "too_large" if long else "unavailable", f"the command could not be started: {reason}"
            ) from error
        except ValueError:
            raise ToolFailure("validation", "the command is not valid Unicode", retryable=False) from None
        if self._sandbox in (None, "none"):
            return _told(ended, seconds, None)
        return _told(ended, seconds, "bwrap", _advice(ended.output, network=self._network))

    def _steps(self, command: str) -> Sequence[Step]:
        """
        Returns what *command* runs. Raises ToolFailure if it may be run without a shell only, and cannot be.
        """
        if not _has_allow_list(self.names[0]):
            return [(";", [[self._bash, "-c", command]])]
        from guardrails.core.commands import read

        found = read(command)
        fault = found.unreadable or found.not_plain
        if fault is None:
            return found.steps
        raise ToolFailure(
            "validation",
            f"the command was not run, since no shell is started here: {fault.reason}",
            retryable=False,
            retryable_after_correction=True,
            next_action="fix_arguments",
            next_action_hint=f"{fault.advice[:1].upper()}{fault.advice[1:]}." if fault.advice else None,
        )

    def _start(self, words: Sequence[str], folder: str) -> Started:
        if self._sandbox in (None, "none"):
            environment = harmless(os.environ) if self._environment is None else self._environment
            return Started(arguments=tuple(words), environment=environment, folder=folder)
        from guardrails.processes.sandbox import started

        return started(self._sandbox, self._confinement, (*LIMITED, *words), folder)

    @cached_property
    def _confinement(self) -> "Confinement":
        """
        Returns the confinement of commands. Found once: later on they could change what it is told by.
        """
        from guardrails.processes.needs import confinement_for

        return confinement_for(
            self._root.path, network=self._network, read_only=self._read_only, environment=self._environment
        )


def _told(ended: Ended, timeout: float, sandbox: str | None, advice: str | None = None) -> Envelope:
    value: dict[str, Any] = {"output": ended.output, "exit_code": ended.exit_code, "seconds": ended.seconds}
    if ended.left_behind:
        value["background_processes"] = "killed"
    if ended.exit_code is None:
        raise ToolFailure(
            "timeout",
            f"the command did not end within {timeout:g} s and was killed; its output so far is in `result`",
            value=value,
            is_complete=False,
            sandbox=sandbox,
        )
    if ended.exit_code:
        raise ToolFailure(
            "exec_nonzero",
            _exit(ended.exit_code),
            value=value,
            is_complete=ended.complete,
            sandbox=sandbox,
            next_action_hint=advice,
        )
    hint = None if ended.complete else "Write the output to a file and read a part of it, or filter it."
    return Envelope.success(value, is_complete=ended.complete, next_action_hint=hint, sandbox=sandbox)


def _advice(output: str, *, network: bool) -> str | None:
    """
    Returns advice for a command that failed with this *output*: its sandbox may have stopped it.
    """
    if not network and any(said in output for said in UNREACHED):
        return "Commands have no network in this sandbox: do without, or ask the user for it."
    if any(said in output for said in UNWRITTEN):
        return "Only the workspace and $TMPDIR can be written in this sandbox, and no home is there."
    return None


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
