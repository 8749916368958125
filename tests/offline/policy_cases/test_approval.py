"""
Cases of calls that wait for a person, and recorded ones.
"""

from pathlib import Path
from typing import Any

from guardrails import Approve, Duplicates, Policy
from guardrails.offline.policy_cases.reading import read_cases
from guardrails.offline.policy_cases.run import run_case
from guardrails.offline.replay.judge import Judge
from guardrails.offline.transcripts import Report, open_calls
from guardrails.offline.transcripts.calls import RecordedCall
from tests.tables import table


POLICY = Policy([Approve(tools=("pay_*",), expires=3600.0), Duplicates()])
STORY = """
version: 1
cases:
  - name: a payment
    steps:
      - {call: pay, arguments: {usd: 1}}
      - {call: pay_rent, arguments: {usd: 1}, id: a, expect: pending, code: approve.pending, status: denied}
      - {call: pay_rent, arguments: {usd: 1}, id: b, expect: deny, code: approve.pending}
      - {approve: a}
      - {call: pay_rent, arguments: {usd: 1}, id: a, result: paid}
      - {call: pay_rent, arguments: {usd: 2}, id: a, expect: pending, code: approve.pending}
      - {refuse: a, reason: too much}
      - {call: pay_rent, arguments: {usd: 2}, id: a, expect: deny, code: approve.refused}
      - {call: pay_rent, arguments: {usd: 3}, id: c, expect: pending, code: approve.pending}
      - {wait: 1h}
      - {call: pay_rent, arguments: {usd: 3}, id: c, expect: deny, code: approve.expired}
"""


def failures(text: str) -> list[str]:
    (case,) = read_cases(text).cases
    return [str(failure) for failure in run_case(POLICY, case).failures]


def test_a_case_asks_answers_and_lets_time_pass() -> None:
    assert failures(STORY) == []


@table(
    "step, told",
    [
        ("{call: pay_rent, id: a}", "expected allow; decided pending approve.pending"),
        ("{call: look, expect: pending, code: approve.pending}", "expected pending approve.pending; decided allow"),
        ("{approve: a}", "expected to be possible; decided no call `a` waits for an answer"),
    ],
)
def test_a_case_that_goes_otherwise_is_told(step: str, told: str) -> None:
    (failure,) = failures(f"version: 1\ncases:\n  - name: a\n    steps:\n      - {step}\n")
    assert told in failure


def recorded(number: int, usd: int, result: Any = "paid") -> RecordedCall:
    call = RecordedCall("s", "pay_rent", {"usd": usd}, "source", number, number)
    call.has_result, call.is_error, call.result, call.ts_ms = True, False, result, 1_700_000_000_000 + number * 60_000
    return call


def test_a_recorded_call_that_ran_is_taken_for_approved() -> None:
    judge = Judge(POLICY)
    calls = [recorded(0, 1), recorded(1, 2), recorded(2, 1)]
    said = judge.judge(calls)
    assert [(one.decision, one.code) for one in said] == [
        ("pending", "approve.pending"),
        ("pending", "approve.pending"),
        ("deny", "duplicates.window"),
    ]
    assert judge.judgement().sources[0].nudged == {"approve.pending": 2}


def test_a_refused_call_of_our_own_records_holds_up_no_other(tmp_path: Path) -> None:
    with POLICY.session("s", records=tmp_path / "records.jsonl") as session:
        for usd in (1, 2):
            session.call("pay_rent", {"usd": usd}, lambda tool, arguments: "paid", id=f"call_{usd}")
        session.refuse("call_1")
        session.approve("call_2")
        session.call("pay_rent", {"usd": 2}, lambda tool, arguments: "paid", id="call_2")
        session.call("look", {}, lambda tool, arguments: "seen")
    calls = list(open_calls(str(tmp_path / "records.jsonl"), Report()))
    assert [(call.tool, call.decision, call.has_result) for call in calls] == [
        ("pay_rent", "pending", False),
        ("pay_rent", "pending", True),
        ("look", "allow", True),
    ]
    judge = Judge(POLICY)
    assert [each.decision for each in judge.judge(calls)] == ["pending", "pending", "allow"]
