"""
Reading files of cases.
"""

import json

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from guardrails import PolicyError
from guardrails.offline.policy_cases import find_cases, read_cases
from guardrails.offline.policy_cases.steps import KINDS, after, cases_schema
from tests.tables import table


SHIPPED = Path(__file__).parents[3] / "policies" / "cases"
HEAD = "version: 1\ncases:\n- name: a case\n  steps:\n"
STEPS = yaml.safe_load(Path(__file__).with_name("steps.yaml").read_text())
MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text())


def mistakes(text: str | bytes) -> list[str]:
    try:
        read_cases(text, "bad.yaml")
    except PolicyError as error:
        return [mistake.partition("\n")[0] for mistake in error.mistakes]
    return []


def test_every_kind_of_step_is_read_with_its_line() -> None:
    read: Any = read_cases(HEAD + "".join(f"  - {{{step}}}\n" for step, *_ in STEPS)).cases[0].steps
    assert [[type(step).__name__, step.model_dump(exclude_unset=True)] for step in read] == [own for _, *own in STEPS]
    assert [step.line for step in read] == [*range(5, 5 + len(STEPS))]
    [block] = read_cases(f"{HEAD}  - repeat: 3\n    steps:\n    - {{call: '{{}}', arguments: text}}\n").cases[0].steps
    assert (block.repeat, block.steps[0].call, block.steps[0].arguments, block.steps[0].line) == (3, "{}", "text", 7)
    assert {name for _, name, _ in STEPS} | {"Repeat"} == {kind.__name__ for kind in KINDS.values()}


def test_a_file_names_its_policy_and_a_case_its_tools() -> None:
    file = read_cases(Path(__file__).with_name("two.cases.yaml").read_text())
    assert (file.file, file.policy) == ("<text>", "team")
    assert [(case.name, case.line) for case in file.cases] == [("one", 4), ("two", 9)]
    pay, look = file.cases[0].tools
    assert (pay.idempotent, pay.timeout, pay.ask_user, pay.read_only) == (False, 30.0, ("iban",), True)
    spec = look.arguments()
    assert spec is not None
    assert [problem.field for problem in spec.check({})[1]] == ["q"]


@table(
    "text, expected",
    [(text, expected) for text, *expected in MISTAKES["files"]]
    + [(b"\xff\xfe", ["bad.yaml:1:1: not UTF-8: byte 0xff, save the file as UTF-8"])],
)
def test_all_mistakes_are_told_at_once_in_order_with_their_places(text: str | bytes, expected: list[str]) -> None:
    found = mistakes(text)
    assert len(found) == len(expected)
    assert [one.split(" (")[0][:70] for one in found] == [one.split(" (")[0][:70] for one in expected]


@table("step, expected", [(step, expected) for step, *expected in MISTAKES["steps"]])
def test_keys_that_do_not_belong_together_are_told(step: str, expected: list[str]) -> None:
    assert mistakes(f"{HEAD}  - {{{step}}}\n") == expected


def test_a_time_is_counted_from_the_step_before() -> None:
    assert [after(written) for written in ("+5s", "+250ms", "+24h")] == [5_000, 250, 86_400_000]
    for written in (5, "5s", "soon", "+", "+5", "+soon", "+-5s", True, None, [1]):
        with pytest.raises(ValueError, match=r"^not a (time|duration).*: write \+?500ms"):
            after(written)


def test_the_cases_of_a_policy_are_found_by_its_name(tmp_path: Path) -> None:
    assert find_cases("default").parts[-3:] == ("policies", "cases", "default.yaml")
    policy = tmp_path / "team.yaml"
    policy.write_text("version: 1\n")
    with pytest.raises(PolicyError, match=r"looked for `team.cases.yaml` and `cases/team.yaml` beside it"):
        find_cases(str(policy))
    (tmp_path / "cases").mkdir()
    for name in ("cases/team.yaml", "team.cases.yaml"):
        (tmp_path / name).write_text(HEAD + "  - {call: a}\n")
        assert find_cases(str(policy)) == tmp_path / name


def test_an_editor_finds_the_current_schema_and_the_shipped_cases_fit_it() -> None:
    current = json.loads((SHIPPED / "case.schema.json").read_text()) == json.loads(json.dumps(cases_schema()))
    assert current, "run: guardrails policy test --schema > policies/cases/case.schema.json"
    for file in SHIPPED.glob("*.yaml"):
        text = file.read_text()
        assert text.startswith("# yaml-language-server: $schema=./case.schema.json\n")
        assert jsonschema_rs.validator_for(cases_schema()).is_valid(yaml.safe_load(text))
