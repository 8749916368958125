"""
Sessions that were recorded live: decided again exactly, alone and together with those that share something, and judged as they were decided.
"""

import json
import random

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import (
    Budget,
    Denials,
    Duplicates,
    Growth,
    MemorySink,
    MemoryStore,
    Policy,
    Rate,
    Retryable,
    Streak,
    Success,
    Tool,
)
from guardrails.core.chain import Rule
from guardrails.errors import SessionError
from guardrails.offline.replay.exact import Replayed
from guardrails.offline.replay.judge import Judge
from guardrails.offline.transcripts import Report
from guardrails.offline.transcripts.files import calls_in
from guardrails.session.session import Session
from tests.conftest import FakeClock, together
from tests.replaying import replay


def policy() -> Policy:
    limits = [Budget(max_calls=60, max_cost_usd=5.0), Rate(max_calls_per_second=40), Streak(max_failures=4)]
    rules = [Denials(), Duplicates(rule="evidence", window=20), Retryable(backoff=0.01, max_wait=0.05)]
    return Policy([*limits, *rules])


def execute(tool: str, arguments: Any) -> Any:
    if tool == "flaky" and arguments["n"] % 3 == 0:
        raise TimeoutError(f"no answer within {arguments['n']} s")
    return {"rows": [arguments["n"] % 2]}


ACTS = st.tuples(
    st.sampled_from(["look", "flaky", "charge"]),
    st.integers(0, 3),
    st.sampled_from([0.0, 0.2, 3.0]),
    st.sampled_from([0.0, 0.5, 700.0]),
)


@given(story=st.lists(ACTS, max_size=25))
def test_a_session_that_was_recorded_is_judged_as_it_was_decided(story: list[tuple[str, int, float, float]]) -> None:
    own, sink, clock = policy(), MemorySink(), FakeClock()
    session = own.session("s", records=sink, clock=clock)

    def run(seconds: float) -> Callable[[str, Any], Any]:
        def tool(name: str, arguments: Any) -> Any:
            clock.advance(seconds)
            return execute(name, arguments)

        return tool

    for tool, n, wait, seconds in story:
        clock.advance(wait)
        if tool == "charge":
            session.charge(model="m", usage={"prompt_tokens": n}, cost_usd=n / 10)
        else:
            session.call(tool, {"n": n}, run(seconds))
    bare = [{key: each for key, each in one.items() if key not in ("arguments", "result")} for one in sink.records]
    calls = calls_in("\n".join(json.dumps(one, default=str) for one in bare).encode(), "own", Report())
    rows = Judge(own).judge(calls) if calls else []
    judged = [(call.tool, row.code) for call, row in zip(calls, rows, strict=True)]
    assert judged == [(one["tool"], one["code"]) for one in bare if one["event"] == "call"]


def again(policy: Policy, records: list[Any]) -> list[Replayed]:
    found = list(replay(policy.chain, records, scopes=policy.scopes))
    assert len(found) == sum(record["event"] == "call" for record in records)
    return found


STEPS = st.tuples(
    st.integers(0, 3),
    st.sampled_from(["call", "call", "call", "decide", "charge", "request", "extend", "wait", "child", "forget"]),
    st.integers(0, 3),
)


def act(make: Callable[[int], Session], clock: FakeClock, steps: list[tuple[int, str, int]]) -> None:
    children: dict[int, Session] = {}
    for who, what, n in steps:
        session = children.get(who) or make(who)
        with suppress(SessionError):
            match what:
                case "call":
                    session.call("pay", {"n": n}, lambda *_, n=n: Success("ok", cost_usd=0.1 * n), id=f"call_{n}")
                case "decide":
                    session.decide("pay", {"n": n}, id=f"call_{n}")
                case "charge":
                    session.charge(model="m", usage={"prompt_tokens": n}, cost_usd=0.1, calls=n)
                case "request":
                    session.request()
                case "extend":
                    session.extend(scope="user", max_calls=n)
                case "wait":
                    clock.advance([0.2, 3.0, 700.0, -40.0][n])
                case "child" if who in children:
                    children.pop(who).close()
                case "child":
                    children[who] = make(who).child(f"kid-{len(children)}-{n}", max_calls=2)
                case "forget" if who not in children:
                    session.ledger.forget()


SHARED = Policy(
    [Budget(max_calls=8), Rate(max_calls_per_second=4), Duplicates(window=2)],
    tools=[Tool(name="pay", cost_usd=0.2, timeout=300)],
    rules=[Rule(match="pay", guards={"budget": {"max_calls": 6}})],
    scopes={
        "user": [Budget(max_calls=5, max_cost_usd=1.0), Rate(max_calls_per_minute=6)],
        "tenant": [Growth(max_requests_per_second=3, max_calls_per_second=3), Budget(max_tokens=9)],
    },
)


def sharing(**options: Any) -> Callable[[int], Session]:
    """
    Returns the maker of sessions, two of a user each, all of one tenant.
    """
    return lambda who: SHARED.session(f"s{who}", scopes={"user": f"u{who % 2}", "tenant": "acme"}, **options)


@settings(max_examples=60)
@given(st.lists(STEPS, max_size=30))
def test_a_replay_from_the_records_of_all_sessions_is_exact(steps: list[tuple[int, str, int]]) -> None:
    clock, sink = FakeClock(), MemorySink()
    act(sharing(store=MemoryStore(), records=sink, clock=clock), clock, steps)
    assert all(one.same for one in again(SHARED, sink.records))


def test_records_of_one_session_do_not_say_what_others_used(clock: FakeClock) -> None:
    sink, policy = MemorySink(), Policy([Budget(max_calls=20)], scopes={"user": [Budget(max_calls=3)]})
    own: dict[str, Any] = {"records": sink, "clock": clock}
    one, two = (policy.session(name, scopes={"user": "u1"}, **own) for name in ("one", "two"))
    parent = Policy([Budget(max_calls=20)]).session("p", **own)
    with parent.child("elder", max_calls=5) as elder, parent.child("kid", max_calls=5) as kid:
        for n in range(3):
            for session in (one, two, parent, elder, kid):
                session.call("t", {"n": n}, lambda *_: "ok")
    found = again(policy, list(reversed(sink.records)))
    assert all(each.same for each in found)
    assert [each.made["code"] for each in found].count("user.budget.max_calls") == 3
    for name, missing in (
        ("two", "the scope `user` of `u1` have a gap before event"),
        ("p/kid", "the family of `p/kid`"),
    ):
        with pytest.raises(SessionError, match=f"the records of {missing}"):
            again(policy, [record for record in sink.records if record["session_id"] == name])
    with pytest.raises(SessionError, match=r"is in a scope `user`, which the policy does not have"):
        again(Policy(), sink.records)


@pytest.mark.usefixtures("quick_switches")
def test_sessions_shared_by_threads_are_decided_again_exactly(clock: FakeClock) -> None:
    sink, chance = MemorySink(), random.Random(1)
    make = sharing(store=MemoryStore(), records=sink, clock=clock)
    sessions = {who: make(who) for who in range(2)}
    whats = ("call", "decide", "charge", "request", "wait")
    stories = [[(n % 2, chance.choice(whats), chance.randrange(3)) for _ in range(25)] for n in range(6)]
    together(lambda n: act(sessions.__getitem__, clock, stories[n]), 6)
    found = again(SHARED, sink.records)
    assert all(one.same for one in found)
    # Which guard refuses first is a matter of how the threads took turns.
    assert len({one.made["code"] for one in found}) > 1
