"""
What is said where no guard says it.
"""

from guardrails.core.refusals import unreachable
from tests.tables import table


@table(("failed", "said"), [("store", "state cannot be reached"), ("clock", "clock failed")])
def test_what_cannot_be_known_is_no_strike(failed: str, said: str) -> None:
    denial = unreachable(failed)
    assert (denial.code, denial.strike, denial.ends_session) == (f"{failed}.error", False, False)
    assert said in denial.message
