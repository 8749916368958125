"""
Every code that the library can say is explained, found in its source; and nothing else is.
"""

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
from guardrails.core.result.kinds import kind_of
from guardrails.core.values.types import ERROR_TYPES, STATUSES
from guardrails.policy.check import CODES as WORDED
from guardrails.policy.policy import Policy
from tests.tables import table


PACKAGE = Path(__file__).parents[2] / "guardrails"
EXPLAINED = explanations()
CODES = [code for code in EXPLAINED if "." in code]
FAMILIES = "|".join(sorted({code.partition(".")[0] for code in CODES} - {"session"}))
"""Beginnings of texts that look like codes; `session.` begins names of modules and of events, too."""
LIKE_CODES = re.compile(rf'"((?:{FAMILIES})\.[a-z_]+(?:\.[a-z_]+)*)"|code="([a-z0-9_]+\.[a-z0-9_.]+)"')
NO_CODES = frozenset({"loops.settled_for", "sandbox.json", "store.db", "tools.budget", "tools.rate"})
"""Names of counters, settings, guards and files that look like codes."""


def unexplained(source: str) -> set[str]:
    return {one or other for one, other in LIKE_CODES.findall(source)} - NO_CODES - set(CODES) - set(ALIASES)


def test_every_code_in_the_source_is_explained() -> None:
    found = {str(path): unexplained(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    assert {name: codes for name, codes in found.items() if codes} == {}
    assert unexplained('Denial(code="new.code"), LAST = "loop.tired"') == {"new.code", "loop.tired"}


def test_every_code_that_a_guard_declares_is_explained_and_no_other_is_said_to_be_a_guards() -> None:
    assert set(WORDED) - set(ALIASES) <= set(CODES)
    names = {*(cls.name for cls in GUARDS), Held.name, ToolBudget.name, "tools.rate"}
    of_guards = {code for code in CODES if any(code.startswith(f"{name}.") for name in names)}
    assert of_guards == {code for code in WORDED if code not in ENGINE_CODES}


def test_every_kind_of_failure_and_every_status_is_explained() -> None:
    assert {*ERROR_TYPES, *STATUSES} == set(EXPLAINED) - set(CODES)


def test_the_advice_after_a_failure_is_what_the_model_reads() -> None:
    assert {kind: EXPLAINED[kind]["told"] for kind in HINTS} == HINTS


def test_an_http_status_that_is_named_is_of_that_kind() -> None:
    named = {
        int(status): kind for kind in ERROR_TYPES for status in re.findall(r"\b[45]\d\d\b", EXPLAINED[kind]["means"])
    }
    assert len(named) > 10
    assert {status: kind_of(status) for status in named} == named


def test_a_guard_of_the_library_tells_its_codes() -> None:
    assert all(cls.codes is not None for cls in GUARDS)


@table("one", EXPLAINED.values())
def test_an_explanation_is_whole(one: dict[str, Any]) -> None:
    assert one["means"].endswith(".")
    assert one["told"]
    assert one["retry"].endswith(".")
    status = one["kind"] == "status"
    assert one["settings"] or one["instead"] or status
    assert one["loosen"] or one["off"] or one["instead"] or one["code"] in ERROR_TYPES or status
    page, _, section = one["docs"].partition("#")
    headings = re.findall(r"^## (.*)$", (PACKAGE.parent / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert not section or section in {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
    for sentence in re.split(r"(?<=[.;:]) ", f"{one['means']} {one['retry']} {one['instead']}"):
        assert len(sentence.split()) <= 25, sentence


@table("lines", sorted({line for one in EXPLAINED.values() for line in (one["loosen"], one["off"]) if line}))
def test_the_lines_that_loosen_or_switch_off_are_a_policy(lines: str, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(f"version: 1\nextends: default\n{lines}\n")
    Policy.load(tmp_path / "own.yaml")


def test_the_settings_that_are_named_are_those_of_a_policy_file() -> None:
    schema = Policy.schema()

    def at(node: dict[str, object], keys: list[str]) -> bool:
        while "$ref" in node:
            node = schema["$defs"][str(node["$ref"]).rpartition("/")[2]]
        for inner in node.get("anyOf", []):  # type: ignore[attr-defined]
            if at(inner, keys):
                return True
        if node.get("type") == "array":
            return at(node["items"], keys)  # type: ignore[arg-type]
        own = node.get("properties", {})
        return not keys or (keys[0] in own and at(own[keys[0]], keys[1:]))  # type: ignore[operator, index]

    wrong = {name for one in EXPLAINED.values() for name in one["settings"] if not at(schema, name.split("."))}
    assert wrong == set()
