"""
The page of all codes that a guard says, with the page of each guard for more.
"""

import re

from guardrails.core.guards import GUARDS
from guardrails.core.guards.access.held import Held
from guardrails.core.guards.base import Guard
from guardrails.core.guards.limits.tool_budget import ToolBudget

from .nav import DOCS


OTHERS: dict[type[Guard], str] = {ToolBudget: "budget.md", Held: "README.md"}
"""Guards without a page of their own, and the page that tells of them."""


def codes() -> str:
    """
    The page, as Markdown.
    """
    text = "# Codes\n\nThe `code` of an envelope or a record. `$numbers` may stand in a wording of your own, in `messages:`.\n"
    everyone: tuple[type[Guard], ...] = (*GUARDS, *OTHERS)
    for cls in everyone:
        if not cls.codes:
            continue
        name = OTHERS.get(cls, f"{cls.name}.md")
        page = (DOCS / "guards" / name).read_text(encoding="utf-8")
        text += f"\n## {cls.name}\n\n[Its page](../guards/{built(name)}).\n\n| code | when | numbers |\n|---|---|---|\n"
        for code, values in cls.codes.items():
            row = re.search(rf"^\| `{re.escape(code)}` \| (.*) \|$", page, re.MULTILINE)
            numbers = ", ".join(f"`${value}`" for value in values)
            text += f"| `{code}` | {row[1] if row else ''} | {numbers} |\n"
    return text


def built(name: str) -> str:
    """
    The file of a guard's page among the staged sources.
    """
    return "index.md" if name == "README.md" else name
