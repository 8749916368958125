"""
What a hook of a coding CLI costs: `python -m benchmarks.hook [--rounds N] [--json]`.

CPU is user and system time of the hook's process (the median of the rounds) over that of the bare interpreter, byte code
cached; wall time is of the whole process, from its start to its end. Eight at once at a cap of five count as exact if five
are let through in every round.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.hooks.driven import refused
from tests.hooks.test_processes import answer, capped, hook


AT_ONCE, CAP = 8, 5
AIM_MS: Final = 60.0


def main(words: list[str] | None = None) -> None:
    """
    Measure and print.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hook")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder), options.rounds)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{found['machine']}; {options.rounds} rounds; load {os.getloadavg()[0]:.1f}")
    for name in ("bare", "hook"):
        print(f"{name:8}", "  ".join(f"{what} {ms}" for what, ms in found[name].items()))
    exact = all(count == CAP for count in found["at_once"])
    print(f"aim {AIM_MS}; {AT_ONCE} at once at a cap of {CAP}: {'exact' if exact else 'NOT EXACT'} {found['at_once']}")


def measured(folder: Path, rounds: int) -> dict[str, Any]:
    """
    The figures of *rounds* rounds, all below *folder*.
    """
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "pycache")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    numbers = iter(range(1_000_000))

    def bare() -> None:
        subprocess.run([sys.executable, "-c", "pass"], check=True)

    def call() -> None:
        number = next(numbers)
        # A home for twenty calls: each decides on some that were before it.
        assert answer(hook(folder / f"home{number // 20}", number)) == ({}, "")

    # One after the other in each round, so that a busy moment meets both; the first round warms up.
    costs = [(cost(bare), cost(call)) for _ in range(rounds + 1)][1:]
    (bare_cpu, bare_wall), (cpu, wall) = (zip(*each, strict=True) for each in zip(*costs, strict=True))
    over = statistics.median(cpu) - statistics.median(bare_cpu)
    return {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {platform.python_version()}",
        "bare": {"cpu_ms": round(statistics.median(bare_cpu), 1), **walls(bare_wall)},
        "hook": {"cpu_over_bare_ms": round(over, 1), **walls(wall)},
        "at_once": [at_once(folder / f"a{n}") for n in range(max(1, rounds // 5))],
    }


def cost(act: Callable[[], None]) -> tuple[float, float]:
    """
    CPU and wall time of the processes that *act* starts and waits for, in milliseconds.
    """
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    act()
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu * 1000, (ended - started) * 1000


def walls(times: tuple[float, ...]) -> dict[str, float]:
    """
    Median and 95th percentile of wall times.
    """
    return {"p50_ms": round(statistics.median(times), 1), "p95_ms": round(sorted(times)[int(len(times) * 0.95)], 1)}


def at_once(folder: Path) -> int:
    """
    How many of eight calls that are asked about at once are let through at a cap of five.
    """
    folder.mkdir()
    started = [hook(folder, n, capped(folder, CAP)) for n in range(AT_ONCE)]
    return sum(not refused(answer(each)[0]) for each in started)


if __name__ == "__main__":
    main()
