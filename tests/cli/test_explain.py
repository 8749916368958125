"""
`guardrails explain`: every code that the library can say is explained, found in its source; and nothing else is.
"""

import json
import re

from pathlib import Path
from typing import Any

from guardrails.cli.explain import explanations
from guardrails.core.guards import GUARDS
from guardrails.core.guards.budget import ToolBudget
from guardrails.core.guards.retryable import HINTS
from guardrails.core.guards.tool_filter import Held
from guardrails.core.refusals import ALIASES
from guardrails.core.refusals import CODES as ENGINE_CODES
from guardrails.core.values.types import ERROR_TYPES, STATUSES
from guardrails.policy.check import CODES as WORDED
from guardrails.policy.policy import Policy
from tests.cli.command import guardrails
from tests.tables import table


EXPLAINED = explanations()
GUARD = Path(__file__).with_name("files").joinpath("recipients.py.txt").read_text()


def explained(*arguments: str) -> str:
    done = guardrails("explain", *arguments)
    assert done.exit_code == 0, done.output
    return done.output


@table("code", EXPLAINED)
def test_whatever_can_be_met_is_explained_for_a_person_and_a_program(code: str) -> None:
    text, data = explained(code), json.loads(explained(code, "--json"))
    assert (data["code"], data["docs"] in text) == (code, True)
    assert {"means", "settings", "told", "retry", "loosen", "off", "docs", "kind", "status"} <= set(data)
    assert max(map(len, text.splitlines())) <= 100


def test_a_code_of_a_scope_is_that_of_its_guard_and_an_older_one_is_explained_by_its_new_name() -> None:
    data = json.loads(explained("tenant.budget.max_calls", "--json"))
    assert data["loosen"] == "scopes: {tenant: {budget: {max_calls: 2000}}}"
    assert data["settings"][0] == "scopes.tenant.budget.max_calls"
    assert "scope `tenant`" in data["means"]
    assert json.loads(explained("budget.error", "--json"))["code"] == "call.error"


def test_without_a_code_all_are_listed() -> None:
    lines = {line.split()[0] for line in explained().splitlines() if line.strip()}
    assert set(EXPLAINED) <= lines
    assert [each["code"] for each in json.loads(explained("--json"))] == list(EXPLAINED)


def test_codes_of_guards_of_ones_own_are_explained_by_their_docstrings(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(GUARD)
    data = json.loads(explained("recipients.limit", "--guards", str(tmp_path / "own.py"), "--json"))
    assert (data["means"], data["off"]) == ("Mail to few.", "recipients: {mode: off}")
    assert "recipients.limit" in explained("--guards", str(tmp_path / "own.py"))


PACKAGE = Path(__file__).parents[2] / "guardrails"
CODES = [code for code in EXPLAINED if "." in code]


def test_every_code_that_a_guard_declares_is_explained_and_no_other_is_said_to_be_a_guards() -> None:
    assert set(WORDED) - set(ALIASES) <= set(CODES)
    names = {*(cls.name for cls in GUARDS), Held.name, ToolBudget.name, "tools.rate"}
    of_guards = {code for code in CODES if any(code.startswith(f"{name}.") for name in names)}
    assert of_guards == {code for code in WORDED if code not in ENGINE_CODES}


def test_every_kind_of_failure_and_every_status_is_explained_and_the_advice_is_what_the_model_reads() -> None:
    assert {*ERROR_TYPES, *STATUSES} == set(EXPLAINED) - set(CODES)
    assert {kind: EXPLAINED[kind]["told"] for kind in HINTS} == HINTS


@table("one", EXPLAINED.values())
def test_an_explanation_is_whole(one: dict[str, Any]) -> None:
    assert (one["means"][-1], bool(one["told"]), one["retry"][-1]) == (".", True, ".")
    status = one["kind"] == "status"
    assert one["settings"] or one["instead"] or status
    assert one["loosen"] or one["off"] or one["instead"] or one["code"] in ERROR_TYPES or status
    page, _, section = one["docs"].partition("#")
    headings = re.findall(r"^## (.*)$", (PACKAGE.parent / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert not section or section in {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


@table("lines", sorted({line for one in EXPLAINED.values() for line in (one["loosen"], one["off"]) if line}))
def test_the_lines_that_loosen_or_switch_off_are_a_policy(lines: str, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(f"version: 1\nextends: default\n{lines}\n")
    Policy.load(tmp_path / "own.yaml")


def test_the_settings_that_are_named_are_those_of_a_policy_file() -> None:
    schema = Policy.schema()

    def at(node: Any, keys: list[str]) -> bool:
        while "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        if node.get("type") == "array":
            return at(node["items"], keys)
        own = node.get("properties", {})
        here = not keys or (keys[0] in own and at(own[keys[0]], keys[1:]))
        return here or any(at(inner, keys) for inner in node.get("anyOf", []))

    wrong = {name for one in EXPLAINED.values() for name in one["settings"] if not at(schema, name.split("."))}
    assert wrong == set()
