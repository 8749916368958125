"""
The form of case files.
"""

import json

from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from guardrails.offline.policy_cases.steps import Moment, cases_schema, moment
from tests.tables import table


CASES = Path(__file__).parents[3] / "policies" / "cases"


@table(
    "written, read",
    [
        (0, Moment(0, relative=False)),
        (1.5, Moment(1_500, relative=False)),
        ("65s", Moment(65_000, relative=False)),
        ("24h", Moment(86_400_000, relative=False)),
        ("+5s", Moment(5_000, relative=True)),
        ("+250ms", Moment(250, relative=True)),
    ],
)
def test_a_time_is_counted_from_the_start_or_from_the_step_before(written: object, read: Moment) -> None:
    assert moment(written) == read


@table("written", [-1, "soon", "5", True, None, 0.0001, [1]])
def test_what_is_no_time_is_told_how_to_write_one(written: object) -> None:
    with pytest.raises(ValueError, match=r"^not a duration: write .*, got "):
        moment(written)


@table("written", ["+", "+5", "+soon", "+-5s"])
def test_a_relative_time_needs_its_unit(written: str) -> None:
    with pytest.raises(ValueError, match=r"^not a duration: write 500ms"):
        moment(written)


def test_the_schema_beside_the_cases_is_current() -> None:
    current = json.loads((CASES / "case.schema.json").read_text()) == json.loads(json.dumps(cases_schema()))
    assert current, "run: guardrails policy test --schema > policies/cases/case.schema.json"


@table("file", sorted(CASES.glob("*.yaml")))
def test_an_editor_finds_the_schema_and_the_shipped_cases_fit_it(file: Path) -> None:
    text = file.read_text()
    assert text.startswith("# yaml-language-server: $schema=./case.schema.json\n")
    assert jsonschema_rs.validator_for(cases_schema()).is_valid(yaml.safe_load(text))
