"""
Real Ctrl-C at random moments: a process makes calls, another one sends it SIGINT, and the records are held to the state.

`python -m tests.session.signals --signals 300` is the long form: every store, way and shape, and what came of it.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final


ROOT: Final = Path(__file__).parents[2]
WAYS: Final = ("sync", "loop", "run", "threads")
CALLING: Final = """
import asyncio, gc, logging, json, os, signal, sys, threading, time
from guardrails import Budget, Duplicates, Policy, SqliteStore, Tool
from guardrails.stores.memory import MemoryStore

kind, way, shape, folder = sys.argv[1:]
logging.disable()
tools = [Tool(name="pay", cost_usd=0.01), Tool(name="look", read_only=True)]
shared = {"user": [Budget(max_calls=1_000_000)]} if shape == "scoped" else {}
policy = Policy([Budget(max_calls=1_000_000, max_cost_usd=90_000), Duplicates(window=5)], scopes=shared, tools=tools)
store = SqliteStore(folder + "/state.db") if kind == "sqlite" else MemoryStore()
records = folder + "/records.jsonl"
given = {"store": store, "records": records}
if shared:
    given["scopes"] = {"user": "u1"}
session = policy.session("s", **given)
other = policy.session("t", **given) if shared else session
ended = threading.Event()
done = 0

def tool(name, arguments):
    return {"n": arguments["n"]}

def once(session, n):
    global done
    name = ("pay", "look")[n % 2]
    # Every fifth is asked again, and refused.
    session.call(name, {"n": n - n % 5 // 4}, tool)
    if n % 7 == 0:
        session.charge(model="m", cost_usd=0.001, calls=1)
    done += 1

async def atool(name, arguments):
    await asyncio.sleep(0)
    return {"n": arguments["n"]}

async def aonce(session, n):
    global done
    await session.acall(("pay", "look")[n % 2], {"n": n}, (tool, atool)[n % 3 == 0])
    done += 1

def in_thread(number):
    n = 0
    while not ended.is_set():
        n += 1
        (session, other)[number % 2].call("look", {"n": f"{number} {n}"}, lambda *_: "ok")

def over():
    return os.path.exists(folder + "/over")

def stop(number, frame):
    os.write(1, b"x")
    raise KeyboardInterrupt

if way != "run":
    # `asyncio.run` has a way of its own only for the handler that Python comes with.
    signal.signal(signal.SIGINT, stop)

def synchronous():
    n = 0
    while not over():
        n += 1
        try:
            once(session, n)
        except KeyboardInterrupt:
            pass

async def tasks(n):
    for each in range(20):
        await aonce(session, n + each)

loop = asyncio.new_event_loop()

def looping():
    n = 0
    while not over():
        n += 20
        try:
            # What was interrupted stays where it is, and goes on here.
            loop.run_until_complete(asyncio.wait_for(tasks(n), 5))
        except (KeyboardInterrupt, RuntimeError, TimeoutError):
            pass

def running():
    n = 0
    while not over():
        n += 20
        try:
            asyncio.run(tasks(n))
        except (KeyboardInterrupt, asyncio.CancelledError):
            pass

threads = [threading.Thread(target=in_thread, args=(number,)) for number in range(4)] if way == "threads" else []
for thread in threads:
    thread.start()
os.write(1, b"x")
def forever(depth=20):
    # One within the other: Ctrl-C comes while the one before is caught, too.
    while not over():
        try:
            if depth:
                forever(depth - 1)
            else:
                {"sync": synchronous, "loop": looping, "run": running, "threads": synchronous}[way]()
        except (KeyboardInterrupt, RuntimeError):
            pass

forever()
for task in asyncio.all_tasks(loop):
    task.cancel()
loop.run_until_complete(asyncio.sleep(0.01))
loop.close()
ended.set()
for thread in threads:
    thread.join()
gc.collect()
time.sleep(0.05)
open_ = session._read(lambda state, now: [[one.id, one.seq] for one in state.pending.values()])
again = session.call("look", {"n": "last"}, tool)
held = session._read(lambda state, now: state.held_cost)
numbers = {each.id: each._read(lambda state, now: state.n) for each in {session, other}}
session.close()
print("\\n" + json.dumps({"pending": len(open_), "held": held, "numbers": numbers, "done": done, "goes on": again.ok}))
"""


@dataclass(slots=True)
class Found:
    """
    What some Ctrl-C have left behind.
    """

    signals: int
    calls: int = 0
    pending: int = 0
    """Calls that are open though nobody runs them."""
    held: int = 0
    """Micro-dollars that they hold."""
    missing: int = 0
    """Numbers of events of which there is no record, nor does one name them."""
    gaps: int = 0
    """Events that a record names as interrupted."""
    twice: int = 0
    """Events with more than one record."""
    exact: str = ""
    """What the exact replay said; empty: every decision is the recorded one."""
    goes_on: bool = True


def interrupted(store: str, way: str, shape: str, signals: int, seed: int, pause: float = 0.004) -> Found:
    """
    *signals* times Ctrl-C at random moments, for a process that makes calls in this *way*, with up to *pause*
    seconds between two.
    """
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", "-c", CALLING, store, way, shape, folder]
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603  our own script
        assert child.stdout is not None
        answers = child.stdout.fileno()
        os.read(answers, 1)
        for _ in range(signals):
            time.sleep(chance.uniform(pause / 8, pause))
            os.kill(child.pid, signal.SIGINT)
            # One after the other, or two would be one.
            if way != "run":
                os.read(answers, 1)
        time.sleep(0.05)
        Path(folder, "over").touch()
        said, complained = child.communicate(timeout=60)
        assert child.returncode == 0, complained.decode()
        told = json.loads(said.decode().rsplit("\n", 2)[-2])
        return _judged(signals, told, Path(folder, "records.jsonl"), shape)


def _judged(signals: int, told: dict[str, object], records: Path, shape: str) -> Found:
    from guardrails import Budget, Duplicates, Policy, Tool, read
    from guardrails.offline.judge.exact import replayed
    from guardrails.offline.readers.inputs import Input

    tools = [Tool(name="pay", cost_usd=0.01), Tool(name="look", read_only=True)]
    shared = {"user": [Budget(max_calls=1_000_000)]} if shape == "scoped" else {}
    policy = Policy(
        [Budget(max_calls=1_000_000, max_cost_usd=90_000), Duplicates(window=5)], scopes=shared, tools=tools
    )
    found = Found(signals, told["done"], told["pending"], told["held"], goes_on=told["goes on"])  # type: ignore[arg-type]
    numbers: dict[str, int] = told["numbers"]  # type: ignore[assignment]
    for session, last in numbers.items():
        own = [record for record in read(records) if record["session_id"] == session]
        lines = Counter(record["n"] for record in own)
        named = set(range(1, max((record["n"] for record in own if record["event"] == "interrupted"), default=0)))
        absent = set(range(1, last + 1)) - lines.keys()
        found.missing += len(absent - named)
        found.gaps += len(absent & named)
        found.twice += sum(count > 1 for count in lines.values())
    again = replayed(policy, [Input(str(records), found=True)])
    found.exact = "" if again.same else f"{again.differing} differ, such as {again.first[0]}"
    return found


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--signals", type=int, default=300)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", default="")
    given = options.parse_args()
    for store in ("memory", "sqlite"):
        for way in WAYS:
            for shape in ("alone", "scoped"):
                if given.only in f"{store} {way} {shape}":
                    found = interrupted(store, way, shape, given.signals, given.seed)
                    sys.stdout.write(f"{store:7} {way:8} {shape:7} {asdict(found)}\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
