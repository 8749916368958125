"""
The page of the hosts, by its sections.
"""

import re

from pathlib import Path


PAGE = (Path(__file__).parents[2] / "docs/hosts.md").read_text(encoding="utf-8")


def programs(heading: str) -> list[tuple[str, str]]:
    """
    The programs of the section *heading*, each with what it prints.
    """
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", section, re.DOTALL)
    assert found, heading
    return found
