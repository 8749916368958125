"""
Runs a script that was read and judged: each program by itself, with its words, and no shell.

It gets what `guardrails.core.commands.language.to_data` gives, and runs in a process of its own. Exit codes are those of bash.
Standard library only: it is started for each command.
"""

import errno
import os
import posixpath
import signal

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from .globs import TooManyError, encoded, expanded
from .lookup import is_program, located
from .rooted import BadPlaceError, Below, Place, open_folder, open_to_read, open_to_write


FAILED: Final = 1
NOT_RUN: Final = 126
NOT_FOUND: Final = 127
KILLED: Final = 128
"""And the number of the signal."""
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NULL: Final = "/dev/null"


class _FailedError(Exception):
    """
    Why a command does not run, and its exit code.
    """

    def __init__(self, said: str, code: int = FAILED) -> None:
        super().__init__(said)
        self.code = code


def run(script: Mapping[str, Any], workspace: str, environment: dict[str, str]) -> int:
    """
    Run the data of a *script* in the folder *workspace*, an absolute path, which no `cd` and no redirection leaves. Returns the exit code of its
    last command; 128 and more: a signal ended it. Raises OSError if there is no such folder.
    """
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        # Python ignores or catches them, and a program would inherit that.
        signal.signal(number, signal.SIG_DFL)
    for handle in range(3):
        try:
            os.fstat(handle)
        except OSError:
            os.open(_NULL, os.O_RDWR)
    handle = os.open(workspace, _FOLDER)
    os.fchdir(handle)
    return _Runner(handle, workspace, environment).script(script["steps"])


class _Runner:
    """
    The state of a script, and the view of its programs.
    """

    def __init__(self, handle: int, workspace: str, environment: dict[str, str]) -> None:
        self.workspace = workspace
        self.below = Below(handle, dict.fromkeys((workspace, os.path.realpath(workspace))))
        self.environment = {**environment, "PWD": workspace}
        self.folder = "."
        """From the workspace, without links."""

    def script(self, steps: list[Any]) -> int:
        """
        Run *steps*; the exit code of the last that ran.
        """
        code = 0
        for sign, stages, timed in steps:
            if sign == ";" or (sign == "&&") is (code == 0):
                before = _times()
                code = self.pipeline(stages)
                if timed:
                    took = [after - earlier for after, earlier in zip(_times(), before, strict=True)]
                    lines = zip(("real", "user", "sys"), took, strict=True)
                    say("".join(f"\n{name}\t{seconds // 60:.0f}m{seconds % 60:.3f}s" for name, seconds in lines))
        return code

    def pipeline(self, stages: list[dict[str, Any]]) -> int:
        """
        Run *stages*, each piped into the next; the exit code of the last.
        """
        if len(stages) == 1 and "cd" in stages[0]:
            return self.change(stages[0])
        started: list[int] = []
        before: int | None = None
        failed = False
        for place, stage in enumerate(stages):
            reading, writing = os.pipe() if place < len(stages) - 1 else (None, None)
            try:
                started.append(self.start(stage, before, writing, reading))
            except OSError as error:
                say(f"no process could be started: {_reason(error)}")
                failed = True
            for handle in (before, writing):
                if handle is not None:
                    os.close(handle)
            before = reading
            if failed:
                break
        if failed and before is not None:
            os.close(before)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in started]
        return NOT_RUN if failed else codes[-1] if codes[-1] >= 0 else KILLED - codes[-1]

    def start(self, stage: dict[str, Any], reading: int | None, writing: int | None, unused: int | None) -> int:
        """
        Start *stage* in a process of its own, between two pipes if there are any; its number.
        """
        pid = os.fork()
        if pid:
            return pid
        code = FAILED
        try:
            if unused is not None:
                os.close(unused)
            for handle, given in ((0, reading), (1, writing)):
                if given is not None:
                    os.dup2(given, handle)
            code = self.become(stage)
        except _FailedError as failure:
            say(str(failure))
            code = failure.code
        except (OSError, MemoryError, RecursionError) as error:
            say(f"it could not be run: {_reason(error)}")
        finally:
            os._exit(code)

    def become(self, stage: dict[str, Any]) -> int:
        """
        Be *stage* from now on. Returns the exit code of a group; of a program it does not return.
        """
        if "steps" in stage:
            self.redirect(stage["redirections"])
            return self.script(stage["steps"])
        try:
            # Before a file is made that would be found.
            words = [word for parts in stage["words"] for word in expanded(parts)]
        except TooManyError:
            raise _FailedError(f"{stage['words'][0][0]}: too many files fit its words", NOT_RUN) from None
        self.redirect(stage["redirections"])
        if words[0] == "command":
            return self.tell(words[2])
        return self.execute(words, {**self.environment, **dict(stage["assignments"])})

    def execute(self, words: list[str], environment: dict[str, str]) -> int:
        """
        Be the program of *words*. It returns by _FailedError only.
        """
        program = words[0] if "/" in words[0] else located(words[0], environment)
        if program is None:
            raise _FailedError(f"{words[0]}: command not found", NOT_FOUND)
        try:
            os.execve(  # noqa: S606  no shell is what it is for
                encoded(program), list(map(encoded, words)), {encoded(k): encoded(v) for k, v in environment.items()}
            )
        except OSError as error:
            code = NOT_FOUND if error.errno == errno.ENOENT else NOT_RUN
            reason = (
                "no program, and no `#!` line says which runs it" if error.errno == errno.ENOEXEC else _reason(error)
            )
            raise _FailedError(f"{words[0]}: {reason}", code) from None

    def tell(self, name: str) -> int:
        """
        Say where the program *name* is, as `command -v` does.
        """
        found = name if name in ("cd", "command") else located(name, self.environment)
        if "/" in name:
            found = name if is_program(name) else None
        if found is not None:
            os.write(1, encoded(f"{found}\n"))
        return 0 if found is not None else FAILED

    def change(self, stage: dict[str, Any]) -> int:
        """
        Go to another folder of the workspace.
        """
        kept = [os.dup(handle) for handle in range(3)]
        try:
            self.redirect(stage["redirections"])
            with self.found(stage["cd"]) as (place, path):
                handle = open_folder(place)
            try:
                os.fchdir(handle)
            finally:
                os.close(handle)
        except (_FailedError, OSError) as error:
            reason = str(error) if isinstance(error, _FailedError) else f"{stage['cd']}: {_reason(error)}"
            say(f"cd: {reason}")
            return FAILED
        finally:
            for handle, before in enumerate(kept):
                os.dup2(before, handle)
                os.close(before)
        self.folder = path
        old = self.environment["PWD"]
        self.environment |= {"PWD": posixpath.normpath(f"{self.workspace}/{path}"), "OLDPWD": old}
        return 0

    def redirect(self, redirections: list[Any]) -> None:
        """
        Lead the handles of this process where *redirections* say, in their order. Raises _FailedError.
        """
        for handle, kind, target in redirections:
            if kind == "&":
                os.dup2(int(target), handle)
                continue
            opened = _document(target) if kind == "text" else self.opened(kind, target)
            os.dup2(opened, handle)
            os.close(opened)

    def opened(self, kind: str, target: str) -> int:
        """
        A handle of the file *target*. Raises _FailedError.
        """
        if target == _NULL:
            return os.open(_NULL, os.O_RDONLY if kind == "<" else os.O_WRONLY)
        try:
            with self.found(target) as (place, _):
                if kind == "<":
                    return open_to_read(place)
                return open_to_write(place, append=kind == ">>")
        except OSError as error:
            raise _FailedError(f"{target}: {_reason(error)}") from None

    @contextmanager
    def found(self, target: str) -> Iterator[tuple[Place, str]]:
        """
        The place of *target*, and its path from the workspace. Raises _FailedError if it is outside, or behind a link: what was
        judged is the path as it is written.
        """
        path = target if target.startswith("/") or self.folder == "." else f"{self.folder}/{target}"
        try:
            with self.below.find(path) as place:
                true = posixpath.normpath("/".join((*place.above, place.name)))
                if true != posixpath.normpath(self.below.relative(path) or "."):
                    raise _FailedError(f"{target}: it is a link, or behind one; write where it leads: {true}")
                yield place, true
        except BadPlaceError as error:
            raise _FailedError(str(error)) from None


def say(text: str) -> None:
    """
    Write *text* as a line to standard error.
    """
    with suppress(OSError):
        os.write(2, encoded(f"{text}\n"))


def _times() -> tuple[float, float, float]:
    """
    Seconds since some time, and those of the processor that all programs took so far: their own, and the system's for them.
    """
    taken = os.times()
    return taken.elapsed, taken.children_user, taken.children_system


def _document(text: str) -> int:
    """
    A handle that reads *text*.
    """
    try:
        handle = os.memfd_create("text")
    except (AttributeError, OSError):
        import tempfile

        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
    data = encoded(text)
    while data:
        data = data[os.write(handle, data) :]
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _reason(error: BaseException) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
