"""
What is not installed names itself and what installs it, wherever it is imported.
"""

import ast
import subprocess
import sys

from collections.abc import Iterator
from inspect import getsource
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

import pytest

from guardrails.core.values.errors import install


PACKAGE = Path(__file__).parents[3] / "guardrails"
REQUIRED = {
    *("annotated_types", "jsonschema_rs", "orjson", "pydantic", "pydantic_core", "typer", "typing_extensions"),
    *("xxhash", "yaml"),
}
"""What every installation has."""
HERE = {
    "core.values.usage": "a price that is not known is told in the log",
    "offline.transcripts.files": "the file is not read",
    "mcp.author": "a server of FastMCP has imported it",
}
"""Modules that say it in their own way, and so in tests of their own."""


class Site(NamedTuple):
    """
    Where an optional package is imported, and within which `with needs(...)`.
    """

    module: str
    package: str
    line: int
    at_once: bool
    block: ast.With | None


def sites(module: str, text: str) -> Iterator[Site]:
    def walk(node: ast.AST, *, at_once: bool, block: ast.With | None) -> Iterator[Site]:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            return
        if isinstance(node, ast.With) and ast.unparse(node.items[0]).startswith("needs("):
            block = node
        at_once = at_once and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for full in imported(node):
            package = full.split(".")[0]
            if package not in {"guardrails", "rich", *REQUIRED, *sys.stdlib_module_names}:
                yield Site(module, package, node.lineno, at_once, block)  # type: ignore[attr-defined]
        for inner in ast.iter_child_nodes(node):
            yield from walk(inner, at_once=at_once, block=block)

    return walk(ast.parse(text), at_once=True, block=None)


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


def modules() -> Iterator[tuple[str, str]]:
    """
    Name without `guardrails.`, and source, of each module.
    """
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        yield name.removesuffix(".__init__"), path.read_text(encoding="utf-8")


ALL = [site for module, text in modules() if module not in HERE for site in sites(module, text)]


class Hidden:
    """
    A finder that finds *package* nowhere.
    """

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name.split(".", maxsplit=1)[0] == self._package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def without(package: str, code: str) -> str:
    """
    What *code* prints in an interpreter that has no *package*.
    """
    # This module reads the source of all others: a child that imported it would take seconds.
    hide = (
        f"import sys\nfrom typing import Any\n{getsource(Hidden)}\n"
        f"for name in [name for name in sys.modules if name.split('.')[0] == {package!r}]:\n    del sys.modules[name]\n"
        f"sys.meta_path.insert(0, Hidden({package!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", hide + code], capture_output=True, text=True, check=False, cwd=PACKAGE.parent
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_import_of_an_optional_package_stands_where_its_absence_is_told() -> None:
    assert [f"{site.module}:{site.line} imports {site.package}" for site in ALL if site.block is None] == []
    assert {site.package for site in ALL} >= {"openai", "mcp", "mcp_types", "anyio", "numpy", "duckdb", "sklearn"}


@pytest.mark.system
@pytest.mark.parametrize("package", sorted({site.package for site in ALL}))
def test_each_import_says_what_installs_a_package_that_is_missing(package: str) -> None:
    code = "from guardrails.core.values.errors import MissingExtra, needs\nimport importlib\nwho = 'this'\n"
    # Of a host none of its packages may be here: the first one is told.
    named = {package}
    expected = 0
    for site in ALL:
        if site.package != package or site.block is None:
            continue
        statement = (
            f"importlib.import_module({f'guardrails.{site.module}'!r})" if site.at_once else ast.unparse(site.block)
        )
        code += f"try:\n{indent(statement, '    ')}\nexcept MissingExtra as error:\n    print(error)\n"
        named |= {other.package for other in ALL if other.module == site.module and other.at_once}
        expected += 1
    said = without(package, code).splitlines()
    assert len(said) == expected > 0
    for line in said:
        assert any(f" needs `{name}" in line for name in named)
        assert ": pip install " in line


TRY = "try:\n    {}\nexcept ImportError as error:\n    print(error)"
GOES_ON = {
    "prices": (
        "genai_prices",
        "from guardrails.core.values.usage import Usage, listed_price\n"
        "print(listed_price(Usage(1, 1), 'gpt-5-mini', None, 0).unknown)",
    ),
    "shell": (
        "tree_sitter_bash",
        "from guardrails import Policy, PolicyError as ImportError, Shell\n"
        + TRY.format("Policy([Shell(deny=['rm'])])"),
    ),
    "openai": (
        "openai",
        "from guardrails.agent.settings import client_of\n" + TRY.format("client_of('http://127.0.0.1:9').__enter__()"),
    ),
}


@pytest.mark.system
@pytest.mark.parametrize("extra", GOES_ON)
def test_what_goes_on_without_a_package_says_what_installs_it(extra: str) -> None:
    assert install(extra) in without(*GOES_ON[extra])
