"""
The pages of the documentation: their code runs and prints what they show, their links lead somewhere, and what they name is there.
"""

import dataclasses
import json
import re

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner

from guardrails import Policy, PolicyError
from guardrails.cli import app
from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import Guard, Map
from tests.docs.pages import DOCS, FENCE, PAGES, ROOT, WRITTEN, Block, anchors, blocks, prose
from tests.tables import table


RUN = [
    DOCS / f"{name}.md"
    for name in ("index", "own-loop", "envelope", "policy", "architecture", "records", "run", "security", "operate")
]
RUN += sorted((DOCS / "guards").glob("*.md"))
"""Pages whose code runs here. Other pages have tests of their own: hosts, stores, steps that are followed."""
MORE = "..."
"""A shown output goes on."""
GUARD_PAGES = {path: path.read_text(encoding="utf-8") for path in sorted((DOCS / "guards").glob("*.md"))}


def whole(policy: str) -> str:
    """
    A policy file of which a page may show a part.
    """
    return policy if "version:" in policy else f"version: 1\n{policy}"


def printed(block: Block, names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    """
    The output of the code of *block*, or of the check of its policy.
    """
    if block.language == "python":
        exec(compile(block.text, "page", "exec"), names)
        return capsys.readouterr().out
    Path("policy.yaml").write_text(whole(block.text))
    try:
        Policy.load("policy.yaml")
    except PolicyError as mistakes:
        return str(mistakes)
    return CliRunner().invoke(app, ["policy", "check", "policy.yaml"]).stdout


@pytest.mark.system
@table("page", RUN)
def test_the_code_of_a_page_runs_and_prints_what_it_shows(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    if page.name == "security.md":
        request.getfixturevalue("works")
    folder = tmp_path / page.stem
    folder.mkdir()
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    before: str | None = None
    ran = 0
    for block in blocks(page):
        if block.language == "text" and before is not None and not block.text.startswith("$ "):
            shown = block.text.rstrip()
            if shown.endswith(MORE):
                shown, before = shown.removesuffix(MORE), before[: len(shown) - len(MORE)]
            assert before.rstrip() == shown.rstrip()
        before = None
        if (block.language == "python" and "OpenAI()" not in block.text) or (
            block.language == "yaml" and "cases:" not in block.text
        ):
            before = printed(block, names, capsys)
            ran += 1
    assert ran


@table("page", [DOCS / "coding-clis.md", DOCS / "mcp-proxy.md"])
def test_the_policies_of_a_page_load(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "yaml"):
        (tmp_path / "policy.yaml").write_text(whole(block.text))
        Policy.load(tmp_path / "policy.yaml")


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
    (text,) = [text for path, text in GUARD_PAGES.items() if f"\n## {guard.name}\n" in text or path.stem == guard.name]
    for field in dataclasses.fields(guard):
        if field.name != "mode":
            assert f"| `{field.name}` | {shown(field)} |" in text
    assert f"`{guard.name}`" in (DOCS / "policy.md").read_text()


@table("page", PAGES)
def test_what_a_page_links_to_and_names_is_there(page: Path) -> None:
    links = [
        link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)) if not re.match(r"[a-z]+:", link)
    ]
    places = [((page.parent / address).resolve() if address else page, anchor) for address, _, anchor in links]
    assert [place for place, anchor in places if not place.exists() or (anchor and anchor not in anchors(place))] == []
    if page.name == "CHANGELOG.md":
        return
    names = re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text(encoding="utf-8")))
    modules = [words[2] for words in (name.split() for name in names) if words[:2] == ["python", "-m"]]
    files = [name for name in names if re.fullmatch(r"(benchmarks|tests|guardrails|examples|policies)/[\w./-]+", name)]
    assert [name for name in modules if find_spec(name) is None] == []
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_the_pages_stay_short() -> None:
    pages = [*WRITTEN, ROOT / "README.md"]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 35_000


THREATS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip("|"))]
    for row in (DOCS / "security.md").read_text().split("| shown by |\n")[1].split("\n\n")[0].splitlines()[1:]
]


@table("row", THREATS)
def test_each_threat_says_what_stops_it_and_is_shown_by_a_test_that_is_there(row: list[str]) -> None:
    assert len(row) == 4
    assert all(row)
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row[3])
    assert named
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(), f"{file} has no {test}"
