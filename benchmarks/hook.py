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

from tests.hooks.processes import Home, answer, denied, event, policy


ROUNDS: Final = 10
AT_ONCE: Final = 8
CAP: Final = 5
AIM_MS: Final = 60.0
BARE: Final = ("-c", "pass")


def main(words: list[str] | None = None) -> None:
    """
    Measure and print.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hook")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Home(Path(folder)), options.rounds)
    print(json.dumps(found, indent=2) if options.json else table(found))


def measured(home: Home, rounds: int) -> dict[str, Any]:
    """
    The figures of *rounds* rounds, all below the folder of *home*.
    """
    home.environment["PYTHONPYCACHEPREFIX"] = str(home.folder / "pycache")
    home.environment.pop("PYTHONDONTWRITEBYTECODE", None)
    numbers = iter(range(1_000_000))

    def bare() -> None:
        subprocess.run([sys.executable, *BARE], env=home.environment, check=True)

    def hook() -> None:
        number = next(numbers)
        # Sessions of twenty calls: each decides on some that were before it.
        assert home.hook(event(f"{number}", f"make {number}", session_id=f"s{number // 20}")) == {}

    spent: dict[str, list[tuple[float, float]]] = {"bare": [], "hook": []}
    for act in (bare, hook, hook):
        act()
    # One after the other in each round, so that a busy moment meets both.
    for _ in range(rounds):
        spent["bare"].append(cost(bare))
        spent["hook"].append(cost(hook))
    cpu = {name: statistics.median(each for each, _ in costs) for name, costs in spent.items()}
    return {
        "machine": machine(),
        "rounds": rounds,
        "bare": {"cpu_ms": round(cpu["bare"], 1), **walls(spent["bare"])},
        "hook": {"cpu_over_bare_ms": round(cpu["hook"] - cpu["bare"], 1), **walls(spent["hook"])},
        "at_once": [at_once(home, f"a{n}") for n in range(max(1, rounds // 5))],
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


def walls(costs: list[tuple[float, float]]) -> dict[str, float]:
    """
    Median and 95th percentile of the wall times.
    """
    times = sorted(wall for _, wall in costs)
    return {"p50_ms": round(statistics.median(times), 1), "p95_ms": round(times[int(len(times) * 0.95)], 1)}


def at_once(home: Home, session: str) -> int:
    """
    How many of eight calls that are asked about at once are let through at a cap of five.
    """
    rules = policy(home.folder / "cap.yaml", CAP)
    started = [
        home.start(event(f"{session}{n}", f"make {n}", session_id=session), "--policy", rules) for n in range(AT_ONCE)
    ]
    return sum(not denied(answer(each)) for each in started)


def machine() -> str:
    """
    What it was measured on.
    """
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def table(found: dict[str, Any]) -> str:
    """
    The figures for people.
    """
    bare, hook = found["bare"], found["hook"]
    exact = all(count == CAP for count in found["at_once"])
    return "\n".join(
        [
            f"{found['machine']}; {found['rounds']} rounds; load {os.getloadavg()[0]:.1f}",
            f"{'':24}{'CPU over bare':>16}{'aim':>8}{'wall p50':>12}{'p95':>8}  (ms)",
            f"{'bare interpreter':24}{bare['cpu_ms']:>16}{'':>8}{bare['p50_ms']:>12}{bare['p95_ms']:>8}",
            f"{'hook':24}{hook['cpu_over_bare_ms']:>16}{AIM_MS:>8}{hook['p50_ms']:>12}{hook['p95_ms']:>8}",
            f"{AT_ONCE} at once at a cap of {CAP}: {'exact' if exact else 'NOT EXACT'} {found['at_once']}",
        ]
    )


if __name__ == "__main__":
    main()
