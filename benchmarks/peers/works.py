"""
One set of works for every package: stories, parallel caps, odd arguments, canonical forms, cost, memory and growth.

`python -m benchmarks.peers.works PACKAGE` prints the figures of one package. Each work makes a fresh peer of a driver and returns plain figures, for JSON.
"""

import contextlib
import gc
import io
import json
import logging
import math
import os
import statistics
import sys
import threading
import time
import warnings

from array import array
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from typing import Any, Final

from benchmarks.loops.stories import HONEST, LOOPS, PAUSE
from benchmarks.peers.drivers import ALSO, CHILDREN, DRIVERS, ONE_THREAD, OUR_TEXT, Limits, Peer, Unfit


Driver = Callable[[Limits], Peer]
CAP, TRIES, THREADS = 10, 40, 16
ONE: Final = "one thread"
"""Of a package that says itself that a run belongs to one thread."""
WARM: Final = 2_000
"""Calls before memory is looked at: what is loaded and made once is no growth."""


CYCLE: Final[dict[str, Any]] = {}
CYCLE["self"] = CYCLE
LEAF: Final[Any] = 1
DEEP: Final = reduce(lambda inner, _: {"in": inner}, range(2_000), LEAF)
ODD: Final[Mapping[str, Any]] = {
    "NaN": math.nan,
    "infinity": math.inf,
    "an integer of 100 digits": 10**99,
    "bytes": b"\xff\x00",
    "a set": {1, 2},
    "keys of two types": {1: "a", "1": "b"},
    "a key that is a tuple": {(1, 2): "a"},
    "a lone surrogate": "\ud800",
    "an object": object(),
    "depth 2,000": DEEP,
    "a cycle": CYCLE,
    "1 MB of text": "x" * 1_000_000,
}
SAME: Final[Mapping[str, tuple[Any, Any]]] = {
    "order of keys": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "order of inner keys": ({"q": {"a": 1, "b": 2}}, {"q": {"b": 2, "a": 1}}),
    "1 and 1.0": ({"q": 1}, {"q": 1.0}),
    "0.0 and -0.0": ({"q": 0.0}, {"q": -0.0}),
    "NFC and NFD": ({"q": "caf\u00e9"}, {"q": "cafe\u0301"}),
    "tuple and list": ({"q": (1, 2)}, {"q": [1, 2]}),
}
"""Arguments that ask for one and the same thing."""
OTHER: Final[Mapping[str, tuple[Any, Any]]] = {
    "1 and true": ({"q": 1}, {"q": True}),
    "1 and '1'": ({"q": 1}, {"q": "1"}),
    "keys 1 and '1'": ({"q": {1: "a"}}, {"q": {"1": "a"}}),
    "order of a list": ({"q": [1, 2]}, {"q": [2, 1]}),
    "case": ({"q": "Case"}, {"q": "case"}),
    "a space more": ({"q": "a b"}, {"q": "a  b"}),
    "null and ''": ({"q": None}, {"q": ""}),
}
"""Arguments that do not."""


def told(driver: Driver) -> dict[str, Any]:
    """
    Returns loops caught and honest stories left alone: numbers, and the names of what was got wrong.
    """
    loops = {name: _story(driver, story) for name, story in LOOPS.items()}
    honest = {name: _story(driver, story) for name, story in HONEST.items()}
    found: dict[str, Any] = {said: [name for name in honest if honest[name] == said] for said in ("refused", "hinted")}
    found["missed"] = [name for name, said in loops.items() if said == "ran"]
    stopped = list(loops.values()).count("refused")
    caught = len(loops) - len(found["missed"])
    return {**found, "loops": len(loops), "caught": caught, "stopped": stopped, "honest": len(honest)}


def _story(driver: Driver, story: Any) -> str:
    now = [1_800_000_000.0]
    peer = driver(Limits(repeats=True, clock=lambda: now[0]))
    worst, pause = "ran", PAUSE
    for turn in story:
        if isinstance(turn, float | int):
            pause = turn
            continue
        now[0], pause = now[0] + pause, PAUSE
        for tool, arguments, result in turn:
            said = peer(tool, arguments, partial(_given, result))
            if said == "refused":
                return said
            worst = said if said == "hinted" else worst
    return worst


def _given(result: Any) -> Any:
    if isinstance(result, Exception):
        raise result
    return result


def parallel(driver: Driver, limits: Limits) -> int:
    """
    Returns how many of forty calls at once ran.
    """
    peer, ran, start = driver(limits), list[int](), threading.Barrier(THREADS)

    def run(n: int) -> str:
        ran.append(n)
        time.sleep(0.02)
        return f"result {n}"

    def work(first: int) -> None:
        start.wait()
        for n in range(first, TRIES, THREADS):
            peer("work", {"n": n}, partial(run, n))

    with ThreadPoolExecutor(THREADS) as pool:
        done = [pool.submit(work, first) for first in range(THREADS)]
    for error in (one.exception() for one in done):
        if error is not None:
            raise Unfit(f"{type(error).__name__}: {error}")
    return len(ran)


def sequential(driver: Driver, limits: Limits, *, fails: bool = False) -> int:
    """
    Returns how many of twenty calls, one after the other, ran.
    """
    peer, ran = driver(limits), 0

    def run() -> Any:
        nonlocal ran
        ran += 1
        return _given(ConnectionError(f"no {ran}") if fails else f"result {ran}")

    for n in range(20):
        peer("work", {"n": n}, run)
    return ran


def family(name: str) -> int:
    """
    Returns how many of forty calls at $0.10 two sub-agents ran that may spend $0.80 each of one dollar.
    """
    if name not in CHILDREN:
        raise Unfit
    ran: list[int] = []
    children = CHILDREN[name](1.0, 0.80, 0.10)
    for n in range(40):
        children[n % 2]("work", {"n": n}, partial(ran.append, n))
    return len(ran)


def odd(driver: Driver) -> dict[str, str]:
    """
    Returns what became of a call with each odd argument: `ran`, `refused`, or the exception that reached the caller.
    """
    found: dict[str, str] = {}
    for name, value in ODD.items():
        ran: list[int] = []
        try:
            found[name] = driver(Limits(repeats=True))("work", {"value": value}, partial(ran.append, 1))
        except Exception as error:  # it is the finding
            found[name] = f"{type(error).__name__}{', after the tool ran' if ran else ''}"
    return found


def forms(driver: Driver) -> dict[str, str]:
    """
    Returns for each pair of arguments whether the package tells them apart as it should: `right`, `wrong`, `blind` or an exception.

    A call is repeated with one result until it is refused; then, in a fresh run, the last of them has the pair's other arguments.
    """
    found = {}
    for pairs, alike in ((SAME, True), (OTHER, False)):
        for name, (one, other) in pairs.items():
            try:
                allowed = _repeats(driver, [one] * 12)
                if allowed == 12:
                    found[name] = "blind"
                    continue
                taken = _repeats(driver, [one] * allowed + [other]) == allowed
                found[name] = "right" if taken == alike else "wrong"
            except Exception as error:  # it is the finding
                found[name] = type(error).__name__
    return found


def _repeats(driver: Driver, arguments: list[dict[str, Any]]) -> int:
    peer = driver(Limits(repeats=True))
    for n, given in enumerate(arguments):
        if peer("look_up", given, lambda: "nothing new") != "ran":
            return n
    return len(arguments)


def after_a_refusal(driver: Driver) -> str:
    """
    Returns whether another call runs once a loop was refused: `runs`, `refused`, or `blind` if no loop was.
    """
    peer = driver(Limits(repeats=True))
    if all(peer("look_up", {"q": 1}, lambda: "nothing new") != "refused" for _ in range(12)):
        return "blind"
    return "runs" if peer("read_file", {"path": "a"}, lambda: "text") == "ran" else "refused"


def cost(driver: Driver) -> dict[str, float]:
    """
    Returns the processor time of a call, in microseconds, beside that of a bare call, and how it grows; bytes kept for each call.

    All calls differ, each has a result of its own; those of a package that takes long are ended after ten seconds. A package
    whose rules of repeats refuse such work is measured without them, and *ran* says after how many calls they did.
    """
    found = _cost(driver, repeats=True)
    return found if "us" in found else {**_cost(driver, repeats=False), "ran": found["ran"]}


def _cost(driver: Driver, *, repeats: bool) -> dict[str, float]:
    try:
        peer = driver(Limits(calls=1_000_000, repeats=repeats))
    except Unfit:
        peer = driver(Limits(repeats=repeats))
    row = [{"id": n, "name": f"hotel {n}", "price": 100 + n} for n in range(7)]
    # Room for all figures is taken before, so that what grows is the package's.
    bare, took = array("q", bytes(8 * 20_000)), array("q", bytes(8 * 20_000))
    before = 0
    until = time.thread_time() + 10
    number = ran = 0
    while number < 20_000 and time.thread_time() < until:
        number += 1
        if number == WARM:
            gc.collect()
            before = _resident()
        arguments = {"query": f"hotels in town {number}", "page": number}
        result = [number, *row]
        started = time.thread_time_ns()
        _given(result)
        between = time.thread_time_ns()
        said = peer("work" if number % 2 else f"tool_{number % 7}", arguments, partial(_given, result))
        ended = time.thread_time_ns()
        bare[number - 1] = between - started
        if said == "ran":
            took[ran] = ended - between
            ran += 1
    gc.collect()
    kept = max(0, _resident() - before) / max(1, number - WARM)
    if ran < number / 4:
        # What a refusal costs is another figure.
        return {"calls": number, "ran": ran}
    few = ran // 20
    return {
        "calls": number,
        "ran": ran,
        "us": statistics.median(took[:ran]) / 1e3,
        "bare_us": statistics.median(bare[:number]) / 1e3,
        "last_us": statistics.median(took[ran - few : ran]) / 1e3,
        "bytes_a_call": kept,
    }


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 (not a path of a user)
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def tried(work: Callable[[], Any]) -> Any:
    """
    Returns what the work found; None if the package has no such feature; a text that names the exception if it broke.
    """
    try:
        return work()
    except Unfit as why:
        return str(why) or None
    except Exception as error:  # it is the finding
        return f"{type(error).__name__}: {error}"[:200]


def all_of(name: str) -> dict[str, Any]:
    """
    Returns the figures of all works for the package of that name.
    """
    driver = DRIVERS[name]
    calls, usd, small = Limits(calls=CAP), Limits(usd=1.0, price=0.10), Limits(usd=0.30, price=0.10)
    works: dict[str, Callable[[], Any]] = {
        "stories": partial(told, driver),
        "parallel calls": partial(parallel, driver, calls),
        "parallel usd": partial(parallel, driver, usd),
        "sequential usd": partial(sequential, driver, usd),
        "small usd": partial(sequential, driver, small),
        "failing calls": partial(sequential, driver, calls, fails=True),
        "family": partial(family, name),
        "odd": partial(odd, driver),
        "forms": partial(forms, driver),
        "after a refusal": partial(after_a_refusal, driver),
        "cost": partial(cost, driver),
    }
    if name in ONE_THREAD:
        works |= dict.fromkeys(("parallel calls", "parallel usd"), lambda: ONE)
    if name in OUR_TEXT:
        works["forms"] = lambda: None
    also = {way: tried(partial(told, other)) for way, other in ALSO.get(name, {}).items()}
    return {**{title: tried(work) for title, work in works.items()}, "also": also}


def main(name: str) -> None:
    """
    Print what the works came to; what a package prints or logs meanwhile is left out.
    """
    logging.disable()
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = all_of(name)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
