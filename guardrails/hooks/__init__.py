"""
The hooks of coding CLIs: their events come in, what a policy says of them goes out. Here is the command `guardrails hook`, which they start for each
event.
"""

import os
import sys

from types import ModuleType


FAILED = "guardrails hook: "
"""The beginning of what an installation says on standard error that is broken."""


def main(argv: "list[str]") -> int:
    """
    Answer the event on standard input, by the options *argv*; the exit code, which is always 0: another one may block a call.

    `install`, `uninstall` and `status` are ordinary commands beside it.
    """
    if argv[:1] in (["install"], ["uninstall"], ["status"], ["--help"], ["-h"]):
        from .install import main as command

        return command(argv)
    try:
        # `dataclasses` imports all that reads source text, for classes without a docstring alone; `uuid` asks for the name of the system alone.
        sys.modules.setdefault("inspect", Later("inspect"))
        if hasattr(os, "uname"):
            sys.modules.setdefault("platform", Later("platform", system=lambda: os.uname().sysname))
        from .options import Options
        from .respond import respond

        data, trace = sys.stdin.buffer.read(), os.environ.get("TRACEPARENT", "")
        answer = respond(data, Options.of(argv), project=_project(), trace=trace)
    except Exception as error:  # an installation that is broken: another exit code would block every call
        sys.stderr.write(f"{FAILED}{type(error).__name__}: {error}\n")
        answer = b"{}"
    sys.stdout.buffer.write(answer + b"\n")
    return 0


class Later(ModuleType):
    """
    A module that is imported when something of it is first used that is not *known*.
    """

    def __init__(self, name: str, **known: object) -> None:
        super().__init__(name)
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> object:
        if sys.modules[self.__name__] is self:
            del sys.modules[self.__name__]
        return getattr(__import__(self.__name__), name)


def _project() -> str:
    """
    The folder in which the session began. Claude Code and Gemini CLI say it; Codex starts its hooks there.
    """
    try:
        return os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd()
    except OSError:  # it was taken away
        return ""
