"""
What starting costs in CPU time, over that of the bare interpreter: a hook of a coding CLI pays it with each call.

Byte code is kept in a folder of its own, whatever the environment says of it: "cached" has all of it there, as after an
installation by pip; "uncached" has that of everything but this package, which is then compiled and not kept, as where
PYTHONDONTWRITEBYTECODE is set for a checkout.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys

from pathlib import Path
from typing import Any, Final

import pytest

import guardrails


ROUNDS: Final = (3, 15)
BARE: Final = ("-c", "pass")
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
What is run, and how many ms it is to take at most with byte code cached; nothing fails here. A load is to take at most 20 ms more than the
libraries alone.
"""
MODULES: Final = 80
"""Modules of ours that the first call is to load at most."""


class Interpreter:
    """
    New processes of this Python, whose byte code is kept in *folder*.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder)}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def cpu_ms(self, arguments: tuple[str, ...]) -> float:
        """
        User and system time of a process with *arguments*.
        """
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, env=self._environment, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000

    def stop_keeping(self) -> None:
        """
        Forget the byte code of this package, and keep none from here on.
        """
        package = Path(guardrails.__file__).resolve().parent
        shutil.rmtree(self._folder / package.relative_to(package.anchor), ignore_errors=True)
        self._environment["PYTHONDONTWRITEBYTECODE"] = "1"


@pytest.mark.parametrize("cached", [True, False], ids=["cached", "uncached"])
@pytest.mark.parametrize("name", CASES)
def test_cpu_of(benchmark: Any, tmp_path: Path, name: str, cached: bool) -> None:
    arguments, most = CASES[name]
    python = Interpreter(tmp_path)
    for kept in (BARE, arguments):
        python.cpu_ms(kept)
    if not cached:
        python.stop_keeping()
    bare: list[float] = []
    whole: list[float] = []

    def once() -> None:
        bare.append(python.cpu_ms(BARE))
        whole.append(python.cpu_ms(arguments))

    rounds = min(max(int(benchmark._max_time * 10), ROUNDS[0]), ROUNDS[1]) if benchmark.enabled else 1  # noqa: SLF001
    benchmark.pedantic(once, rounds=rounds)
    if benchmark.stats is None:
        return
    over = statistics.median(whole) - statistics.median(bare)
    benchmark.extra_info["median_us"] = over * 1000
    aim = f" (aim {most} ms)" if cached else ""
    state = "cached" if cached else "not cached"
    benchmark.extra_info["note"] = f"{over:.1f} ms of CPU over the bare interpreter{aim}, byte code {state}"


def test_modules_of_a_first_call(benchmark: Any) -> None:
    count = f"import sys; {CALL}; print(sum(name.partition('.')[0] == 'guardrails' for name in sys.modules))"

    def once() -> int:
        return int(subprocess.run([sys.executable, "-c", count], check=True, capture_output=True).stdout)

    loaded = benchmark.pedantic(once, rounds=1)
    benchmark.extra_info["note"] = f"{loaded} modules of this package (aim {MODULES})"
