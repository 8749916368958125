"""
Limits that sessions share.
"""

import threading

from collections.abc import Callable
from typing import Any

import pytest

from guardrails import (
    Approve,
    Budget,
    Denial,
    Duplicates,
    Edge,
    Facts,
    Growth,
    Guard,
    MemorySink,
    MemoryStore,
    Policy,
    PolicyError,
    Rate,
    SessionError,
    SessionState,
    SqliteStore,
    Success,
    Tool,
    ToolCall,
    guard,
)
from guardrails.core.refusals import FINISH
from guardrails.session.session import Session
from tests.tables import table


def ok(*_: Any) -> str:
    return "ok"


@pytest.fixture(params=["memory", "sqlite"])
def store(request: Any, tmp_path: Any) -> Any:
    if request.param == "memory":
        yield MemoryStore()
        return
    with SqliteStore(tmp_path / "state.db") as made:
        yield made


@pytest.fixture
def make(store: Any, clock: Any) -> Callable[..., Session]:
    def session(policy: Policy, name: str, user: str = "u1", **options: Any) -> Session:
        return policy.session(name, scopes={"user": user}, store=store, clock=clock, **options)

    return session


def shared(*guards: Guard, own: tuple[Guard, ...] = (), **options: Any) -> Policy:
    return Policy(own, scopes={"user": guards}, **options)


def test_the_sessions_of_a_user_share_its_calls_and_no_other_users(make: Callable[..., Session]) -> None:
    policy = shared(Budget(max_calls=3))
    codes = [make(policy, f"s{n}").call("t", {"n": n}, ok).code for n in range(5)]
    assert codes == [None, None, None, "user.budget.max_calls", "user.budget.max_calls"]
    assert make(policy, "s0", "u2").call("t", {}, ok).ok


def test_the_call_that_uses_up_the_money_of_a_scope_is_told_to_finish(make: Callable[..., Session]) -> None:
    last = make(shared(Budget(max_cost_usd=1)), "s1").call("t", {}, lambda *_: Success("ok", cost_usd=1))
    assert (last.ok, last.next_action_hint) == (True, FINISH)


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


def test_what_a_call_really_cost_reaches_the_scope(make: Callable[..., Session]) -> None:
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


def test_a_model_response_is_charged_to_the_scope_too(make: Callable[..., Session]) -> None:
    policy = shared(Budget(max_cost_usd=1.0, max_tokens=100))
    make(policy, "s1").charge(model="m", usage={"prompt_tokens": 60}, cost_usd=0.25)
    other = make(policy, "s2")
    assert other.ledger.progress == {"calls_used": 0, "cost_left_usd": 0.75, "tokens_left": 40}
    other.charge(model="m", usage={"prompt_tokens": 40}, cost_usd=0.25)
    assert (other.exhausted, other.ledger.cost_usd) == ("user.budget.max_tokens", 0.25)
    assert make(policy, "s3").tool_choice("auto") == "none"


def test_progress_is_that_of_the_nearest_limit(make: Callable[..., Session]) -> None:
    policy = shared(Budget(max_calls=10), own=(Budget(max_calls=8, max_turns=3),))
    make(policy, "s1").call("t", {}, ok)
    for n in range(4):
        make(policy, "s2").call("t", {"n": n}, ok)
    assert make(policy, "s2").ledger.progress == {"calls_used": 4, "calls_left": 4, "turns_left": 2}
    assert make(policy, "s3").ledger.progress == {"calls_used": 0, "calls_left": 5, "turns_left": 3}
    assert make(policy, "s3").call("t", {}, ok).progress == {"calls_used": 1, "calls_left": 4, "turns_left": 2}


def test_a_session_is_exhausted_while_its_scope_is_and_goes_on_when_that_is_extended(
    make: Callable[..., Session],
) -> None:
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


def test_a_rate_and_a_growth_cap_hold_for_all_sessions_of_a_scope(make: Callable[..., Session], clock: Any) -> None:
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


def test_closing_or_forgetting_a_session_loses_nothing_of_its_scopes(make: Callable[..., Session]) -> None:
    policy = shared(Budget(max_calls=2))
    for name in ("s1", "s2"):
        with make(policy, name) as session:
            session.call("t", {}, ok)
        session.ledger.forget()
    assert make(policy, "s1").call("t", {}, ok).code == "user.budget.max_calls"


def test_a_child_counts_in_its_parents_scopes_once(make: Callable[..., Session]) -> None:
    policy = shared(Budget(max_calls=4), own=(Budget(max_calls=10),))
    parent = make(policy, "p")
    with parent.child("c", max_calls=3) as child:
        assert [child.call("t", {"n": n}, ok).ok for n in range(2)] == [True] * 2
        with child.child("d", max_calls=1) as deeper:
            assert deeper.call("t", {}, ok).ok
    assert parent.ledger.progress == {"calls_used": 3, "calls_left": 1}
    assert [parent.call("t", {"n": n}, ok).code for n in range(2)] == [None, "user.budget.max_calls"]


def test_the_estimate_of_a_session_that_is_never_heard_of_again_stays_held_in_its_scope(
    make: Callable[..., Session], clock: Any
) -> None:
    policy = shared(Budget(max_cost_usd=1.0), tools=[Tool(name="pay", cost_usd=0.6, timeout=5)])
    gone = make(policy, "gone")
    lost = gone.decide("pay", {}, id="a")
    other = make(policy, "other")
    assert other.call("pay", {}, ok).code == "user.budget.max_cost_usd"
    clock.advance(6)
    assert other.call("pay", {}, ok).code == "user.budget.max_cost_usd"
    gone.complete(lost, Success("late", cost_usd=0.7))
    assert other.ledger.progress["cost_left_usd"] == 0.3


def test_a_name_that_lives_again_takes_nothing_from_the_scope(make: Callable[..., Session]) -> None:
    policy = shared(Budget(max_cost_usd=1.0), tools=[Tool(name="pay", cost_usd=0.4)])
    first = make(policy, "s1")
    first.decide("pay", {}, id="a")
    first.ledger.forget()
    again = make(policy, "s1")
    assert again.call("pay", {}, lambda *_: Success("ok", cost_usd=0.1)).ok
    assert again.ledger.progress["cost_left_usd"] == 0.5


def test_what_was_asked_twice_is_charged_once_in_the_scope(make: Callable[..., Session]) -> None:
    policy = shared(Budget(max_calls=5))
    session = make(policy, "s1")
    for _ in range(3):
        assert session.decide("t", {"n": 1}, id="a").allowed
    assert session.call("t", {"n": 1}, ok, id="a").ok
    assert session.ledger.progress["calls_left"] == 4


def test_a_scope_that_only_observes_denies_nothing_and_says_what_it_would_have(make: Callable[..., Session]) -> None:
    policy = shared(Budget(max_calls=1, mode="observe"))
    session = make(policy, "s1")
    assert session.decide("t", {"n": 1}).observed == ()
    watched = session.decide("t", {"n": 2})
    assert (watched.allowed, [said.code for said in watched.observed]) == (True, ["user.budget.max_calls"])
    assert not session.exhausted


@guard
class Careful(Guard):
    """
    Refuses what it cannot look at.
    """

    limit: int = 1

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        if call.tool == "bad":
            raise ZeroDivisionError
        if mine is None or mine["calls"] < self.limit:
            return None
        return Denial(code="careful.limit", message="Too often.")

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> dict[str, int]:
        return {"calls": 1 if mine is None else mine["calls"] + 1}

    def edges(self, state: SessionState, mine: Any, now_ms: int) -> list[Edge]:
        return [Edge(("calls",), self.limit)]


def test_a_guard_of_ones_own_can_be_a_scopes(make: Callable[..., Session]) -> None:
    policy = shared(Careful(limit=2))
    sessions = [make(policy, f"s{n}") for n in range(3)]
    assert sessions[0].call("bad", {}, ok).code == "call.error"
    codes = [session.call("t", {}, ok).code for session in sessions]
    assert codes == [None, None, "user.careful.limit"]


@table("where", ["check", "spent"])
def test_a_guard_of_a_scope_that_fails_has_the_code_and_the_words_of_any_that_fails(
    make: Callable[..., Session], where: str
) -> None:
    def fails(self: Any, *_: Any) -> Any:
        raise RuntimeError("broken")

    broken: Any = guard(type("Broken", (Guard,), {"__annotations__": {}, where: fails, "edges": lambda *_: []}))
    session = make(shared(broken(), messages={"call.error": {"message": "$guard broke."}}), where)
    envelope = session.call("t", {}, ok)
    assert (envelope.code or session.exhausted) == "call.error"
    assert (envelope.message or session.ledger.limit_message) == "user.broken broke."


def test_own_objections_stand_before_those_of_scopes(make: Callable[..., Session]) -> None:
    policy = shared(Budget(max_calls=1), own=(Duplicates(window=5), Budget(max_calls=1)))
    session = make(policy, "s1")
    session.call("t", {}, ok)
    codes = [denial.code for denial in session.decide("t", {}).denials]
    assert codes == ["budget.max_calls", "budget.max_calls", "user.budget.max_calls", "duplicates.window"]


@guard
class Forgetful(Guard):
    """
    Says nothing of what it goes by.
    """


@pytest.mark.usefixtures("quick_switches")
def test_threads_of_many_sessions_admit_exactly_the_budget_of_their_scope(make: Callable[..., Session]) -> None:
    policy, ran = shared(Budget(max_calls=20)), list[int]()

    def work(index: int) -> None:
        for n in range(5):
            make(policy, f"s{index}").call("t", {"n": n}, lambda *_, n=n: ran.append(n))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ran) == 20


@table(
    ("given", "said"),
    [
        (
            None,
            'are `global`, `tenant`, `user`, and the session says global: write .*scopes={"tenant": ..., "user": ...}',
        ),
        ({"user": "u1"}, "and the session says global, user: write"),
        ({"user": "u1", "tenant": "t", "usr": "u"}, "and the session says global, tenant, user, usr: write"),
        ({"user": "", "tenant": "t"}, "the id of the scope `user` must not be empty"),
        ({"user": "../x", "tenant": "t"}, "the id of the scope `user` must not hold"),
        ({"user": 7, "tenant": "t"}, "the id of the scope `user` is text, not int"),
        (
            {"user": "x" * 300, "tenant": "t"},
            "the id of the scope `user` must not be empty; it has at most 256 bytes, not 300",
        ),
    ],
)
def test_a_session_must_say_whose_it_is(given: Any, said: str) -> None:
    budget = [Budget(max_calls=1)]
    policy = Policy(scopes={"user": budget, "tenant": budget, "global": budget})
    with pytest.raises(SessionError, match=said.replace("...", r"\.\.\.").replace("?", r"\?").replace(".*", ".*")):
        policy.session("s", scopes=given)


def test_the_scope_of_everyone_needs_no_id(clock: Any) -> None:
    policy = Policy(scopes={"global": [Budget(max_calls=1)]})
    codes = [policy.session(name, clock=clock).call("t", {}, ok).code for name in ("a", "b")]
    assert codes == [None, "global.budget.max_calls"]
    assert policy.session("c", clock=clock).ledger.limit_message == (
        "Tool call limit reached (1). Stopping tool loop. The limit is shared by all sessions."
    )


def test_no_session_can_be_called_like_a_scope(store: Any, clock: Any) -> None:
    policy = Policy()
    for name in ("/user/u1", "user/u1"):
        with pytest.raises(SessionError):
            policy.session(name, store=store, clock=clock)


@table(
    ("scopes", "said"),
    [
        ({"User": [Budget(max_calls=1)]}, "scopes: a scope is named like `user`"),
        ({"budget": [Budget(max_calls=1)]}, "scopes: a scope is named like `user`"),
        ({"user": []}, "scopes.user: a scope without guards limits nothing"),
        (
            {"user": [Duplicates()]},
            "scopes.user: unknown key `duplicates`, known here: `budget`, `growth`, `rate`, `retry_budget`. A scope holds amounts alone",
        ),
        ({"user": [Budget(max_turns=1)]}, "scopes.user.budget: unknown key `max_turns`"),
        ({"user": [Budget(max_calls=-1)]}, "scopes.user.budget.max_calls: "),
        ({"user": [Budget]}, "scopes.user: `<class 'guardrails.core.guards.budget.Budget'>` is no guard: write one"),
        ({"user": [Rate(max_calls_per_second=1)] * 2}, "scopes.user: `rate` is given twice"),
        (
            {"user": [Forgetful()]},
            "scopes.user: unknown key `forgetful`, known here: ",
        ),
    ],
)
def test_what_is_wrong_with_a_scope_is_told(scopes: Any, said: str) -> None:
    with pytest.raises(PolicyError) as raised:
        Policy(scopes=scopes)
    assert [mistake for mistake in raised.value.mistakes if mistake.startswith(said)]


@guard
class Fragile(Guard):
    """
    Cannot look at a failure.
    """

    scope_settings = ("mode",)

    def shape(self, envelope: Any, call: ToolCall, outcome: Any, state: SessionState, mine: Any, facts: Facts) -> Any:
        if call.tool == "bad":
            raise ZeroDivisionError
        return "no envelope"

    def edges(self, state: SessionState, mine: Any, now_ms: int) -> list[Edge]:
        return []


@table("tool, said", [("bad", "ZeroDivisionError"), ("t", "TypeError")])
def test_a_call_is_settled_though_a_guard_of_a_scope_cannot_shape_its_failure(tool: str, said: str, clock: Any) -> None:
    records = MemorySink()
    policy = shared(Fragile(), own=(Budget(max_calls=5),))
    session = policy.session("s", scopes={"user": "u1"}, clock=clock, records=records)
    failed = session.call(tool, {}, lambda *_: 1 / 0)
    assert (failed.status, (failed.progress or {})["calls_used"]) == ("error", 1)
    settled = records.records[-1]
    assert (settled["event"], settled["guard_errors"][0][0]) == ("settle", "user.fragile")
    assert settled["guard_errors"][0][1].startswith(said)


@guard
class Late(Guard):
    """
    Says of each result that there is more.
    """

    scope_settings = ("mode",)

    def shape(self, envelope: Any, call: ToolCall, outcome: Any, state: SessionState, mine: Any, facts: Facts) -> Any:
        envelope.is_complete = False
        return envelope

    def edges(self, state: SessionState, mine: Any, now_ms: int) -> list[Edge]:
        return []


def test_a_guard_of_a_scope_shapes_what_works_too(make: Callable[..., Session]) -> None:
    assert make(shared(Late()), "s").call("t", {}, ok).is_complete is False


@guard
class Ending(Guard):
    """
    Is used up by one call, until it is extended.
    """

    events = ("extend",)

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> int:
        return 1

    def event(self, event: Any, state: SessionState, mine: Any, facts: Facts) -> None:
        return None

    def spent(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        return Denial(code="ending.used_up", message="Used up.", ends_session=True) if mine else None

    def edges(self, state: SessionState, mine: Any, now_ms: int) -> list[Edge]:
        return []


def test_a_limit_of_a_scope_is_found_when_a_call_that_waited_is_made(make: Callable[..., Session]) -> None:
    policy = shared(Ending(), Budget(max_calls=9), own=(Approve(tools=("t",)),))
    for extended, limit in ((False, True), (True, None)):
        session = make(policy, "s", f"u{extended}")
        session.call("t", {}, ok, id="c1")
        session.approve("c1")
        if extended:
            session.extend(max_calls=1, scope="user")
        assert session.call("t", {}, ok, id="c1").limit_reached is limit
        session.ledger.forget()


def test_a_scope_that_was_forgotten_gives_nothing_back(clock: Any) -> None:
    store = MemoryStore()
    policy = shared(Budget(max_calls=3, max_cost_usd=5), tools=[Tool(name="t", cost_usd=1)])
    session = policy.session("s", scopes={"user": "u1"}, store=store, clock=clock)
    session.decide("t", {}, id="c1")
    store.forget("/user/u1")
    session.calls.release("c1")
    assert store.update(["/user/u1"], lambda states: (states[0].calls, states[0].cost)) == (0, 0)
