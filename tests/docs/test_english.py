"""
The length of sentences in the README and the pages: 25 words are the rule, 35 the bound.
"""

import re

from collections.abc import Iterator
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
BOUND = 35
WORD = re.compile(r"\S*\w\S*")
LEFT: dict[str, int] = {
    "docs/agent-loop.md": 4,
    "docs/builtin-tools.md": 2,
    "docs/faults.md": 2,
    "docs/guards/duplicates.md": 1,
    "docs/guards/loops.md": 3,
    "docs/guards/shell-language.md": 2,
    "docs/guards/shell.md": 8,
    "docs/guards/truncate.md": 1,
    "docs/guards/workspace.md": 1,
    "docs/hooks/README.md": 1,
    "docs/hooks/answers.md": 2,
    "docs/hooks/speed.md": 1,
    "docs/hooks/tested.md": 1,
    "docs/hosts/README.md": 2,
    "docs/hosts/agent-framework.md": 1,
    "docs/hosts/openai-agents.md": 2,
    "docs/internals.md": 9,
    "docs/learning.md": 21,
    "docs/leases.md": 2,
    "docs/loops.md": 15,
    "docs/mcp.md": 1,
    "docs/mcp/README.md": 2,
    "docs/performance.md": 5,
    "docs/policy-tests.md": 2,
    "docs/reload.md": 1,
    "docs/replay.md": 6,
    "docs/report.md": 5,
    "docs/run.md": 1,
    "docs/sandbox.md": 3,
    "docs/shipped-policies.md": 6,
    "docs/stores.md": 4,
}
"""Sentences over the bound that pages still have; a page that is not here has none. These numbers only shrink."""


def sentences(text: str) -> Iterator[str]:
    """
    The sentences of a page: of its paragraphs, points, headings and cells. `;` and `:` end none, a piece of code is a word.
    """
    text = re.sub(r"^(```|~~~).*?^\1[ \t]*$", "", text, flags=re.DOTALL | re.MULTILINE)
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[*+-]|\d+\.)\s)|\n(?=[#|])", text):
        for piece in part.strip("|\n ").split(" | ") if part.lstrip().startswith("|") else [part]:
            plain = " ".join(re.sub(r"`[^`]*`", "Code", re.sub(r"\]\([^)]*\)", "]", piece)).split())
            yield from re.split(r"(?<=[.?!])[)\"*_]*\s+(?=[A-Z*\"\[(])", plain)


@pytest.mark.parametrize("page", PAGES)
def test_no_sentence_is_longer_than_the_bound(page: str) -> None:
    long = [one for one in sentences(PAGES[page].read_text()) if len(WORD.findall(one)) > BOUND]
    assert len(long) <= LEFT.get(page, 0), "\n".join(long)


def test_pages_that_are_gone_are_not_named() -> None:
    assert not LEFT.keys() - PAGES.keys()


def test_a_sentence_goes_over_lines_and_a_colon_ends_none() -> None:
    found = list(
        sentences(
            "# Title\n\nIt runs: so\nit goes; on. `x` ends [here](a.b. C).\n\n* One. Two.\n\n```\nNo. Code.\n```\n"
        )
    )
    assert found == ["# Title", "It runs: so it goes; on.", "Code ends [here].", "* One.", "Two.", ""]
