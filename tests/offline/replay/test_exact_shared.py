"""
Own records of sessions that share something, decided again.
"""

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, JsonLines, Policy, Rate, Rule
from guardrails.offline.replay.exactness import Exactness, replayed
from guardrails.offline.transcripts.inputs import inputs


def policy(calls: int = 3) -> Policy:
    rules = [Rule(match="pay", guards={"budget": {"max_calls": 2}})]
    return Policy(
        [Budget(max_calls=9)], rules=rules, scopes={"user": [Budget(max_calls=calls), Rate(max_calls_per_second=5)]}
    )


@pytest.fixture
def files(tmp_path: Path, clock: Any) -> list[Path]:
    """
    A file of each session: two of one user, one of another, and one with a child that pays.
    """
    made = policy()
    names = {"a": "u1", "b": "u1", "c": "u2", "p": "u3"}
    paths = {name: tmp_path / f"{name}.jsonl" for name in names}
    sinks = {name: JsonLines(path) for name, path in paths.items()}
    sessions = {
        name: made.session(name, scopes={"user": user}, records=sinks[name], clock=clock)
        for name, user in names.items()
    }
    for n in range(3):
        for name in ("a", "b", "c"):
            sessions[name].call("t", {"n": n}, lambda *_: "ok")
    with sessions["p"].child("kid", max_calls=3) as child:
        for n in range(3):
            child.call("pay", {"n": n}, lambda *_: "paid")
    sessions["p"].call("pay", {}, lambda *_: "paid")
    for sink in sinks.values():
        sink.close()
    return list(paths.values())


def exact(files: list[Path], made: Policy | None = None) -> Exactness:
    return replayed(made or policy(), inputs(map(str, files)))


def test_sessions_that_share_a_scope_are_decided_alike_from_all_their_files(files: list[Path]) -> None:
    found = exact(files)
    assert (found.same, found.sessions, found.calls, found.first) == (True, 5, 13, [])


def test_what_is_wrong_of_one_scope_harms_no_other(files: list[Path]) -> None:
    found = exact(files[1:])
    assert (found.differing, found.calls) == (1, 7)
    assert "the records of the scope `user` of `u1` have a gap before event 3" in found.first[0].recorded


def test_a_policy_with_another_limit_for_the_scope_decides_otherwise(files: list[Path]) -> None:
    found = exact(files, policy(calls=1))
    assert {(each.session_id, each.recorded, each.replayed) for each in found.first} >= {
        ("b", "allow", "deny (user.budget.max_calls)"),
    }
