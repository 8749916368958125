"""
How fast `guardrails replay default` judges: benchmarks/judge/speed.py [FOLDER]

Two cases: the recorded data sets in FOLDER (`../shared/data` where none is named; skipped where there are none) and a
file of own records, which is made first by live sessions. Printed are records a second of the process's own processor
time, imports apart, the best of several runs, and the ratio to R (twenty stores into a dict and their sum) of the same
moment, since machines differ and are busy. Nothing is asserted.
"""

import gc
import random
import sys
import tempfile
import time

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from guardrails import Policy
from guardrails.offline.judge.files.inputs import Input, inputs
from guardrails.offline.judge.files.run import Work, judge_files
from guardrails.sinks import JsonLines


DATA: Final = Path(__file__).parents[3] / "shared" / "data"
RUNS: Final = 7
SESSIONS: Final = 400
CALLS: Final = 40


def reference_us() -> float:
    """
    R in microseconds.
    """
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        for _ in range(10_000):
            stored = {}
            for number in range(20):
                stored[number] = number
            sum(stored.values())
        best = min(best, time.process_time() - began)
    return best * 100


def own_records(path: Path) -> int:
    """
    Write what live sessions record, with charges, failures and repeats; how many lines that are.
    """
    chance, now, policy = random.Random(0), [1_800_000_000.0], Policy.load("default")

    def run(tool: str, arguments: Any) -> Any:
        now[0] += 0.2
        if tool == "Bash" and arguments["n"] % 7 == 0:
            raise TimeoutError(f"no answer within {arguments['n']} s")
        return {"matches": [{"file": f"src/{arguments['n']}.py", "line": n} for n in range(5)]}

    with JsonLines(path) as sink:
        for number in range(SESSIONS):
            session = policy.session(f"session-{number}", records=sink, clock=lambda: now[0])
            for _ in range(CALLS):
                now[0] += 1
                session.charge(model="m", usage={"prompt_tokens": 900, "completion_tokens": 60}, cost_usd=0.001)
                session.call(chance.choice(["Read", "Grep", "Bash"]), {"n": chance.randrange(40)}, run)
            session.close()
            now[0] += 60
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


def measure(name: str, records: int, judged: Callable[[], int]) -> None:
    """
    Print how many of *records* a second are judged; *judged* does it and gives the calls.
    """
    best, ratio, calls = float("inf"), float("inf"), 0
    for _ in range(RUNS):
        gc.collect()
        before = reference_us()
        began = time.process_time()
        calls = judged()
        taken = (time.process_time() - began) * 1e6
        best = min(best, taken)
        ratio = min(ratio, taken / max(before, reference_us()))
    each = records or calls
    print(f"{name:32}{calls:>10,}{each:>10,}{each / best * 1e6:>14,.0f}{best / each:>12.1f}{ratio / each:>8.1f}")


def over(files: Sequence[Input]) -> Callable[[], int]:
    policy = Policy.load("default")
    return lambda: judge_files(Work([policy], files))[0].total.calls


def main(folder: Path = DATA) -> None:
    print(f"{'case':32}{'calls':>10}{'records':>10}{'records/s':>14}{'us each':>12}{'x R':>8}")
    files = inputs(sorted(map(str, folder.glob("*.jsonl*"))))
    if files:
        measure("recorded data sets", 0, over(files))
    else:
        print(f"recorded data sets: skipped, there are none in `{folder}`")
    with tempfile.TemporaryDirectory() as made:
        path = Path(made, "records.jsonl")
        measure("own records, uncompressed", own_records(path), over(inputs([str(path)])))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
