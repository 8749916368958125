"""
Compare this tree with what was frozen: python -m tests.oracle [--write] [--only NAME...] [--all]

Exit code 1: something differs. `--write` freezes in place of comparing; `CHANGES.md` says when that is allowed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .frozen import LAYERS, Entry, differences, read, table, write
from .sections import SECTIONS, Absent


ROOT = Path(__file__).parents[2]


def apart(section: str) -> tuple[list[Entry] | str, float]:
    """
    The entries of a *section* from a process of its own, or why it is skipped; and the seconds of processor time.
    """
    with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
        made = Path(folder, "made.json")
        command = [sys.executable, "-m", "tests.oracle", "--section", section, str(made)]
        # A time zone, a terminal's width and colours are not the library's.
        environment = {
            **os.environ,
            "TZ": "UTC",
            "COLUMNS": "120",
            "NO_COLOR": "1",
            "HOME": folder,
            "PYTHONPATH": str(ROOT),
        }
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"the section `{section}` failed:\n{done.stderr[-3000:]}")
        told = json.loads(made.read_text(encoding="utf-8"))
    return told["absent"] or [Entry(*each) for each in told["entries"]], told["seconds"]


def alone(section: str, made: Path) -> None:
    """
    Write the entries of a *section*, in this process, into the file *made*.
    """
    told: dict[str, Any] = {"absent": "", "entries": []}
    try:
        told["entries"] = [entry.row() for entry in SECTIONS[section]()]
    except Absent as absent:
        told["absent"] = str(absent)
    told["seconds"] = sum(os.times()[:4])
    made.write_text(json.dumps(told), encoding="utf-8")


def run(sections: list[str], *, freeze: bool, whole: bool) -> int:
    """
    Compare or freeze the *sections*, two at a time; the exit code.
    """
    wrong, total, begun = 0, 0.0, time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        for section, (entries, seconds) in zip(sections, pool.map(apart, sections), strict=True):
            total += seconds
            if isinstance(entries, str):
                print(f"{section}: SKIPPED, {entries}", flush=True)
                continue
            here = {entry.group for entry in entries}
            # Of hosts some are here, and others elsewhere.
            others = [entry for entry in read(section) if section == "hosts" and entry.group not in here]
            if freeze:
                write(section, [*others, *entries])
                print(f"{section}: {len(entries):,} entries frozen ({seconds:.1f} s of processor time)", flush=True)
                continue
            found = differences([entry for entry in read(section) if entry not in others], entries)
            wrong += len(found)
            counts = ", ".join(f"{layer} {sum(one.layer == layer for one in found):,}" for layer in LAYERS)
            print(f"{section}: {len(entries):,} entries, {counts if found else 'equal'} ({seconds:.1f} s)", flush=True)
            for line in table(section, found, whole=whole):
                print(line)
    print(
        f"{total:.0f} s of processor time, {time.monotonic() - begun:.0f} s; {f'{wrong:,} differences' if wrong else 'no difference'}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tests.oracle", description=(__doc__ or "").strip().partition("\n")[0]
    )
    parser.add_argument("--write", action="store_true", help="freeze in place of comparing")
    parser.add_argument("--only", nargs="+", choices=sorted(SECTIONS), metavar="NAME", help=", ".join(SECTIONS))
    parser.add_argument("--all", action="store_true", help="show each difference, not one of a group")
    parser.add_argument("--section", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.section:
        alone(asked.section[0], Path(asked.section[1]))
    else:
        sys.exit(run(asked.only or list(SECTIONS), freeze=asked.write, whole=asked.all))
