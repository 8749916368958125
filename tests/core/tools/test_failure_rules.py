"""
What is declared of the failures of a tool.
"""

import re
import subprocess
import sys

from pathlib import Path
from typing import Any

import pytest
import yaml

from guardrails import Tool
from guardrails.core.result import Reading, reading_of
from guardrails.core.tool import FailureRule, ResultClassifier, finder, source_of
from guardrails.core.values.schema import fit
from tests.core.result.carriers import carried
from tests.tables import table


CASES = yaml.safe_load(Path(__file__).with_name("tools.yaml").read_text())


def read(value: Any, **declared: Any) -> Reading:
    classifier, _ = fit(ResultClassifier, declared)
    return reading_of(value, source_of(Tool(name="t", result=classifier)))


@table(("rule", "failures", "honest"), CASES["rules"])
def test_a_rule_is_one_sign_in_every_carrier(rule: dict[str, Any], failures: list[Any], honest: list[Any]) -> None:
    for value in (*failures, *honest):
        found = {not read(carrier, error_when=[rule]).ok for _, carrier in carried(value)}
        assert found == {value in failures}, value


@table(("declared", "value", "kind", "message", "wait"), CASES["signs"])
def test_the_first_sign_says_kind_and_words(declared: Any, value: Any, kind: str, message: str, wait: Any) -> None:
    found = read(value, **declared)
    assert (found.error_type, found.error_message, found.retry_after_ms) == (kind, message, wait)


@table("value", [{"error": "it broke"}, "Error: it broke", {"http": 200}, {"http": 404.5}, {"state": "odd"}])
def test_nothing_else_is_a_failure_then_but_the_flag_of_mcp(value: Any) -> None:
    assert read(value, status_field="http").ok or value == {"http": 404.5}
    assert not read({"content": [], "isError": True}, status_field="http").ok


@pytest.mark.parametrize("rule", [{}, {"equals": 1, "present": True}, {"matches": "("}, {"matches": "(?=a)"}])
def test_a_rule_that_says_nothing_or_two_things_is_none(rule: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"exactly one|not a regular expression"):
        FailureRule(field="a", **rule)


# Patterns of a policy's author on text of strangers, in linear time


@pytest.mark.system
@pytest.mark.parametrize(("pattern", "text"), [
    (r"(a+)+$", "a" * 8_000 + "!"), (r"(?:x+x+)+y", "x" * 8_000), (r"^(\w+\s?)*$", "word " * 1_600 + "!"), (r"(.*)(.*)(.*)(.*)(.*)!", "a" * 8_000),
    (r"(?i)(a|a|ab)*c", "ab" * 4_000), (r"(a?){40}a{40}b", "a" * 8_000), (r"(a|a)(a|a)(a|a)(a|a)" * 20 + "b", "a" * 8_000),
    (r"error.*timeout.*retry.*failed", "error timeout retry " * 400),
])  # fmt: skip
def test_a_pattern_that_invites_going_back_takes_no_time(pattern: str, text: str) -> None:
    code = (
        "import resource, sys; from guardrails.core.tool import finder; find = finder(sys.argv[1]);"
        "resource.setrlimit(resource.RLIMIT_CPU, (8, 8)); print([find(sys.argv[2]) for _ in range(20)][0])"
    )
    ran = subprocess.run([sys.executable, "-c", code, pattern, text], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout) == (0, "False\n"), ran.stderr[-300:]


@table(("pattern", "text", "found"), CASES["found"])
def test_a_pattern_is_looked_for_anywhere_in_a_text(pattern: str, text: str, found: bool) -> None:
    assert finder(pattern)(text) is found


@table(("pattern", "told"), CASES["refused"])
def test_what_it_cannot_be_is_told(pattern: str, told: str) -> None:
    with pytest.raises(ValueError, match=f"not a regular expression: .*{re.escape(told)}"):
        FailureRule(matches=pattern)
