"""
Arguments that only tell a person what a call is for.
"""

from pathlib import Path

from guardrails import Approve, Budget, Duplicates, MemorySink, Policy, Tool
from guardrails.core.records.replay import replay
from guardrails.offline.judge.judgement import Judge
from guardrails.offline.readers import RecordedCall


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


def test_the_call_is_known_again_by_other_labels() -> None:
    session = Policy([Budget(max_calls=3)], tools=[RUN]).session("s")
    session.decide("run", {"command": "ls", "reason": "a"}, id="1", claim=True)
    assert session.complete("1", "done", arguments={"command": "ls", "reason": "b"}).ok


def test_records_of_labelled_calls_replay() -> None:
    sink = MemorySink()
    policy = Policy([Duplicates()], tools=[RUN])
    session = policy.session("s", records=sink)
    for reason in ("a", "b", "c"):
        session.call("run", {"command": "ls", "reason": reason}, lambda *_: 1)
    again = list(replay(policy.chain, sink.records))
    assert len(again) == 3
    assert all(one.same for one in again)


def test_a_transcript_is_judged_by_the_labels_of_its_program_and_of_the_policy() -> None:
    for tools, labels in (([RUN], ()), ([], ("reason",))):
        judge = Judge(Policy([Duplicates()], tools=tools))
        calls = []
        for index, reason in enumerate("ab"):
            call = RecordedCall("data", "s", index, "run", {"command": "ls", "reason": reason}, result="x")
            call.is_error, call.labels = False, labels
            calls.append(call)
        assert [said.decision for said in judge.judge(calls)] == ["allow", "deny"]
