"""
Patterns of a policy's author on text of strangers, in linear time.
"""

import re
import subprocess
import sys

import pytest

from guardrails import FailureRule
from guardrails.core.tools.tool import finder
from tests.tables import table


@pytest.mark.system
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(a+)+$", "a" * 8_000 + "!"),
        (r"(?:x+x+)+y", "x" * 8_000),
        (r"^(\w+\s?)*$", "word " * 1_600 + "!"),
        (r"(.*)(.*)(.*)(.*)(.*)!", "a" * 8_000),
        (r"(?i)(a|a|ab)*c", "ab" * 4_000),
        (r"(a?){40}a{40}b", "a" * 8_000),
        (r"(a|a)(a|a)(a|a)(a|a)" * 20 + "b", "a" * 8_000),
        (r"error.*timeout.*retry.*failed", "error timeout retry " * 400),
    ],
)
def test_a_pattern_that_invites_going_back_takes_no_time(pattern: str, text: str) -> None:
    code = (
        "import resource, sys; from guardrails.core.tools.tool import finder; find = finder(sys.argv[1]);"
        "resource.setrlimit(resource.RLIMIT_CPU, (8, 8)); print([find(sys.argv[2]) for _ in range(20)][0])"
    )
    ran = subprocess.run([sys.executable, "-c", code, pattern, text], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout) == (0, "False\n"), ran.stderr[-300:]


@table(
    ("pattern", "text", "found"),
    [
        (r"^Error\b", "Error: x", True),
        (r"^Error\b", "Errors", False),
        (r"(?i)^failed to", "FAILED to", True),
        (r"(?i)ÄRGER", "ärger", True),
        (r"\d+ errors?", "3 errors", True),
        (r"(?m)^x$", "y\nx\n", True),
        (r"^ok$", "ok\n", False),
        (r"Error", "\udc80 Error", True),
        (r"a.c", "a\nc", False),
    ],
)
def test_a_pattern_is_looked_for_anywhere_in_a_text(pattern: str, text: str, found: bool) -> None:
    assert finder(pattern)(text) is found


@table(
    ("pattern", "told"),
    [
        (r"(?<!no )error", "look-around, including look-ahead and look-behind, is not supported"),
        (r"(a+)\1", "backreferences are not supported"),
        (r"(?P<n>a)(?P=n)", "unrecognized flag"),
        (r"\w{600}!", "exceeds size limit"),
        (r"a{", "unclosed counted repetition"),
        (r"(", "unclosed group"),
        (r"ok\Z", "unrecognized escape sequence"),
    ],
)
def test_what_it_cannot_be_is_told(pattern: str, told: str) -> None:
    with pytest.raises(ValueError, match=f"not a regular expression: .*{re.escape(told)}"):
        FailureRule(matches=pattern)
