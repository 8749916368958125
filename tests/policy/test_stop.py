"""
A policy with `stop`: every tool call is refused, and let through again once it is gone.
"""

import asyncio

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrails import Approve, Denials, MemorySink, Policy, PolicyError, SessionState
from tests.replaying import replay
from tests.tables import table


Turn = Callable[[str], Policy]


def ok(*_: Any) -> str:
    return "ok"


@pytest.fixture
def turn(tmp_path: Path) -> Turn:
    """
    Writes the file of one policy, which is looked at before each call.
    """
    path = tmp_path / "policy.yaml"
    made: list[Policy] = []

    def written(text: str) -> Policy:
        path.write_text(f"version: 1\ntools: [{{match: t, cost_usd: 0.25}}]\n{text}\n")
        if not made:
            made.append(Policy.load(path, reload=0))
        return made[0]

    return written


def test_every_call_of_a_policy_is_refused_and_let_through_again(turn: Turn) -> None:
    session = turn("").session("s")
    assert session.call("t", {"n": 1}, ok).ok
    turn("stop: the key leaked")
    said = session.call("t", {"n": 2}, ok)
    assert (said.status, said.code, said.retryable) == ("denied", "deny_all.on", False)
    assert said.message == "All tool calls are stopped: the key leaked. It was not called."
    assert (session.exhausted, session.tool_choice()) == ("deny_all.on", "none")
    turn("")
    assert session.call("t", {"n": 2}, ok).ok
    assert not session.exhausted


def test_a_session_that_was_over_before_is_over_afterwards(turn: Turn) -> None:
    session = turn("budget: {max_calls: 1}").session("s")
    assert [session.call("t", {"n": n}, ok).ok for n in range(2)] == [True, False]
    turn("budget: {max_calls: 1}\nstop: the key leaked")
    assert session.call("t", {"n": 2}, ok).code == "deny_all.on"
    turn("budget: {max_calls: 1}")
    assert session.call("t", {"n": 3}, ok).code == "budget.max_calls"


@table("mode", ["observe", "off"])
def test_a_policy_that_only_watches_is_stopped_too(mode: Any) -> None:
    policy = Policy([Denials()], mode=mode, stop="why")
    assert policy.session("s").call("t", {}, ok).code == "deny_all.on"


@table(("reason", "written"), [("", "''"), (5, "5"), (False, "false")])
def test_a_stop_has_a_reason(reason: Any, written: str, turn: Turn) -> None:
    with pytest.raises(PolicyError, match=r"^stop: "):
        Policy(stop=reason)
    with pytest.raises(PolicyError, match="stop"):
        turn(f"stop: {written}")


def test_a_stop_of_a_policy_stops_those_that_extend_it(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("version: 1\nstop: the key leaked\n")
    (tmp_path / "own.yaml").write_text("version: 1\nextends: ./base.yaml\n")
    assert Policy.load(tmp_path / "own.yaml").session("s").call("t", {}, ok).code == "deny_all.on"


def test_what_runs_is_settled_and_what_has_not_begun_does_not_begin(turn: Turn) -> None:
    session = turn("approve: [pay]").session("s")

    def stop(*_: Any) -> str:
        turn("approve: [pay]\nstop: why")
        return "done"

    parked = session.call("pay", {"to": "ann"}, ok)
    assert parked.code == "approve.pending"
    session.approve(session.pending()[0])
    decided = session.decide("t", {"n": 1}, id="c1")
    assert decided.allowed
    assert session.call("t", {"n": 2}, stop).value == "done"
    assert session.ledger.cost_usd == 0.25
    assert session.call("pay", {"to": "ann"}, ok).code == "deny_all.on"
    assert session.call("t", {"n": 1}, ok, id="c1").code == "deny_all.on"
    turn("approve: [pay]")
    assert session.call("pay", {"to": "ann"}, ok).ok
    assert session.call("t", {"n": 1}, ok, id="c1").ok


def test_each_refused_call_is_recorded_with_the_reason_and_replays_exactly() -> None:
    sink, rules = MemorySink(), [Approve(tools=("pay",))]
    session = Policy(rules, stop="the key leaked").session("s", records=sink)
    for number in range(3):
        session.call("t", {"n": number}, ok)
        session.call("pay", {}, ok)
    sink.close()
    stopped = [record for record in sink.records if record.get("code") == "deny_all.on"]
    assert len(stopped) == 6
    assert {record["stop"] for record in stopped} == {"the key leaked"}
    state = SessionState()
    assert all(one.same for one in replay(Policy(rules).chain, sink.records, state))
    assert state.calls == 0


def test_an_awaited_call_is_refused_too() -> None:
    async def run(*_: Any) -> str:
        return "ran"

    assert asyncio.run(Policy(stop="why").session("s").acall("t", {}, run)).code == "deny_all.on"
