"""
Every tool call stopped, and let through again.
"""

import asyncio
import os
import sys

from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner

from guardrails import Approve, Denials, MemorySink, Policy, SessionState, Tool
from guardrails.cli import app
from guardrails.core.records.replay import replay
from guardrails.policy.live import switch
from guardrails.policy.live.switch import Switch, reason_of, turn_off, turn_on


def ok(*_: Any) -> str:
    return "ok"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """
    The file of the switch, looked at each time.
    """
    path = str(tmp_path / "state" / "deny_all")
    monkeypatch.setenv(switch.VARIABLE, path)
    monkeypatch.setattr("guardrails.policy.live.live.LOOK_S", 0.0)
    monkeypatch.setattr("guardrails.policy.live.live.SWITCH", Switch())
    monkeypatch.setattr(switch, "LOOK_S", 0.0)
    return path


def test_every_call_of_a_policy_is_refused_at_once_and_let_through_again() -> None:
    policy = Policy()
    session = policy.session("s")
    assert session.call("t", {"n": 1}, ok).ok
    policy.deny_all("the key leaked")
    said = session.call("t", {"n": 2}, ok)
    assert (said.status, said.code, said.retryable) == ("denied", "deny_all.on", False)
    assert said.message == "All tool calls are stopped: the key leaked. It was not called."
    assert (session.exhausted, session.exhausted_by, session.tool_choice()) == (True, "deny_all.on", "none")
    policy.deny_all(None)
    assert session.call("t", {"n": 2}, ok).ok
    assert not session.exhausted


@pytest.mark.usefixtures("file")
def test_a_switch_that_cannot_be_looked_at_is_told_of_once_and_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Who may do all may search each folder: a name that is too long cannot be looked at by anybody.
    monkeypatch.setenv(switch.VARIABLE, str(tmp_path / ("x" * 300)))
    session = Policy().session("s")
    assert [session.call("t", {"n": n}, ok).ok for n in range(3)] == [True] * 3
    assert [each.getMessage().partition(" cannot be ")[2] for each in caplog.records] == [
        "looked at, so it stops no call: File name too long"
    ]
    said = CliRunner().invoke(app, ["policy", "deny-all"])
    assert (said.exit_code, said.stdout) == (2, "")
    assert "cannot look at" in said.stderr


def test_a_switch_that_is_there_and_leads_nowhere_is_on_until_it_is_gone(file: str) -> None:
    Path(file).parent.mkdir()
    Path(file).symlink_to(file)
    session = Policy().session("s")
    assert session.call("t", {}, ok).code == "deny_all.on"
    Path(file).unlink()
    assert session.call("t", {}, ok).ok


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_a_policy_that_only_watches_is_stopped_too(mode: Any) -> None:
    policy = Policy([Denials()], mode=mode)
    policy.deny_all("")
    assert policy.session("s").call("t", {}, ok).code == "deny_all.on"


def test_all_sessions_children_and_scopes_of_a_policy_are_stopped() -> None:
    policy = Policy()
    session = policy.session("s")
    held = [session, session.child("a"), session.scoped({}, [Tool(name="t")]), policy.session("other")]
    policy.deny_all("stop")
    assert {one.call("t", {}, ok).code for one in held} == {"deny_all.on"}
    assert session.wrap(lambda: "ran")().find("deny_all.on") > 0


def test_what_runs_is_settled_and_what_has_not_begun_does_not_begin() -> None:
    policy = Policy([Approve(tools=("pay",))], tools=[Tool(name="t", cost_usd=0.25)])
    session = policy.session("s")

    def stop(*_: Any) -> str:
        policy.deny_all("stop")
        return "done"

    parked = session.call("pay", {"to": "ann"}, ok)
    assert parked.code == "approve.pending"
    session.approve(session.pending()[0])
    decided = session.decide("t", {"n": 1}, id="c1")
    assert decided.allowed
    assert session.call("t", {"n": 2}, stop).value == "done"
    assert session.cost_usd == 0.25
    assert session.call("pay", {"to": "ann"}, ok).code == "deny_all.on"
    assert session.call("t", {"n": 1}, ok, id="c1").code == "deny_all.on"
    policy.deny_all(None)
    assert session.call("pay", {"to": "ann"}, ok).ok
    assert session.call("t", {"n": 1}, ok, id="c1").ok


def test_a_model_that_goes_on_asking_ends_nothing_for_good() -> None:
    policy = Policy([Denials(max_turns_in_a_row=1)])
    session = policy.session("s")
    policy.deny_all("stop")
    for number in range(20):
        session.begin_turn()
        session.call("t", {"n": number % 2}, ok)
    policy.deny_all(None)
    session.begin_turn()
    assert session.call("t", {"n": 0}, ok).ok


def test_each_refused_call_is_recorded_with_the_reason_and_replays_exactly() -> None:
    sink, policy = MemorySink(), Policy([Approve(tools=("pay",))])
    session = policy.session("s", records=sink)
    session.call("pay", {}, ok)
    session.call("t", {"n": 1}, ok)
    policy.deny_all("the key leaked")
    for number in range(3):
        session.call("t", {"n": number}, ok)
        session.call("pay", {}, ok)
    policy.deny_all(None)
    session.call("t", {"n": 9}, ok)
    sink.close()
    stopped = [record for record in sink.records if record.get("code") == "deny_all.on"]
    assert len(stopped) == 6
    assert {record["stop"] for record in stopped} == {"the key leaked"}
    state = SessionState()
    assert all(one.same for one in replay(policy.chain, sink.records, state))
    assert state.calls == 3


def test_an_awaited_call_is_refused_too() -> None:
    policy = Policy()
    policy.deny_all("stop")

    async def run(*_: Any) -> str:
        return "ran"

    assert asyncio.run(policy.session("s").acall("t", {}, run)).code == "deny_all.on"


def test_a_file_stops_all_policies_of_a_user(file: str) -> None:
    sessions = [Policy().session("s"), Policy.load("default").session("s")]
    assert all(one.call("t", {}, ok).ok for one in sessions)
    turn_on(file, "disk\nfull\x1b")
    assert {one.call("t", {"n": 1}, ok).code for one in sessions} == {"deny_all.on"}
    assert Path(file).parent.stat().st_mode & 0o077 == 0
    assert turn_off(file)
    assert not turn_off(file)
    assert all(one.call("t", {"n": 2}, ok).ok for one in sessions)


def test_an_empty_file_stops_all_and_a_reason_that_changes_is_told(file: str) -> None:
    session = Policy().session("s")
    Path(file).parent.mkdir()
    Path(file).touch()
    assert session.call("t", {}, ok).message == "All tool calls are stopped. It was not called."
    turn_on(file, "x" * 9_000)
    assert len(session.call("t", {}, ok).message or "") < 600


def test_a_switch_that_cannot_be_read_is_on(file: str) -> None:
    Path(file).mkdir(parents=True)
    assert reason_of(file) == ""
    assert Policy().session("s").call("t", {}, ok).code == "deny_all.on"


@pytest.mark.skipif(sys.platform == "win32", reason="no pipe with a name")
def test_a_pipe_as_a_switch_is_on_and_holds_up_no_call(file: str) -> None:
    Path(file).parent.mkdir()
    os.mkfifo(file)
    assert Policy().session("s").call("search", {}, ok).code == "deny_all.on"


def test_the_policys_own_stop_outlasts_the_file(file: str) -> None:
    policy = Policy()
    policy.deny_all("mine")
    turn_on(file, "all")
    turn_off(file)
    assert policy.session("s").call("t", {}, ok).code == "deny_all.on"


def test_the_command_turns_it_on_and_off_and_tells(file: str) -> None:
    def run(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["policy", "deny-all", *words])
        return result.exit_code, result.output

    session = Policy().session("s")
    assert run() == (0, "calls are let through\n")
    assert run("the key leaked")[0] == 0
    code, said = run()
    assert code == 1
    assert said == f"every call is denied ({file}): the key leaked\n"
    assert session.call("t", {}, ok).code == "deny_all.on"
    assert run("--off") == (0, "calls are let through again\n")
    assert run("--off") == (0, "calls were not stopped\n")
    assert run("why", "--off")[0] == 2
    assert session.call("t", {}, ok).ok
