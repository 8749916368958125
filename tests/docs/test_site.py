"""
The site of the documentation: its plan, what is generated, and what was built where `dev.py docs` has built it.
"""

import os
import re
import shutil
import subprocess

from pathlib import Path

import pytest
import yaml

import guardrails

from docs.site.__main__ import main as build
from docs.site.__main__ import replaceable
from docs.site.llms import llms
from docs.site.nav import DOCS, OF_THE_PROJECT, ROOT, Section, built, sections, written
from docs.site.reference import TITLES, api, names_of
from docs.site.requests import dead, requests
from docs.site.settings import FILE, settings
from docs.site.staging import GENERATED, BrokenLinkError, relinked, stage
from docs.site.titles import title
from guardrails import Policy
from guardrails.cli.codes import EXPLAINED
from guardrails.core.guards import GUARDS
from tests import pages


PAGES = [*(page for page in written() if page.endswith(".md")), *GENERATED]
PLANNED = [page for section in sections() for page in section.pages]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_in_the_plan(page: str) -> None:
    assert page in PLANNED, f"add `{page}` to docs/nav.yaml, with one line about it"


def test_the_plan_names_each_page_once_and_none_that_is_not_there() -> None:
    assert sorted(PLANNED) == sorted(PAGES)


def test_each_page_has_one_line() -> None:
    for section in sections():
        for page, line in section.pages.items():
            assert line.endswith("."), page
            assert "\n" not in line, page


def test_every_page_stands_in_the_navigation() -> None:
    for section in sections():
        top = section.toctree()
        below = [page for parent in top for page in section.below(parent)]
        assert sorted([*top, *below]) == sorted(section.pages)


def test_each_page_has_one_title() -> None:
    for page, path in written().items():
        if page.endswith(".md"):
            text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
            assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1, page
            assert title(page)


def test_llms_txt_has_a_link_and_one_line_for_each_page() -> None:
    text = llms()
    assert text.startswith("# toolcall-guardrails\n\n> ")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S.*\.$", text, re.MULTILINE)
    assert links == [f"{built(page)}.html" for page in PLANNED]


def test_every_public_name_is_in_the_reference_once() -> None:
    told = [name for part in TITLES for name in re.findall(r"^## (\w+)$", api(part), re.MULTILINE)]
    assert sorted(told) == sorted(guardrails.__all__)
    assert sorted(name for part in TITLES for name in names_of(part)) == sorted(guardrails.__all__)


def test_every_public_method_of_a_session_is_in_the_reference_with_its_signature() -> None:
    text = api("sessions")
    assert re.search(r"^### Session\.charge\n\n```python\ncharge\(", text, re.MULTILINE)
    assert "_lock" not in text


def test_every_setting_of_a_policy_file_is_in_the_reference() -> None:
    text, schema = settings(), Policy.schema()
    assert sorted(FILE.keys() | {cls.name for cls in GUARDS}) == sorted(schema["properties"])
    for cls in GUARDS:
        part = text.split(f"\n## {cls.name}\n")[1].split("\n## ")[0]
        name = "".join(word.title() for word in cls.name.split("_"))
        for key, of in schema["$defs"][name]["properties"].items():
            assert of.get("deprecated") or re.search(rf"^\| `{key}` \| .+ \| .+ \| .+ \|$", part, re.MULTILINE), key


def test_every_code_is_in_the_reference() -> None:
    text = GENERATED["reference/codes.md"]()
    for cls in GUARDS:
        for code in cls.codes or {}:
            assert re.search(rf"^\| `{re.escape(code)}` \| .+", text, re.MULTILINE), code
    failures = {f"{cls.name}.error" for cls in GUARDS} | {"held.error"}
    assert [code for code in EXPLAINED.keys() - failures if f"| `{code}` |" not in text] == []


def test_every_command_is_in_the_reference() -> None:
    from guardrails.cli import COMMANDS, DOORS

    text = GENERATED["reference/commands.md"]()
    for name in (*COMMANDS, *DOORS):
        assert f"## guardrails {name}\n" in text
    assert "## guardrails policy check\n" in text
    assert "\x1b" not in text


def test_links_of_the_pages_lead_to_pages_of_the_site(tmp_path: Path) -> None:
    stage(tmp_path / "docs")
    for page in PAGES:
        text = (tmp_path / "docs" / f"{built(page)}.md").read_text()
        plain = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", plain):
            base = tmp_path / "docs" if target.startswith("/") else (tmp_path / "docs" / page).parent
            assert (base / target.lstrip("/")).exists(), f"{page}: {target}"


def test_a_link_is_rewritten_lost_or_left() -> None:
    page = DOCS / "guards/budget.md"
    said = "[a](README.md#x) [b](../stores.md) [c](../../README.md) [d](https://x.org/y) [e](#here) ![f](../stuck-agent.svg)"
    text, lost = relinked(said, page)
    wanted = "[a](index.md#x) [b](../stores.md) [c](../project/readme.md) [d](https://x.org/y) [e](#here) ![f](../stuck-agent.svg)"
    assert (text, lost) == (wanted, [])
    assert relinked("[tests](../../tests/conftest.py)", page) == ("tests", [])
    assert relinked("[gone](../gone.md)", page)[1] == ["../gone.md"]
    assert relinked("```md\n[gone](../gone.md)\n```", page)[1] == []


def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "index.md").write_text("# Here\n")
    (folder / "nav.yaml").write_text("- {title: Start, about: All., pages: {index.md: Here., wrong.md: Wrong.}}\n")
    (folder / "wrong.md").write_text("# Wrong\n\n[gone](gone.md)\n")
    for module in ("nav", "staging"):
        monkeypatch.setattr(f"docs.site.{module}.DOCS", folder)
        monkeypatch.setattr(f"docs.site.{module}.ROOT", tmp_path)
    monkeypatch.setattr("docs.site.staging.GENERATED", {})
    with pytest.raises(BrokenLinkError, match=r"docs/wrong\.md: gone\.md"):
        stage(tmp_path / "staged")


@pytest.mark.parametrize(
    "said",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img src="http://example.org/a.png">',
        '<img srcset="a.png 1x, https://example.org/b.png 2x">',
        '<p style="background: url(https://example.org/b.png)">',
        '<style>@import "https://example.org/x.css";</style>',
    ],
)
def test_what_a_page_would_ask_of_another_machine_is_found(said: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(f"<html><body>{said}</body></html>")
    assert len(requests(tmp_path)) == 1


def test_a_link_that_a_reader_follows_asks_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        '<a href="https://example.org">x</a><script src="a.js"></script><img src="b.svg">'
    )
    assert requests(tmp_path) == []


def test_a_link_that_a_browser_would_not_find_is_dead(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/index.html").write_text(
        '<h1 id="here">x</h1><a href="../page.html#a%20b">x</a><a href="#here">x</a>'
    )
    (tmp_path / "page.html").write_text(
        '<p id="a b"></p><a href="gone.html">x</a><a href="in/#there">x</a><a href="#no">x</a><img src="no.svg">'
        '<a href="in/#here">x</a><a href="page.html?q=1">x</a><a href="https://example.org/#x">x</a><a href="mailto:a@b">x</a>'
    )
    assert dead(tmp_path) == [f"page.html: {link}" for link in ("gone.html", "in/#there", "#no", "no.svg")]


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


def test_a_planned_page_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = [*sections(), Section(title="More", about="More.", pages={"gone.md": "It is gone."})]
    monkeypatch.setattr("docs.site.staging.sections", lambda: plan)
    with pytest.raises(BrokenLinkError, match=r"docs/nav\.yaml: gone\.md"):
        stage(tmp_path / "staged")


def test_a_field_is_told_with_the_default_that_its_users_know() -> None:
    told = "".join(api(part) for part in TITLES)
    assert "code: str | None = None\n" in told
    assert not re.search(r"^\w+: .* = field\(", told, re.MULTILINE)


def test_what_is_built_is_no_part_of_the_repository() -> None:
    assert ".site/" in (ROOT / ".gitignore").read_text().splitlines()
    assert [name for name in OF_THE_PROJECT if not (ROOT / name).is_file()] == []
    assert yaml.safe_load((DOCS / "nav.yaml").read_text())


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


WIDE = """
<script>addEventListener("load", () => {
  const body = document.documentElement;
  body.dataset.wide = body.scrollWidth > body.clientWidth + 1 ? "too wide" : "fits";
});</script>
"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 500], ids=["desktop", "phone"])
def test_no_page_is_wider_than_the_screen_and_the_browser_complains_of_none(
    width: int, site: Path, tmp_path: Path
) -> None:
    pages.in_browser("<p>here</p>", tmp_path)
    chromium = shutil.which("chromium") or "chromium"
    for name in ("index.html", "guards/loops.html", "reference/settings.html", "hosts/index.html"):
        page = site / name
        copy = page.with_name(f"wide-{width}-{page.name}")  # the other width may be looked at beside it
        copy.write_text(page.read_text().replace("</head>", f"{WIDE}</head>"))
        try:
            done = subprocess.run(  # noqa: S603
                [
                    chromium,
                    *("--headless", "--no-sandbox", "--no-first-run", "--disable-gpu"),
                    *("--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={tmp_path / 'profile'}"),
                    *(f"--window-size={width},900", "--enable-logging=stderr", "--dump-dom", copy.as_uri()),
                ],
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
        finally:
            copy.unlink()
        assert 'data-wide="fits"' in done.stdout, name
        assert "CONSOLE" not in done.stderr, name
