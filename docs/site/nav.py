"""
The plan of the site, `docs/nav.yaml`: its sections, and each page with one line about it.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml


ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OF_THE_PROJECT = {
    "README.md": "project/readme.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "examples/README.md": "project/examples.md",
}
"""Pages from outside of docs/, and where the site has them."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """
    One part of the site.

    *pages* maps the path of a page below docs/ to one line about it; *about* says whom the section serves.
    """

    title: str
    about: str
    pages: dict[str, str]

    def toctree(self) -> list[str]:
        """
        The pages that stand directly below the section; those beside a `README.md` stand below that one.
        """
        folders = {str(PurePosixPath(page).parent) for page in self.pages if PurePosixPath(page).name == "README.md"}
        return [
            page
            for page in self.pages
            if PurePosixPath(page).name == "README.md" or str(PurePosixPath(page).parent) not in folders
        ]

    def below(self, page: str) -> list[str]:
        """
        The pages that stand below *page*: those of its folder if it is a `README.md`, else none.
        """
        path = PurePosixPath(page)
        if path.name != "README.md":
            return []
        return [other for other in self.pages if other != page and PurePosixPath(other).parent == path.parent]


def sections() -> list[Section]:
    """
    The sections in their order, as `docs/nav.yaml` has them.
    """
    plan = yaml.safe_load((DOCS / "nav.yaml").read_text(encoding="utf-8"))
    return [Section(title=part["title"], about=part["about"], pages=part["pages"]) for part in plan]


def written() -> dict[str, Path]:
    """
    The pages and pictures that people write, by their path on the site: all of docs/, and those of the project.
    """
    found = {
        path.relative_to(DOCS).as_posix(): path for kind in ("md", "svg") for path in sorted(DOCS.rglob(f"*.{kind}"))
    }
    return found | {place: ROOT / name for name, place in OF_THE_PROJECT.items() if (ROOT / name).is_file()}


def page_of(guard: str) -> str:
    """
    The page that has a section about *guard*, with the section.
    """
    pages = sorted((DOCS / "guards").glob("*.md"))
    [page] = [page for page in pages if f"\n## {guard}\n" in page.read_text(encoding="utf-8")] or [
        page for page in pages if page.stem == guard
    ]
    return f"guards/{page.name}" if page.stem == guard else f"guards/{page.name}#{guard}"


def built(page: str) -> str:
    """
    The name of *page* in the built site, without an ending: a `README.md` is the index of its folder.
    """
    path = PurePosixPath(page)
    return str(path.with_name("index") if path.name == "README.md" else path.with_suffix(""))
