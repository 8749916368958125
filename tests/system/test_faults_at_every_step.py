"""
Faults at every step of a call: executor, guard, store, sink, clock, listener.

Whatever fails, and in whichever order: no budget is overshot, what ran is not lost, and one admission runs one call.
"""

import json

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import Budget, Denial, Duplicates, Guard, Policy, Retryable, Success, Summary, Tool, Truncate, guard
from guardrails.core.values.errors import StoreError
from guardrails.sinks import OnRecord
from guardrails.stores.memory import MemoryStore
from tests.conftest import FakeClock
from tests.tables import table


T = TypeVar("T")
CALLS, COST = 8, 0.05
UNREADABLE = ("executor raises", "executor gives back what cannot be shown")
STEPS = (
    *("nothing", *UNREADABLE, "executor is cancelled", "check raises", "shape raises"),
    *(f"store fails {place} the {of}" for place in ("before", "after") for of in ("admission", "settlement")),
    *("sink fails", "listener raises"),
    *("clock goes back", "clock leaps ahead", "clock raises before", "clock raises after"),
)


class Unshown:
    """
    A result that nobody can look at.
    """

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no")


@guard
class Brittle(Guard):
    """
    A guard that fails when *fail* does.
    """

    fail: Any = None

    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Denial | None:
        self.fail("check raises", RuntimeError("check"))
        return None

    def shape(self, envelope: Any, call: Any, outcome: Any, state: Any, mine: Any, facts: Any) -> Any:
        self.fail("shape raises", RuntimeError("shape"))
        return envelope


class Bench(MemoryStore):
    """
    One session, and what really happened in it; also its store, which loses the request or the answer: with the latter, what was
    asked is done all the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.step = "nothing"
        """What fails now."""
        self.now = FakeClock()
        self.readings = self.updates = 0
        self.ran: list[int] = []
        budget = Budget(max_calls=CALLS, max_cost_usd=CALLS * COST)
        guards = [budget, Brittle(fail=self.fail), Duplicates(window=3), Retryable(), Summary(), Truncate()]
        policy = Policy(guards, tools=[Tool(name="pay", cost_usd=COST)])
        self.session = policy.session(
            "s",
            store=self,
            records=OnRecord(lambda _: self.fail("sink fails", OSError(28, "No space left on device"))),
            clock=self.clock,
            on_decision=lambda _: self.fail("listener raises", RuntimeError("listener")),
        )

    def fail(self, step: str, error: BaseException) -> None:
        if self.step == step:
            raise error

    def update(self, keys: Sequence[str], step: Callable[[list[Any]], T]) -> T:
        self.updates += 1
        of = "admission" if self.updates == 1 else "settlement"
        self.fail(f"store fails before the {of}", StoreError("request lost"))
        made = super().update(keys, step)
        self.fail(f"store fails after the {of}", StoreError("answer lost"))
        return made

    def clock(self) -> float:
        self.readings += 1
        self.fail(f"clock raises {'before' if self.readings == 1 else 'after'}", OSError("no clock"))
        return self.now()

    def call(self, number: int) -> Any:
        def execute(tool: str, arguments: Any) -> Any:
            self.ran.append(number)
            self.fail("executor raises", TimeoutError("slow"))
            self.fail("executor is cancelled", KeyboardInterrupt())
            return Unshown() if self.step == UNREADABLE[1] else Success({"paid": number}, cost_usd=COST)

        return self.session.call("pay", {"n": number}, execute)

    def call_with(self, step: str, number: int) -> Any:
        """
        One call with a fault; its envelope, None where it was cancelled.
        """
        self.updates = self.readings = 0
        self.step, before = step, len(self.ran)
        self.now.advance({"clock goes back": -7_200.0, "clock leaps ahead": 400 * 86_400.0}.get(step, 1.0))
        try:
            return self.call(number)
        except KeyboardInterrupt:
            return None
        finally:
            self.step = "nothing"
            assert len(self.ran) - before <= 1


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5)), max_size=40))
def test_no_budget_is_overshot_no_result_lost_and_nothing_run_twice(schedule: list[tuple[str, int]]) -> None:
    bench = Bench()
    for step, number in schedule:
        before = len(bench.ran)
        envelope = bench.call_with(step, number)
        ran = len(bench.ran) > before
        read = json.loads(envelope.to_json()) if envelope is not None else {}
        if envelope is None:
            assert ran
        elif not ran:
            assert read["status"] in ("denied", "limit_reached", "duplicate_call_blocked")
        elif step not in UNREADABLE:
            # What the tool gave back is there, whatever failed around it.
            assert read["result"] == {"paid": number}
    assert len(bench.ran) <= CALLS
    assert bench.session.ledger.cost_usd <= CALLS * COST + 1e-9


@table("step", STEPS)
def test_after_any_fault_the_session_goes_on(step: str) -> None:
    bench = Bench()
    bench.call_with(step, 1)
    bench.now.advance(1)
    assert bench.call_with("nothing", 2).ok
    assert bench.ran[-1] == 2
