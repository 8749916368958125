"""
A policy whose files change while its sessions run, and one that is stopped.
"""

import asyncio
import logging
import os

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from guardrails import Approve, Denials, Guard, MemorySink, Policy, Tool, guard
from guardrails.core.guards.base import SessionState
from guardrails.errors import SessionError
from guardrails.offline.replay.exact import Rules
from guardrails.policy import reload
from guardrails.policy.file import Document
from guardrails.policy.reload import PolicyFiles
from guardrails.session.session import scoped
from tests.replaying import replay
from tests.tables import table


Write = Callable[..., Path]


def ok(*_: Any) -> str:
    return "ok"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str, name: str = "policy.yaml") -> Path:
        path = tmp_path / name
        path.write_text(f"version: 1\n{text}\n")
        return path

    return written


def statuses(session: Any, count: int) -> list[str]:
    first = session.ledger.progress["calls_used"]
    return [session.call("search", {"q": first + number}, ok).status for number in range(count)]


def test_a_session_goes_by_a_changed_file_from_its_next_call_on(write: Write) -> None:
    path = write("budget: {max_calls: 2}")
    session, other = (Policy.load(path, reload=every).session("s") for every in (0, None))
    assert statuses(session, 3) == ["success", "success", "limit_reached"]
    was = path.stat()
    write("budget: {max_calls: 4}")
    # Who copies with the times of the original has changed the file too.
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert session.tool_choice("auto") == "auto", "a limit that was raised opens what it had ended"
    assert statuses(session, 3) == ["success", "success", "limit_reached"]
    write("budget: {max_calls: 9}\ntools: [{match: pay, held: not yet}]")
    assert session.call("pay", {}, ok).code == "held.tool"
    assert statuses(session, 1) == ["success"]
    write("budget: {max_calls: 3}")
    assert session.exhausted == "budget.max_calls", "and one that was lowered ends it"
    assert statuses(other, 3) == ["success", "success", "limit_reached"], "a policy that is not to be reloaded stays"


@guard
class Fragile(Guard):
    limit: int = 1

    def prepare(self) -> None:
        if self.limit > 1:
            raise ZeroDivisionError("too much")


@table("text", ["budget: {max_calls: 2x}", "budget: {max_c", "extends: ./gone.yaml", "\0", "fragile: {limit: 2}"])
def test_a_broken_file_or_half_a_file_changes_nothing_and_is_told_of_once(
    text: str, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    session = Policy.load(write("budget: {max_calls: 2}"), guards=[Fragile], reload=0).session("s")
    caplog.clear()
    write(text)
    assert statuses(session, 3) == ["success", "success", "limit_reached"]
    [logged] = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "cannot be used, the one from before stays" in logged
    assert ("policy.yaml:" in logged) is ("fragile" not in text)
    write("budget: {max_calls: 3}")
    assert statuses(session, 1) == ["success"]


def test_the_limits_of_a_scope_change_with_the_file_and_other_scopes_need_a_start_of_the_process(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    policy = Policy.load(write("scopes: {user: {budget: {max_calls: 1}}}"), reload=0)
    one, other = (policy.session(name, scopes={"user": "u"}) for name in "ab")
    assert statuses(one, 2) == ["success", "limit_reached"]
    write("scopes: {user: {budget: {max_calls: 3}}}")
    assert statuses(other, 3) == ["success", "success", "limit_reached"]
    write("scopes: {tenant: {budget: {max_calls: 9}}}")
    assert statuses(other, 1) == ["limit_reached"]
    assert "needs a start of the process" in caplog.text


def test_a_file_that_the_policy_extends_counts_too(write: Write) -> None:
    write("budget: {max_calls: 1}", "base.yaml")
    session = Policy.load(write("extends: ./base.yaml"), reload=0).session("s")
    assert statuses(session, 2) == ["success", "limit_reached"]
    write("budget: {max_calls: 2}", "other.yaml")
    write("extends: ./other.yaml")
    assert statuses(session, 2) == ["success", "limit_reached"]
    write("budget: {max_calls: 4}", "other.yaml")
    assert statuses(session, 2) == ["success", "success"]


def test_a_file_that_comes_after_the_one_that_extends_it_is_taken_up_within_2_s(
    write: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    monkeypatch.setattr(reload, "monotonic", lambda: now[0])
    session, seen = Policy.load(write("budget: {max_calls: 9}"), reload=0).session("s"), []
    write("extends: ./later.yaml")
    for now[0] in (0.0, 2.0, 3.9, 4.0):
        seen += statuses(session, 1)
        write("stop: the key leaked", "later.yaml") if now[0] == 2 else None
    assert seen == ["success", "success", "success", "denied"]
    assert len([one for one in caplog.records if one.levelno == logging.ERROR]) == 1


def test_what_a_session_was_given_stays(write: Write) -> None:
    policy = Policy.load(write("budget: {max_calls: 9}"), reload=0)
    session = policy.session("s", tools=[Tool(name="pay", cost_usd=0.5)])
    session.calls.declare(Tool(name="search", timeout=7))
    scope, guarded = scoped(session, {}, [Tool(name="search")]), session.wrap(ok)
    child = session.child("a", max_calls=2)
    write("budget: {max_calls: 9, max_cost_usd: 0.6}")
    assert session.call("pay", {"n": 1}, ok).ok
    assert session.call("pay", {"n": 2}, ok).code == "budget.max_cost_usd"
    assert session.ledger.chain.plan("search").timeout_ms == 7_000
    assert scope.ledger.chain.known == frozenset({"search"})
    assert "ok" in guarded()
    assert statuses(child, 3) == ["success", "success", "limit_reached"]


def test_records_tell_which_policy_decided_each_call(write: Write) -> None:
    sink = MemorySink()
    path = write("budget: {max_calls: 2}")
    policy, first = Policy.load(path, reload=0), Policy.load(path)
    session = policy.session("s", records=sink)
    statuses(session, 3)
    write("budget: {max_calls: 4}")
    statuses(session, 3)
    later = Policy.load(path)
    policy.session("new", records=sink).call("t", {}, ok)
    sink.close()
    changes = [(one["session_id"], one["before"], one["after"]) for one in sink.records if one["event"] == "policy"]
    assert changes == [("s", first.digest, later.digest), ("new", None, later.digest)]
    with pytest.raises(SessionError, match=r"from event . on `(s|new)` went by a changed policy"):
        list(replay(first.chain, sink.records, others={}))
    others = {str(later.digest): Rules(later.chain, later.scopes)}
    assert all(one.same for one in replay(first.chain, sink.records, others=others))


def test_threads_that_call_while_a_file_changes_all_go_over(write: Write) -> None:
    policy, sink = Policy.load(write("budget: {max_calls: 100000}"), reload=0), MemorySink()
    sessions = [policy.session(name, records=sink) for name in "ab"]
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(sessions[number % 2].call, "t", {"n": number}, ok) for number in range(240)]
        for number in range(5):
            write(f"budget: {{max_calls: {200000 + number}}}")
    assert all(call.result().ok for call in calls)
    sink.close()
    for session in sessions:
        assert session.ledger.progress["calls_used"] == 120
        numbers = [record["n"] for record in sink.records if record["session_id"] == session.id]
        assert sorted(numbers) == list(range(1, len(numbers) + 1))


def test_what_is_written_while_a_file_is_read_is_found_by_the_next_look(write: Write) -> None:
    path = write("budget: {max_calls: 2}")
    later = ["budget: {max_calls: 3}"]

    def load() -> Any:
        document = Document(path)
        if later:
            write(later.pop())
        return Policy(**document.arguments()), document.contents()

    policy, contents = load()
    policy.files = PolicyFiles(contents, load, every_s=0)
    session = policy.session("s")
    assert statuses(session, 4) == ["success", "success", "success", "limit_reached"]
    later = ["budget: {max_calls: 6}"]
    write("budget: {max_calls: 4}")
    assert statuses(session, 4) == ["success", "success", "success", "limit_reached"]


# `stop`


def test_every_call_of_a_policy_is_refused_and_let_through_again(write: Write) -> None:
    session = Policy.load(write("budget: {max_calls: 2}"), reload=0).session("s")
    for used_up in (None, "budget.max_calls"):
        assert statuses(session, 1) == ["success"]
        assert session.exhausted == used_up
        write("budget: {max_calls: 2}\nstop: the key leaked")
        refused = session.call("t", {"n": 2}, ok)
        assert (refused.status, refused.code, refused.retryable) == ("denied", "deny_all.on", False)
        assert refused.message == "All tool calls are stopped: the key leaked. It was not called."
        assert (session.exhausted, session.tool_choice()) == ("deny_all.on", "none")
        write("budget: {max_calls: 2}")
    # A session that was over before is over afterwards.
    assert statuses(session, 1) == ["limit_reached"]


def test_a_policy_that_only_watches_one_that_extends_another_and_an_awaited_call_are_stopped_too(write: Write) -> None:
    write("stop: the key leaked", "base.yaml")
    stopped = [Policy.load(write("extends: ./base.yaml"))]
    stopped += [Policy([Denials()], mode=mode, stop="why") for mode in ("observe", "off")]
    for policy in stopped:
        assert policy.session("s").call("t", {}, ok).code == "deny_all.on"
        assert asyncio.run(policy.session("a").acall("t", {}, ok)).code == "deny_all.on"


def test_what_runs_is_settled_what_has_not_begun_does_not_begin_and_who_waits_for_a_person_waits_on(
    write: Write,
) -> None:
    text = "approve: [pay]\ntools: [{match: t, cost_usd: 0.25}]"
    session = Policy.load(write(text), reload=0).session("s")

    def stop(*_: Any) -> str:
        write(f"{text}\nstop: why")
        return "done"

    assert session.call("pay", {"to": "ann"}, ok).code == "approve.pending"
    assert session.decide("t", {"n": 1}, id="c1").allowed
    assert session.call("t", {"n": 2}, stop).value == "done"
    assert session.ledger.cost_usd == 0.25
    session.approve(session.pending()[0])
    assert session.call("pay", {"to": "ann"}, ok).code == "deny_all.on"
    assert session.call("t", {"n": 1}, ok, id="c1").code == "deny_all.on"
    write(text)
    assert session.call("pay", {"to": "ann"}, ok).ok
    assert session.call("t", {"n": 1}, ok, id="c1").ok


def test_each_refused_call_is_recorded_with_the_reason_and_replays_exactly() -> None:
    sink, rules, state = MemorySink(), [Approve(tools=("pay",))], SessionState()
    session = Policy(rules, stop="the key leaked").session("s", records=sink)
    for number in range(3):
        session.call("t", {"n": number}, ok)
        session.call("pay", {}, ok)
    sink.close()
    stopped = [record["stop"] for record in sink.records if record.get("code") == "deny_all.on"]
    assert stopped == ["the key leaked"] * 6
    assert all(one.same for one in replay(Policy(rules).chain, sink.records, state))
    assert state.calls == 0
