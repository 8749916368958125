"""
Change the code in one place after the other, and say which changes no test of that room notices.

    python -m tests.mutants [ROOM...] [--minutes 10] [--seed 0] [--json FILE]

The rooms are core/state, limits, engine, children, stores and sinks; the changes are drawn by *seed*, until the time is over.
A change that no test notices may be of no consequence: the rate is a hint of where to look, and no target.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from .changes import Mutant, mutants


ROOT: Final = Path(__file__).parents[2]
SLOWER: Final = 3
"""A change by which the tests take so many times as long, such as by an endless loop, is noticed too."""
LAWS: Final = ("tests/core/guards/limits", "tests/session/test_children.py", "tests/session/test_families.py")
COPIED: Final = ("guardrails", "tests", "policies", "benchmarks", "docs")


class Room(NamedTuple):
    """
    Modules, and the tests that are to notice what is changed in them.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS: Final = {
    "state": Room(("core/state",), ("tests/core/state", *LAWS, "tests/session", "tests/core/engine")),
    "limits": Room(("core/guards/limits",), (*LAWS, "tests/core/engine", "tests/session")),
    "engine": Room(("core/engine",), ("tests/core/engine", *LAWS, "tests/session", "tests/core/state")),
    "children": Room(("session/growing.py", "session/session.py"), ("tests/session", *LAWS)),
    "retries": Room(("core/retries/decision.py",), ("tests/core/retries",)),
    "stores": Room(("stores",), ("tests/stores",)),
    "sinks": Room(("sinks",), ("tests/sinks",)),
}


class Found(NamedTuple):
    """
    What became of one change.
    """

    path: str
    line: int
    said: str
    noticed: bool


def main(*arguments: str) -> int:
    """
    Run the command line; its exit code.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Say which small changes no test notices."
    )
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join(ROOMS)}; all of them")
    parser.add_argument("--minutes", type=float, default=10, help="for each room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at", default="", help="changes only whose `path:line` holds this")
    parser.add_argument("--json", type=Path, help="the file for what was found")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.rooms if name not in ROOMS]:
        parser.error(f"there is no room `{unknown[0]}`; there are {', '.join(ROOMS)}")
    made: dict[str, list[Found]] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder)
        for name in COPIED:
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "dev.py", "README.md"):
            shutil.copy(ROOT / name, tree / name)
        for name in asked.rooms or ROOMS:
            made[name] = tried(tree, ROOMS[name], asked)
            noticed = sum(found.noticed for found in made[name])
            print(f"=== {name}: {noticed} of {len(made[name])} changes are noticed", flush=True)
    if asked.json:
        asked.json.write_text(json.dumps({name: [found._asdict() for found in made[name]] for name in made}, indent=1))
    return 0


def tried(tree: Path, room: Room, asked: argparse.Namespace) -> list[Found]:
    """
    What became of the changes of *room* that there was time for.
    """
    begun = time.monotonic()
    if not passes(tree, room.tests):
        sys.exit(f"the tests fail without a change: {' '.join(room.tests)}")
    most_s = SLOWER * (time.monotonic() - begun)
    found = []
    changes = [(path, change) for path in files(tree, room) for change in mutants(path.read_text())]
    changes = [(path, change) for path, change in changes if asked.at in f"{path}:{change.line}"]
    random.Random(asked.seed).shuffle(changes)
    until = time.monotonic() + asked.minutes * 60
    for path, change in changes:
        if time.monotonic() > until:
            break
        found.append(
            Found(str(path.relative_to(tree)), change.line, change.said, noticed(tree, room, path, change, most_s))
        )
        if not found[-1].noticed:
            print(f"{found[-1].path}:{change.line}: {change.said}", flush=True)
    return found


def files(tree: Path, room: Room) -> list[Path]:
    """
    The modules of *room* in *tree*.
    """
    named = [tree / "guardrails" / module for module in room.modules]
    return [file for path in named for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))]


def noticed(tree: Path, room: Room, path: Path, change: Mutant, most_s: float) -> bool:
    """
    Whether a test fails once *path* is what *change* makes of it.
    """
    before = path.read_text()
    near = [str(file.relative_to(tree)) for file in tree.glob(f"tests/**/test_{path.stem}*.py")]
    path.write_text(change.text)
    try:
        return not passes(tree, (*(name for name in near if name.startswith(room.tests)), *room.tests), most_s)
    finally:
        path.write_text(before)


def passes(tree: Path, tests: tuple[str, ...], most_s: float | None = None) -> bool:
    """
    Whether *tests* pass in *tree*, within *most_s* seconds if that is given.
    """
    command = (sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "--hypothesis-seed=0", *tests)
    # Without bytecode, which tells two changes of one second and one size not apart.
    own = {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_PROFILE": "quick"}
    # The environment's own folders stay as they are.
    process = subprocess.Popen(  # noqa: S603  this Python
        command,
        cwd=tree,
        env={**os.environ, **own},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(most_s) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
