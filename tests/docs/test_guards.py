"""
The pages of the guards, of the built-in tools and the threat model, run as they stand.
"""

import dataclasses
import json
import re

from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner

from docs.site.nav import page_of
from guardrails import Policy, PolicyError
from guardrails.cli import app
from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import Guard, Map
from tests.tables import table


DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    *(page for page in sorted((DOCS / "guards").glob("*.md")) if page.stem != "write"),
    DOCS / "builtin-tools.md",
    DOCS / "threat-model.md",
]
BLOCK = re.compile(r"^## ([^\n]*)$|^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """
    (section, language, text) of each block of a page.
    """
    section, found = "", []
    for heading, language, text in BLOCK.findall(page.read_text()):
        if heading:
            section = heading
        else:
            found.append((section, language, text))
    return found


def told(section: str, language: str, text: str, capsys: pytest.CaptureFixture[str]) -> str | None:
    """
    What a block gives: what its code prints, what the check of a policy says.
    """
    if language == "python":
        exec(compile(text, "page", "exec"), {})
        return capsys.readouterr().out
    if language == "yaml":
        Path("policy.yaml").write_text(text)
        try:
            Policy.load("policy.yaml")
        except PolicyError as mistakes:
            return str(mistakes)
        return CliRunner().invoke(app, ["policy", "check", "policy.yaml"]).stdout
    return None


@pytest.mark.system
@table("page", PAGES)
def test_a_page_says_what_happens(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before: str | None = None
    assert page.stem == "README" or blocks(page)
    for section, language, text in blocks(page):
        if language == "text":
            assert before is not None
            assert before.rstrip() == text.rstrip()
        before = told(section, language, text, capsys)


def shown(field: "dataclasses.Field[Any]") -> str:
    default = field.default
    if default is None:
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, Map):
        return f"`{{{', '.join(f'{key}: {json.dumps(value)}' for key, value in default.items())}}}`"
    return "`[]`" if default == () else f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


@table("guard", GUARDS)
def test_every_guard_has_a_section_with_its_settings_and_their_defaults(guard: type[Guard]) -> None:
    text = (DOCS / page_of(guard.name).partition("#")[0]).read_text()
    for field in dataclasses.fields(guard):
        if field.name != "mode":
            assert f"| `{field.name}` | {shown(field)} |" in text
    assert f"`{guard.name}`" in (DOCS / "guards" / "README.md").read_text()
