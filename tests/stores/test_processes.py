"""
Many processes, one store: a budget that they share holds, whatever becomes of them.
"""

import json
import os
import signal
import sys
import time

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy
from guardrails.sinks import by_session, read
from guardrails.stores.places import store_at
from tests.children import PATIENCE_S, child, ran
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
    store = store_at(place, namespace=namespace, timeout=120)
    with policy.session(f"s{number}", scopes={"user": "u1"}, store=store, records=records) as session:
        envelope = session.call("t", {"n": number}, lambda *_: "ran")
    return envelope.ok, envelope.code

with fork.Pool(processes) as pool:
    print(json.dumps(pool.map(call, range(processes), 1)))
"""

SPENDING = """
import os, sys
from guardrails import Policy, Success
from guardrails.stores.places import store_at

place, namespace, number, log, policy, dies = *sys.argv[1:4], os.open(sys.argv[4], os.O_WRONLY | os.O_APPEND), *sys.argv[5:]
store = store_at(place, namespace=namespace, timeout=120)
session = Policy.load(policy).session("s" + number, scopes={"user": "u1"}, store=store)

def pay(tool, arguments):
    os.write(log, b"x")
    if dies:
        os.kill(os.getpid(), 9)
    return Success("paid", cost_usd=0.01)

print("ready", flush=True)
n = 0
while session.call("pay", {"one": 1, "n": n if dies else f"{os.getpid()} {n}"}, pay, id="call_0" if dies else None).ok:
    n += 1
print("refused", flush=True)
sys.stdin.read()
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
    made = urls.get(request.param, lambda: str(tmp_path / "state.db"))(), f"t{os.urandom(6).hex()}"
    (tmp_path / "ran").touch()
    return made


def spends(place: Place, folder: Path, policy: str, dies: str = "") -> Callable[[int], tuple[object, ...]]:
    """
    The command of the process of a number that spends as *policy* lets it, and writes into `ran`.
    """
    (folder / "policy.yaml").write_text(f"version: 1\n{policy}\n")
    return lambda number: (
        *(sys.executable, "-c", SPENDING, *place, number, folder / "ran", folder / "policy.yaml", dies),
    )


def of(place: Place, keys: list[str], look: Callable[[Any], Any]) -> list[Any]:
    with store_at(place[0], namespace=place[1], timeout=PATIENCE_S) as store:
        return store.update(keys, lambda states: [look(state) for state in states])


def test_40_processes_at_once_get_exactly_the_10_calls_of_their_user(place: Place, tmp_path: Path) -> None:
    """
    None of them has made the file before, and each is a session of its own.
    """
    done = ran(sys.executable, "-c", TOGETHER, *place, 40, tmp_path / "calls.jsonl")
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    assert sorted(answers, key=str) == [[False, "user.budget.max_calls"]] * 30 + [[True, None]] * 10
    assert of(place, ["/user/u1"], lambda state: (state.calls, state.reserved)) == [(10, {})]
    # Each session took part in the decision, and only those were charged whose call ran.
    assert sorted(of(place, [f"s{n}" for n in range(40)], lambda state: state.calls)) == [0] * 30 + [1] * 10
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
    command = spends(place, tmp_path, policy)
    with ExitStack() as held:

        def start(number: int) -> Any:
            return held.enter_context(child(*command(number), stdin=-1, stdout=-1))

        processes = [start(number) for number in range(4)]
        for killed in range(6):
            assert processes[killed % 4].stdout.readline() == "ready\n"
            time.sleep(0.004 * killed)
            processes[killed % 4].kill()
            processes[killed % 4] = start(killed % 4)
        # What a killed process held stays held for ten minutes, so that the last are refused by what is left.
        said = [[one.stdout.readline() for _ in range(2)] for one in processes]
        assert said == [["ready\n", "refused\n"]] * 4
    executed = (tmp_path / "ran").stat().st_size
    assert 290 <= executed <= 300
    if policy == BUDGET % "":
        spent = of(place, ["/user/u1"], lambda it: (it.calls, it.cost + it.reserved_by_children("max_cost")))
        own = sum(of(place, [f"s{n}" for n in range(4)], lambda state: state.calls))
        # What was admitted and then killed was charged and may not have run; each process was in one call.
        assert executed <= own <= executed + 10
        assert (spent, own) == ([(300, 300 * 10_000)], 300)


def test_a_call_of_a_process_that_died_in_it_stays_charged_and_expires(place: Place, tmp_path: Path) -> None:
    assert ran(*spends(place, tmp_path, BUDGET % "", "dies")(0)).returncode == -signal.SIGKILL
    keys = ["s0", "/user/u1"]
    assert of(place, keys, lambda it: it.held_cost + it.reserved_by_children("max_cost")) == [10_000, 10_000]
    later, policy = 0, Policy([Budget(max_calls=9)])
    with store_at(place[0], namespace=place[1], timeout=PATIENCE_S) as store:
        session = policy.session("s0", store=store, clock=lambda: time.time() + later)
        again = session.call("pay", {"one": 1, "n": 0}, lambda *_: "paid twice", id="call_0")
        assert (again.code, session.ledger.progress["calls_used"]) == ("call.in_flight", 1)
        later = 602
        made = session.call("pay", {"one": 1, "n": 0}, lambda *_: "after all", id="call_0")
        # The estimate stays charged.
        assert (made.value, session.ledger.progress["calls_used"], session.ledger.cost_usd) == ("after all", 2, 0.01)
