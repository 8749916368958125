"""
One command run in a fresh world by bash, by dash or by what is tried, and all that came of it.
"""

import os
import re
import signal

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Final

from tests.shellfuzz.jailed import world


SECONDS: Final = 20.0
"""A command that runs longer is killed, and that is what came of it."""
MAX_OUTPUT: Final = 200_000
"""Bytes that are kept of each output."""
ENVIRONMENT: Final = {"PATH": "/programs", "LC_ALL": "C.UTF-8", "HOME": "/world/outside", "KEPT": "as it is"}
_BASH_SETUP: Final = "/fuzz/setup.bash"
_EXPORT: Final = re.compile(rb"(?ms)^export ([A-Za-z_][A-Za-z0-9_]*)(?:=(.*?))?(?=\nexport |\n?\Z)")


@dataclass(frozen=True, slots=True)
class Started:
    """
    One program that was started.
    """

    program: bytes
    words: tuple[bytes, ...]
    folder: bytes
    read: bytes
    environment: frozenset[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Observed:
    """
    All that came of a command.
    """

    started: tuple[Started, ...]
    code: int
    output: bytes
    errors: tuple[bytes, ...]
    """Lines, sorted: those of a pipeline's programs come in any order."""
    changed: tuple[tuple[bytes, tuple[int, bytes] | None], ...]
    """Of each path in the workspace that was changed or made its type, mode and content; None if it is gone."""
    outside: tuple[tuple[bytes, tuple[int, bytes] | None], ...]
    said: tuple[bytes, ...] = ()
    """What our runner itself said, wherever its standard error led."""


class LateError(Exception):
    """
    Something took too long.
    """


def _late(number: int, frame: FrameType | None) -> None:
    raise LateError


class Watched:
    """
    Runs commands, each in a world as new.
    """

    def __init__(self) -> None:
        self._renew()
        for number in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(number, _late)
        self.takes_dots = {shell: self._takes_dots(shell) for shell in ("bash", "dash")}

    def by_shell(self, shell: str, text: str) -> Observed:
        """
        What *shell*, `bash` or `dash`, does with *text*.
        """
        options = ("--norc", "--noprofile") if shell == "bash" else ()
        environment = {**ENVIRONMENT, "BASH_ENV": _BASH_SETUP} if shell == "bash" else ENVIRONMENT
        arguments = [os.fsencode(part) for part in (shell, *options, "-c", "--", text, "sh")]
        return self._observe(lambda: _spawned(f"/bin/{shell}", arguments, environment))

    def by(self, run: Callable[[], int]) -> Observed:
        """
        What *run*, which returns an exit code, does in a process of its own.
        """
        return self._observe(lambda: _forked(run))

    def _renew(self) -> None:
        world.make()
        folders = (world.WORKSPACE, world.OUTSIDE)
        self.before = {folder: world.snapshot(folder) for folder in folders}
        self.marks = {folder: world.marks(folder) for folder in folders}

    def _takes_dots(self, shell: str) -> bool:
        """
        Whether *shell* takes `.` and `..` for names that a pattern means.
        """
        return any(b".." in started.words for started in self.by_shell(shell, "ls .*").started)

    def _observe(self, start: Callable[[], int]) -> Observed:
        world.tidy()
        process = start()
        code = _awaited(process)
        marked = {folder: world.marks(folder) for folder in self.marks} != self.marks
        changed, outside = (_apart(self.before[folder], folder) if marked else () for folder in self.before)
        seen = Observed(
            _started(),
            code,
            _bytes("out"),
            tuple(sorted(_bytes("err").splitlines())),
            changed,
            outside,
            said=tuple(_bytes("said").splitlines()),
        )
        strange = set(os.listdir(world.WORLD)) - {"ws", "outside"}
        if marked or strange:
            for name in strange:
                os.unlink(world.WORLD / name)
            self._renew()
        return seen


def _spawned(path: str, arguments: list[bytes], environment: Mapping[str, str]) -> int:
    opened = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        path,
        arguments,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, f"{world.LOG}/in", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, f"{world.LOG}/out", opened, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, f"{world.LOG}/err", opened, 0o600),
        ],
        setpgroup=0,
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
    )


def _forked(run: Callable[[], int]) -> int:
    process = os.fork()
    if process:
        return process
    code = 255
    try:
        os.setpgid(0, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        opened = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        for handle, name, flags in ((0, "in", os.O_RDONLY), (1, "out", opened), (2, "err", opened)):
            source = os.open(f"{world.LOG}/{name}", flags, 0o600)
            os.dup2(source, handle)
            os.close(source)
        os.environ.clear()
        os.environ.update(ENVIRONMENT)
        code = run()
    except BaseException as error:
        with suppress(OSError):
            os.write(2, f"raised {type(error).__name__}: {error}\n".encode(errors="backslashreplace"))
    finally:
        os._exit(code & 255)


def _awaited(process: int) -> int:
    """
    The exit code of *process*, 128 and the signal if one ended it, -1 if it ran too long. Nothing of its group is left.
    """
    try:
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        code = code if code >= 0 else 128 - code
    except LateError:
        code = -1
    # The group of a process that has ended may still have others in it: its number is taken until they end too.
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    with suppress(ChildProcessError, LateError):
        # As the first process of its namespace it inherits all that lose their parent.
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        while os.waitpid(-1, 0)[0]:
            pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    return code


def _started() -> tuple[Started, ...]:
    found = []
    for number in _bytes("order").split():
        try:
            found.append(_parsed(_bytes(f"run.{int(number)}")))
        except ValueError:
            # Only what gets out of the workspace writes there beside the programs.
            found.append(Started(b"the log was written over", (), b"/log", b"", frozenset()))
    return tuple(found)


def _parsed(record: bytes) -> Started:
    place = 0

    def taken() -> bytes:
        nonlocal place
        colon = record.index(b":", place)
        end = colon + 1 + int(record[place:colon])
        text, place = record[colon + 1 : end], end + 1
        return text

    program, folder, read = taken(), taken(), taken()
    line = record.index(b"\n", place)
    count, place = int(record[place:line]), line + 1
    words = tuple(taken() for _ in range(count))
    environment = frozenset((name, value) for name, value in _EXPORT.findall(record, place))
    return Started(program, words, folder, read, environment)


def _bytes(name: str) -> bytes:
    try:
        with open(world.LOG / name, "rb") as file:
            return file.read(MAX_OUTPUT)
    except FileNotFoundError:
        return b""


def _apart(before: world.Snapshot, folder: os.PathLike[str]) -> tuple[tuple[bytes, tuple[int, bytes] | None], ...]:
    after = world.snapshot(world.WORLD / folder)
    if after == before:
        return ()
    return tuple((path, after.get(path)) for path in sorted({*before, *after}) if before.get(path) != after.get(path))
