"""
What is said where no guard says it.
"""

from guardrails.core.refusals import unreachable


def test_what_cannot_be_known_is_no_strike() -> None:
    denial = unreachable()
    assert (denial.code, denial.strike, denial.ends_session) == ("store.error", False, False)
