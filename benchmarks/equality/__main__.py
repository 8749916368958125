"""
Whether the library does what it did before, byte for byte: random sessions of this tree against those of a git revision.

    python -m benchmarks.equality [--against REV | FILE] [--sessions 60] [--seed 1] [--write FILE] [--without KIND...]

Both live through the same sessions: sync and async, in memory and in SQLite, with scopes and children, under shipped and
random policies. What the models read, the records, the log, the answers to the host and the final states are compared.
*--against* is HEAD unless it is said, *--write* keeps what this tree did in a file. *--without* leaves out a kind of lines
that is to differ, such as `policy`, how a policy is printed. Ends with 1 if anything differs.
"""

import argparse
import sys

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from .compare import came_up, different, figures, shown
from .trees import ROOT, Lines, exported, lived, read, write


def run(against: str | None, sessions: int, seed: int, kept: Path | None, without: list[str]) -> int:
    """
    Live, compare and print; the exit code.
    """
    with ExitStack() as stack:
        trees = [ROOT]
        if against is not None and not Path(against).is_file():
            trees.append(stack.enter_context(exported(against)))
        made = lived(trees, sessions, seed)
    after, before = made[0], made[-1]
    if against is not None and len(trees) == 1:
        before = {number: lines for number, lines in read(Path(against)).items() if number < sessions}
    if kept is not None:
        write(kept, after)
    return told(
        *(
            {number: [line for line in each if line[0] not in without] for number, each in lines.items()}
            for lines in (before, after)
        )
    )


def told(before: Lines, after: Lines) -> int:
    """
    Print how *after* differs from *before*, and what came up; the exit code.
    """
    count, found = figures(after), different(before, after)
    kinds: Counter[str] = sum(found.values(), Counter())
    print(
        f"{count['sessions']} sessions: {count['asked']:,} calls, {count['decision']:,} asked for only, "
        f"{count['envelope']:,} envelopes, {count['record']:,} events, {count['state']:,} states; "
        f"{kinds.total():,} differences" + (f" in {len(found)} sessions ({listed(kinds)})" if found else "")
    )
    statuses, codes, never = came_up(after)
    print(f"statuses: {listed(statuses)}")
    print(f"codes: {listed(codes)}")
    print(f"never: {', '.join(never) or 'none'}")
    for line in shown(before, after, found):
        print(line)
    return 1 if found else 0


def listed(counts: Counter[str]) -> str:
    """
    Names with their numbers, the most frequent first.
    """
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.equality", description=__doc__.strip().split("\n")[0])
    parser.add_argument("--against", metavar="REV", help="a git revision, or a file that --write made")
    parser.add_argument("--sessions", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--without", nargs="+", default=[], metavar="KIND", help="kinds of lines that are not compared")
    asked = parser.parse_args()
    revision = asked.against if asked.against or asked.write else "HEAD"
    sys.exit(run(revision, asked.sessions, asked.seed, asked.write, asked.without))
