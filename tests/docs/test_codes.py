"""
The tables of codes on the pages of the guards are made of what `guardrails explain` says.
"""

import re

from pathlib import Path

import pytest

from guardrails.cli.codes import CODES
from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import Guard


DOCS = Path(__file__).parents[2] / "docs"


def table(guard: type[Guard]) -> str:
    """
    The section of the codes of *guard*.
    """
    rows = [f"| `{code}` | {CODES[code].when} |" for code in guard.codes or {} if not code.endswith(".error")]
    return "\n".join(["| code | when |", "|---|---|", *rows]) if rows else ""


@pytest.mark.parametrize("guard", [cls for cls in GUARDS if cls.codes], ids=lambda cls: cls.name)
def test_a_page_has_the_codes_of_its_guard_as_they_are_explained(guard: type[Guard]) -> None:
    page = (DOCS / "guards" / f"{guard.name}.md").read_text()
    (section,) = re.findall(r"^## Codes\n\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert section.rstrip() == table(guard)
