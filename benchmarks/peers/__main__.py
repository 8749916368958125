"""
Other packages and this one through the same works, each in its own environment.

    python -m benchmarks.peers [NAME...] [--json FILE] [--write]

What is not installed in .peers yet is installed by pip, in the version of `versions.toml`, or the newest with `--newest`. All take about
a minute on two cores. `--write` puts the tables into docs/measurements.md. Exit code 1: a package failed, or was not to be had.
"""

import argparse
import json
import subprocess
import sys
import tomllib
import venv

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.hosts.blast_radius import page, table
from benchmarks.peers.works import ONE


ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs/measurements.md"
OURS: Final = "toolcall-guardrails"
BEGIN: Final = "<!-- python -m benchmarks.peers --write -->\n"
END: Final = "<!-- end of the tables -->\n"
PATIENCE: Final = 300
"""Seconds for one package."""


Told = Mapping[str, Any]
"""What `benchmarks.peers.works` says of a package, with its `name` and `version`."""
NONE: Final = "none"


BUDGETS: Final[Mapping[str, str]] = {
    "parallel calls": "40 at once, cap of 10 calls",
    "parallel usd": "40 at once, cap of $1.00: 10",
    "failing calls": "20 that fail, cap of 10",
    "family": "2 sub-agents, $1.00 in all: 10",
}
REPEATS: Final = ("package", "loops caught", "refused", "honest left alone", "hinted", "others run")
COSTS: Final = ("package", "a call", "late in a run", "memory kept")
AFTER: Final = {"blind": NONE, "runs": "yes", "refused": "no"}


def tables(told: Sequence[Told]) -> str:
    """
    Returns a table of repeats, of budgets and of one call's cost.
    """
    repeats: list[list[str]] = []
    for each in told:
        repeats.append([_named(each), *_stories(each["stories"]), AFTER.get(str(each["after a refusal"]), "fails")])
        repeats += [[f"{_named(each)}, {way}", *_stories(found), ""] for way, found in each["also"].items()]
    budgets = [
        [_named(each), *(_count(each[work]) for work in BUDGETS), _sequence(each["sequential usd"], each["small usd"])]
        for each in told
    ]
    costs = [[_named(each), *_cost(each["cost"])] for each in told]
    caps = ("package", *BUDGETS.values(), "$1.00 and $0.30, one by one: 10 and 3")
    whole = ((REPEATS, repeats), (caps, budgets), (COSTS, costs))
    return "\n".join(table(heads, rows) for heads, rows in whole)


def _named(each: Told) -> str:
    return f"{each['name']} {each['version']}"


def _stories(found: Any) -> list[str]:
    if not isinstance(found, Mapping):
        return ["fails" if found else NONE, "", "", ""]
    honest, left = found["honest"], found["honest"] - len(found["refused"])
    return [f"{found['caught']}/{found['loops']}", str(found["stopped"]), f"{left}/{honest}", str(len(found["hinted"]))]


def _count(found: Any) -> str:
    return NONE if found is None else str(found) if isinstance(found, int) or found == ONE else "fails"


def _sequence(*found: Any) -> str:
    return NONE if found[0] is None else " and ".join(map(_count, found))


def _cost(found: Any) -> list[str]:
    if not isinstance(found, Mapping):
        return [NONE, "", ""]
    if "us" not in found:
        return [f"refuses such work after {found['ran']}", "", ""]
    without = "" if found["ran"] * 4 >= found["calls"] else ", its rule of repeats off"
    return [f"{found['us']:,.0f} us{without}", f"{found['last_us']:,.0f} us", f"{found['bytes_a_call']:,.0f} B"]


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
        install = [str(python), "-m", "pip", "install", "-q", wanted]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
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
        shown = subprocess.run([str(python), "-c", said], cwd=ROOT, capture_output=True, text=True, check=True)
        command = [str(python), "-m", "benchmarks.peers.works", name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
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
    parser.add_argument("--write", action="store_true", help="put the tables into docs/measurements.md")
    parser.add_argument("--newest", action="store_true", help="compare the newest versions")
    given = parser.parse_args(arguments)
    known = versions()
    if unknown := [name for name in given.names if name not in known]:
        parser.error(f"there is no package `{unknown[0]}`; there are {', '.join(known)}")
    told, wrong = gathered(given.names or list(known), ROOT / ".peers", newest=given.newest)
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
