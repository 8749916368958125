"""
The page of all codes, kinds of failures and statuses, made of what `guardrails explain` says of each.
"""

from collections.abc import Iterable

from guardrails.cli.explain import Explained, explanations
from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import Guard
from guardrails.core.guards.budget import ToolBudget
from guardrails.core.guards.tool_filter import Held

from .nav import page_of


OTHERS: dict[type[Guard], str] = {ToolBudget: "guards/limits.md#budget", Held: "guards/access.md#tool_filter"}
"""Guards without a section of their own, and the section about them."""
HEAD = """# Codes

The `code` of an envelope or a record, its `error_type`, its `status`. `guardrails explain CODE` tells more of each: what decided it, what
the model reads, how to loosen it or switch it off. `$numbers` may stand in a wording of your own, in `messages:`. A guard that fails says
its name and `.error`; a code of a scope begins with its name: `user.budget.max_calls`.
"""


def codes() -> str:
    """
    The page, as Markdown.
    """
    known = explanations()
    text, of_guards = HEAD, set[str]()
    everyone: tuple[type[Guard], ...] = (*GUARDS, *OTHERS)
    for cls in everyone:
        if not cls.codes:
            continue
        page = OTHERS.get(cls) or page_of(cls.name)
        text += f"\n## {cls.name}\n\n[Its page](../{built(page)}).\n\n| code | when | numbers |\n|---|---|---|\n"
        for code, values in cls.codes.items():
            numbers = ", ".join(f"`${value}`" for value in values)
            text += f"| `{code}` | {known[code].when} | {numbers} |\n"
        of_guards |= cls.codes.keys()
    rest = [one for code, one in known.items() if "." in code and code not in of_guards and not is_failure(code)]
    text += section("Said by no guard", rest)
    text += section(
        "Kinds of failures", (one for code, one in known.items() if one.kind == "failure" and "." not in code)
    )
    return text + section("Statuses", (one for one in known.values() if one.kind == "status"))


def section(title: str, explained: Iterable[Explained]) -> str:
    """
    A table of what each means, with the page that tells more.
    """
    rows = "".join(f"| `{one.code}` | {one.means} | [page](../{built(one.page)}) |\n" for one in explained)
    return f"\n## {title}\n\n| word | meaning | more |\n|---|---|---|\n{rows}"


def is_failure(code: str) -> bool:
    """
    Whether *code* says that a guard failed.
    """
    name, _, rest = code.rpartition(".")
    return rest == "error" and name not in ("clock", "store")


def built(page: str) -> str:
    """
    The file of a page among the staged sources.
    """
    return page.replace("README.md", "index.md")
