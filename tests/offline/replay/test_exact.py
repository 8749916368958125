"""
Own records, decided again.
"""

import gzip
import json

from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import Budget, Denial, Duplicates, Growth, Guard, Policy, Retryable, Tool, ToolFilter, guard
from guardrails.core.guards.base import Facts, SessionState
from guardrails.core.values.types import ToolCall
from guardrails.errors import SessionError
from guardrails.offline.replay.exact import Exactness, replayed
from guardrails.offline.transcripts import Report
from guardrails.offline.transcripts.files import calls_of, inputs
from guardrails.sinks import JsonLines, MemorySink
from tests.conftest import FakeClock
from tests.replaying import replay
from tests.tables import table


DECLARED = yaml.safe_load(Path(__file__).with_name("declared.yaml").read_text(encoding="utf-8"))
POLICY = Policy([Budget(max_calls=3), Duplicates()])


def ok(*_: Any) -> str:
    return "ok"


def exact(*files: Path, policy: Policy = POLICY) -> Exactness:
    return replayed(policy, inputs(map(str, files)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


@pytest.fixture
def records(path: Path, clock: Any) -> Path:
    with JsonLines(path) as sink:
        session = Policy(POLICY.chain.guards).session("s", records=sink, clock=clock)
        for n in (1, 1, 2, 3, 4):
            session.call("a", {"n": n}, ok)
    return path


def test_the_policy_that_made_them_decides_them_alike_and_another_otherwise(records: Path, tmp_path: Path) -> None:
    found = exact(records).to_dict()
    assert [found[name] for name in ("exact", "sessions", "calls", "broken_lines")] == [True, 1, 5, 0]
    other = exact(records, policy=Policy([Budget(max_calls=9)]))
    assert (other.same, other.differing) == (False, 4)
    assert [(each["tool"], each["recorded"], each["replayed"]) for each in other.first][0::3] == [
        ("a", "deny (duplicates.window)", "allow"),
        ("a", "deny (budget.max_calls)", "allow"),
    ]
    # The events of a session may be spread over files and out of order.
    lines = records.read_text().splitlines(keepends=True)
    (tmp_path / "one.jsonl").write_text("".join(reversed(lines[::2])))
    (tmp_path / "two.jsonl.gz").write_bytes(gzip.compress("".join(lines[1::2]).encode()))
    assert exact(tmp_path / "one.jsonl", tmp_path / "two.jsonl.gz").same


def test_what_is_missing_or_broken_is_told_and_not_guessed(records: Path) -> None:
    whole = records.read_text()
    first, second, third, *rest = whole.splitlines(keepends=True)
    cut = {key: value for key, value in json.loads(first).items() if key != "denials"}
    lacking = "the record of event 1 of `s` lacks or misstates 'denials'"
    for lines, told in (([first, second], "gap"), ([json.dumps(cut) + "\n", second, third], lacking)):
        records.write_text("".join([*lines, *rest]))
        (found,) = exact(records).first
        assert found["replayed"] == "cannot be replayed"
        assert told in found["recorded"]
    records.write_text(whole + '{"event": "call", "session_id"\n\n')
    assert (exact(records).same, exact(records).broken_lines) == (True, 1)
    for text in ("", "hello\n", '{"session_id": "s", "tool": "a", "arguments": {}}\n'):
        records.write_text(text)
        with pytest.raises(SessionError, match="holds no records of this library"):
            exact(records)
    none: list[Any] = [None, 1, "text", [], {}, {"n": 1}, {"n": "x", "session_id": "s"}, {"n": []}]
    for odd in none:
        with pytest.raises(SessionError, match="record"):
            replay(POLICY.chain, [odd])


@guard
class Careful(Guard):
    """
    Looks at arguments.
    """

    word: str = "rm"

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        return Denial(code="careful.word", message="no") if self.word in str(call.arguments) else None


@table("kept, not_judged", [("full", {}), ("hash", {"careful": "the arguments of 1 call were not kept"})])
def test_guards_that_need_what_was_erased_are_named(
    path: Path, clock: Any, kept: Literal["full", "hash"], not_judged: dict[str, str]
) -> None:
    policy = Policy([Careful(), Duplicates()])
    path.unlink(missing_ok=True)
    with JsonLines(path, arguments=kept) as sink:
        policy.session("s", records=sink, clock=clock).call("sh", {"c": "rm -r"}, ok)
    found = exact(path, policy=policy)
    assert (found.not_judged, found.same) == (not_judged, not not_judged)


@table("declared, code", DECLARED)
def test_what_code_declared_of_a_tool_is_in_the_records(
    path: Path, clock: Any, declared: dict[str, Any], code: str | None
) -> None:
    """
    The policy file knows nothing of it; the records alone decide alike.
    """
    path.unlink(missing_ok=True)
    policy = Policy([ToolFilter(), Budget(max_cost_usd=0.5), Retryable(), Duplicates(rule="evidence")])

    def run(*_: Any) -> str:
        if "retryable" in declared or "idempotent" in declared:
            raise RuntimeError("it broke")
        return "ok"

    with JsonLines(path) as sink:
        session = policy.session("s", tools=[Tool(name="mine", **declared)], records=sink, clock=clock)
        codes = [session.call("mine", {"n": 1}, run).code for _ in range(2)]
        assert session.call("theirs", {"n": 1}, run).code == "tool_filter.unknown"
    assert codes[0] is None
    assert code is None or codes[1] == code
    found = exact(path, policy=Policy(policy.chain.guards))
    assert (found.same, found.first, found.calls) == (True, [], 3)


def test_calls_that_were_suspended_and_released_are_decided_alike_and_have_no_result(path: Path, clock: Any) -> None:
    policy = Policy([Budget(max_calls=3)])
    with JsonLines(path) as sink:
        session = policy.session("s", records=sink, clock=clock)
        for name in ("stops", "drops"):
            session.decide(name, {}, id=name, claim=True)
        session.calls.suspend("stops")
        session.calls.release("drops")
        session.complete(session.decide("stops", {}, id="stops", claim=True), "done")
        session.call("last", {}, ok)
    assert exact(path, policy=policy).same
    calls = [(c.tool, c.has_result) for c in calls_of(inputs([path]), Report())]
    assert calls == [("stops", True), ("drops", False), ("last", True)]


def test_a_claim_is_claimed_again(clock: Any) -> None:
    policy, sink = Policy([Budget(max_calls=5)]), MemorySink()
    session = policy.session("s", records=sink, clock=clock)
    session.decide("pay", {"n": 1}, id="call_0")

    def execute(*_: Any) -> str:
        return session.call("pay", {"n": 1}, ok, id="call_0").code or ""

    assert session.call("pay", {"n": 1}, execute, id="call_0").value == "call.in_flight"
    assert [record["event"] for record in sink.records] == ["call", "claim", "call", "settle"]
    assert [one.same for one in replay(policy.chain, sink.records)] == [True, True]


def everything(clock: Any) -> tuple[Policy, list[dict[str, Any]], SessionState]:
    """
    A policy, the records of a session in which most things happen, and its state.
    """
    limits = Budget(max_calls=9, max_turns=2, max_cost_usd=0.5)
    policy, sink = Policy([limits, Duplicates(), Retryable(), Growth(max_requests_per_second=50)]), MemorySink()
    session = policy.session("s", records=sink, clock=clock)
    session.begin_turn()
    session.request()
    session.call("a", {"n": 1}, ok)
    session.call("a", {"n": 1}, ok)
    session.call("b", {}, lambda *_: 1 / 0)
    session.charge(model="m", cost_usd=0.1)
    session.extend(max_calls=3, max_turns=2)
    late = session.decide("slow", {}, id="x")
    clock.advance(601)
    session.call("c", {}, ok)
    session.complete(late, "late")
    session.close()
    return policy, [dict(record) for record in sink.records], session.ledger.read(lambda live, _: live)


def test_a_state_is_lived_through_again() -> None:
    policy, records, expected = LIVED
    assert "expire" in [record["event"] for record in records]
    state = SessionState()
    assert all(one.same for one in replay(policy.chain, records, state))
    assert state == expected


ABSENT = object()
ODD: list[Any] = [ABSENT, None, True, -1, 1.5, 10**30, "text", float("nan"), [1], ["a", "b", "c"], {}, {"a": 1}]
LIVED: tuple[Policy, list[dict[str, Any]], SessionState] = everything(FakeClock())


@settings(max_examples=300)
@given(record=st.sampled_from(LIVED[1]), chosen=st.integers(0, 100), odd=st.sampled_from(ODD))
def test_a_field_that_is_no_good_is_a_clear_error_or_no_matter(record: dict[str, Any], chosen: int, odd: Any) -> None:
    field = sorted(record)[chosen % len(record)]
    given = {key: value for key, value in {**record, field: odd}.items() if value is not ABSENT}
    with suppress(SessionError):
        replayed = replay(LIVED[0].chain, [given if one is record else one for one in LIVED[1]])
        assert all(isinstance(one.same, bool) for one in replayed)


def test_two_lives_of_one_name_are_replayed_each_by_itself(clock: Any) -> None:
    records, policy = MemorySink(), Policy([Budget(max_calls=5)])
    session = policy.session("s", clock=clock, records=records)
    session.call("t", {}, lambda *_: session.ledger.forget())
    for n in range(6):
        session.call("t", {"n": n}, ok)
    lives = [record["run"] for record in records.records]
    assert all(lives)
    assert [life == lives[0] for life in lives[:2]] == [True, False], "an end after it begins a new life"
    replayed = replay(policy.chain, records.records)
    assert [one.made["code"] for one in replayed].count("budget.max_calls") == 1
    assert all(one.same for one in replayed)
