"""
A recorded session as a policy case.
"""

import json

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy, SessionError
from guardrails.offline.judge.files.inputs import inputs
from guardrails.offline.judge.files.session_case import session_case
from guardrails.offline.policy_cases import read_cases, run_case
from guardrails.offline.policy_cases.case import Call


@pytest.fixture
def transcript(tmp_path: Path) -> str:
    told = [("s", "look", "1"), ("t", "look", "1"), ("s", "look", "1"), ("s", "look", "1"), ("s", "edit", "2")]
    path = tmp_path / "data.jsonl"
    path.write_text(
        "".join(
            json.dumps(
                {"session_id": s, "tool": tool, "arguments": {"q": 1}, "result": r, "is_error": False, "ts": 1.8e9 + n}
            )
            + "\n"
            for n, (s, tool, r) in enumerate(told)
        )
    )
    return str(path)


def test_the_case_expects_what_the_policy_says_and_holds(transcript: str) -> None:
    policy = Policy.load("default")
    text = session_case(policy, "default", inputs([transcript]), "s")
    (case,) = read_cases(text).cases
    assert run_case(policy.chain, case).passed
    assert "duplicates.evidence" in text


def test_the_case_of_a_policy_that_observes_expects_its_hints_too(tmp_path: Path) -> None:
    path = tmp_path / "waits.jsonl"
    line = {"session_id": "s", "tool": "job_status", "arguments": {}, "result": "running", "is_error": False}
    path.write_text("".join(json.dumps(line | {"ts": 1.8e9 + 30 * n}) + "\n" for n in range(6)))
    policy = Policy.load("observe")
    text = session_case(policy, "observe", inputs([str(path)]), "s")
    (case,) = read_cases(text).cases
    assert run_case(policy.chain, case).passed
    assert "loops.wait" in text


def test_a_case_ends_with_the_call_that_is_named(transcript: str) -> None:
    policy = Policy.load("default")
    whole = session_case(policy, "default", inputs([transcript]), "s")
    for last in range(2):
        text = session_case(policy, "default", inputs([transcript]), "s", until=last)
        (case,) = read_cases(text).cases
        assert sum(isinstance(step, Call) for step in case.steps) == last + 1 < whole.count("call: ")
        assert run_case(policy.chain, case).passed


def test_a_call_that_the_session_lacks_is_named_with_those_there_are(transcript: str) -> None:
    with pytest.raises(SessionError, match=r"`s` has no call 1,000: its calls are 0 to \d+$"):
        session_case(Policy.load("default"), "default", inputs([transcript]), "s", until=1000)


def test_a_case_that_cannot_hold_the_call_that_is_named_is_none(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    line = {"session_id": "s", "tool": "look", "is_error": False}
    text = "".join(
        json.dumps({**line, "arguments": {"n": f"{n} {'x' * 150}"}, "result": f"{n} {'y' * 150}"}) + "\n"
        for n in range(4_000)
    )
    path.write_text(text)
    with pytest.raises(SessionError, match=r"`s` up to call 3,999: a case file holds the first [\d,]+ calls only"):
        session_case(Policy.load("default"), "default", inputs([path]), "s", until=3999)
    assert "calls are left out" in session_case(Policy.load("default"), "default", inputs([path]), "s")


def test_what_comes_after_the_call_and_what_is_secret_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    line = {"session_id": "s", "tool": "login", "is_error": False}
    secrets = [f"sk-ant-api03-{'Ab3' * 20}{n}" for n in range(2)]
    calls = [
        {"arguments": {"token": secret}, "result": f"hello {secret} number {n}"} for n, secret in enumerate(secrets)
    ]
    path.write_text("".join(json.dumps({**line, **call}) + "\n" for call in calls))
    text = session_case(Policy.load("default"), "default", inputs([path]), "s", until=0)
    assert "number 0" in text
    assert "number 1" not in text
    assert not any(secret in text for secret in secrets)


def test_only_one_source_is_meant(transcript: str, tmp_path: Path) -> None:
    (tmp_path / "more.jsonl").write_text(Path(transcript).read_text())
    policy = Policy.load("default")
    one = session_case(policy, "default", inputs([transcript]), "t")
    assert session_case(policy, "default", inputs([transcript, tmp_path / "more.jsonl"]), "t") == one


@pytest.mark.parametrize(
    ("sessions", "asked", "said"),
    [
        (["s", "t"], "nobody", "no session `nobody` in these files; they have `s`, `t`$"),
        (list("abcde"), "nobody", "they have `a`, `b`, `c` and 2 more$"),
        (["chat.jsonl", "talk"], "chat", "did you mean `chat.jsonl`\\?$"),
        (["trip-42", "desk"], "trip-24", "did you mean `trip-42`\\?$"),
        ([], "nobody", "they hold no calls$"),
    ],
)
def test_of_a_session_that_is_not_there_it_is_said_what_is(
    sessions: list[str], asked: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps({"session_id": s, "tool": "look", "arguments": {}}) + "\n" for s in sessions))
    with pytest.raises(SessionError, match=said):
        session_case(Policy.load("default"), "default", inputs([path]), asked)


def test_one_life_of_a_name_is_a_case_and_which_is_to_be_said(tmp_path: Path, clock: Any) -> None:
    path = tmp_path / "records.jsonl"
    for life in range(2):
        policy = Policy([Budget(max_calls=5)])
        with policy.session("trip", records=path, clock=clock) as session:
            for n in range(life + 1):
                session.call("look", {"life": life, "n": n}, lambda _tool, _arguments: "seen")
    runs = list(dict.fromkeys(json.loads(line)["run"] for line in path.read_text().splitlines()))
    with pytest.raises(SessionError, match=rf"`trip` has 2 lives; name one of `trip@{runs[0]}`, `trip@{runs[1]}`"):
        session_case(policy, "mine", inputs([path]), "trip")
    assert session_case(policy, "mine", inputs([path]), f"trip@{runs[1]}").count('"life": 1') == 2
