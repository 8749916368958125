"""
Two versions of the library live through the same random sessions, each in a process of its own.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final


ROOT: Final = Path(__file__).resolve().parents[2]
Lines = dict[int, list[tuple[str, str]]]
"""What was said in each session, as (kind, text); of session -1 what is known of the library itself."""
ITSELF: Final = -1


@contextmanager
def exported(revision: str) -> Iterator[Path]:
    """
    A folder with the files of *revision*, until it is left. Raises ValueError if git knows no such revision.
    """
    with TemporaryDirectory(prefix="equality-") as folder:
        packed = Path(folder, "tree.tar")
        command = ["git", "-C", str(ROOT), "archive", "--format=tar", f"--output={packed}", revision, "--"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise ValueError(f"`{revision}` is neither a file nor a revision: {done.stderr.strip()}")
        with tarfile.open(packed) as archive:
            archive.extractall(Path(folder, "tree"), filter="data")
        yield Path(folder, "tree")


def lived(trees: Iterable[Path], sessions: int, seed: int) -> list[Lines]:
    """
    The lines of each of the *trees*, all of which live at once. Raises RuntimeError if one of them fails, or if another
    library than its own was found.
    """
    with TemporaryDirectory(prefix="equality-") as folder:
        driver = Path(folder, "benchmarks")
        # Copied, and as a package of its own, so that no tree brings other sessions along.
        shutil.copytree(Path(__file__).parent, driver / "equality", ignore=shutil.ignore_patterns("__pycache__"))
        (driver / "__init__.py").touch()
        runs = [(tree, _start(tree, Path(folder), number, sessions, seed)) for number, tree in enumerate(trees)]
        return [_ended(tree, process, Path(said)) for tree, (process, said) in runs]


def _start(tree: Path, folder: Path, number: int, sessions: int, seed: int) -> tuple["subprocess.Popen[bytes]", Path]:
    said = folder / f"{number}.jsonl"
    # The order of a set is a part of what is said.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(tree))), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "benchmarks.equality.live", str(sessions), str(seed)]
    with said.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.PIPE)  # noqa: S603
    return process, said


def _ended(tree: Path, process: "subprocess.Popen[bytes]", said: Path) -> Lines:
    _, problems = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the sessions of {tree} failed:\n{problems.decode(errors='replace')[-4000:]}")
    lines = read(said)
    found = dict(lines[ITSELF])["library"]
    if not Path(found).resolve().is_relative_to(tree.resolve()):
        raise RuntimeError(f"the library of {tree} was to be tried, and {found} was found")
    return lines


def read(file: Path) -> Lines:
    """
    The lines of a *file* that `write` made.
    """
    lines: Lines = {}
    with file.open() as text:
        for line in text:
            number, kind, said = json.loads(line)
            lines.setdefault(number, []).append((kind, said))
    return lines


def write(file: Path, lines: Lines) -> None:
    """
    Keep *lines* in *file*.
    """
    said = (json.dumps([number, *line]) for number, each in lines.items() for line in each)
    file.write_text("\n".join(said) + "\n")
