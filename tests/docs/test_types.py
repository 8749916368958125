"""
What mypy says of the code of every page, of calls that are right, and of calls that are wrong.

One process looks at all of it.
"""

import builtins
import importlib.util
import re
import subprocess
import symtable
import sys

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, WRITTEN


HERE = Path(__file__).parent
PAGES = [ROOT / "README.md", *WRITTEN]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAVED = re.compile(r"Save this as\s+`(\w+)\.py`")
RIGHT = (HERE / "calls_right.txt").read_text()
WRONG = (HERE / "calls_wrong.txt").read_text().splitlines()
STRICT = "calls"
"""The module of the calls; those of the pages are the reader's, who need not annotate."""
MYPY = f"""
[mypy]
strict = True
mypy_path = {ROOT}
explicit_package_bases = True
namespace_packages = True
ignore_missing_imports = True
implicit_reexport = True
disallow_untyped_defs = False
disallow_incomplete_defs = False
disallow_untyped_calls = False
disallow_untyped_decorators = False
disallow_any_generics = False
[mypy-{STRICT}]
disallow_untyped_defs = True
disallow_incomplete_defs = True
disallow_untyped_calls = True
disallow_untyped_decorators = True
disallow_any_generics = True
[mypy-guardrails.*]
follow_imports = silent
"""
Said = dict[str, dict[int, list[str]]]
"""What a checker says, by module and line."""


def written(folder: Path) -> dict[str, str]:
    """
    A module in *folder* for each block of code of the pages, its lines where they are on the page, and one of all calls; the
    page of each module. A block begins with the names that it takes from blocks before it.
    """
    home = {STRICT: STRICT}
    (folder / f"{STRICT}.py").write_text(RIGHT + "\n".join(WRONG) + "\n")
    for page in PAGES:
        text, bound = page.read_text(), dict[str, str]()
        name = "_".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_")
        before = 0
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start(1))
            saved = SAVED.search(text, before, block.start())
            module = saved[1] if saved else f"{name}_{line}"
            here, taken = names(block[1])
            given = "; ".join(f"from {bound[one]} import {one}" for one in sorted(taken & bound.keys()))
            (folder / f"{module}.py").write_text(given + "\n" * line + block[1])
            bound |= dict.fromkeys(here, module)
            home[module] = str(page.relative_to(ROOT))
            before = block.end()
    return home


def names(code: str) -> tuple[set[str], set[str]]:
    """
    The names that *code* binds, and those that it takes from elsewhere.
    """
    top = symtable.symtable(code, "page", "exec")
    here = {one.get_name() for one in top.get_symbols() if one.is_assigned() or one.is_imported()}
    used = {one.get_name() for one in top.get_symbols() if one.is_referenced()}
    for table in inner(top):
        used |= {one.get_name() for one in table.get_symbols() if one.is_global() and one.is_referenced()}
    return here, used - here - set(dir(builtins))


def inner(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from inner(child)


def by_mypy(folder: Path) -> Said:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    (folder / "mypy.ini").write_text(MYPY)
    options = ["--config-file=mypy.ini", f"--cache-dir={ROOT / '.mypy_cache' / 'pages'}", "--no-error-summary"]
    command = [sys.executable, "-m", "mypy", *options, "--hide-error-context", "--no-pretty"]
    done = subprocess.run(
        [*command, *sorted(path.name for path in folder.glob("*.py"))],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    said: Said = {}
    for module, line, what in re.findall(r"^(\w+)\.py:(\d+): error: (.*)$", done.stdout, re.MULTILINE):
        said.setdefault(module, {}).setdefault(int(line), []).append(what)
    return said


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[Said, dict[str, str]]:
    folder = tmp_path_factory.mktemp("pages")
    home = written(folder)
    return by_mypy(folder), home


pytestmark = [pytest.mark.system, pytest.mark.system]


def test_the_code_of_every_page_is_well_typed(said: tuple[Said, dict[str, str]]) -> None:
    found, home = said
    assert len(home) > sum("```python" in page.read_text(encoding="utf-8") for page in PAGES)
    told = [
        f"{home[module]}:{line}: {what}"
        for module, lines in sorted(found.items())
        for line, whats in sorted(lines.items())
        for what in whats
        if module != STRICT
    ]
    assert told == []


def test_calls_that_are_right_pass(said: tuple[Said, dict[str, str]]) -> None:
    last = RIGHT.count("\n")
    assert {line: whats for line, whats in said[0].get(STRICT, {}).items() if line <= last} == {}


def test_calls_that_are_wrong_fail_each_at_its_line(said: tuple[Said, dict[str, str]]) -> None:
    first = RIGHT.count("\n")
    passed = [wrong for at, wrong in enumerate(WRONG, first + 1) if at not in said[0].get(STRICT, {})]
    assert passed == []
