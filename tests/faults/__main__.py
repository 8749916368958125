"""
Sixteen workers, one store, and faults: python -m tests.faults [--minutes M] [--seed S] [--store sqlite,redis] [--check FILE]
"""
# ruff: noqa: T201

import argparse
import base64
import json
import sys
import tempfile
import time

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from guardrails.core.state.packing import pack, unpack
from guardrails.core.state.state import SessionState
from tests.faults.grounds import GROUNDS, ground, lacking
from tests.faults.history import operations
from tests.faults.invariants import checked, final_states
from tests.faults.linear import Violation
from tests.faults.world import World


LEAST: Final = 20
"""Calls that must have run in a history that is to show anything."""


def main() -> int:
    """
    The exit code: 0 if every history is what was promised, 1 if one is not.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1, metavar="M", help="how long, histories and their check (1)")
    parser.add_argument("--seconds", type=float, default=6, metavar="S", help="how long faults befall each history (6)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="what chooses the faults of the first (1)")
    parser.add_argument("--store", default=",".join(GROUNDS), help=f"which ({','.join(GROUNDS)})")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "guardrails-faults")
    parser.add_argument("--check", type=Path, metavar="FILE", help="check the history of this file again")
    chosen = parser.parse_args()
    if chosen.check:
        return again(chosen.check)
    kinds = []
    for kind in chosen.store.split(","):
        why = lacking(kind)
        if why:
            print(f"--- {kind} is skipped: {why}", flush=True)
        else:
            kinds.append(kind)
    until, seed, bad = time.monotonic() + 60 * chosen.minutes, chosen.seed, 0
    longest, total = 0.0, Counter[str]()
    # Each store at least once, and none that would not be over in time.
    while kinds and (seed - chosen.seed < len(kinds) or time.monotonic() + longest < until):
        begun = time.monotonic()
        bad += not history(kinds[(seed - chosen.seed) % len(kinds)], seed, chosen.seconds, chosen.folder, total)
        longest = max(longest, time.monotonic() - begun)
        seed += 1
    print(f"=== {seed - chosen.seed} histories, {bad} not as promised; {told(total)}", flush=True)
    return int(bad > 0)


def history(kind: str, seed: int, seconds: float, kept: Path, total: Counter[str]) -> bool:
    """
    Whether a new history is as promised; if not, it is written into the folder *kept*. Adds its figures to *total*.
    """
    with tempfile.TemporaryDirectory(prefix="guardrails-faults-") as folder:
        under = ground(kind, Path(folder))
        try:
            world = World(under, seed, seconds)
            world.run()
            states = final_states(under.open(), operations(world.lines))
        finally:
            under.close()
    try:
        if world.hung:
            raise Violation("hung", "; ".join(world.hung))
        found = checked(world.lines, states, under.losses)
        if found["ran"] < LEAST:
            raise Violation("idle", f"{found['ran']} calls ran: this history shows nothing")
    except Violation as violation:
        file = kept / f"{kind}-{seed}.jsonl"
        kept.mkdir(parents=True, exist_ok=True)
        write(file, world.lines, states, {"store": kind, "seed": seed, "seconds": seconds, "losses": [*under.losses]})
        print(f"{kind} {seed}: {violation}", *violation.operations, sep="\n    ")
        print(f"    its history: {file}")
        print(f"    as it began: python -m tests.faults --store {kind} --seed {seed} --minutes 0", flush=True)
        return False
    used_up = found.pop("used up")
    figures = {**found, "tenants and users used up": used_up.get("tenant", 0) + used_up.get("user", 0)}
    total.update({name: count for name, count in figures.items() if not name.startswith("ms ")})
    befell = ", ".join(f"{name} {count}" for name, count in sorted(world.befell.items()))
    print(f"{kind} {seed}: as promised; {told(figures)}; {befell}", flush=True)
    return True


def told(figures: Mapping[str, int]) -> str:
    """
    *figures* in a line.
    """
    return ", ".join(f"{name} {count:,}" for name, count in figures.items())


def write(file: Path, lines: Sequence[str], states: Mapping[str, SessionState], head: Mapping[str, Any]) -> None:
    """
    Write a history, and what it left, to *file*.
    """
    left = {key: base64.b64encode(pack(state)).decode() for key, state in states.items()}
    file.write_text("".join([json.dumps({**head, "states": left}) + "\n", *lines]), encoding="utf-8")


def again(file: Path) -> int:
    """
    Check the history of *file*; the exit code.
    """
    head, *lines = file.read_text(encoding="utf-8").splitlines()
    said = json.loads(head)
    states = {key: unpack(base64.b64decode(packed)) for key, packed in said["states"].items()}
    try:
        print(checked(lines, states, said.get("losses", ())))
    except Violation as violation:
        print(violation, *violation.operations, sep="\n    ")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
