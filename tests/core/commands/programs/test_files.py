"""
The files of rules, and the schema that they are read by.
"""

from pathlib import Path

import pytest

from guardrails.core.commands.programs.files import BadRulesError, parsed, program
from guardrails.core.commands.programs.rules import ALSO, NAMES


RULES = Path(__file__).parents[4] / "guardrails/core/commands/programs/rules"


def test_each_program_has_a_file_and_each_file_a_program() -> None:
    assert sorted(path.stem for path in RULES.iterdir()) == list(NAMES)
    assert set(ALSO.values()) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_rules_is_as_the_schema_says(name: str) -> None:
    assert program(name).name == name


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([], "is no dict"),
        ({"program": "a"}, "missing"),
        ({"program": "b", "does": "x"}, "it is for `b`"),
        ({"does": "x", "program": "a", "extra": 1}, "unknown"),
        ({"style": "other"}, "no style"),
        ({"flags": ["-a"]}, "is no str"),
        ({"flags": "a"}, "is no option"),
        ({"flags": "--"}, "is no option"),
        ({"flags": "--a=b"}, "is no option"),
        ({"flags": "-a", "valued": {"text": "-a"}}, "listed twice"),
        ({"valued": {"other": "-a"}}, "no kind"),
        ({"flags": "-a", "left_out": {"-a -b": "x"}}, "listed and left out"),
        ({"operands": {"kind": "other"}}, "no kind"),
        ({"operands": {"most": "1"}}, "is no int"),
        ({"operands": {"most": True}}, "is no int"),
        ({"operands": {"only_with": "-x"}}, "not listed"),
        ({"leading": {"unless": "-x"}}, "missing"),
        ({"leading": {"kind": "text", "unless": "-x"}}, "not listed"),
        ({"required": ["-x"]}, "not listed"),
        ({"with": "other"}, "no shared rules"),
        ({"subcommands": {"x": {"does": "y"}}}, "unknown"),
        ({"shared": {"x": {"operands": {}}}, "with": "x"}, "unknown"),
        ({"any_word": 1}, "is no bool"),
        ({"environment": {"A": 1}}, "is no str"),
    ],
)
def test_what_the_schema_does_not_know_is_no_rule(said: object, reason: str) -> None:
    given = {"program": "a", "does": "x"} | said if isinstance(said, dict) and "program" not in said else said
    with pytest.raises(BadRulesError, match=reason):
        parsed(given, "a")
