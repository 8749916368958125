"""
Limits that sessions share, in memory and in a file.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import Budget, Growth, MemorySink, MemoryStore, Policy, Rate, SqliteStore, Success, Tool
from guardrails.core.guards.base import Edge, Facts, Guard, guard
from guardrails.core.state import SessionState
from guardrails.core.values.types import Denial, ToolCall
from guardrails.errors import SessionError
from guardrails.session.session import Session
from guardrails.stores import Store
from tests.conftest import FakeClock
from tests.core.guards.calls import ok
from tests.tables import table


Make = Callable[..., Session]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: Any, tmp_path: Any) -> Any:
    if request.param == "memory":
        yield MemoryStore()
        return
    with SqliteStore(tmp_path / "state.db") as made:
        yield made


@pytest.fixture
def make(store: Any, clock: Any) -> Make:
    def session(policy: Policy, name: str, user: str = "u1", **options: Any) -> Session:
        return policy.session(name, scopes={"user": user}, store=store, clock=clock, **options)

    return session


def shared(*guards: Guard, own: tuple[Guard, ...] = (), **options: Any) -> Policy:
    return Policy(own, scopes={"user": guards}, **options)


def test_a_call_is_charged_to_its_session_and_all_its_scopes_or_to_none(store: Any, clock: Any) -> None:
    scopes = {"tenant": [Budget(max_calls=5)], "user": [Budget(max_calls=2)]}
    policy = Policy([Budget(max_calls=4)], scopes=scopes)

    def session(name: str, user: str) -> Session:
        return policy.session(name, scopes={"user": user, "tenant": "acme"}, store=store, clock=clock)

    def used(key: str) -> int:
        return int(store.update([key], lambda states: states[0].calls))

    first = session("s1", "u1")
    assert [first.call("t", {"n": n}, ok).code for n in range(4)] == [None, None] + ["user.budget.max_calls"] * 2
    assert [used(key) for key in ("s1", "/user/u1", "/tenant/acme")] == [2, 2, 2]
    codes = [session("s1", f"u{n}").call("t", {"n": n}, ok).code for n in range(2, 6)]
    assert codes == [None, None, "budget.max_calls", "budget.max_calls"]
    assert [used(key) for key in ("s1", "/user/u4", "/tenant/acme")] == [4, 0, 4]
    codes = [session(f"t{n}", f"v{n}").call("t", {"n": n}, ok).code for n in range(2)]
    assert codes == [None, "tenant.budget.max_calls"]
    assert [used(key) for key in ("t1", "/user/v1", "/tenant/acme")] == [0, 0, 5]


def test_what_a_call_really_cost_reaches_the_scope(make: Make) -> None:
    policy = shared(Budget(max_cost_usd=1.0), tools=[Tool(name="pay", cost_usd=0.4)])
    one, two = make(policy, "s1"), make(policy, "s2")
    assert one.call("pay", {}, lambda *_: Success("ok", cost_usd=0.1)).ok
    assert two.ledger.progress["cost_left_usd"] == 0.9
    decision = one.decide("pay", {"n": 1}, id="a")
    assert two.ledger.progress["cost_left_usd"] == 0.5
    two.call("pay", {}, ok)
    refused = two.call("pay", {"n": 2}, ok)
    assert refused.code == "user.budget.max_cost_usd"
    assert refused.limit_message == (
        "This call is estimated at $0.40, $0.10 is left. The limit is that of the user, shared by all of its sessions."
    )
    assert not two.exhausted
    one.complete(decision, Success("ok", cost_usd=0.5))
    assert two.exhausted == one.exhausted == "user.budget.max_cost_usd"


def test_a_session_is_exhausted_while_its_scope_is_and_goes_on_when_that_is_extended(make: Make) -> None:
    policy = shared(Budget(max_calls=1), own=(Budget(max_calls=5),))
    one, two = make(policy, "s1"), make(policy, "s2")
    one.call("t", {}, ok)
    assert two.call("t", {}, ok).code == "user.budget.max_calls"
    assert (two.exhausted, two.ledger.limit_message) == (
        "user.budget.max_calls",
        "Tool call limit reached (1). Stopping tool loop. The limit is that of the user, shared by all of its sessions.",
    )
    assert "limit of the user" in two.digest() or "that of the user" in two.digest()
    one.extend(scope="user", max_calls=2)
    assert (one.exhausted, two.exhausted) == (None, None)
    assert [two.call("t", {"n": n}, ok).ok for n in range(3)] == [True, True, False]
    with pytest.raises(SessionError, match="the policy sets no limit `max_tokens` that could be raised"):
        one.extend(scope="user", max_tokens=2)
    with pytest.raises(SessionError, match="the session is in no scope `team`"):
        one.extend(scope="team", max_calls=2)
    assert one.ledger.progress["calls_left"] == 0


def test_a_rate_and_a_growth_cap_hold_for_all_sessions_of_a_scope(make: Make, clock: Any) -> None:
    policy = shared(Rate(max_calls_per_second=2), Growth(max_requests_per_second=3))
    sessions = [make(policy, f"s{n}") for n in range(4)]
    refused = [session.call("t", {}, ok) for session in sessions]
    assert [envelope.code for envelope in refused] == [None, None] + ["user.rate.max_calls_per_second"] * 2
    assert (refused[2].retryable, refused[2].retry_after_ms) == (True, 500)
    assert not sessions[0].exhausted
    clock.advance(1)
    assert sessions[3].call("t", {}, ok).ok
    for session in sessions:
        session.request()
    assert {session.exhausted for session in sessions} == {"user.growth.max_requests_per_second"}
    sessions[0].extend(scope="user")
    assert not sessions[1].exhausted


def test_a_child_counts_in_its_parents_scopes_once(make: Make) -> None:
    policy = shared(Budget(max_calls=4), own=(Budget(max_calls=10),))
    parent = make(policy, "p")
    with parent.child("c", max_calls=3) as child:
        assert [child.call("t", {"n": n}, ok).ok for n in range(2)] == [True] * 2
        with child.child("d", max_calls=1) as deeper:
            assert deeper.call("t", {}, ok).ok
    assert parent.ledger.progress == {"calls_used": 3, "calls_left": 1}
    assert [parent.call("t", {"n": n}, ok).code for n in range(2)] == [None, "user.budget.max_calls"]


def test_a_scope_that_only_observes_denies_nothing_and_says_what_it_would_have(make: Make) -> None:
    policy = shared(Budget(max_calls=1, mode="observe"))
    session = make(policy, "s1")
    assert session.decide("t", {"n": 1}).observed == ()
    watched = session.decide("t", {"n": 2})
    assert (watched.allowed, [said.code for said in watched.observed]) == (True, ["user.budget.max_calls"])
    assert not session.exhausted


TWO = {"user": "u1", "tenant": "t"}


@table(("given", "said"), [
    *((given, r'the policy are global, tenant, user: write .*scopes={"tenant": \.\.\., "user": \.\.\.}') for given in (
        None, {"user": "u1"}, {**TWO, "usr": "u"},
    )),
    ({**TWO, "user": ""}, "the id of the scope `user` must not be empty"),
    ({**TWO, "user": "../x"}, "the id of the scope `user` must not hold"),
    ({**TWO, "user": 7}, "the id of the scope `user` is text, not int"),
    ({**TWO, "user": "x" * 300}, "the id of the scope `user` must not be empty; it has at most 256 bytes, not 300"),
])  # fmt: skip
def test_a_session_must_say_whose_it_is_but_for_the_scope_of_everyone(given: Any, said: str, clock: Any) -> None:
    budget = [Budget(max_calls=1)]
    with pytest.raises(SessionError, match=said):
        Policy(scopes={"user": budget, "tenant": budget, "global": budget}).session("s", scopes=given)
    everyone = Policy(scopes={"global": budget})
    codes = [everyone.session(name, clock=clock).call("t", {}, ok).code for name in ("a", "b")]
    assert codes == [None, "global.budget.max_calls"]
    assert everyone.session("c", clock=clock).ledger.limit_message == (
        "Tool call limit reached (1). Stopping tool loop. The limit is shared by all sessions."
    )
    with pytest.raises(SessionError):
        everyone.session("/user/u1")


# Guards of one's own


@guard
class Own(Guard):
    """
    Calls a tool by its name: `bad` and `odd` make it fail where it looks or shapes. It is used up by *limit* calls, until it is extended.
    """

    scope_settings = ("mode", "limit")
    events = ("extend",)
    limit: int = 9

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        if call.tool == "bad":
            raise ZeroDivisionError
        return Denial(code="own.limit", message="Too often.") if (mine or 0) >= self.limit else None

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> int:
        return (mine or 0) + 1

    def event(self, event: Any, state: SessionState, mine: Any, facts: Facts) -> None:
        return None

    def spent(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        if (mine or 0) < self.limit:
            return None
        return Denial(code="own.used_up", message="Used up.", ends_session=True)

    def shape(self, envelope: Any, call: ToolCall, outcome: Any, state: SessionState, mine: Any, facts: Facts) -> Any:
        if call.tool == "odd":
            raise ZeroDivisionError
        envelope.is_complete = False
        return envelope

    def edges(self, state: SessionState, mine: Any, now_ms: int) -> list[Edge]:
        return [Edge((), self.limit)]


def test_a_guard_of_ones_own_can_be_a_scopes_looks_shapes_and_fails_as_any(make: Make) -> None:
    records = MemorySink()
    policy = shared(Own(limit=3), own=(Budget(max_calls=9),), messages={"call.error": {"message": "$guard broke."}})
    sessions = [make(policy, f"s{n}", records=records) for n in range(2)]
    failed = sessions[0].call("bad", {}, ok)
    assert (failed.code, failed.message) == ("call.error", "user.own broke.")
    assert sessions[0].call("t", {}, ok).is_complete is False
    # What it cannot shape is settled all the same.
    odd = sessions[1].call("odd", {}, lambda *_: 1 / 0)
    assert (odd.status, odd.progress) == ("error", {"calls_used": 1, "calls_left": 8})
    [(name, said)] = records.records[-1]["guard_errors"]
    assert (name, said.startswith("ZeroDivisionError")) == ("user.own", True)
    assert [sessions[1].call("t", {"n": n}, ok).code for n in range(2)] == [None, "user.own.limit"]
    assert sessions[0].exhausted == "user.own.used_up"
    sessions[0].extend(scope="user")
    assert sessions[1].call("t", {"n": 9}, ok).ok


# Laws, for every store


CALLS, USERS = 6, ("u0", "u1")
POLICY = Policy(
    [Budget(max_calls=5)],
    tools=[Tool(name="pay", cost_usd=0.3, timeout=60)],
    scopes={
        "user": [Budget(max_calls=CALLS, max_cost_usd=1.0), Rate(max_calls_per_second=3)],
        "tenant": [Budget(max_calls=9)],
    },
)
KINDS = ["call", "call", "fail", "decide", "settle", "wait", "forget", "child", "interrupt"]
EVENTS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(KINDS), st.integers(0, 3)), max_size=40)


class World:
    """
    Five sessions of two users of one tenant, and what really ran.
    """

    def __init__(self, store: Store) -> None:
        self.store, self.clock, self.ids = store, FakeClock(), count()
        self.admitted: Counter[str] = Counter()
        self.open: list[tuple[Session, Any]] = []

    def totals(self) -> list[tuple[Any, ...]]:
        def look(states: list[SessionState]) -> list[tuple[Any, ...]]:
            return [(s.calls, s.cost + s.held_cost, s.tokens, s.own.get("rate"), s.exhausted) for s in states]

        return self.store.update([*(f"/user/{user}" for user in USERS), "/tenant/acme"], look)

    def happen(self, who: int, what: str, n: int) -> None:
        user = USERS[who % 2]
        session = POLICY.session(f"s{who}", scopes={"user": user, "tenant": "acme"}, store=self.store, clock=self.clock)
        match what:
            case "call" | "fail" | "interrupt":
                self.call(session, user, what, n)
            case "decide":
                decision = session.decide("pay", {"n": n}, id=f"open {next(self.ids)}")
                self.admitted[user] += decision.allowed
                self.open.append((session, decision))
            case "settle" if self.open:
                settled, decision = self.open.pop(n % len(self.open))
                settled.complete(decision, Success("ok", cost_usd=0.1 * n))
            case "wait":
                self.clock.advance((0.1, 1.0, 30.0, 120.0)[n])
            case "forget":
                session.ledger.forget()
            case "child":
                with suppress(SessionError), session.child(f"kid {self.clock.now} {n}", max_calls=2) as child:
                    self.call(child, user, "call", n)

    def call(self, session: Session, user: str, what: str, n: int) -> None:
        before, ran = self.totals(), []

        def execute(*_: Any) -> Success:
            ran.append(n)
            if what != "call":
                raise TimeoutError if what == "fail" else KeyboardInterrupt
            return Success("ok", cost_usd=0.1 * n)

        with suppress(KeyboardInterrupt):
            session.call("pay", {"n": n}, execute)
        self.admitted[user] += len(ran)
        if not ran:
            assert self.totals() == before


@table("in_a_file", [False, True])
@settings(max_examples=40)
@given(EVENTS)
def test_a_scope_never_overshoots_counts_each_call_once_and_a_denial_charges_none(in_a_file: bool, events: Any) -> None:
    with TemporaryDirectory() as folder, SqliteStore(Path(folder, "state.db")) as file:
        world = World(file if in_a_file else MemoryStore(live=1))
        for event in events:
            world.happen(*event)
        *users, tenant = world.totals()
    assert [calls for calls, *_ in users] == [world.admitted[user] for user in USERS]
    assert all(calls <= CALLS for calls, *_ in users)
    assert tenant[0] == sum(world.admitted.values()) <= 9
    # A call may cost more than was thought; no more is admitted then.
    assert all(money <= 1_000_000 + calls * 300_000 for calls, money, *_ in users)
