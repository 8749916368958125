"""
Faults at every step of a call: executor, guard, store, sink, clock, listener.

Whatever fails, and in whichever order: no budget is overshot, what ran is not lost, and one admission runs one call.
"""

import json
import random
import threading

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import Budget, Denial, Duplicates, Guard, Policy, Retryable, Success, Summary, Tool, Truncate, guard
from guardrails.core.values.errors import StoreError
from guardrails.sinks import MemorySink
from guardrails.stores.memory import MemoryStore
from tests.tables import table


T = TypeVar("T")
CALLS, COST = 8, 0.05
STEPS = (
    "nothing",
    "executor raises",
    "executor is cancelled",
    "executor gives back what cannot be shown",
    "check raises",
    "shape raises",
    "store fails before the admission",
    "store fails after the admission",
    "store fails before the settlement",
    "store fails after the settlement",
    "sink fails",
    "listener raises",
    "clock goes back",
    "clock leaps ahead",
    "clock raises before",
    "clock raises after",
)


class Trouble:
    """
    Which step fails now.
    """

    step = "nothing"


@guard
class Brittle(Guard):
    """
    A guard that fails when it is told to.
    """

    trouble: Any = None

    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Denial | None:
        if self.trouble.step == "check raises":
            raise RuntimeError("check")
        return None

    def shape(self, envelope: Any, call: Any, outcome: Any, state: Any, mine: Any, facts: Any) -> Any:
        if self.trouble.step == "shape raises":
            raise RuntimeError("shape")
        return envelope


class Unshown:
    """
    A result that nobody can look at.
    """

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no")


class FailingStore(MemoryStore):
    """
    A store that loses the request or the answer: with the latter, what was asked is done all the same.
    """

    def __init__(self, trouble: Trouble) -> None:
        super().__init__()
        self.trouble = trouble
        self.updates = 0

    def update(self, keys: Sequence[str], step: Callable[[list[Any]], T]) -> T:
        words = self.trouble.step.split()
        self.updates += 1
        fails = words[0] == "store" and words[-1] == ("admission" if self.updates == 1 else "settlement")
        if fails and "before" in words:
            raise StoreError("request lost")
        made = super().update(keys, step)
        if fails:
            raise StoreError("answer lost")
        return made


class Bench:
    """
    One session, and what really happened in it.
    """

    def __init__(self) -> None:
        self.trouble = Trouble()
        self.now = 1_800_000_000.0
        self.readings = 0
        self.ran: list[int] = []
        self.store = FailingStore(self.trouble)
        self.sink = MemorySink()
        self.sink._on_record = self.record
        budget = Budget(max_calls=CALLS, max_cost_usd=CALLS * COST)
        guards = [budget, Brittle(trouble=self.trouble), Duplicates(window=3), Retryable(), Summary(), Truncate()]
        policy = Policy(guards, tools=[Tool(name="pay", cost_usd=COST)])
        self.session = policy.session(
            "s", store=self.store, records=self.sink, clock=self.clock, on_decision=self.listener
        )
        self.store.updates = 0

    def clock(self) -> float:
        self.readings += 1
        if self.trouble.step == ("clock raises before" if self.readings == 1 else "clock raises after"):
            raise OSError("no clock")
        return self.now

    def listener(self, decision: Any) -> None:
        if self.trouble.step == "listener raises":
            raise RuntimeError("listener")

    def record(self, record: Any) -> None:
        if self.trouble.step == "sink fails":
            raise OSError(28, "No space left on device")
        self.sink.records.append(record)

    def pay(self, number: int) -> Any:
        def execute(tool: str, arguments: Any) -> Any:
            self.ran.append(number)
            step = self.trouble.step
            if step == "executor raises":
                raise TimeoutError("slow")
            if step == "executor is cancelled":
                raise KeyboardInterrupt
            if step == "executor gives back what cannot be shown":
                return Unshown()
            return Success({"paid": number}, cost_usd=COST)

        return execute

    def call(self, number: int, step: str) -> Any:
        """
        One call with a fault; its envelope, None where it was cancelled.
        """
        self.store.updates = self.readings = 0
        self.trouble.step = step
        self.now += {"clock goes back": -7_200.0, "clock leaps ahead": 400 * 86_400.0}.get(step, 1.0)
        before = len(self.ran)
        try:
            envelope = self.session.call("pay", {"n": number}, self.pay(number))
        except KeyboardInterrupt:
            return None
        finally:
            self.trouble.step = "nothing"
        assert len(self.ran) - before <= 1
        return envelope


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5)), max_size=40))
def test_no_budget_is_overshot_no_result_lost_and_nothing_run_twice(schedule: list[tuple[str, int]]) -> None:
    hold(schedule)


def hold(schedule: list[tuple[str, int]]) -> None:
    bench = Bench()
    for step, number in schedule:
        before = len(bench.ran)
        envelope = bench.call(number, step)
        ran = len(bench.ran) > before
        assert len(bench.ran) <= CALLS
        if envelope is None:
            assert ran
            continue
        read = json.loads(envelope.to_json())
        if ran and step not in ("executor raises", "executor gives back what cannot be shown"):
            # What the tool gave back is there, whatever failed around it.
            assert read["result"] == {"paid": number}
        if not ran:
            assert read["status"] in ("denied", "limit_reached", "duplicate_call_blocked")
    spent = bench.session.ledger.cost_usd
    assert spent <= CALLS * COST + 1e-9


@table("step", STEPS)
def test_after_any_fault_the_session_goes_on(step: str) -> None:
    bench = Bench()
    bench.call(1, step)
    if step == "clock leaps ahead":
        bench.now += 1
    assert bench.call(2, "nothing").ok
    assert bench.ran[-1] == 2


@pytest.mark.usefixtures("quick_switches")
def test_threads_with_faults_between_them_never_overshoot() -> None:
    for seed in range(4):
        bench = Bench()
        lock = threading.Lock()

        def work(thread: int, bench: Bench = bench, lock: Any = lock, seed: int = seed) -> None:
            rng = random.Random(f"{seed}:{thread}")
            for n in range(10):
                # The fault hits whoever comes by while it lasts.
                with lock:
                    bench.trouble.step = rng.choice([one for one in STEPS if one != "executor is cancelled"])
                bench.session.call("pay", {"n": thread * 100 + n}, bench.pay(thread * 100 + n))

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(bench.ran) <= CALLS
        assert len(set(bench.ran)) == len(bench.ran)
