"""
Cases of calls that wait for a person, and recorded ones.
"""

from guardrails import Approve, Duplicates, Policy
from guardrails.offline.policy_cases.reading import read_cases
from guardrails.offline.policy_cases.run import run_case
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
