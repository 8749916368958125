"""
What a model response of unknown price does to a session whose cost is limited.
"""

import logging

from typing import Any

import pytest

from guardrails import (
    Budget,
    Growth,
    MemorySink,
    MemoryStore,
    Policy,
    PolicyError,
    Price,
    Rule,
    SqliteStore,
    Success,
    Tool,
)
from guardrails.core.records.replay import replay, replay_together
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
    assert (session.exhausted_by, session.unpriced, session.tool_choice("auto")) == (CODE, 1, "none")
    refused = session.call("t", {}, ok)
    assert (refused.code, refused.status) == (CODE, "limit_reached")


def test_the_message_names_the_model_and_how_to_price_it(clock: Any) -> None:
    session = capped(clock)
    session.charge(model=UNKNOWN, usage=SOME)
    assert session.limit_message == (
        "No price is known for the model `no-such-model`, so the cost limit ($0.50) cannot be held. Set it under `prices` "
        "in the policy, or pass `cost_usd` to `charge`. Stopping tool loop."
    )


@table(
    ("model", "shown"),
    [("", "for a model, so"), (None, "for a model, so"), ("m" * 500, f"`{'m' * 80}`"), ("gpt-\ud800", "`gpt-\ud800`")],
)
def test_a_model_of_any_name_closes_it(model: Any, shown: str, clock: Any) -> None:
    session = capped(clock)
    session.charge(model=model, usage=SOME)
    assert session.exhausted_by == CODE
    assert shown in session.limit_message


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
    assert session.exhausted_by == CODE


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
        {"promptTokens": 100_000_000},
        {"prompt_tokens": "100000000"},
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": -5, "completion_tokens": 2},
    ],
)
def test_a_whole_response_that_does_not_say_what_it_used_closes_it(usage: Any, model: str, clock: Any) -> None:
    session = capped(clock)
    session.charge(model=model, usage=usage)
    assert session.exhausted_by == CODE
    named = f"the model `{model}`" if model else "a model"
    assert session.limit_message == (
        f"A response of {named} did not say what it used, so the cost limit ($0.50) cannot be held. Have its usage "
        "reported, or pass `cost_usd` to `charge`. If it is free, set a price of 0 under `prices` in the policy. "
        "Stopping tool loop."
    )
    session.extend()
    assert session.call("t", {}, ok).ok


def test_a_response_that_broke_off_closes_it_where_it_had_used_tokens_without_a_price(clock: Any) -> None:
    session = capped(clock)
    session.charge(model=UNKNOWN, usage=SOME, whole=False)
    assert session.exhausted_by == CODE


@table("whole", [True, False])
def test_a_replay_ends_where_a_response_did_not_say_what_it_used(whole: bool, clock: Any) -> None:
    sink = MemorySink()
    policy = Policy([Budget(max_cost_usd=0.5)])
    session = policy.session("s", clock=clock, records=sink)
    session.charge(model="gpt-5-mini", whole=whole)
    assert session.call("t", {}, ok).code == (CODE if whole else None)
    session.close()
    [again] = replay(policy.chain, sink.records)
    assert again.same


def test_a_free_model_costs_nothing_whatever_it_did_not_say(clock: Any) -> None:
    session = capped(clock, prices={"free": Price(input_mtok=0.0), "dear": Price(input_mtok=0.0, output_mtok=1.0)})
    assert session.charge(model="free").cost == 0
    assert session.charge(model="dear").cost is None
    assert session.unpriced == 1


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
    assert (session.exhausted, session.unpriced) == (False, 1)
    assert session.call("t", {}, ok).ok


@table("mode", ["observe", "off"])
def test_a_policy_that_is_not_enforced_is_never_ended(mode: Any, clock: Any) -> None:
    seen: list[Any] = []
    policy = Policy([Budget(max_cost_usd=0.5)], mode=mode)
    session = policy.session("s", clock=clock, on_decision=seen.append)
    for n in range(3):
        session.charge(model=UNKNOWN, usage=MUCH)
        assert session.call("t", {"n": n}, ok).ok
    assert not session.exhausted
    observed = [[denial.code for denial in decision.observed] for decision in seen]
    assert observed == [[CODE] if mode == "observe" else []] * 3


def test_one_line_of_the_log_names_the_model_that_is_let_pass(caplog: pytest.LogCaptureFixture, clock: Any) -> None:
    session = make(clock, Budget(max_cost_usd=0.5, on_unpriced="warn"))
    with caplog.at_level(logging.WARNING, "guardrails"):
        for _ in range(3):
            session.charge(model="warned-of-once", usage=SOME)
    [said] = [record.getMessage() for record in caplog.records]
    assert "`warned-of-once`" in said
    assert "`prices:`" in said


def test_one_line_of_the_log_names_a_model_that_does_not_say_what_it_used(
    caplog: pytest.LogCaptureFixture, clock: Any
) -> None:
    session = capped(clock)
    with caplog.at_level(logging.WARNING, "guardrails"):
        for _ in range(3):
            session.charge(model="silent-of-usage")
    assert ["`silent-of-usage`" in record.getMessage() for record in caplog.records] == [True]


def test_a_tool_without_a_cost_is_free_and_closes_nothing(clock: Any) -> None:
    policy = Policy([Budget(max_cost_usd=0.5)], tools=[Tool(name="free"), Tool(name="pay", cost_usd=0.1)])
    session = policy.session("s", clock=clock)
    assert all(session.call("free", {"n": n}, ok).ok for n in range(50))
    assert session.call("unknown", {}, lambda *_: Success("ok", tokens=10**8)).ok
    assert not session.exhausted
    assert [(each.tool, each.priced) for each in policy.coverage(["free", "pay", "unknown"])] == [
        ("free", False),
        ("pay", True),
        ("unknown", False),
    ]


def test_an_extended_session_goes_on_until_the_next_response_without_a_price(clock: Any) -> None:
    session = capped(clock)
    session.charge(model=UNKNOWN, usage=SOME)
    session.extend()
    assert not session.exhausted
    session.charge(model="gpt-5-mini", usage=SOME)
    assert session.call("t", {}, ok).ok
    session.charge(model="other", usage=SOME)
    assert session.exhausted_by == CODE
    assert "`other`" in session.limit_message
    session.extend(max_cost_usd=1)
    assert (session.exhausted, session.unpriced) == (False, 2)


def test_a_session_that_is_resumed_is_still_closed(clock: Any, tmp_path: Any) -> None:
    policy = Policy([Budget(max_cost_usd=0.5)])
    with SqliteStore(tmp_path / "sessions.db") as store:
        policy.session("s", clock=clock, store=store).charge(model=UNKNOWN, usage=SOME)
    with SqliteStore(tmp_path / "sessions.db") as store:
        session = policy.session("s", clock=clock, store=store)
        assert session.exhausted_by == CODE
        assert UNKNOWN in str(session.limit_message)
        session.extend()
        assert session.call("t", {}, ok).ok


def test_a_scope_with_a_cap_closes_for_all_of_its_sessions(clock: Any) -> None:
    policy, store = Policy(scopes={"user": [Budget(max_cost_usd=1.0)]}), MemoryStore()

    def session(name: str, user: str) -> Any:
        return policy.session(name, clock=clock, store=store, scopes={"user": user})

    session("one", "u1").charge(model=UNKNOWN, usage=MUCH)
    other = session("two", "u1")
    assert other.exhausted_by == f"user.{CODE}"
    assert f"`{UNKNOWN}`" in other.limit_message
    assert other.call("t", {}, ok).code == f"user.{CODE}"
    assert session("three", "u2").call("t", {}, ok).ok
    other.extend(scope="user")
    assert other.call("t", {}, ok).ok


def test_a_scope_that_warns_and_one_without_a_cap_stay_open(clock: Any) -> None:
    policy = Policy(scopes={"user": [Budget(max_cost_usd=1.0, on_unpriced="warn")], "tenant": [Budget(max_calls=9)]})
    session = policy.session("s", clock=clock, scopes={"user": "u", "tenant": "t"})
    session.charge(model=UNKNOWN, usage=MUCH)
    assert session.call("t", {}, ok).ok


@table("own", [{}, {"max_cost_usd": 0.1}])
def test_a_response_of_a_child_closes_the_family_that_shares_its_cap(own: dict[str, float], clock: Any) -> None:
    parent = capped(clock)
    with parent.child("c", **own) as child:
        child.charge(model=UNKNOWN, usage=SOME)
        assert (child.exhausted_by, parent.exhausted_by) == (CODE, CODE)
    assert parent.call("t", {}, ok).code == CODE


def test_a_response_of_one_child_closes_the_other_that_has_a_share_of_the_cap(clock: Any) -> None:
    parent = capped(clock)
    with parent.child("c", max_cost_usd=0.1) as one, parent.child("d", max_cost_usd=0.1) as other:
        assert other.call("t", {}, ok).ok
        one.charge(model=UNKNOWN, usage=SOME)
        assert other.call("t", {"n": 1}, ok).code == CODE


def test_a_child_with_a_cap_of_its_own_leaves_a_parent_without_one_open(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=9))
    with parent.child("c", max_cost_usd=0.1) as child:
        child.charge(model=UNKNOWN, usage=SOME)
        assert child.exhausted_by == CODE
        assert not parent.exhausted
    assert parent.call("t", {}, ok).ok


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
    assert [one.decision.code for one in again] == codes


def test_a_family_is_replayed_alike(clock: Any) -> None:
    policy, sink = Policy([Budget(max_cost_usd=0.5)]), MemorySink()
    parent = policy.session("p", clock=clock, records=sink)
    with parent.child("c") as child:
        child.call("t", {}, ok)
        child.charge(model=UNKNOWN, usage=SOME)
        parent.call("t", {"n": 1}, ok)
    parent.call("t", {"n": 2}, ok)
    parent.close()
    again = list(replay_together(policy.chain, sink.records))
    assert all(one.same for one in again)
    assert [one.decision.code for one in again] == [None, CODE, CODE]


def test_any_number_of_unknown_models_takes_one_counter(clock: Any) -> None:
    session = make(clock, Budget(max_cost_usd=0.5, mode="observe"))
    for n in range(500):
        session.charge(model=f"model-{n}", usage=SOME)
    assert len(session._read(lambda state, now: dict(state.meters))) == 1


def test_a_session_whose_counters_are_all_taken_closes_too(clock: Any) -> None:
    rules = [Rule(match="*", guards={"budget": {"max_calls": 5}})]
    session = make(clock, Budget(max_cost_usd=0.5), rules=rules)
    for n in range(80):
        session.call(f"tool_{n}", {}, ok)
    session.charge(model=UNKNOWN, usage=SOME)
    assert session.exhausted_by == CODE
    assert session.call("tool_1", {"n": 1}, ok).code == CODE


def test_what_is_no_choice_is_refused() -> None:
    settings: Any = {"on_unpriced": "ignore"}
    with pytest.raises(PolicyError, match=r"budget\.on_unpriced"):
        Policy([Budget(max_cost_usd=1, **settings)])
