"""
What a model response of unknown price does to a session whose cost is limited.
"""

import logging

from typing import Any

import pytest

from guardrails import Budget, Growth, MemorySink, MemoryStore, Policy, Price, Rule
from tests.replaying import replay
from tests.tables import table


CODE = "budget.unpriced"
MUCH = {"prompt_tokens": 90_000_000, "completion_tokens": 10_000_000}
SOME = {"prompt_tokens": 900, "completion_tokens": 100}
UNKNOWN = "no-such-model"


def ok(*_: Any) -> str:
    return "ok"


def make(clock: Any, *guards: Any, **settings: Any) -> Any:
    return Policy(guards, **settings).session("s", clock=clock)


def capped(clock: Any, **settings: Any) -> Any:
    return make(clock, Budget(max_cost_usd=0.5), **settings)


def test_a_hundred_million_tokens_of_a_model_without_a_price_close_the_session(clock: Any) -> None:
    session = capped(clock)
    session.charge(model=UNKNOWN, usage=MUCH, calls=1)
    assert (session.exhausted, session.ledger.unpriced, session.tool_choice("auto")) == (CODE, 1, "none")
    refused = session.call("t", {}, ok)
    assert (refused.code, refused.status) == (CODE, "limit_reached")


@table("model", [UNKNOWN, "", None, "m" * 500, "gpt-\ud800"])
def test_a_model_of_any_name_closes_it_and_nobody_tells_the_model_of_prices(
    model: Any, clock: Any, caplog: Any
) -> None:
    session = capped(clock)
    session.charge(model=model, usage=SOME)
    assert session.exhausted == CODE
    assert session.ledger.limit_message == "The cost limit ($0.50) cannot be held any more. Stopping tool loop."


@table(
    "charge",
    [
        {"model": UNKNOWN, "usage": SOME},
        {"model": UNKNOWN, "usage": {"input_tokens": 1, "output_tokens": 0}},
        {"model": UNKNOWN, "usage": {"prompt_tokens": 0, "completion_tokens": 1}, "calls": 0},
        {"model": UNKNOWN, "usage": {"total_tokens": 100_000_000}},
        {"model": UNKNOWN, "usage": {"prompt_tokens": 1e8}},
        {"model": "gpt-5-mini", "usage": SOME, "provider": "no-such-provider"},
        {"model": "whisper-1", "usage": SOME, "provider": "openai"},
        {"model": "other-7b", "usage": SOME, "provider": "http://127.0.0.1:8000/v1"},
    ],
)
def test_whatever_was_used_at_no_known_price_closes_it(charge: dict[str, Any], clock: Any) -> None:
    session = capped(clock, prices={"my-*": Price(input_mtok=1.0)})
    session.charge(**charge)
    assert session.exhausted == CODE


@table(
    "charge",
    [
        {"model": UNKNOWN, "usage": SOME, "cost_usd": 0.01},
        {"model": UNKNOWN, "usage": MUCH, "cost_usd": 0},
        {"model": UNKNOWN, "cost_usd": "0.1"},
        {"model": "my-7b", "usage": MUCH},
        {"model": "my-7b"},
        {"model": "gpt-5-mini", "usage": SOME},
        {"model": "gpt-5-mini", "usage": SOME, "provider": "openai"},
        {"model": UNKNOWN, "usage": {"prompt_tokens": 0, "completion_tokens": 0}},
        {"model": UNKNOWN, "whole": False},
        {"model": "gpt-5-mini", "usage": {}, "whole": False},
    ],
)
def test_what_is_priced_or_free_or_broke_off_closes_nothing(charge: dict[str, Any], clock: Any) -> None:
    session = capped(clock, prices={"my-*": Price(input_mtok=0.0)})
    session.charge(**charge)
    assert not session.exhausted
    assert session.call("t", {}, ok).ok


@table("model", [UNKNOWN, "gpt-5-mini", ""])
@table(
    "usage",
    [
        None,
        {},
        {"total_time": 1.5},
        {"prompt_tokens": "100000000"},
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": -5, "completion_tokens": 2},
    ],
)
def test_a_whole_response_that_does_not_say_what_it_used_closes_it(usage: Any, model: str, clock: Any) -> None:
    session = capped(clock)
    session.charge(model=model, usage=usage)
    assert session.exhausted == CODE
    assert session.ledger.limit_message == "The cost limit ($0.50) cannot be held any more. Stopping tool loop."
    session.extend()
    assert session.call("t", {}, ok).ok


def test_a_response_that_broke_off_closes_it_where_it_had_used_tokens_without_a_price(clock: Any) -> None:
    session = capped(clock)
    session.charge(model=UNKNOWN, usage=SOME, whole=False)
    assert session.exhausted == CODE


def test_a_free_model_costs_nothing_whatever_it_did_not_say(clock: Any) -> None:
    session = capped(clock, prices={"free": Price(input_mtok=0.0), "dear": Price(input_mtok=0.0, output_mtok=1.0)})
    assert session.charge(model="free").cost == 0
    assert session.charge(model="dear").cost is None
    assert session.ledger.unpriced == 1


@table(
    "guards",
    [
        (),
        (Budget(max_calls=5),),
        (Budget(max_tokens=10**9),),
        (Growth(max_tokens_per_minute=10**9),),
        (Budget(max_cost_usd=0.5, on_unpriced="warn"),),
        (Budget(max_cost_usd=0.5, mode="observe"),),
        (Budget(max_cost_usd=0.5, mode="off"),),
    ],
)
def test_without_a_cap_that_is_enforced_nothing_is_closed(guards: Any, clock: Any) -> None:
    session = make(clock, *guards)
    session.charge(model=UNKNOWN, usage=MUCH)
    assert (session.exhausted, session.ledger.unpriced) == (None, 1)
    assert session.call("t", {}, ok).ok


def test_one_line_of_the_log_names_the_model_that_is_let_pass(caplog: pytest.LogCaptureFixture, clock: Any) -> None:
    session = make(clock, Budget(max_cost_usd=0.5, on_unpriced="warn"))
    with caplog.at_level(logging.WARNING, "guardrails"):
        for _ in range(3):
            session.charge(model="warned-of-once", usage=SOME)
    [said] = [record.getMessage() for record in caplog.records]
    assert "`warned-of-once`" in said
    assert "`prices:`" in said


def test_an_extended_session_goes_on_until_the_next_response_without_a_price(clock: Any) -> None:
    session = capped(clock)
    session.charge(model=UNKNOWN, usage=SOME)
    session.extend()
    assert not session.exhausted
    session.charge(model="gpt-5-mini", usage=SOME)
    assert session.call("t", {}, ok).ok
    session.charge(model="other", usage=SOME)
    assert session.exhausted == CODE
    session.extend(max_cost_usd=1)
    assert (session.exhausted, session.ledger.unpriced) == (None, 2)


def test_a_scope_with_a_cap_closes_for_all_of_its_sessions(clock: Any) -> None:
    policy, store = Policy(scopes={"user": [Budget(max_cost_usd=1.0)]}), MemoryStore()

    def session(name: str, user: str) -> Any:
        return policy.session(name, clock=clock, store=store, scopes={"user": user})

    session("one", "u1").charge(model=UNKNOWN, usage=MUCH)
    other = session("two", "u1")
    assert other.exhausted == f"user.{CODE}"
    assert other.call("t", {}, ok).code == f"user.{CODE}"
    assert session("three", "u2").call("t", {}, ok).ok
    other.extend(scope="user")
    assert other.call("t", {}, ok).ok


@table("own", [{}, {"max_cost_usd": 0.1}])
def test_a_response_of_a_child_closes_the_family_that_shares_its_cap(own: dict[str, float], clock: Any) -> None:
    parent = capped(clock)
    with parent.child("c", **own) as child:
        child.charge(model=UNKNOWN, usage=SOME)
        assert (child.exhausted, parent.exhausted) == (CODE, CODE)
    assert parent.call("t", {}, ok).code == CODE


def told(policy: Policy, clock: Any) -> tuple[list[dict[str, Any]], list[str | None]]:
    """
    The records of a session that meets responses of unknown price, and the code of each decision.
    """
    codes: list[str | None] = []
    sink = MemorySink()
    session = policy.session("s", clock=clock, records=sink, on_decision=lambda decision: codes.append(decision.code))
    for model in ("gpt-5-mini", UNKNOWN, "gpt-5-mini"):
        session.request()
        session.charge(model=model, usage=SOME, calls=2)
        for n in range(2):
            session.call("t", {"n": n, "model": model}, ok)
    session.extend()
    session.call("t", {"n": 9}, ok)
    session.close()
    return sink.records, codes


@table("on_unpriced", ["deny", "warn"])
def test_a_replay_decides_alike(on_unpriced: Any, clock: Any) -> None:
    policy = Policy([Budget(max_cost_usd=0.5, on_unpriced=on_unpriced)])
    records, codes = told(policy, clock)
    refused = CODE if on_unpriced == "deny" else None
    assert codes == [None, None, *[refused] * 4, None]
    again = list(replay(policy.chain, records))
    assert all(one.same for one in again)
    assert [one.made["code"] for one in again] == codes


def test_a_session_whose_counters_are_all_taken_closes_too(clock: Any) -> None:
    rules = [Rule(match="*", guards={"budget": {"max_calls": 5}})]
    session = make(clock, Budget(max_cost_usd=0.5), rules=rules)
    for n in range(80):
        session.call(f"tool_{n}", {}, ok)
    session.charge(model=UNKNOWN, usage=SOME)
    assert session.exhausted == CODE
    assert session.call("tool_1", {"n": 1}, ok).code == CODE
