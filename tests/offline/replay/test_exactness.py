"""
Own records, decided again.
"""

import gzip
import json

from pathlib import Path
from typing import Any

import pytest

from guardrails import (
    Budget,
    Denial,
    Duplicates,
    Guard,
    Policy,
    Retryable,
    SessionError,
    SessionState,
    Tool,
    ToolFilter,
    guard,
)
from guardrails.core.guards.base import Facts
from guardrails.core.values.types import ToolCall
from guardrails.offline.replay.exact import Exactness, replayed
from guardrails.offline.transcripts import Report
from guardrails.offline.transcripts.files import calls_of, inputs
from guardrails.sinks import JsonLines
from guardrails.stores.sqlite import SqliteStore
from tests.tables import table


@pytest.fixture
def records(tmp_path: Path, clock: Any) -> Path:
    path, policy = tmp_path / "records.jsonl", Policy([Budget(max_calls=3), Duplicates()])
    with JsonLines(path) as sink:
        session = policy.session("s", records=sink, clock=clock)
        for n in (1, 1, 2, 3, 4):
            session.call("a", {"n": n}, lambda *_: "ok")
    return path


def exact(*files: Path, policy: Policy | None = None) -> Exactness:
    return replayed(policy or Policy([Budget(max_calls=3), Duplicates()]), inputs(map(str, files)))


def test_the_policy_that_made_them_decides_them_alike(records: Path) -> None:
    found = exact(records)
    assert (found.same, found.sessions, found.calls, found.broken_lines) == (True, 1, 5, 0)
    assert found.to_dict()["exact"] is True


def test_another_policy_decides_otherwise_and_every_difference_is_told(records: Path) -> None:
    found = exact(records, policy=Policy([Budget(max_calls=9)]))
    assert not found.same
    assert found.differing == 4
    assert [(each["tool"], each["recorded"], each["replayed"]) for each in found.first][0::3] == [
        ("a", "deny (duplicates.window)", "allow"),
        ("a", "deny (budget.max_calls)", "allow"),
    ]


def test_the_events_of_a_session_may_be_spread_over_files_and_out_of_order(records: Path, tmp_path: Path) -> None:
    lines = records.read_text().splitlines(keepends=True)
    (tmp_path / "one.jsonl").write_text("".join(reversed(lines[::2])))
    packed = tmp_path / "two.jsonl.gz"
    packed.write_bytes(gzip.compress("".join(lines[1::2]).encode()))
    assert exact(tmp_path / "one.jsonl", packed).same


def test_a_missing_event_is_a_difference_and_not_a_guess(records: Path) -> None:
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join([*lines[:2], *lines[3:]]))
    found = exact(records)
    assert [each["replayed"] for each in found.first] == ["cannot be replayed"]
    assert "gap" in found.first[0]["recorded"]


def test_broken_lines_are_counted(records: Path) -> None:
    records.write_text(records.read_text() + '{"event": "call", "session_id"\n\n')
    found = exact(records)
    assert (found.same, found.broken_lines) == (True, 1)


def test_a_record_that_lacks_a_field_is_a_difference(records: Path) -> None:
    first, *rest = records.read_text().splitlines()
    cut = {key: value for key, value in json.loads(first).items() if key != "denials"}
    records.write_text("\n".join([json.dumps(cut), *rest]))
    (difference,) = exact(records).first
    assert difference["recorded"] == "the record of event 1 of `s` lacks or misstates 'denials'"


@table("text", ["", "hello\n", '{"session_id": "s", "tool": "a", "arguments": {}}\n'])
def test_a_file_without_records_of_ours_is_a_wrong_use(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(SessionError, match="holds no records of this library"):
        exact(tmp_path / "x.jsonl")


@guard
class Careful(Guard):
    """
    Looks at arguments.
    """

    word: str = "rm"

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        return Denial(code="careful.word", message="no") if self.word in str(call.arguments) else None


def test_guards_that_need_what_was_erased_are_named(tmp_path: Path, clock: Any) -> None:
    policy = Policy([Careful(), Duplicates()])
    for kept in ("full", "hash"):
        path = tmp_path / f"{kept}.jsonl"
        with JsonLines(path, arguments=kept) as sink:
            policy.session("s", records=sink, clock=clock).call("sh", {"c": "rm -r"}, lambda *_: "ok")
        policy = Policy([Careful(), Duplicates()])
        found = exact(path, policy=policy)
        assert found.not_judged == ({} if kept == "full" else {"careful": "the arguments of 1 call were not kept"})
        assert found.same is (kept == "full")


@table(
    "declared, codes",
    [
        ({"repeats": "evidence"}, [None, "duplicates.stable"]),
        ({"repeats": "allow"}, [None, None]),
        ({"retryable": True}, [None, "retryable.wait"]),
        ({"retryable": False}, [None, None]),
        ({"idempotent": False}, [None, None]),
        ({"cost_usd": 0.3}, [None, "budget.max_cost_usd"]),
        ({"read_only": True, "timeout": 2.0}, [None, None]),
    ],
)
def test_what_code_declared_of_a_tool_is_in_the_records(
    tmp_path: Path, clock: Any, declared: dict[str, Any], codes: list[str | None]
) -> None:
    """
    The policy file knows nothing of it; the records alone decide alike.
    """
    path = tmp_path / "records.jsonl"
    path.unlink(missing_ok=True)

    def policy() -> Policy:
        return Policy([ToolFilter(), Budget(max_cost_usd=0.5), Retryable(), Duplicates(rule="evidence")])

    def run(*_: Any) -> str:
        if "retryable" in declared or "idempotent" in declared:
            raise RuntimeError("it broke")
        return "ok"

    with JsonLines(path) as sink:
        session = policy().session("s", tools=[Tool(name="mine", **declared)], records=sink, clock=clock)
        said = [session.call("mine", {"n": 1}, run).code for _ in codes]
        assert session.call("theirs", {"n": 1}, run).code == "tool_filter.unknown"
    assert [code if code in codes else None for code in said] == codes
    found = exact(path, policy=policy())
    assert (found.same, found.first, found.calls) == (True, [], len(codes) + 1)


def test_calls_that_were_suspended_and_released_are_decided_alike_and_have_no_result(
    tmp_path: Path, clock: Any
) -> None:
    path, policy = tmp_path / "records.jsonl", Policy([Budget(max_calls=3)])
    with JsonLines(path) as sink:
        session = policy.session("s", records=sink, clock=clock)
        for name in ("stops", "drops"):
            session.decide(name, {}, id=name, claim=True)
        session.calls.suspend("stops")
        session.calls.release("drops")
        session.complete(session.decide("stops", {}, id="stops", claim=True), "done")
        session.call("last", {}, lambda *_: "ok")
    assert exact(path, policy=policy).same
    assert [(c.tool, c.has_result) for c in calls_of(inputs([path]), Report())] == [
        ("stops", True),
        ("drops", False),
        ("last", True),
    ]


def test_processes_that_share_a_session_and_have_a_file_each_are_decided_alike(tmp_path: Path, clock: Any) -> None:
    policy, files = Policy([Budget(max_calls=3)]), [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    with SqliteStore(tmp_path / "states.db") as store, JsonLines(files[0]) as one, JsonLines(files[1]) as two:
        sessions = [policy.session("s", store=store, records=sink, clock=clock) for sink in (one, two)]
        for n in range(5):
            sessions[n % 2].call("a", {"n": n}, lambda *_: "ok")
    found = exact(*files, policy=policy)
    assert (found.same, found.sessions, found.calls) == (True, 1, 5)
    assert not exact(files[0], policy=policy).same, "what the other process did is missing"
