"""
What is said where no guard says it.
"""

from guardrails import Budget, Policy
from guardrails.core.engine.refusals import over, unreachable
from tests.tables import table


def test_a_session_that_is_over_says_why_in_the_words_of_its_end() -> None:
    denial = over(Policy([Budget(max_calls=1)]).chain, ("budget.max_calls", "Tool call limit reached (1)."))
    assert (denial.code, denial.message) == ("budget.max_calls", "Tool call limit reached (1).")
    assert (denial.status, denial.ends_session) == ("limit_reached", True)
    assert denial.hint == "Write the final answer from what you have."


def test_a_policys_own_hint_holds_after_the_end_too() -> None:
    messages = {"budget.max_calls": {"hint": "Answer now."}}
    policy = Policy([Budget(max_calls=1)], messages=messages)
    assert over(policy.chain, ("budget.max_calls", "over")).hint == "Answer now."


@table(("failed", "said"), [("store", "state cannot be reached"), ("clock", "clock failed")])
def test_what_cannot_be_known_is_no_strike(failed: str, said: str) -> None:
    denial = unreachable(failed)
    assert (denial.code, denial.strike, denial.ends_session) == (f"{failed}.error", False, False)
    assert said in denial.message
