"""
Limits that sessions share, in memory and in a file.
"""

from collections.abc import Callable
from typing import Any

import pytest

from guardrails import Budget, Growth, MemorySink, MemoryStore, Policy, Rate, SqliteStore, Success, Tool
from guardrails.core.guards.base import Edge, Guard, guard
from guardrails.core.values.types import Denial, ToolCall
from guardrails.errors import SessionError
from guardrails.session.session import Session
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
    Calls a tool by its name: `bad` and `odd` make it fail where it looks or shapes. It is used up by three calls, until it is extended.
    """

    scope_settings = ("mode",)
    events = ("extend",)

    def check(self, call: ToolCall, state: Any, mine: Any, facts: Any) -> Denial | None:
        if call.tool == "bad":
            raise ZeroDivisionError
        return Denial(code="own.limit", message="Too often.") if mine == 3 else None

    def admit(self, call: ToolCall, state: Any, mine: Any, facts: Any) -> int:
        return (mine or 0) + 1

    def event(self, *_: Any) -> None:
        return None

    def spent(self, state: Any, mine: Any, facts: Any) -> Denial | None:
        return Denial(code="own.used_up", message="Used up.", ends_session=True) if mine == 3 else None

    def shape(self, envelope: Any, call: ToolCall, *_: Any) -> Any:
        if call.tool == "odd":
            raise ZeroDivisionError
        envelope.is_complete = False
        return envelope

    def edges(self, *_: Any) -> list[Edge]:
        return [Edge((), 3)]


def test_a_guard_of_ones_own_can_be_a_scopes_looks_shapes_and_fails_as_any(make: Make) -> None:
    records = MemorySink()
    policy = shared(Own(), own=(Budget(max_calls=9),), messages={"call.error": {"message": "$guard broke."}})
    one, two = (make(policy, f"s{n}", records=records) for n in range(2))
    failed = one.call("bad", {}, ok)
    assert (failed.code, failed.message) == ("call.error", "user.own broke.")
    assert one.call("t", {}, ok).is_complete is False
    # What it cannot shape is settled all the same.
    odd = two.call("odd", {}, lambda *_: 1 / 0)
    assert (odd.status, odd.progress) == ("error", {"calls_used": 1, "calls_left": 8})
    [(name, said)] = records.records[-1]["guard_errors"]
    assert (name, said.startswith("ZeroDivisionError")) == ("user.own", True)
    assert [two.call("t", {"n": n}, ok).code for n in range(2)] == [None, "user.own.limit"]
    assert one.exhausted == "user.own.used_up"
    one.extend(scope="user")
    assert two.call("t", {"n": 9}, ok).ok
