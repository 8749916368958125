"""
What starting costs in CPU time, over that of the bare interpreter: a hook of a coding CLI pays it with each call.

Byte code is kept in a folder of its own, whatever the environment says of it, as after an installation by pip.
"""

import os
import resource
import statistics
import subprocess
import sys

from pathlib import Path
from typing import Any, Final

import pytest


LOAD: Final = "from guardrails import Policy; policy = Policy.load('default')"
CALL: Final = f"{LOAD}; policy.session('s').call('look', {{'a': 1}}, lambda *_: {{'b': 2}}).to_json()"
CASES: Final = {
    "import guardrails": (("-c", "import guardrails"), 5),
    "the libraries alone": (("-c", "import pydantic, yaml, orjson, xxhash; pydantic.BaseModel"), 100),
    "from guardrails import Policy": (("-c", "from guardrails import Policy"), 25),
    "load the default policy": (("-c", LOAD), 120),
    "that, and the first call": (("-c", CALL), 150),
    "guardrails --version": (("-m", "guardrails", "--version"), 100),
    "guardrails --help": (("-m", "guardrails", "--help"), 100),
    "guardrails replay --help": (("-m", "guardrails", "replay", "--help"), 100),
}
"""
What is run, and how many ms it is to take at most; nothing fails here. A load is to take at most 20 ms more than the libraries alone.
"""
MODULES: Final = 80
"""Modules of ours that the first call is to load at most."""


def cpu_ms(arguments: tuple[str, ...], environment: dict[str, str]) -> float:
    """
    User and system time of a process of this Python with *arguments*.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


@pytest.mark.parametrize("name", CASES)
def test_cpu_of(benchmark: Any, tmp_path: Path, name: str) -> None:
    arguments, most = CASES[name]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    over: list[float] = []

    def once() -> None:
        over.append(cpu_ms(arguments, environment) - cpu_ms(("-c", "pass"), environment))

    once()
    rounds = min(max(int(benchmark._max_time * 10), 3), 15) if benchmark.enabled else 1  # noqa: SLF001
    benchmark.pedantic(once, rounds=rounds)
    ms = statistics.median(over[1:])
    benchmark.extra_info["median_us"] = ms * 1000
    benchmark.extra_info["note"] = f"{ms:.1f} ms of CPU over the bare interpreter (aim {most} ms)"


def test_modules_of_a_first_call(benchmark: Any) -> None:
    count = f"import sys; {CALL}; print(sum(name.partition('.')[0] == 'guardrails' for name in sys.modules))"
    loaded = benchmark.pedantic(lambda: int(subprocess.check_output([sys.executable, "-c", count])), rounds=1)
    benchmark.extra_info["note"] = f"{loaded} modules of this package (aim {MODULES})"
