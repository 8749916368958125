"""
Patterns of a policy's author on text of strangers: linear, and as Python reads them.
"""

import re
import subprocess
import sys

import pytest

from guardrails import ResultClassifier
from guardrails.core.text.linear_pattern import NotLinearError, finder


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
        "import resource, sys; from guardrails.core.text.linear_pattern import finder; find = finder(sys.argv[1]);"
        "resource.setrlimit(resource.RLIMIT_CPU, (8, 8)); print([find(sys.argv[2]) for _ in range(20)][0])"
    )
    ran = subprocess.run([sys.executable, "-c", code, pattern, text], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout) == (0, "False\n"), ran.stderr[-300:]


SAME = [
    *(r"^Error\b", r"(?i)^failed to", r"^oops", "1", "", "a.c", r"a\.c", r"\d+ errors?", r"(?m)^x$", r"(?s)a.b", "é+"),
    *(
        r"^ok$",
        r"ok\Z",
        r"\<error\>",
        r"[^]]x",
        r"[]a]",
        r"(?P<name>a)b",
        r"(?:a|b)c",
        r"\x41\u0042",
        r"a{2,3}",
        r"\bno\b",
    ),
    *(r"[*+]a?", r"[(?=]", r"[a-z]+\s*:\s*[0-9]+", r"(?i)straße|ÄRGER", r"\/path\-x\ y\_z\'\"", r"^$", r"\n$", "a$|b"),
]
TEXTS = [
    *(
        "",
        "\n",
        "Error: x",
        "Errors",
        "FAILED to",
        "oops",
        "abc",
        "a.c",
        "3 errors",
        "y\nx\n",
        "a\nb",
        "éé",
        "ok",
        "ok\n",
    ),
    *(
        "ok\n\n",
        "<error>",
        "error",
        "ax",
        "]x",
        "]",
        "ab",
        "AB",
        "aaa",
        "say no",
        "note",
        "n : 12",
        "STRASSE straße",
        "ärger",
    ),
    *("/path-x y_z'\"", "x\n", "\udc80 Error", "a\n", "b"),
]


@pytest.mark.parametrize("pattern", SAME)
def test_a_pattern_means_what_it_means_to_python(pattern: str) -> None:
    assert [finder(pattern)(text) for text in TEXTS] == [re.search(pattern, text) is not None for text in TEXTS]


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        (r"(?<!no )error", "look-around, including look-ahead and look-behind, is not supported"),
        (r"error(?= 5)", "is not supported"),
        (r"(a+)\1", "backreferences are not supported"),
        (r"(?P<n>a)(?P=n)", "unrecognized flag"),
        (r"(?#why)a+", "unrecognized flag"),
        (r"(?a)\w+", "unrecognized flag"),
        (r"\w{600}!", "exceeds size limit"),
        (r"[[a]+", r"write `\["),
        (r"(x|a++)b", "a possessive repeat"),
        (r"a{", "unclosed counted repetition"),
        (r"(", "unterminated"),
        (r"a[", "unterminated"),
        (r"\Qa", "bad escape"),
    ],
)
def test_what_it_cannot_be_is_told_with_what_to_write(pattern: str, told: str) -> None:
    with pytest.raises(NotLinearError, match=re.escape(told)):
        finder(pattern)

    with pytest.raises(ValueError, match="not a regular expression"):
        ResultClassifier(text_matches=(pattern,))
