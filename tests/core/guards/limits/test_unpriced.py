"""
What a model response of unknown price does to a session whose cost is limited.
"""

import logging

from typing import Any

import pytest

from guardrails import Budget, Growth, MemorySink, MemoryStore, Policy, Price, Rule
from tests.core.guards.calls import admitted, make, ok
from tests.replaying import replay
from tests.tables import table


CODE = "budget.unpriced"
MUCH = {"prompt_tokens": 90_000_000, "completion_tokens": 10_000_000}
SOME = {"prompt_tokens": 900, "completion_tokens": 100}
UNKNOWN = "no-such-model"
PRICES = {"my-*": Price(input_mtok=0.0), "dear": Price(input_mtok=0.0, output_mtok=1.0)}


def capped(clock: Any, **settings: Any) -> Any:
    return make(clock, Budget(max_cost_usd=0.5), **settings)


@table("charge", [
    *({"model": model, "usage": SOME} for model in (UNKNOWN, "", None, "m" * 500, "gpt-\ud800")),
    {"model": UNKNOWN, "usage": MUCH, "calls": 1},
    {"model": UNKNOWN, "usage": {"input_tokens": 1, "output_tokens": 0}},
    {"model": UNKNOWN, "usage": {"prompt_tokens": 0, "completion_tokens": 1}, "calls": 0},
    {"model": UNKNOWN, "usage": {"total_tokens": 100_000_000}},
    {"model": UNKNOWN, "usage": {"prompt_tokens": 1e8}},
    {"model": UNKNOWN, "usage": SOME, "whole": False},
    {"model": "gpt-5-mini", "usage": SOME, "provider": "no-such-provider"},
    {"model": "whisper-1", "usage": SOME, "provider": "openai"},
    {"model": "other-7b", "usage": SOME, "provider": "http://127.0.0.1:8000/v1"},
    {"model": "dear"},
    # A whole response that does not say what it used.
    *({"model": model, "usage": usage} for model in (UNKNOWN, "gpt-5-mini", "") for usage in (
        None, {}, {"total_time": 1.5}, {"prompt_tokens": "100000000"}, {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": -5, "completion_tokens": 2},
    )),
])  # fmt: skip
def test_whatever_was_used_at_no_known_price_closes_the_session_and_no_model_is_told_of_prices(
    charge: dict[str, Any], clock: Any
) -> None:
    session = capped(clock, prices=PRICES)
    session.charge(**charge)
    assert (session.exhausted, session.ledger.unpriced, session.tool_choice("auto")) == (CODE, 1, "none")
    assert session.ledger.limit_message == "The cost limit ($0.50) cannot be held any more. Stopping tool loop."
    assert session.call("t", {}, ok).code == CODE
    session.extend()
    assert session.call("t", {}, ok).ok


@table("charge", [
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
])  # fmt: skip
def test_what_is_priced_or_free_or_broke_off_closes_nothing(charge: dict[str, Any], clock: Any) -> None:
    session = capped(clock, prices=PRICES)
    session.charge(**charge)
    assert session.call("t", {}, ok).ok


@table("guards", [
    (), (Budget(max_calls=5),), (Budget(max_tokens=10**9),), (Growth(max_tokens_per_minute=10**9),),
    (Budget(max_cost_usd=0.5, on_unpriced="warn"),), (Budget(max_cost_usd=0.5, mode="observe"),),
    (Budget(max_cost_usd=0.5, mode="off"),),
])  # fmt: skip
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
    [line] = [record.getMessage() for record in caplog.records]
    assert ("`warned-of-once`" in line, "`prices:`" in line) == (True, True)


def test_an_extended_session_goes_on_until_the_next_response_without_a_price(clock: Any) -> None:
    session = capped(clock)
    ends = []
    for model, more in ((UNKNOWN, {}), ("gpt-5-mini", None), ("other", {"max_cost_usd": 1})):
        session.charge(model=model, usage=SOME)
        ends.append(session.exhausted)
        if more is not None:
            session.extend(**more)
        assert not session.exhausted
    assert (ends, session.ledger.unpriced) == ([CODE, None, CODE], 2)


def test_a_scope_with_a_cap_closes_for_all_of_its_sessions(clock: Any) -> None:
    policy, store = Policy(scopes={"user": [Budget(max_cost_usd=1.0)]}), MemoryStore()
    one, other, stranger = (
        policy.session(name, clock=clock, store=store, scopes={"user": user})
        for name, user in (("one", "u1"), ("two", "u1"), ("three", "u2"))
    )
    one.charge(model=UNKNOWN, usage=MUCH)
    assert other.exhausted == other.call("t", {}, ok).code == f"user.{CODE}"
    assert stranger.call("t", {}, ok).ok
    other.extend(scope="user")
    assert other.call("t", {}, ok).ok


@table("own", [{}, {"max_cost_usd": 0.1}])
def test_a_response_of_a_child_closes_the_family_that_shares_its_cap(own: dict[str, float], clock: Any) -> None:
    parent = capped(clock)
    with parent.child("c", **own) as child:
        child.charge(model=UNKNOWN, usage=SOME)
        assert (child.exhausted, parent.exhausted) == (CODE, CODE)
    assert parent.call("t", {}, ok).code == CODE


@table(("on_unpriced", "refused"), [("deny", CODE), ("warn", None)])
def test_a_replay_decides_alike(on_unpriced: Any, refused: str | None, clock: Any) -> None:
    policy, sink = Policy([Budget(max_cost_usd=0.5, on_unpriced=on_unpriced)]), MemorySink()
    codes: list[str | None] = []
    session = policy.session("s", clock=clock, records=sink, on_decision=lambda decision: codes.append(decision.code))
    for model in ("gpt-5-mini", UNKNOWN, "gpt-5-mini"):
        session.request()
        session.charge(model=model, usage=SOME, calls=2)
        for n in range(2):
            session.call("t", {"n": n, "model": model}, ok)
    session.extend()
    session.call("t", {"n": 9}, ok)
    session.close()
    assert codes == [None, None, *[refused] * 4, None]
    again = list(replay(policy.chain, sink.records))
    assert all(one.same for one in again)
    assert [one.made["code"] for one in again] == codes


def test_a_session_whose_counters_are_all_taken_closes_too(clock: Any) -> None:
    session = capped(clock, rules=[Rule(match="*", guards={"budget": {"max_calls": 5}})])
    assert sum(admitted(session, 1, tool=f"tool_{n}") for n in range(80)) > 64
    session.charge(model=UNKNOWN, usage=SOME)
    assert session.call("tool_1", {"n": 1}, ok).code == CODE
