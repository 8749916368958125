"""
The site of the documentation: its plan, what is generated, and what was built where `dev.py docs` has built it.
"""

import os
import re

from pathlib import Path

import pytest

import guardrails

from docs.site.__main__ import main as build
from docs.site.__main__ import replaceable
from docs.site.nav import ROOT, built, sections, written
from docs.site.reference import TITLES, api, names_of
from docs.site.requests import dead, requests
from docs.site.settings import FILE, settings
from docs.site.staging import GENERATED, stage
from guardrails import Policy
from guardrails.core.guards import GUARDS


PAGES = [*(page for page in written() if page.endswith(".md")), *GENERATED]
PLANNED = [page for section in sections() for page in section.pages]


def test_the_plan_names_each_page_once_and_none_that_is_not_there() -> None:
    assert sorted(PLANNED) == sorted(PAGES)


def test_every_public_name_is_in_the_reference_once() -> None:
    told = [name for part in TITLES for name in re.findall(r"^## (\w+)$", api(part), re.MULTILINE)]
    assert sorted(told) == sorted(guardrails.__all__)
    assert sorted(name for part in TITLES for name in names_of(part)) == sorted(guardrails.__all__)


def test_every_setting_of_a_policy_file_is_in_the_reference() -> None:
    text, schema = settings(), Policy.schema()
    assert sorted(FILE.keys() | {cls.name for cls in GUARDS}) == sorted(schema["properties"])
    for cls in GUARDS:
        part = text.split(f"\n## {cls.name}\n")[1].split("\n## ")[0]
        name = "".join(word.title() for word in cls.name.split("_"))
        for key, of in schema["$defs"][name]["properties"].items():
            assert of.get("deprecated") or re.search(rf"^\| `{key}` \| .+ \| .+ \| .+ \|$", part, re.MULTILINE), key


@pytest.mark.system
def test_links_of_the_pages_lead_to_pages_of_the_site(tmp_path: Path) -> None:
    stage(tmp_path / "docs")
    for page in PAGES:
        text = (tmp_path / "docs" / f"{built(page)}.md").read_text()
        plain = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", plain):
            base = tmp_path / "docs" if target.startswith("/") else (tmp_path / "docs" / page).parent
            assert (base / target.lstrip("/")).exists(), f"{page}: {target}"


def test_what_a_page_would_ask_of_another_machine_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        '<script src="https://cdn.example/x.js"></script><link rel="stylesheet" href="//fonts.example/css">'
        '<img src="http://example.org/a.png"><p style="background: url(https://example.org/b.png)">'
        '<a href="https://example.org">x</a><script src="a.js"></script>'
    )
    assert len(requests(tmp_path)) == 4


def test_the_build_replaces_no_folder_that_holds_anything_but_a_site(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("years of work")
    assert build(str(tmp_path)) == build(str(mine)) == build("--help") == 2
    assert mine.read_text() == "years of work"
    assert "is no place for the site" in capsys.readouterr().err
    assert replaceable(tmp_path / "new")
    (tmp_path / "objects.inv").touch()
    assert replaceable(tmp_path)


@pytest.fixture(scope="module")
def site() -> Path:
    folder = Path(os.environ.get("GUARDRAILS_SITE", ROOT / ".site"))
    if not (folder / "index.html").is_file():
        pytest.skip("the site is not built: python3 dev.py docs")
    return folder


def test_the_built_site_asks_no_other_machine_for_anything(site: Path) -> None:
    assert requests(site) == []


def test_no_link_of_the_built_site_is_dead(site: Path) -> None:
    assert dead(site) == []


def test_every_link_of_llms_txt_leads_to_a_built_page(site: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", (site / "llms.txt").read_text()):
        assert (site / link).is_file(), link
