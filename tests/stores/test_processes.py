"""
Many processes, one store: a budget that they share holds, whatever becomes of them.
"""

import json
import os
import signal
import subprocess
import sys
import time

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy
from guardrails.sinks import by_session, read
from guardrails.stores.persistence import PersistentStore
from guardrails.stores.places import store_at
from tests.stores.servers import shared, shared_postgres


pytestmark = [pytest.mark.system, pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")]

TOGETHER = """
import json, sys
from multiprocessing import get_context
from guardrails import Budget, Policy
from guardrails.stores.places import store_at

place, namespace, processes, records = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
policy = Policy([Budget(max_calls=100)], scopes={"user": [Budget(max_calls=10)]})
policy.session("warm", scopes={"user": "nobody"}).call("t", {}, lambda *_: "ok")
fork = get_context("fork")
start = fork.Barrier(processes)

def call(number):
    start.wait()
    store = store_at(place, namespace=namespace, timeout=60)
    with policy.session(f"s{number}", scopes={"user": "u1"}, store=store, records=records) as session:
        envelope = session.call("t", {"n": number}, lambda *_: "ran")
    return envelope.ok, envelope.code

with fork.Pool(processes) as pool:
    print(json.dumps(pool.map(call, range(processes), 1)))
"""

SPENDING = """
import os, random, sys, time
from guardrails import Policy, Success
from guardrails.stores.places import store_at

place, namespace, number, log, policy = *sys.argv[1:4], os.open(sys.argv[4], os.O_WRONLY | os.O_APPEND), sys.argv[5]
store = store_at(place, namespace=namespace, timeout=60)
session = Policy.load(policy).session("s" + number, scopes={"user": "u1"}, store=store)

def pay(tool, arguments):
    os.write(log, b"x")
    return Success("paid", cost_usd=0.01)

print("ready", flush=True)
n = 0
while True:
    n += 1
    if not session.call("pay", {"one": 1, "n": f"{os.getpid()} {n}"}, pay).ok:
        print("refused", flush=True)
        time.sleep(60)
"""


BUDGET = "scopes: {user: {budget: {max_calls: 400, max_cost_usd: 3.0%s}}}\ntools: [{match: pay, cost_usd: 0.01}]"
RULE = "rules: [{tools: pay, limit: {sum: 'double(args.one)', max: 300, scope: user}}]"
Place = tuple[str, str]
"""A store and its namespace."""


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """
    An empty store that processes share: a test is skipped without its server.
    """
    urls = {"redis": lambda: shared().url, "postgres": lambda: shared_postgres().url}
    return urls.get(request.param, lambda: str(tmp_path / "state.db"))(), f"t{os.urandom(6).hex()}"


def opened(place: Place) -> PersistentStore:
    return store_at(place[0], namespace=place[1], timeout=60)


def test_40_processes_at_once_get_exactly_the_10_calls_of_their_user(place: Place, tmp_path: Path) -> None:
    """
    None of them has made the file before, and each is a session of its own.
    """
    command = [sys.executable, "-c", TOGETHER, *place, "40", str(tmp_path / "calls.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    answers: list[Any] = json.loads(done.stdout)
    assert sorted(answers, key=str) == [[False, "user.budget.max_calls"]] * 30 + [[True, None]] * 10
    with opened(place) as store:
        assert store.update(["/user/u1"], lambda states: (states[0].calls, states[0].reserved)) == (10, {})
        # Each session took part in the decision, and only those were charged whose call ran.
        used = [store.update([f"s{n}"], lambda states: states[0].calls) for n in range(40)]
    assert sorted(used) == [0] * 30 + [1] * 10
    # Each line says where its event stands among those of all sessions of its user, without a gap.
    sessions = by_session(read(tmp_path / "calls.jsonl"))
    numbers = [record["scopes"]["user"][2] for records in sessions.values() for record in records]
    assert (len(sessions), sorted(numbers)) == (40, list(range(1, 51)))


@pytest.mark.parametrize("policy", [BUDGET % "", BUDGET % ", per: month", RULE], ids=["budget", "month", "rule"])
def test_processes_that_are_killed_at_any_moment_never_overshoot_a_budget(
    place: Place, tmp_path: Path, policy: str
) -> None:
    """
    Four processes spend what is for 300 calls until they are refused; six more are killed meanwhile.
    """
    log, file = tmp_path / "ran", tmp_path / "policy.yaml"
    log.touch()
    file.write_text(f"version: 1\n{policy}\n")
    opened(place).close()

    def start(number: int) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", SPENDING, *place, str(number), str(log), str(file)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def lines(process: "subprocess.Popen[str]", count: int) -> list[str]:
        assert process.stdout is not None
        return [process.stdout.readline() for _ in range(count)]

    def kill(process: "subprocess.Popen[str]") -> None:
        with process:
            process.kill()

    processes = [start(number) for number in range(4)]
    for killed in range(6):
        victim = processes[killed % 4]
        assert lines(victim, 1) == ["ready\n"]
        time.sleep(0.004 * killed)
        kill(victim)
        processes[killed % 4] = start(killed % 4)
    # What a killed process held stays held for ten minutes, so that the last are refused by what is left.
    assert [lines(process, 2) for process in processes] == [["ready\n", "refused\n"]] * 4
    for process in processes:
        kill(process)
    ran = log.stat().st_size
    assert 290 <= ran <= 300
    if policy != BUDGET % "":
        return
    with opened(place) as store:
        [calls, cost] = store.update(
            ["/user/u1"], lambda states: [states[0].calls, states[0].cost + states[0].reserved_by_children("max_cost")]
        )
        own = [store.update([f"s{n}"], lambda states: states[0].calls) for n in range(4)]
    # What was admitted and then killed was charged and may not have run; each process was in one call.
    assert ran <= calls == sum(own) <= ran + 10
    assert (calls, cost) == (300, 300 * 10_000)


def test_a_call_of_a_process_that_died_in_it_stays_charged_and_expires(place: Place, tmp_path: Path) -> None:
    code = SPENDING.replace('return Success("paid", cost_usd=0.01)', "os.kill(os.getpid(), 9)")
    code = code.replace("""{"one": 1, "n": f"{os.getpid()} {n}"}, pay)""", """{"n": 1}, pay, id="call_0")""")
    log, file = tmp_path / "ran", tmp_path / "policy.yaml"
    log.touch()
    file.write_text(f"version: 1\n{BUDGET % ''}\n")
    command = [sys.executable, "-c", code, *place, "0", str(log), str(file)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -signal.SIGKILL
    with opened(place) as store:
        held = store.update(
            ["s0", "/user/u1"], lambda states: [one.held_cost + one.reserved_by_children("max_cost") for one in states]
        )
        assert held == [10_000, 10_000]
        later, policy = 0, Policy([Budget(max_calls=9)])
        session = policy.session("s0", store=store, clock=lambda: time.time() + later)
        again = session.call("pay", {"n": 1}, lambda *_: "paid twice", id="call_0")
        assert (again.code, session.ledger.progress["calls_used"]) == ("call.in_flight", 1)
        later = 602
        assert session.call("pay", {"n": 1}, lambda *_: "after all", id="call_0").value == "after all"
        # The estimate stays charged.
        assert (session.ledger.progress["calls_used"], session.ledger.cost_usd) == (2, 0.01)
