"""
The form of case files.
"""

import json

from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from guardrails.offline.policy_cases.steps import after, cases_schema
from tests.tables import table


CASES = Path(__file__).parents[3] / "policies" / "cases"


def test_a_time_is_counted_from_the_step_before() -> None:
    assert [after(written) for written in ("+5s", "+250ms", "+24h")] == [5_000, 250, 86_400_000]


@table("written", [5, "5s", "soon", "+", "+5", "+soon", "+-5s", True, None, [1]])
def test_what_is_no_such_time_is_told_how_to_write_one(written: object) -> None:
    with pytest.raises(ValueError, match=r"^not a (time|duration).*: write \+?500ms"):
        after(written)


def test_the_schema_beside_the_cases_is_current() -> None:
    current = json.loads((CASES / "case.schema.json").read_text()) == json.loads(json.dumps(cases_schema()))
    assert current, "run: guardrails policy test --schema > policies/cases/case.schema.json"


@table("file", sorted(CASES.glob("*.yaml")))
def test_an_editor_finds_the_schema_and_the_shipped_cases_fit_it(file: Path) -> None:
    text = file.read_text()
    assert text.startswith("# yaml-language-server: $schema=./case.schema.json\n")
    assert jsonschema_rs.validator_for(cases_schema()).is_valid(yaml.safe_load(text))
