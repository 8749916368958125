"""
What a session, one tool, a model request and a family may use: held before, charged after, exact to the micro-dollar.
"""

import threading

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Growth, MemorySink, MemoryStore, Policy, Success, Tool
from guardrails.core.chain import Rule
from guardrails.core.guards.budget import CALLS, COST, TOKENS, TURNS, ToolBudget, held
from guardrails.core.refusals import usd
from guardrails.core.state import SessionState
from guardrails.core.values.usage import Price
from guardrails.errors import SessionError
from tests.conftest import FakeClock
from tests.core.guards.calls import admitted, gives, make, ok
from tests.replaying import replay
from tests.tables import table


DOLLAR: dict[str, Any] = {"max_cost_usd": 1.0}


def tool(name: str = "t", **declared: Any) -> list[Tool]:
    return [Tool(name=name, **declared)]


def used(session: Any, tokens: int, **more: Any) -> None:
    session.charge(model="m", usage={"prompt_tokens": tokens}, cost_usd=more.pop("cost_usd", 0), **more)


def live(session: Any) -> SessionState:
    state: SessionState = session.ledger.read(lambda state, _: state)
    return state


def tokens(session: Any) -> tuple[int, int]:
    """
    Tokens that were used, and those that are held for model requests.
    """
    return live(session).tokens, held(live(session))[1]


def test_a4_50_parallel_calls_of_50_cents_under_a_dollar_admit_2(clock: Any) -> None:
    session = make(clock, Budget(**DOLLAR), tools=tool(cost_usd=0.5))
    decisions = [session.decide("t", {"n": n}, id=f"call_{n}") for n in range(50)]
    assert [decision.allowed for decision in decisions] == [True, True] + [False] * 48
    assert {(one.code, one.denial.ends_session) for one in decisions[2:]} == {("budget.max_cost_usd", False)}
    for decision in decisions[:2]:
        session.complete(decision, "ok")
    assert (session.ledger.cost_usd, session.exhausted) == (1.0, "budget.max_cost_usd")


def test_a_cost_below_nothing_gives_nothing_back(clock: Any) -> None:
    session = make(clock, Budget(**DOLLAR), tools=tool(cost_usd=0.5))
    assert admitted(session, 5, gives(Success("ok", cost_usd=-5))) == 2
    assert session.exhausted == "budget.max_cost_usd"


def test_a_clock_that_goes_back_or_jumps_never_gives_time_back(clock: Any) -> None:
    session, seen = make(clock, Budget(max_elapsed=10)), []
    for number, seconds in enumerate((0, 8, -1_000_000, 1_000_011, -5_000_000)):
        clock.advance(seconds)
        seen.append(session.call("t", {"n": number}, ok).ok)
    assert seen == [True, True, True, False, False]


def test_the_names_of_the_seeds_are_accepted_once_each() -> None:
    seeds: Any = {"max_tool_calls": 1, "max_tool_turns": 2, "max_total_cost_usd": 3.0}
    assert Budget(**seeds) == Budget(max_calls=1, max_turns=2, max_cost_usd=3.0)
    twice: Any = {"max_turns": 1, "max_tool_iterations": 2}
    with pytest.raises(TypeError, match="`max_turns` is given twice, once as `max_tool_iterations`"):
        Budget(**twice)
    given = {"max_tool_calls": 3, "max_total_cost_usd": 0.5, "max_elapsed": 1.001, "max_tokens": None}
    ruled = [(one.limit, one.amount) for one in Budget.ruled(None, given) if isinstance(one, ToolBudget)]
    assert ruled == [("max_calls", 3), ("max_cost_usd", 500_000), ("max_elapsed", 1_001)]


@table(("micro", "text"), [(400, "$0.0004"), (-1_250_000, "-$1.25"), (12_000_000, "$12.00")])
def test_money_is_written_as_people_write_it(micro: int, text: str) -> None:
    assert usd(micro) == text


def test_more_names_than_there_are_counters_make_it_stricter_and_never_looser(clock: Any) -> None:
    session = make(clock, rules=[Rule(match="*", guards={"budget": {"max_calls": 2}})])
    counts = [admitted(session, 4, tool=f"tool_{number}") for number in range(120)]
    assert (counts[:20], max(counts), sum(counts[70:]) <= 4) == ([2] * 20, 2, True)


# Estimates that are held: of model requests, and of tokens of calls


def test_20_parallel_requests_of_900_tokens_under_a_cap_of_1000_are_one(clock: Any) -> None:
    session, barrier = make(clock, Budget(max_tokens=1_000)), threading.Barrier(20)

    def ask(_: int) -> Any:
        barrier.wait()
        return session.request(tokens=900)

    with ThreadPoolExecutor(20) as pool:
        asked = list(pool.map(ask, range(20)))
    assert [each.allowed for each in asked].count(True) == 1
    refused = next(each for each in asked if not each.allowed)
    message = "This model request is estimated at 900 tokens, 100 is left."
    assert (refused.code, refused.message, session.exhausted) == ("budget.max_tokens", message, None)


def test_a_request_is_held_until_it_fails_or_is_charged_however_late(clock: Any) -> None:
    session = make(clock, Budget(max_tokens=1_000))
    session.request(tokens=900).release()
    with pytest.raises(ConnectionError), session.request(tokens=900):
        raise ConnectionError
    lost = session.request(tokens=900)
    for seconds in (599, 2):
        clock.advance(seconds)
        assert not session.request(tokens=200).allowed
    assert tokens(session) == (0, 900)
    used(session, 300, request=lost)
    assert (tokens(session), session.request(tokens=200).allowed) == ((300, 0), True)


def test_a_charge_settles_the_request_that_it_names_and_no_other(clock: Any) -> None:
    session = make(clock, Budget(max_tokens=2_000))
    first = session.request(tokens=900)
    with session.request(tokens=900) as second:
        used(session, 900, request=second)
        assert tokens(session) == (900, 900)
    used(session, 900)
    first.release()
    assert tokens(session) == (1_800, 0)
    session = make(clock, Budget(max_cost_usd=2))
    for cost in (0.1, 0.9):
        session.request(cost_usd=cost)
    session.charge(model="m", cost_usd=0.5)
    assert session.ledger.progress["cost_left_usd"] == 1.4, "that of 0.1 is held"


def test_requests_of_unknown_size_are_held_by_the_average_so_far(clock: Any) -> None:
    session = make(clock, Budget(max_tokens=10_000))
    for amount in (800, 1_000):
        session.request()
        used(session, amount)
    asked = [session.request() for _ in range(20)]
    assert [each.allowed for each in asked] == [True] * 9 + [False] * 11
    # Of a guess the first is made all the same, however little is left.
    for each in asked[:9]:
        used(session, 900, request=each)
    assert session.ledger.progress["tokens_left"] == 100
    assert session.request().allowed


@table("estimate", [{"tokens": -1}, {"tokens": 1.5}, {"tokens": True}, {"cost_usd": "much"}])
def test_what_is_no_amount_is_no_estimate(estimate: Any, clock: Any) -> None:
    session = make(clock, Budget(max_tokens=9))
    with pytest.raises(SessionError, match=f"`{next(iter(estimate))}` takes"):
        session.request(**estimate)
    assert live(session) == SessionState()


def test_a_scope_holds_what_its_sessions_have_asked_for(clock: Any) -> None:
    policy, sink = Policy([Budget(max_calls=9)], scopes={"user": [Budget(max_tokens=1_000)]}), MemorySink()
    sessions = [policy.session(f"s{n}", scopes={"user": "u1"}, clock=clock, records=sink) for n in range(3)]
    asked = [session.request(tokens=450) for session in sessions]
    assert [each.code for each in asked] == [None, None, "user.budget.max_tokens"]
    asked[0].release()
    used(sessions[1], 100, request=asked[1])
    assert sessions[2].request(tokens=900).allowed
    assert all(again.same for again in replay(policy.chain, sink.records, scopes=policy.scopes))


PART, ANY = st.integers(0, 9), st.integers(0, 100)
steps = st.lists(
    st.tuples(st.just("request"), st.integers(0, 60), st.none())
    | st.tuples(st.sampled_from(["charge", "release", "settle"]), PART, ANY)
    | st.tuples(st.just("call"), st.sampled_from([0, 20, 50]), st.none())
    | st.tuples(st.just("wait"), st.sampled_from([1, 400, 700]), st.none()),
    max_size=30,
)


@given(steps=steps, named=st.booleans())
def test_a_cap_is_never_exceeded_where_estimates_are_not(steps: list[Any], named: bool) -> None:
    """
    Whatever order requests, charges and calls come in: what was really used is at most the cap, of tokens and of money.
    """
    clock, sink, cap, spent = FakeClock(), MemorySink(), 100, 0
    tools = [one for n in (0, 20, 50) for one in tool(f"t{n}", tokens=n, cost_usd=n / 1_000_000)]
    policy = Policy([Budget(max_tokens=cap, max_cost_usd=cap / 1_000_000)], tools=tools)
    session = policy.session("s", clock=clock, records=sink)
    opened: dict[str, list[tuple[Any, int]]] = {"request": [], "call": []}
    for number, (what, a, share) in enumerate(steps):
        if what == "wait":
            clock.advance(a)
        elif what in opened:
            call = what == "call"
            one = session.decide(f"t{a}", {"n": number}) if call else session.request(tokens=a, cost_usd=a / 1_000_000)
            opened[what] += [(one, a)] if one.allowed else []
        elif there := opened["call" if what == "settle" else "request"]:
            one, estimate = there.pop(a % len(there))
            actual = 0 if what == "release" else estimate * (share or 0) // 100
            spent += actual
            if what == "settle":
                session.complete(one, Success("ok", tokens=actual, cost_usd=actual / 1_000_000))
            elif what == "charge":
                used(session, actual, cost_usd=actual / 1_000_000, **({"request": one} if named else {}))
            else:
                one.release()
        state = live(session)
        assert spent <= cap
        assert min(state.held_cost, state.held_tokens, state.tokens, state.cost) >= 0
    again = SessionState()
    assert all(each.same for each in replay(policy.chain, sink.records, again))
    assert again == live(session)


# Model responses of unknown price


CODE, UNKNOWN = "budget.unpriced", "no-such-model"
SOME, MUCH = ({"prompt_tokens": 9 * n, "completion_tokens": n} for n in (100, 10_000_000))
PRICES = {"my-*": Price(input_mtok=0.0), "dear": Price(input_mtok=0.0, output_mtok=1.0)}


@table("charge", [
    *({"model": model, "usage": SOME} for model in (UNKNOWN, "", None, "m" * 500, "gpt-\ud800")),
    {"model": UNKNOWN, "usage": {"prompt_tokens": 0, "completion_tokens": 1}, "calls": 0},
    {"model": UNKNOWN, "usage": {"total_tokens": 100_000_000}},
    {"model": UNKNOWN, "usage": SOME, "whole": False},
    {"model": "gpt-5-mini", "usage": SOME, "provider": "no-such-provider"},
    {"model": "dear"},
    # A whole response that does not say what it used.
    *({"model": "gpt-5-mini", "usage": usage} for usage in (None, {}, {"prompt_tokens": "1"}, {"prompt_tokens": -5})),
])  # fmt: skip
def test_what_was_used_at_no_known_price_closes_the_session_and_names_no_price(charge: Any, clock: Any) -> None:
    session = make(clock, Budget(max_cost_usd=0.5), prices=PRICES)
    session.charge(**charge)
    assert (session.exhausted, session.ledger.unpriced, session.tool_choice("auto")) == (CODE, 1, "none")
    assert session.ledger.limit_message == "The cost limit ($0.50) cannot be held any more. Stopping tool loop."
    assert session.call("t", {}, ok).code == CODE
    session.extend()
    assert session.call("t", {}, ok).ok
    session.charge(**charge)
    assert (session.exhausted, session.ledger.unpriced) == (CODE, 2)


@table("charge", [
    {"model": UNKNOWN, "usage": MUCH, "cost_usd": 0}, {"model": UNKNOWN, "cost_usd": "0.1"},
    {"model": "my-7b", "usage": MUCH}, {"model": "my-7b"}, {"model": "gpt-5-mini", "usage": SOME},
    {"model": UNKNOWN, "usage": {"prompt_tokens": 0, "completion_tokens": 0}}, {"model": UNKNOWN, "whole": False},
])  # fmt: skip
def test_what_is_priced_or_free_or_broke_off_closes_nothing(charge: dict[str, Any], clock: Any) -> None:
    session = make(clock, Budget(max_cost_usd=0.5), prices=PRICES)
    session.charge(**charge)
    assert session.call("t", {}, ok).ok


@table("guards", [
    (Budget(max_calls=5),), (Growth(max_tokens_per_minute=10**9),), (Budget(max_cost_usd=0.5, on_unpriced="warn"),),
    (Budget(max_cost_usd=0.5, mode="observe"),), (Budget(max_cost_usd=0.5, mode="off"),),
])  # fmt: skip
def test_without_a_cap_that_is_enforced_nothing_is_closed(guards: Any, clock: Any) -> None:
    session = make(clock, *guards)
    session.charge(model=UNKNOWN, usage=MUCH)
    assert (session.exhausted, session.ledger.unpriced, session.call("t", {}, ok).ok) == (None, 1, True)


def test_a_response_without_a_price_closes_the_family_or_the_scope_that_shares_the_cap(clock: Any) -> None:
    parent = make(clock, Budget(max_cost_usd=0.5))
    with parent.child("c", max_cost_usd=0.1) as child:
        child.charge(model=UNKNOWN, usage=SOME)
        assert child.exhausted == parent.exhausted == CODE
    policy, store = Policy(scopes={"user": [Budget(**DOLLAR)]}), MemoryStore()
    one, other, stranger = (
        policy.session(name, clock=clock, store=store, scopes={"user": user})
        for name, user in (("one", "u1"), ("two", "u1"), ("three", "u2"))
    )
    one.charge(model=UNKNOWN, usage=MUCH)
    assert (other.call("t", {}, ok).code, stranger.call("t", {}, ok).code) == (f"user.{CODE}", None)
    other.extend(scope="user")
    assert other.call("t", {}, ok).ok


# Periods, and what is beyond a limit


@given(
    st.lists(st.tuples(st.sampled_from([0, 3_600, 40_000, 90_000]), st.sampled_from([0.25, 0.5, 1.0])), max_size=30),
    st.sampled_from(["", "user"]),
)
def test_no_day_is_over_its_budget(story: Any, scope: str) -> None:
    now, days = [1_800_000_000.0], dict[int, float]()
    budget = Budget(max_cost_usd=2, per="day")
    tools = [Tool(name=f"t{cost}", cost_usd=cost) for cost in (0.25, 0.5, 1.0)]
    policy = Policy([] if scope else [budget], scopes={"user": [budget]} if scope else {}, tools=tools)
    session = policy.session("s", clock=lambda: now[0], scopes={"user": "u"} if scope else {})
    for number, (gap, cost) in enumerate(story):
        now[0] += gap
        day = int(now[0] // 86_400)
        fits = days.get(day, 0) + cost <= 2
        assert session.call(f"t{cost}", {"n": number}, lambda *_: "ok").ok == fits
        days[day] = days.get(day, 0) + cost * fits


def test_what_is_told_as_near_is_what_is_near() -> None:
    for limit, reserve in ((CALLS, 0), (TURNS, 0), (TOKENS, 0), (COST, 0), (COST, 7)):
        for most, used in product(range(reserve + 1, 60), range(60)):
            own: dict[str, Any] = {limit.setting: most / limit.unit, "final_answer_reserve_usd": reserve / 1e6}
            so_far: dict[str, Any] = {limit.counts: used}
            budget, state, left = Budget(**own), SessionState(**so_far), most - reserve - used
            near = [limit.left] if left * 5 <= most or left < limit.few else []
            assert [*budget.limits.progress(state, 0, near=True)] == ["calls_used", *near]


def test_the_operator_is_told_once_of_a_limit_that_is_near_and_its_failure_costs_no_call(clock: Any) -> None:
    heard, records = list[Any](), MemorySink()
    policy = Policy([Budget(max_calls=10, warn_at=0.8)], scopes={"user": [Budget(max_calls=12, warn_at=0.5)]})

    def hear(*told: Any) -> None:
        heard.append(told)
        raise ConnectionError

    session = policy.session("s", clock=clock, scopes={"user": "u"}, records=records, on_warning=hear)
    assert admitted(session, 9) == 9
    own, users = (f"Left: {left}. Do what matters most first." for left in ("2 calls of 10", "6 calls of 12"))
    assert heard == [("user.budget.warning", users), ("budget.warning", own)]
    assert [line["warnings"] for line in records.records if "warnings" in line] == [[list(one)] for one in heard]


@table("answer, ran", [(True, 6), ("enough", 2), (None, 2)])
def test_an_approver_is_asked_and_its_no_is_the_end(clock: Any, answer: Any, ran: int) -> None:
    asked: list[Any] = []

    def approver(call: Any) -> Any:
        asked.append(call.reason)
        return answer

    made = Policy([Budget(max_calls=2, at_limit="ask")]).session("s", clock=clock, approver=approver)
    assert [made.call("t", {"n": n}, ok).ok for n in range(6)].count(True) == ran
    assert len(asked) == (2 if answer is True else 1)
    assert made.exhausted == (None if answer is True else "budget.max_calls")
    made.extend(max_calls=5)
    assert made.call("t", {"n": "extended"}, ok).ok


WRITES: Any = {"allow": ["write_*"], "calls": 2}


@given(st.lists(st.sampled_from(["t", "write_file", "charge"]), max_size=20), st.sampled_from(["ask", WRITES]))
def test_no_more_is_beyond_a_limit_than_it_says_and_a_replay_decides_the_same(story: list[str], at_limit: Any) -> None:
    records, ran = MemorySink(), list[str]()
    policy = Policy([Budget(max_calls=3, at_limit=at_limit)], tools=[Tool(name="t")])
    made = policy.session("s", clock=lambda: 1.8e9, records=records)

    def run(tool: str, arguments: Any) -> str:
        ran.append(tool)
        return "ok"

    for number, name in enumerate(story):
        if name == "charge":
            made.charge(model="m", usage={"prompt_tokens": 1}, cost_usd=0)
        else:
            made.call(name, {"n": number}, run)
    assert len(ran) <= 3 + 2 * (at_limit == WRITES)
    assert set(ran[3:]) <= {"write_file"}
    assert [one.decided for one in replay(policy.chain, records.records) if not one.same] == []
