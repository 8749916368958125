"""
Sessions that were recorded live: decided again exactly, alone and together with those that share something, and judged as they were decided.
"""

import json
import random
import threading
import time

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import (
    Budget,
    Denials,
    Duplicates,
    Growth,
    JsonLines,
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
from guardrails.offline.replay.exact import Replayed, replayed
from guardrails.offline.replay.judge import Judge
from guardrails.offline.transcripts import Report
from guardrails.offline.transcripts.files import calls_in, inputs
from guardrails.session.session import Session
from tests.conftest import FakeClock
from tests.replaying import replay


def policy() -> Policy:
    limits = [Budget(max_calls=60, max_cost_usd=5.0), Rate(max_calls_per_second=40), Streak(max_failures=4)]
    rules = [Denials(), Duplicates(rule="evidence", window=20), Retryable(backoff=0.01, max_wait=0.05)]
    return Policy([*limits, *rules])


def execute(tool: str, arguments: Any) -> Any:
    time.sleep(0)
    if tool == "flaky" and arguments["n"] % 3 == 0:
        raise TimeoutError(f"no answer within {arguments['n']} s")
    return {"rows": [arguments["n"] % 2]}


def work(session: Session, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(25):
        if chance.random() < 0.2:
            session.charge(model="m", usage={"prompt_tokens": 10}, cost_usd=0.01, calls=chance.choice([None, 2]))
        tool, arguments = chance.choice(["look", "flaky", "write"]), {"n": chance.randrange(4)}
        if chance.random() < 0.2:
            decision = session.decide(tool, arguments, id=f"call_{chance.randrange(3)}")
            session.complete(decision, "late")
        else:
            session.call(tool, arguments, execute)


@pytest.mark.usefixtures("quick_switches")
def test_sessions_shared_by_threads_are_decided_again_exactly(tmp_path: Path) -> None:
    path, own = tmp_path / "records.jsonl", policy()
    with JsonLines(path) as sink:
        sessions = [own.session(f"s{n}", records=sink) for n in range(2)]
        threads = [threading.Thread(target=work, args=(sessions[n % 2], n)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    records = map(json.loads, path.read_text().splitlines())
    codes = [record["code"] for record in records if record["event"] == "call"]
    found = replayed(own, inputs([str(path)]))
    assert (found.same, found.first, found.calls, found.sessions) == (True, [], len(codes), 2)
    # Which guard refuses first is a matter of how the threads took turns.
    assert None in codes
    assert len(set(codes)) > 1


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


def ok(*_: Any) -> str:
    return "ok"


def again(policy: Policy, records: list[Any]) -> list[Replayed]:
    found = list(replay(policy.chain, records, scopes=policy.scopes))
    assert len(found) == sum(record["event"] == "call" for record in records)
    return found


def test_two_sessions_of_one_user_are_decided_again_from_the_records_of_both(clock: Any) -> None:
    policy, sink = Policy([Budget(max_calls=9)], scopes={"user": [Budget(max_calls=3)]}), MemorySink()
    sessions = [policy.session(f"s{n}", scopes={"user": "u1"}, records=sink, clock=clock) for n in range(2)]
    for n in range(3):
        for session in sessions:
            session.call("t", {"n": n}, ok)
    replayed = again(policy, list(reversed(sink.records)))
    assert [one.made["code"] for one in replayed] == [None, None, None] + ["user.budget.max_calls"] * 3
    assert all(one.same for one in replayed)
    # The records of one alone do not say what the other used.
    alone = [record for record in sink.records if record["session_id"] == "s1"]
    gap = "the scope `user` of `u1` have a gap before event 3: those of all its sessions"
    with pytest.raises(SessionError, match=gap):
        again(policy, alone)
    with pytest.raises(SessionError, match=r"`s.` is in a scope `user`, which the policy does not have"):
        again(Policy(), sink.records)


def test_a_family_is_decided_again_from_the_records_of_all_its_members(clock: Any) -> None:
    rule = Rule(match="pay_*", guards={"budget": {"max_calls": 3}})
    policy, sink = Policy([Budget(max_calls=50), Rate(max_calls_per_second=8)], rules=[rule]), MemorySink()
    parent = policy.session("p", records=sink, clock=clock)
    parent.call("pay_rent", {}, ok)
    with parent.child("a", max_calls=5) as a, parent.child("b", max_calls=5) as b:
        for n in range(3):
            b.call("pay_rent", {"b": n}, ok)
            a.call("pay_rent", {"a": n}, ok)
            parent.call("look", {"n": n}, ok)
        with a.child("deeper", max_calls=1) as deeper:
            deeper.call("look", {}, ok)
    replayed = again(policy, sink.records)
    assert all(one.same for one in replayed)
    assert {one.made["code"] for one in replayed} == {None, "tools.budget.limit"}
    # A child's own records do not say what its family used before.
    alone = [record for record in sink.records if record["session_id"] == "p/a"]
    with pytest.raises(SessionError, match="the records of the family of `p/a` have a gap"):
        again(policy, alone)


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


@settings(max_examples=60)
@given(st.lists(STEPS, max_size=30))
def test_a_replay_from_the_records_of_all_sessions_is_exact(steps: list[tuple[int, str, int]]) -> None:
    clock, sink, store = FakeClock(), MemorySink(), MemoryStore()
    policy = Policy(
        [Budget(max_calls=8), Rate(max_calls_per_second=4), Duplicates(window=2)],
        tools=[Tool(name="pay", cost_usd=0.2, timeout=300)],
        rules=[Rule(match="pay", guards={"budget": {"max_calls": 6}})],
        scopes={
            "user": [Budget(max_calls=5, max_cost_usd=1.0), Rate(max_calls_per_minute=6)],
            "tenant": [Growth(max_requests_per_second=3, max_calls_per_second=3), Budget(max_tokens=9)],
        },
    )

    def make(who: int) -> Session:
        own = {"user": f"u{who % 2}", "tenant": "acme"}
        return policy.session(f"s{who}", scopes=own, store=store, records=sink, clock=clock)

    act(make, clock, steps)
    assert all(one.same for one in again(policy, sink.records))
