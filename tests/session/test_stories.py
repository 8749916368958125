"""
Laws of sessions that share scopes and a store, whatever happens in them.
"""

from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from guardrails import (
    Approve,
    Budget,
    Decision,
    Denials,
    Duplicates,
    Growth,
    Loops,
    MemorySink,
    MemoryStore,
    Policy,
    Rate,
    Retryable,
    RetryBudget,
    SqliteStore,
    Streak,
    Tool,
)
from guardrails.core.chain import Rule
from guardrails.core.packing import pack, unpack
from guardrails.core.scopes import OPEN, SharedState
from guardrails.core.state import ASKED, SessionState
from guardrails.core.values.types import Success
from guardrails.errors import SessionError
from tests.conftest import FakeClock
from tests.core.guards.calls import gives
from tests.session.conftest import replays, state_of
from tests.tables import table


TOOLS = ("pay", "look", "ask")
USERS = {"a": "u0", "b": "u0", "c": "u1"}
"""Of each session."""
LIMITS = {"/user/u0": (8, 1_000_000), "/user/u1": (8, 1_000_000), "/tenant/t": (12, 2_000_000)}
"""Calls and micro-dollars."""
POLICY = Policy(
    [
        Budget(max_calls=20, max_cost_usd=4.0, max_tokens=5_000, max_elapsed=50_000.0),
        *(Approve(tools=("ask",), expires=60.0), Duplicates(), Denials(), Rate(max_calls_per_second=50), Loops()),
        *(Retryable(), RetryBudget(burst=3, ratio=0.5), Streak(max_same=9), Growth(max_requests_per_second=9)),
    ],
    tools=[
        *(Tool(name="pay", cost_usd=0.25, tokens=10, timeout=30, idempotent=False), Tool(name="look", read_only=True)),
        Tool(name="ask", cost_usd=0.1),
    ],
    rules=[Rule(match="pay", guards={"budget": {"max_calls": 6, "max_cost_usd": 1.0}})],
    scopes={
        "user": [Budget(max_calls=8, max_cost_usd=1.0), Rate(max_calls_per_second=5)],
        "tenant": [Budget(max_calls=12, max_cost_usd=2.0)],
    },
)
CALLS = ("works", "fails", "slow", "stops", "decides", "claims")
STEPS = (
    *(*CALLS, *CALLS, "complete", "release", "suspend", "approve", "approve", "refuse"),
    *("turn", "charge", "request", "extend", "child", "forget", "wait", "wait"),
)


class World:
    """
    Sessions whose host does as steps say; what ran, and what a person has let run.
    """

    def __init__(self, store: Any) -> None:
        self.store, self.clock, self.sink = store, FakeClock(), MemorySink()
        options: dict[str, Any] = {"store": store, "clock": self.clock, "records": self.sink, "on_decision": self.hear}
        scopes = {name: {"user": user, "tenant": "t"} for name, user in USERS.items()}
        self.sessions = {name: POLICY.session(name, scopes=scopes[name], **options) for name in USERS}
        self.decisions: list[Decision] = []
        self.ran, self.yes, self.gone = Counter[Any](), Counter[Any](), Counter[Any]()

    def hear(self, decision: Decision) -> None:
        if decision.session in USERS:
            self.decisions.append(decision)

    def run(self, decision: Decision) -> None:
        """
        Count an admission as run, once.
        """
        if not self.ran[decision.session, decision.run, decision.seq]:
            self.ran[decision.session, decision.run, decision.seq] = 1
            self.ran[f"{decision.session} {decision.call.tool} {decision.call.arguments}"] += 1

    def take(self, who: str, what: str, n: int) -> None:
        session, asked = self.sessions[who], (TOOLS[n % 3], {"n": n % 4})
        own = [decision for decision in self.decisions if decision.session == who]
        waiting = session.pending() if what in ("approve", "refuse") else []
        match what:
            case "works" | "fails" | "slow" | "stops":

                def execute(tool: str, arguments: Any) -> Any:
                    self.run(self.decisions[-1])
                    if what == "stops":
                        raise KeyboardInterrupt
                    value = Success([n], cost_usd=0.01 * n if tool == "pay" else 0.0)
                    ends = gives({"fails": ZeroDivisionError(), "slow": TimeoutError()}.get(what, value))
                    return ends(tool, arguments)

                with suppress(KeyboardInterrupt):
                    session.call(*asked, execute, id=f"c{n % 5}")
            case "decides" | "claims":
                session.decide(*asked, id=f"c{n % 5}", claim=what == "claims")
            case "release" | "suspend" if own:
                getattr(session.calls, what)(own[n % len(own)])
            case "complete" if own and (decision := own[n % len(own)]).claimed and decision.envelope is None:
                self.run(decision)
                session.complete(decision, "done")
            case "approve" | "refuse" if waiting:
                one = waiting[n % len(waiting)]
                self.yes[f"{who} {one.tool} {one.arguments}"] += what == "approve"
                getattr(session, what)(one)
            case "turn":
                session.begin_turn(n)
            case "charge":
                session.charge(model="m", usage={"prompt_tokens": n}, cost_usd=0, key=f"r{n}")
            case "request":
                session.request(tokens=n)
            case "extend":
                session.extend()
            case "child":
                with suppress(SessionError), session.child(f"kid {n}", share=0.5) as child:
                    child.call(*asked, gives("x"))
                    child.extend(max_calls=1)
                    child.call(TOOLS[1], {"n": -n}, gives("x"))
            case "forget":
                calls, money = used(state_of(self.store, who), answered=True)
                self.gone[who] += calls
                self.gone[who, "money"] += money
                self.decisions = [one for one in self.decisions if one.session != who]
                session.ledger.forget()
            case "wait":
                self.clock.advance((0.5, 5.0, 60.0, 2_000.0)[n % 4])


def used(state: SessionState, *, answered: bool = False) -> tuple[int, int]:
    """
    Calls and micro-dollars, held or spent; without what waits for a person if that is *answered*.
    """
    waits = [one.cost for one in state.pending.values() if answered and one.stage in ASKED]
    held = state.held_cost + state.reserved.get(OPEN, {}).get("max_cost", 0)
    return state.calls - len(waits), state.cost + held - sum(waits)


@table("in_a_file", [False, True])
@given(
    st.lists(st.tuples(st.sampled_from("aaabc"), st.sampled_from(STEPS), st.integers(0, 20)), max_size=40),
    st.randoms(use_true_random=False),
)
@example(steps=[("a", "works", 0), ("a", "forget", 0), ("a", "complete", 0)], order=Random(0))
def test_whatever_happens_no_limit_is_passed_and_states_scopes_and_records_say_the_same(
    in_a_file: bool, steps: list[tuple[str, str, int]], order: Any
) -> None:
    with TemporaryDirectory() as folder, SqliteStore(Path(folder, "state.db")) as file:
        world = World(file if in_a_file else MemoryStore(live=1))
        for who, what, n in steps:
            world.take(who, what, n)
            state: SessionState = world.store.update((who,), lambda states: states[0])
            assert state == state_of(world.store, who)
            assert pack(state) == pack(unpack(pack(state)))
            assert state.held_cost == sum(one.cost for one in state.pending.values())
            shared = SharedState.of(state_of(world.store, "/user/u0"), {})
            assert SharedState.of(shared.rest(), shared.amounts()) == shared
            assert not any(shared.rest().amounts().values())
            shared.chain = POLICY.scopes["user"]
            edges = {name for edge in shared.edges() or () for name in edge.names}
            assert edges == {"calls", "cost", "held_cost", "rate/max_calls_per_second"}
        assert all(count <= world.yes[what] for what, count in world.ran.items() if " ask " in what)
        order.shuffle(world.decisions)
        for decision in world.decisions:
            world.sessions[decision.session].calls.release(decision)
        owns = {name: state_of(world.store, name) for name in USERS}
        for key, (most_calls, most) in LIMITS.items():
            scope = state_of(world.store, key)
            names = [name for name, user in USERS.items() if key in (f"/user/{user}", "/tenant/t")]
            calls, money = used(scope)
            assert calls == sum(owns[name].calls + world.gone[name] for name in names) <= most_calls
            assert money == sum(used(owns[name])[1] + world.gone[name, "money"] for name in names) <= most
            assert not scope.reserved or world.gone
        for name, own in owns.items():
            assert (own.pending, own.held_cost, own.held_tokens) == ({}, 0, 0)
            replays(POLICY, world.sink, *(world.store, name) if own.n else ())
