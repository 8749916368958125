"""
What is public stands in a list, so that a change of it is seen.
"""

import re

from docs.site.nav import DOCS

from .surface import LIST, surface


WRITE = "run `python -m tests.release.surface`, look at the difference, and tell users of it: docs/public.md says how"


def test_what_is_public_is_what_the_list_says() -> None:
    listed, found = LIST.read_text().splitlines(), surface()
    gone = [line for line in listed if line not in set(found)]
    new = [line for line in found if line not in set(listed)]
    assert not gone, f"gone or changed, a break for users: {WRITE}"
    assert not new, f"new: {WRITE}"
    assert found == listed


def test_each_kind_of_line_is_explained_on_the_page() -> None:
    page = (DOCS / "public.md").read_text()
    kinds = {line.split()[0] for line in surface()}
    assert kinds == set(re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE))


def test_a_change_of_any_part_would_be_seen() -> None:
    lines = surface()
    for line in (
        "python Budget.max_calls: Annotated[int, Ge(0)] | None=None",
        "adapter guardrails.integrations.langchain.GuardrailsMiddleware",
        "command guardrails replay --exact",
        "command guardrails hook --observe",
        "policy ToolRule.match",
        "code budget.max_calls",
        "record settle.result_hash",
        "format state 7",
        "extra redis",
    ):
        assert line in lines
