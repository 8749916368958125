"""
What an import costs in CPU time, over that of the bare interpreter: a hook of a coding CLI pays it with each call.
"""

import resource
import statistics
import subprocess
import sys

from typing import Any

import pytest


ROUNDS = (3, 15)
CASES = {
    "import guardrails": ("import guardrails", "at most 40 ms"),
    "load the default policy": ("from guardrails import Policy; Policy.load('default')", "for information"),
}


def cpu_ms(code: str) -> float:
    """
    User and system time of an interpreter that runs *code*.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603  code of this file
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


@pytest.mark.parametrize("name", CASES)
def test_cpu_of(benchmark: Any, name: str) -> None:
    code, target = CASES[name]
    bare: list[float] = []
    whole: list[float] = []

    def once() -> None:
        bare.append(cpu_ms("pass"))
        whole.append(cpu_ms(code))

    rounds = min(max(int(benchmark._max_time * 10), ROUNDS[0]), ROUNDS[1]) if benchmark.enabled else 1  # noqa: SLF001
    benchmark.pedantic(once, rounds=rounds)
    if benchmark.stats is None:
        return
    over = statistics.median(whole) - statistics.median(bare)
    benchmark.extra_info["median_us"] = over * 1000
    benchmark.extra_info["note"] = f"{over:.1f} ms of CPU over the bare interpreter ({target})"
