"""
Other packages and this one through the same works, each in its own environment.

    python -m benchmarks.peers [NAME...] [--json FILE] [--write] [--environments FOLDER]

What is not installed there yet is installed by pip, in the version of `versions.toml`, or the newest with `--newest`. All take about
three minutes on two cores. `--write` puts the tables into docs/peers.md. Exit code 1: a package failed, or was not to be had.
"""

import argparse
import json
import subprocess
import sys
import tomllib
import venv

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.hosts.blast_radius import page
from benchmarks.peers.tables import tables


ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs/peers.md"
OURS: Final = "toolcall-guardrails"
BEGIN: Final = "<!-- python -m benchmarks.peers --write -->\n"
END: Final = "<!-- end of the tables -->\n"
PATIENCE: Final = 300
"""Seconds for one package."""


def versions() -> dict[str, str]:
    """
    Returns the versions that are compared, by name; ours is that of this tree.
    """
    read: dict[str, str] = tomllib.loads(Path(__file__).with_name("versions.toml").read_text(encoding="utf-8"))
    return read


def python_of(name: str, version: str, folder: Path) -> Path | str:
    """
    Returns the interpreter of its environment, which is made if it lacks; a text says why there is none.
    """
    if name == OURS:
        return Path(sys.executable)
    home = folder / f"{name}-{version or 'newest'}"
    python = home / "bin/python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        wanted = f"{name}=={version}" if version else name
        done = subprocess.run(  # noqa: S603
            [str(python), "-m", "pip", "install", "-q", wanted], capture_output=True, text=True, check=False
        )
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        (home / "ready").touch()
    return python


def asked(name: str, python: Path) -> dict[str, Any] | str:
    """
    Returns what the package came to; a text says why nothing is known.
    """
    # What is installed of this tree may say the version that it had then.
    ours = "from guardrails import __version__; print(__version__)"
    said = ours if name == OURS else f"from importlib.metadata import version; print(version({name!r}))"
    try:
        shown = subprocess.run([str(python), "-c", said], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
        done = subprocess.run(  # noqa: S603
            [str(python), "-m", "benchmarks.peers.one", name],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it said nothing for {PATIENCE} s"
    except subprocess.CalledProcessError as error:
        return str((error.stderr.strip().splitlines() or ["it is not installed"])[-1])
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    found: dict[str, Any] = json.loads(lines[-1])
    return {"name": name, "version": shown.stdout.strip(), **found}


def gathered(wanted: Sequence[str], folder: Path, *, newest: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """
    Returns what the packages say, one after the other, since they are timed; and what went wrong.
    """
    told, wrong = [], []
    for name, version in versions().items():
        if name not in wanted:
            continue
        python = python_of(name, "" if newest else version, folder)
        said = python if isinstance(python, str) else asked(name, python)
        if isinstance(said, str):
            wrong.append(f"{name}: {said}")
        else:
            told.append(said)
        print(f"{name}: {said if isinstance(said, str) else 'told'}", file=sys.stderr, flush=True)
    return told, wrong


def main(*arguments: str) -> int:
    """
    Returns the exit code.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=(__doc__ or "").strip().partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="packages (default: all)")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/peers.md")
    parser.add_argument("--newest", action="store_true", help="compare the newest versions")
    parser.add_argument("--environments", type=Path, default=ROOT / ".peers", help="a folder with an environment each")
    given = parser.parse_args(arguments)
    known = versions()
    if unknown := [name for name in given.names if name not in known]:
        parser.error(f"there is no package `{unknown[0]}`; there are {', '.join(known)}")
    told, wrong = gathered(given.names or list(known), given.environments.resolve(), newest=given.newest)
    if told:
        shown = tables(told)
        print(shown, end="")
        if given.write:
            PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), shown, BEGIN, END), encoding="utf-8")
        if given.json:
            given.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
