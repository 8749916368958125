"""
Rules of an allow list for what is no program.
"""

import pytest

from guardrails.core.commands import unmatched
from guardrails.core.commands.language import speaks


@pytest.mark.parametrize("text", ["> out/*", "< in/*", "NODE_ENV=*", "APP_*=?", "{A,B}=*", "[ *"])
def test_a_file_a_variable_and_a_test_are_spoken_of_by_rules_of_their_own(text: str) -> None:
    assert unmatched(text) is not None
    assert speaks(text)


@pytest.mark.parametrize(
    "text",
    [">out/*", "make > log.txt", "NODE_ENV=x npm test", "time *", "ls ~/src/*", "cat * | sort", "[[ -f * ]]", "> a b"],
)
def test_other_rules_that_match_no_command_match_nothing(text: str) -> None:
    assert not speaks(text)
