"""
The tool that runs shell commands in a workspace: exec_shell.
"""

import errno
import os
import shutil
import signal

from collections.abc import Mapping
from typing import Annotated, Any, Final

from annotated_types import Ge, Le

from guardrails.core.envelope.envelope import Envelope
from guardrails.processes.environment import harmless
from guardrails.processes.run import Ended, run_to_end
from guardrails.session.calls.running import seconds_left

from .failure import ToolFailure, ToolSet
from .rooted import Root


MAX_OUTPUT_BYTES: Final = 24_576
"""Half as long again where every character of it needs quoting, and it still fits into a result of 64 KiB."""
MAX_TIMEOUT_S: Final = 600


class Shell(ToolSet):
    """
    Runs commands in the workspace *root*, each for *timeout* seconds at most unless the call says otherwise.

    *environment* replaces what commands see of the process's own, which is all but what is named like a secret. It is no
    sandbox: a command may do what the process may. Put the guard `shell` before it, and a container around it.
    """

    names = ("exec_shell",)

    def __init__(self, root: Root, *, timeout: float = 120, environment: Mapping[str, str] | None = None) -> None:
        self._root = root
        self._timeout = timeout
        self._environment = environment
        self._bash = shutil.which("bash") or "/bin/sh"

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
            ended = run_to_end(
                [self._bash, "-c", command],
                folder=self._root.path,
                environment=harmless(os.environ) if self._environment is None else self._environment,
                timeout=seconds,
                limit=MAX_OUTPUT_BYTES,
            )
        except OSError as error:
            long = error.errno == errno.E2BIG
            reason = (error.strerror or "unknown").lower()
            raise ToolFailure(
                "too_large" if long else "unavailable", f"the command could not be started: {reason}"
            ) from error
        except ValueError:
            raise ToolFailure("validation", "the command is not valid Unicode", retryable=False) from None
        return _told(ended, seconds)


def _told(ended: Ended, timeout: float) -> Envelope:
    value: dict[str, Any] = {"output": ended.output, "exit_code": ended.exit_code, "seconds": ended.seconds}
    if ended.left_behind:
        value["background_processes"] = "killed"
    if ended.exit_code is None:
        raise ToolFailure(
            "timeout",
            f"the command did not end within {timeout:g} s and was killed; its output so far is in `result`",
            value=value,
            is_complete=False,
        )
    if ended.exit_code:
        raise ToolFailure("exec_nonzero", _exit(ended.exit_code), value=value, is_complete=ended.complete)
    hint = None if ended.complete else "Write the output to a file and read a part of it, or filter it."
    return Envelope.success(value, is_complete=ended.complete, next_action_hint=hint)


def _exit(code: int) -> str:
    if code > 0:
        return f"the command ended with exit code {code}"
    try:
        return f"the command was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"the command was ended by signal {-code}"
