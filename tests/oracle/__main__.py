"""
Compare this tree with what was frozen: python -m tests.oracle [--write] [--only NAME...] [--all]

Exit code 1: something differs. `--write` freezes in place of comparing; `CHANGES.md` says when that is allowed.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time

from concurrent.futures import ProcessPoolExecutor

from .frozen import LAYERS, differences, read, table, write
from .sections import SECTIONS, entries_of


def run(sections: list[str], *, freeze: bool, whole: bool) -> int:
    """
    Compare or freeze the *sections*, two at a time, each in a process of its own; the exit code.
    """
    wrong, total, begun = 0, 0.0, time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="oracle-") as home,
        ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool,
    ):
        # A time zone, a terminal's width and colours are not the library's.
        os.environ |= {"TZ": "UTC", "COLUMNS": "120", "NO_COLOR": "1", "HOME": home}
        for section, (entries, seconds) in zip(sections, pool.map(entries_of, sections), strict=True):
            total += seconds
            if isinstance(entries, str):
                print(f"{section}: SKIPPED, {entries}", flush=True)
            elif freeze:
                write(section, entries)
                print(f"{section}: {len(entries):,} entries frozen ({seconds:.1f} s of processor time)", flush=True)
            else:
                found = differences(read(section), entries)
                wrong += len(found)
                counts = ", ".join(f"{layer} {sum(one.layer == layer for one in found):,}" for layer in LAYERS)
                made = f"{section}: {len(entries):,} entries, {counts if found else 'equal'} ({seconds:.1f} s)"
                print(made, *table(section, found, whole=whole), sep="\n", flush=True)
    said = f"{wrong:,} differences" if wrong else "no difference"
    print(f"{total:.0f} s of processor time, {time.monotonic() - begun:.0f} s; {said}")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="freeze in place of comparing")
    parser.add_argument("--only", nargs="+", choices=sorted(SECTIONS), metavar="NAME", help=", ".join(SECTIONS))
    parser.add_argument("--all", action="store_true", help="show each difference, not one of a group")
    asked = parser.parse_args()
    sys.exit(run(asked.only or list(SECTIONS), freeze=asked.write, whole=asked.all))
