"""
Generated commands, held against bash and dash in a jail: python -m tests.shellfuzz [-n N] [--seed S] [--json FILE]
"""
# ruff: noqa: T201

import argparse
import json
import os
import signal
import sys
import time

from pathlib import Path

from tests.shellfuzz.fuzz import Result, fuzz, report
from tests.shellfuzz.jailed.compare import documented
from tests.shellfuzz.stage import NoJailError


def main() -> int:
    """
    The exit code: 0 if nothing was found, 1 if something was, 3 if the fuzzer does not start here.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    parser = argparse.ArgumentParser(prog="python -m tests.shellfuzz", description=__doc__)
    parser.add_argument("-n", type=int, default=200_000, metavar="N", help="how many commands (200,000)")
    parser.add_argument("--seed", type=int, default=0, help="what chooses them (0)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first (0)")
    parser.add_argument("--jobs", type=int, default=cores, metavar="N", help=f"jails at once ({cores}, the cores)")
    parser.add_argument("--texts", type=Path, metavar="FILE", help="try the texts of this JSON list in their place")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures and findings there")
    chosen = parser.parse_args()
    # As after Ctrl-C: the jails end, and their folders go.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    texts = tuple(json.loads(chosen.texts.read_text(encoding="utf-8"))) if chosen.texts else ()
    told, shown = time.monotonic(), set[int]()

    def progress(result: Result) -> None:
        nonlocal told
        for each in (each for each in result.findings if each["number"] not in shown):
            print(f"    found: {each['sort']}: {each['small']:.300}", file=sys.stderr, flush=True)
            shown.add(each["number"])
        if time.monotonic() - told > 15:
            told, counts = time.monotonic(), result.counts
            done = f"{counts['commands']:,} of {chosen.n:,}, accepted {counts['accepted']:,}, findings {result.found:,}"
            print(f"    {result.seconds:.0f} s: {done}", file=sys.stderr, flush=True)

    try:
        result = fuzz(
            count=chosen.n,
            seed=chosen.seed,
            first=chosen.first,
            jobs=1 if texts else chosen.jobs,
            texts=texts,
            progress=progress,
        )
    except NoJailError as error:
        print(f"the fuzzer does not start: {error}", file=sys.stderr)
        return 3
    print(report(result))
    print("  what is let pass:", *documented(), sep="\n    ")
    if chosen.json:
        chosen.json.write_text(
            json.dumps({name: getattr(result, name) for name in Result.__slots__}, indent=1), encoding="utf-8"
        )
    return 1 if result.found else 0


if __name__ == "__main__":
    sys.exit(main())
