"""
The laws of limits that sessions share, for every store.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import Budget, MemoryStore, Policy, Rate, SessionError, SessionState, SqliteStore, Success, Tool
from guardrails.session.session import Session
from guardrails.stores import Store
from tests.tables import table


CALLS, MICRO_DOLLARS = 6, 1_000_000
POLICY = Policy(
    [Budget(max_calls=5)],
    tools=[Tool(name="pay", cost_usd=0.3, timeout=60)],
    scopes={
        "user": [Budget(max_calls=CALLS, max_cost_usd=1.0), Rate(max_calls_per_second=3)],
        "tenant": [Budget(max_calls=9)],
    },
)
USERS = ("u0", "u1")
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from(["call", "call", "fail", "decide", "settle", "wait", "forget", "child", "interrupt"]),
        st.integers(0, 3),
    ),
    max_size=40,
)


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class World:
    """
    Five sessions of two users of one tenant, and what really ran.
    """

    def __init__(self, store: Store) -> None:
        self.store, self.clock = store, Clock()
        self.admitted: Counter[str] = Counter()
        self.open: list[tuple[Session, Any]] = []
        self.ids = count()

    def user(self, who: int) -> str:
        return USERS[who % 2]

    def session(self, who: int) -> Session:
        scopes = {"user": self.user(who), "tenant": "acme"}
        return POLICY.session(f"s{who}", scopes=scopes, store=self.store, clock=self.clock)

    def totals(self) -> list[tuple[Any, ...]]:
        def look(states: list[SessionState]) -> list[tuple[Any, ...]]:
            return [(s.calls, s.cost + s.held_cost, s.tokens, s.own.get("rate"), s.exhausted) for s in states]

        return self.store.update([*(f"/user/{user}" for user in USERS), "/tenant/acme"], look)

    def happen(self, who: int, what: str, n: int) -> None:
        session = self.session(who)
        match what:
            case "call" | "fail" | "interrupt":
                self.call(session, who, what, n)
            case "decide":
                decision = session.decide("pay", {"n": n}, id=f"open {next(self.ids)}")
                self.admitted[self.user(who)] += decision.allowed
                self.open.append((session, decision))
            case "settle" if self.open:
                settled, decision = self.open.pop(n % len(self.open))
                settled.complete(decision, Success("ok", cost_usd=0.1 * n))
            case "wait":
                self.clock.now += (0.1, 1.0, 30.0, 120.0)[n]
            case "forget":
                session.ledger.forget()
            case "child":
                with suppress(SessionError), session.child(f"kid {self.clock.now} {n}", max_calls=2) as child:
                    self.call(child, who, "call", n)

    def call(self, session: Session, who: int, what: str, n: int) -> None:
        before = self.totals()
        ran = False

        def execute(*_: Any) -> Success:
            nonlocal ran
            ran = True
            if what == "fail":
                raise TimeoutError
            if what == "interrupt":
                raise KeyboardInterrupt
            return Success("ok", cost_usd=0.1 * n)

        with suppress(KeyboardInterrupt):
            session.call("pay", {"n": n}, execute)
        self.admitted[self.user(who)] += ran
        if not ran:
            assert self.totals() == before


def in_memory(story: Callable[[Store], None]) -> None:
    story(MemoryStore(live=1))


def in_a_file(story: Callable[[Store], None]) -> None:
    with TemporaryDirectory() as folder, SqliteStore(Path(folder, "state.db")) as store:
        story(store)


@table("kept", [in_memory, in_a_file])
@settings(max_examples=40)
@given(EVENTS)
def test_a_scope_never_overshoots_counts_each_call_once_and_a_denial_charges_none(
    kept: Callable[[Callable[[Store], None]], None], events: list[tuple[int, str, int]]
) -> None:
    def story(store: Store) -> None:
        world = World(store)
        for event in events:
            world.happen(*event)
        *users, tenant = world.totals()
        assert [calls for calls, *_ in users] == [world.admitted[user] for user in USERS]
        assert all(calls <= CALLS for calls, *_ in users)
        assert tenant[0] == sum(world.admitted.values()) <= 9
        # A call may cost more than was thought; no more is admitted then.
        assert all(money <= MICRO_DOLLARS + calls * 300_000 for calls, money, *_ in users)

    kept(story)
