"""
The sources of the site, laid out in a folder of their own: pages as they are written, those that are generated, and the plan.
"""

import os
import re
import shutil

from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath

from .codes import codes
from .commands import commands
from .nav import DOCS, OF_THE_PROJECT, ROOT, Section, built, sections, written
from .reference import TITLES, api
from .settings import settings
from .titles import title


LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s]*)(#[^)\s]*)?(\))")
FENCED = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)
UNKNOWN = re.compile(r"^```(?:cron)$", re.MULTILINE)
"""Languages that Pygments does not know."""
GENERATED: dict[str, Callable[[], str]] = {
    **{f"reference/{part}.md": partial(api, part) for part in TITLES},
    "reference/settings.md": settings,
    "reference/codes.md": codes,
    "reference/commands.md": commands,
}
"""Pages that nobody writes, and what makes each."""


class BrokenLinkError(ValueError):
    """
    A link of a page leads to no page of the site.
    """


def stage(folder: Path) -> None:
    """
    Write the sources of the site into *folder*. Raises BrokenLinkError listing every link that leads out of the site.
    """
    plan, wrong = sections(), list[str]()
    gone = [page for part in plan for page in part.pages if page not in written() and page not in GENERATED]
    if gone:
        raise BrokenLinkError("\n".join(f"docs/nav.yaml: {page}" for page in gone))
    for page, path in written().items():
        target = folder / (f"{built(page)}.md" if path.suffix == ".md" else page)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(path, target)
            continue
        text, lost = relinked(path.read_text(encoding="utf-8"), path)
        wrong += [f"{path.relative_to(ROOT).as_posix()}: {link}" for link in lost]
        below = [other for part in plan for other in part.below(page)] if page != "index.md" else []
        more = toctree("", below, page) if below else ""
        target.write_text(text + (home(plan) if page == "index.md" else more), encoding="utf-8")
    for page, make in GENERATED.items():
        target = folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(make(), encoding="utf-8")
    if wrong:
        raise BrokenLinkError("\n".join(wrong))


def relinked(text: str, page: Path) -> tuple[str, list[str]]:
    """
    The text of *page* with its links as the site needs them, and the links that lead to nothing on it.
    """
    lost: list[str] = []
    here = PurePosixPath(place(page) or "")

    def moved(match: re.Match[str]) -> str:
        before, target, anchor, end = match[1], match[2], match[3] or "", match[4]
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        aim = (page.parent / target).resolve()
        there = place(aim)
        if there is None and aim.is_relative_to(ROOT) and aim.exists():
            return before[1:-2]  # a file of the repository that is no page: the words alone
        if there is None:
            lost.append(target)
            return match[0]
        there = f"{built(there)}.md" if there.endswith(".md") else there
        return f"{before}{os.path.relpath(there, here.parent)}{anchor}{end}".replace(os.sep, "/")

    parts, at = [], 0
    for block in FENCED.finditer(text):
        parts += [LINK.sub(moved, text[at : block.start()]), block[0]]
        at = block.end()
    return UNKNOWN.sub("```text", "".join([*parts, LINK.sub(moved, text[at:])])), lost


def place(path: Path) -> str | None:
    """
    Where the site has the page or picture *path* of the repository; None if it has not.
    """
    if path.is_dir():
        path = path / "README.md"
    if path.is_relative_to(ROOT) and path.relative_to(ROOT).as_posix() in OF_THE_PROJECT:
        return OF_THE_PROJECT[path.relative_to(ROOT).as_posix()]
    if not path.is_relative_to(DOCS):
        return None
    name = path.relative_to(DOCS).as_posix()
    return name if path.is_file() or name in GENERATED else None


def toctree(caption: str, pages: list[str], here: str) -> str:
    """
    The part of a page that puts *pages* below it in the navigation.
    """
    folder = PurePosixPath(built(here)).parent
    names = "\n".join(f"{title(page)} <{os.path.relpath(built(page), folder).replace(os.sep, '/')}>" for page in pages)
    named = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{named}\n{names}\n```\n"


def home(plan: list[Section]) -> str:
    """
    The end of the first page: every section with its pages, read and in the navigation.
    """
    text = ""
    for section in plan:
        pages = [page for page in section.toctree() if page != "index.md"]
        lines = "".join(f"* [{title(page)}](/{built(page)}.md): {section.pages[page]}\n" for page in pages)
        text += f"\n## {section.title}\n\n{section.about}\n\n{lines}{toctree(section.title, pages, 'index.md')}"
    return text
