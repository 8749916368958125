"""
The stories on one host, in its own environment, as a line of JSON: python -m benchmarks.hosts.one NAME {stories,overhead} [CALLS SECONDS]

The host's driver is that of the contract of `tests/hosts/test_NAME.py`, whatever it is called. Exit code 3: it is not installed.
"""

import contextlib
import gc
import importlib
import json
import re
import statistics
import sys
import time
import tomllib

from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks.hosts.stories import HONEST, POLICIES, PROMPT, Telling
from guardrails import Policy


NOT_INSTALLED: Final = 3
ROUNDS: Final = 21
VERSIONS: Final = Path(__file__).parents[2] / "tests/hosts/versions.toml"
DISTINCT: Final = {"bare": 500, "guarded": 100}
"""Distinct calls at most: a bare host makes as many of them as the stuck model makes."""
OWED: Final = {
    "executions": "test_a_stuck_model_runs_the_same_call_at_most_three_times",
    "cap": "test_distinct_calls_run_up_to_the_cap_exactly",
    "answer": "test_a_stuck_model_comes_to_a_final_answer",
}
"""What a host owes, by the behaviour of the contract that says so."""


def driver_of(name: str) -> Any:
    """
    Makes drivers of the host: that of the first contract in its tests. None if the host, or what they need of it, is not installed.
    """
    from tests.hosts.behaviours import Contract

    try:
        tests = importlib.import_module(f"tests.hosts.test_{name}")
    except (ImportError, pytest.skip.Exception):
        return None
    kinds = [one for one in vars(tests).values() if isinstance(one, type) and issubclass(one, Contract)]
    # Where pytest has collected it, a module without its host is left as far as it came.
    return next((kind.driver for kind in kinds if kind is not Contract), None)


def stories(name: str, driver: Any, calls: int = 5_000, seconds: float = 300) -> dict[str, Any]:
    """
    What came of each story, without and with the guards; the bare host is cut short after *calls* calls or *seconds* seconds.
    """
    host = driver()
    told: dict[str, Any] = {
        "host": name,
        "version": _version(name),
        "owes": [owed for owed, test in OWED.items() if test not in host.cannot],
        "calls": calls,
        "stories": {},
    }
    for story in POLICIES:
        made = told["stories"][story] = {}
        for kind in ("bare", "guarded"):
            most = calls if story == "stuck" else min(calls, DISTINCT[kind])
            made[kind] = _run(driver, Telling(story, calls=most, seconds=seconds), guarded=kind == "guarded")
    return told


def overhead(driver: Any, rounds: int = ROUNDS) -> dict[str, Any]:
    """
    The processor time that the guards add to a call of an honest run of distinct calls, made without and with them in turns. All calls
    ran each time.
    """
    times: dict[str, list[float]] = {"bare": [], "guarded": []}
    # The first round warms up.
    for _ in range(rounds + 1):
        for kind, own in times.items():
            done = _run(driver, Telling("searches", calls=HONEST, seconds=600), guarded=kind == "guarded", exact=True)
            assert done["executions"] == HONEST, f"{kind}: {done['executions']} of {HONEST} calls ran"
            assert done["not_run"] == 0, f"{kind}: {done['not_run']} did not run"
            assert done["ending"] == "answer", f"{kind}: it ended with {done['ending']}"
            own.append(done["seconds"] / HONEST * 1e6)
    bare, guarded = (own[1:] for own in times.values())
    added = statistics.median(after - before for before, after in zip(bare, guarded, strict=True))
    us = statistics.median(bare)
    return {"bare_us": round(us), "added_us": round(added), "ratio": round(added / us, 3), "rounds": rounds}


def _run(driver: Any, telling: Telling, *, guarded: bool, exact: bool = False) -> dict[str, Any]:
    host, policy, session, adapter = driver(), _policy(telling.story), None, None
    # A model without end meets the limits that the host comes with; else those of the guards come first.
    own = telling.story == "stuck" or (telling.story == "distinct" and not guarded)
    host.limits = {} if own else {name: 10 * most for name, most in getattr(host, "limits", {}).items()}
    gc.collect()
    # What is timed is processor time, since others use the machine too.
    clock = time.process_time if exact else time.perf_counter
    begun = clock()
    if guarded:
        session = policy.session("blast-radius", clock=telling.clock)
        adapter = host.adapter(session)
    ran = host.run(adapter, telling.tools, telling.script, prompt=PROMPT)
    took = clock() - begun
    told = telling.told(ran, took, None if session is None else session.digest())
    if session is not None:
        session.ledger.forget()
    return told | {"seconds": took} if exact else told


@cache
def _policy(story: str) -> Policy:
    return Policy.load(POLICIES.get(story, "default"))


def _version(name: str) -> str:
    packages = tomllib.loads(VERSIONS.read_text())[name]["packages"]
    return version(re.split(r"[\[=<>]", packages[0])[0])


def main(name: str, what: str, calls: str = "5000", seconds: str = "300") -> int:
    """
    Print the line; the exit code.
    """
    # What the host prints is not ours.
    with contextlib.redirect_stdout(sys.stderr):
        driver = driver_of(name)
        if driver is None:
            return NOT_INSTALLED
        told = overhead(driver) if what == "overhead" else stories(name, driver, int(calls), float(seconds))
    print(json.dumps(told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
