"""
What a sandbox adds to the start of a program: the median of many starts of `true`, bare, with limits only, and in each
sandbox that works here, in turns.

    python -m benchmarks.sandbox [ROUNDS]

Each is asked first where it runs, so that no figure is one of another sandbox.
"""

import os
import sys
import tempfile
import time

from collections.abc import Callable
from statistics import median, quantiles

from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes.run import Ended, run_started, run_to_end
from guardrails.processes.sandbox import Backend, Confinement
from guardrails.processes.sandbox.choose import tried
from guardrails.processes.sandbox.folders import interpreter
from guardrails.processes.sandbox.unconfined import Unconfined


WHERE = """
import os
status = open("/proc/self/status").read()
print("filter" if "Seccomp:\\t2" in status else "no filter", end=", ")
print("own processes" if os.path.exists("/proc/1/environ") and len([n for n in os.listdir("/proc") if n.isdecimal()]) < 6 else "all processes")
"""
EXPECTED = {
    "bare": "no filter, all processes",
    "none": "no filter, all processes",
    "bwrap": "filter, own processes",
    "landlock": "filter, all processes",
}
Start = Callable[[list[str]], Ended]


def starts(workspace: str) -> dict[str, Start]:
    """
    How a program is started, by name.
    """
    environment = {"PATH": os.defpath}

    def bare(program: list[str]) -> Ended:
        return run_to_end(program, folder=workspace, environment=environment, timeout=30, limit=1_000)

    def within(backend: Backend) -> Start:
        confinement = Confinement(workspace=workspace, environment=environment)
        return lambda program: run_started(backend.started(confinement, program), timeout=30, limit=1_000)

    found: dict[str, Start] = {"bare": bare, "none": within(Unconfined())}
    for name in ("bwrap", "landlock"):
        try:
            found[name] = within(tried(name))
        except SandboxUnavailable as error:
            print(f"{name}: not measured: {error}")
    return found


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with tempfile.TemporaryDirectory() as workspace:
        ways = starts(workspace)
        for name, start in ways.items():
            where = start([interpreter(), "-I", "-S", "-c", WHERE])
            assert where.output.strip() == EXPECTED[name], f"{name} ran elsewhere: {where}"
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, start in ways.items():
                began = time.perf_counter()
                ended = start(["true"])
                taken[name].append(1e3 * (time.perf_counter() - began))
                assert ended.exit_code == 0, ended
    least = median(taken["bare"])
    print(f"one start of `true`, {rounds} rounds, {os.cpu_count()} cores")
    for name, times in taken.items():
        low, middle, high = quantiles(times, n=4)
        print(
            f"{name:9} {middle:6.1f} ms ({low:.1f} to {high:.1f}), {middle / least:5.1f} times bare, adds {middle - least:.1f} ms"
        )


if __name__ == "__main__":
    main()
