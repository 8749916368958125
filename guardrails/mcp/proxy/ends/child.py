"""
The server that a proxy starts: a process group of its own, which ends with the proxy.
"""

import os
import signal
import subprocess
import sys

from typing import Final

from guardrails.mcp.proxy.options import Options


GRACE_S: Final = 2.0
"""How long a server may take to end once its input is closed."""
ASKED_S: Final = 1.0
"""The same once it is asked to (SIGTERM): whoever asked us may soon kill us."""
_GROUPS: Final = hasattr(os, "killpg")


class Child:
    """
    The server that *command* starts in *folder*, with what is *added* to our environment; its error output is ours.

    Raises OSError if it cannot be started.
    """

    def __init__(
        self, command: tuple[str, ...], added: tuple[tuple[str, str], ...] = (), folder: str | None = None
    ) -> None:
        # Its own session: what a terminal sends to all of a group reaches it by us, once.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=_GROUPS,
            env={**os.environ, **dict(added)} if added else None,
            cwd=folder,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise OSError("the server has no input or no output")
        # Ours from here on, closed by who writes to it.
        self.input = os.dup(self._process.stdin.fileno())
        self._process.stdin.close()
        self.output = self._process.stdout.fileno()

    @property
    def code(self) -> int | None:
        """
        Its exit code as a shell shows it. Returns None if it runs.
        """
        code = self._process.poll()
        return 128 - code if code is not None and code < 0 else code

    def wait(self, seconds: float | None = None) -> bool:
        """
        Wait until it has ended, *seconds* at most; whether it has.
        """
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def send(self, number: int) -> None:
        """
        Send the signal *number* to all of its group.
        """
        try:
            if _GROUPS:
                os.killpg(self._process.pid, number)
            elif self._process.poll() is None:
                self._process.send_signal(number)
        except (OSError, ValueError):
            return

    def end(self, grace: float = GRACE_S, asked_by: int = signal.SIGTERM) -> int:
        """
        Its exit code: wait *grace* seconds, then ask, then kill; the whole group, so that nothing of it stays.
        """
        if not self.wait(grace):
            self.send(asked_by)
            self.wait(ASKED_S)
        self.send(getattr(signal, "SIGKILL", signal.SIGTERM))
        self.wait(ASKED_S)
        code = self.code
        return 1 if code is None else code


def start(options: Options) -> "Child | int":
    """
    The server that *options* name, or the exit code of a command that cannot be started.
    """
    command = options.command
    try:
        return Child(command, options.environment, options.folder)
    except FileNotFoundError:
        sys.stderr.write(f"guardrails mcp: there is no command `{command[0]}`\n")
        return 127
    except OSError as error:
        sys.stderr.write(f"guardrails mcp: `{command[0]}` cannot be started: {error.strerror or error}\n")
        return 126
