"""
The launcher: a small program that reads what it is to start, restricts itself, and becomes it.

It is told by variables of its environment, which only its own user can read, and needs the standard library only.
"""

import json
import os
import signal
import sys

from contextlib import suppress
from typing import Any, Final, NoReturn


VARIABLE: Final = "GUARDRAILS_LAUNCH"
MARK: Final = "GUARDRAILS_COMMAND"
"""A variable of every command, by which its processes are known wherever they went."""
PIECE: Final = 100_000
"""Characters of one variable: the kernel takes no longer ones than 128 KiB."""
NOT_CONFINED: Final = 125
NOT_RUN: Final = 126
NOT_FOUND: Final = 127
"""Exit codes: it could not be confined, so nothing ran; it is no program; there is no such program."""


def told(order: dict[str, Any]) -> dict[str, str]:
    """
    The variables by which *order* reaches the launcher.
    """
    text = json.dumps(order)
    return {f"{VARIABLE}_{at // PIECE}": text[at : at + PIECE] for at in range(0, len(text), PIECE)}


def main() -> NoReturn:
    """
    Do as the environment tells. It does not return: the process becomes the program, or ends with an exit code.
    """
    try:
        order = _order()
        run = _restricted(order)
        environment = dict(order["environment"])
    except BaseException as error:  # noqa: BLE001  whatever it is, nothing may run unconfined
        _say(f"the sandbox could not be set up, so nothing was run: {error or type(error).__name__}")
        os._exit(NOT_CONFINED)
    if order.get("tree") is not None:
        os.environ.clear()
        os.environ.update(environment)
        sys.exit(run(order["tree"], order["folder"], environment))
    _become(order["argv"], environment)


def _order() -> dict[str, Any]:
    pieces: list[str] = []
    while (piece := os.environ.pop(f"{VARIABLE}_{len(pieces)}", None)) is not None:
        pieces.append(piece)
    order: dict[str, Any] = json.loads("".join(pieces))
    if MARK in os.environ:
        order["environment"][MARK] = os.environ[MARK]
    return order


def _restricted(order: dict[str, Any]) -> Any:
    """
    Take from this process what *order* says. Returns what runs a tree.
    """
    run: Any = None
    if order.get("tree") is not None:
        # Before the folder that it is in may be out of reach.
        run = __import__("guardrails.processes.tree", fromlist=("run",)).run
    environment, made = order["environment"], order["make"]
    temporary = _temporary(order, environment)
    for path, device, number in order["same"]:
        found = os.lstat(path)
        if (found.st_dev, found.st_ino) != (device, number):
            raise OSError(f"{path} was exchanged while it started; nothing is wrong if it is tried again")
    for folder in made:
        os.makedirs(folder, 0o700, exist_ok=True)
    kept = order.get("keep")
    if kept is not None:
        from guardrails.processes.restrict.keeper import keep

        keep(most=kept["most"], temporary=temporary)
    os.chdir(order["folder"])
    _close_handles()
    from guardrails.processes.restrict import shares

    limits = dict(order["limits"])
    if order["counted"] and limits.get("processes") is not None:
        others = shares.tasks_of(os.getuid())
        # Where they cannot be counted (macOS), a limit would hit who has many.
        limits["processes"] = limits["processes"] + others if others else None
    confined = order.get("confine")
    if confined is not None:
        from guardrails.processes.restrict import landlock, libc, rights, seccomp

        libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
        rules = confined["landlock"]
        if temporary is not None:
            rules["writable"].append(temporary)
        landlock.restrict(**rules)
        rights.drop_capabilities(confined["capabilities"])
    shares.limit(limits)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        # Python ignores them, and a program would inherit that.
        signal.signal(number, signal.SIG_DFL)
    if confined is not None:
        families = confined["families"]
        seccomp.restrict(
            seccomp.rules(
                families=None if families is None else tuple(families),
                pairs_only=confined["pairs_only"],
                shared=confined["shared"],
                memory_bytes=limits.get("memory_bytes"),
            )
        )
    return run


def _temporary(order: dict[str, Any], environment: dict[str, str]) -> str | None:
    """
    A new folder for temporary files if *order* asks for one, with a home in it. Both are told by the environment.
    """
    if not order.get("temporary"):
        return None
    made: str = order["temporary"]
    os.mkdir(made, 0o700)
    environment.setdefault("TMPDIR", made)
    environment.setdefault("HOME", f"{made}/home")
    os.mkdir(f"{made}/home", 0o700)
    return made


def _close_handles() -> None:
    """
    Close all but standard input, output and error.
    """
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            for name in os.listdir(folder):
                if int(name) > 2:
                    with suppress(OSError):
                        os.close(int(name))
            return
    os.closerange(3, 65_536)


def _become(argv: list[str], environment: dict[str, str]) -> NoReturn:
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606  what it becomes is for the guards to judge
    except FileNotFoundError:
        _say(f"{argv[0]}: there is no such program")
        os._exit(NOT_FOUND)
    except (OSError, ValueError) as error:
        _say(f"{argv[0]}: {getattr(error, 'strerror', error)}")
        os._exit(NOT_RUN)


def _say(text: str) -> None:
    with suppress(OSError):
        os.write(2, f"guardrails: {text}\n".encode(errors="replace"))
