"""
Arguments that only tell a person what a call is for.
"""

from pathlib import Path

from guardrails import Approve, Duplicates, MemorySink, Policy, Tool
from tests.replaying import replay


RUN = Tool(name="run", labels=("reason",))


def test_calls_that_differ_in_labels_are_the_same() -> None:
    session = Policy([Duplicates()], tools=[RUN]).session("s")
    given: list[object] = []
    for reason in ("look", "look again"):
        session.call("run", {"command": "ls", "reason": reason}, lambda _, arguments: given.append(arguments))
    assert given == [{"command": "ls", "reason": "look"}], "the tool is given them all the same"
    assert session.call("run", {"command": "pwd"}, lambda *_: 1).ok


def test_what_a_person_allows_is_the_call_and_not_its_label() -> None:
    session = Policy([Approve(tools=("run",))], tools=[RUN]).session("s")
    session.call("run", {"command": "ls", "reason": "a"}, lambda *_: 1, id="1")
    session.approve("1")
    assert session.call("run", {"command": "ls", "reason": "b"}, lambda *_: 1, id="1").ok


def test_a_rule_of_a_policy_says_what_is_a_label(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("version: 1\nduplicates: {}\ntools: [{match: 'r*', labels: [reason]}]\n")
    session = Policy.load(file).session("s")
    assert session.call("run", {"reason": "a"}, lambda *_: 1).ok
    assert not session.call("run", {"reason": "b"}, lambda *_: 1).ok


def test_records_of_labelled_calls_replay() -> None:
    sink = MemorySink()
    policy = Policy([Duplicates()], tools=[RUN])
    session = policy.session("s", records=sink)
    for reason in ("a", "b", "c"):
        session.call("run", {"command": "ls", "reason": reason}, lambda *_: 1)
    again = list(replay(policy.chain, sink.records))
    assert len(again) == 3
    assert all(one.same for one in again)
