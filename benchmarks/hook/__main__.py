"""
What a hook of a coding CLI costs: `python -m benchmarks.hook [--rounds N] [--json]`.

CPU is user and system time of the hook's process (the minimum of the rounds) over that of the bare interpreter, byte code
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

from tests.hooks.processes import Home, answer, denied, end_below, event, living, policy


ROUNDS: Final = 15
AT_ONCE: Final = 8
CAP: Final = 5
AIM_MS: Final = {"resident warm": 30.0, "resident cold": 30.0}
BARE: Final = ("-c", "pass")
HOOK: Final = ("-m", "guardrails", "hook")
READ: Final = """
import time
from guardrails.policy.compiled.loading import load_compiled
before = time.process_time()
load_compiled("default")
print((time.process_time() - before) * 1000)
"""


def main(words: list[str] | None = None) -> None:
    """
    Measure and print.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hook")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder, living(Path(folder)) as home:
        found = measured(home, options.rounds)
    print(json.dumps(found, indent=2) if options.json else table(found))


def measured(home: Home, rounds: int) -> dict[str, Any]:
    """
    The figures of *rounds* rounds, all below the folder of *home*.
    """
    home.environment["PYTHONPYCACHEPREFIX"] = str(home.folder / "pycache")
    home.environment.pop("PYTHONDONTWRITEBYTECODE", None)
    numbers = iter(range(1_000_000))

    def bare() -> None:
        subprocess.run([sys.executable, *BARE], env=home.environment, check=True)  # noqa: S603

    def hook() -> None:
        number = next(numbers)
        # Sessions of twenty calls: each decides on some that were before it.
        assert home.hook(event(f"{number}", f"make {number}", session_id=f"s{number // 20}")) == {}

    def alone() -> None:
        home.run.chmod(0o755)  # whoever asks does not trust this folder, and answers by itself
        hook()

    def ended() -> None:
        end_below(home.run)

    ways: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
        "resident warm": (lambda: home.run.chmod(0o700), hook),
        "resident cold": (ended, hook),
        "in process": (lambda: None, alone),
    }
    bare()
    hook()
    hook()
    alone()
    found: dict[str, Any] = {"machine": machine(), "rounds": rounds, "ways": {}}
    # One after the other in each round, so that a busy moment meets all of them.
    spent: dict[str, list[tuple[float, float]]] = {"bare": [], **{name: [] for name in ways}}
    for _ in range(rounds):
        spent["bare"].append(cost(bare))
        for name, (before, act) in ways.items():
            before()
            spent[name].append(cost(act))
        home.run.chmod(0o700)
        hook()
    least = min(cpu for cpu, _ in spent["bare"])
    found["bare"] = {"cpu_ms": round(least, 1), **walls(spent.pop("bare"))}
    for name, costs in spent.items():
        found["ways"][name] = {"cpu_over_bare_ms": round(min(cpu for cpu, _ in costs) - least, 1), **walls(costs)}
    found["read_ms"] = round(min(read(home) for _ in range(3)), 1)
    found["at_once"] = {
        "cold": [at_once(home, f"c{n}", ended) for n in range(max(1, rounds // 5))],
        "warm": [at_once(home, f"w{n}", hook) for n in range(max(1, rounds // 5))],
    }
    return found


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


def read(home: Home) -> float:
    """
    CPU time of reading the compiled policy, once its modules are imported, in milliseconds.
    """
    done = subprocess.run([sys.executable, "-c", READ], env=home.environment, check=True, capture_output=True)  # noqa: S603
    return float(done.stdout)


def at_once(home: Home, session: str, before: Callable[[], None]) -> int:
    """
    How many of eight calls that are asked about at once are let through at a cap of five.
    """
    rules = policy(home.folder / "cap.yaml", CAP)
    before()
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
    bare = found["bare"]
    lines = [
        f"{found['machine']}; {found['rounds']} rounds; load {os.getloadavg()[0]:.1f}",
        f"{'':24}{'CPU over bare':>16}{'aim':>8}{'wall p50':>12}{'p95':>8}  (ms)",
        f"{'bare interpreter':24}{bare['cpu_ms']:>16}{'':>8}{bare['p50_ms']:>12}{bare['p95_ms']:>8}",
    ]
    for name, way in found["ways"].items():
        aim = AIM_MS.get(name, "")
        lines.append(f"{name:24}{way['cpu_over_bare_ms']:>16}{aim:>8}{way['p50_ms']:>12}{way['p95_ms']:>8}")
    lines.append(f"compiled policy read in {found['read_ms']} ms of CPU (aim 15.0)")
    for name, counts in found["at_once"].items():
        exact = all(count == CAP for count in counts)
        lines.append(f"{AT_ONCE} at once at a cap of {CAP}, {name}: {'exact' if exact else 'NOT EXACT'} {counts}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
