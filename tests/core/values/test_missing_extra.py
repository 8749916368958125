"""
What is not installed names itself and what installs it, wherever it is imported.
"""

import ast
import sys

from collections.abc import Iterator
from pathlib import Path

import pytest

from guardrails.core.values.errors import MissingExtra, install, needs


PACKAGE = Path(__file__).parents[3] / "guardrails"
REQUIRED = {
    *("annotated_types", "jsonschema_rs", "orjson", "pydantic", "pydantic_core", "typer", "typing_extensions"),
    *("xxhash", "yaml", "rich", "guardrails"),
}
"""What every installation has."""
HERE = ("core/values/usage.py", "offline/transcripts/files.py", "mcp/author.py", "mcp/calls.py")
"""Modules that say it in their own way: a price is unknown, a file is not read, a server has imported it."""


def bare(node: ast.AST, *, told: bool = False) -> Iterator[tuple[str, bool]]:
    """
    Each optional package that is imported in *node*, and whether that stands within a `with needs(...)`.
    """
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        return
    told = told or (isinstance(node, ast.With) and ast.unparse(node.items[0]).startswith("needs("))
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    if isinstance(node, ast.ImportFrom) and not node.level:
        names = [node.module or ""]
    for package in (name.split(".")[0] for name in names):
        if package not in {*REQUIRED, *sys.stdlib_module_names}:
            yield package, told
    for inner in ast.iter_child_nodes(node):
        yield from bare(inner, told=told)


def test_every_import_of_an_optional_package_stands_where_its_absence_is_told() -> None:
    paths = {str(path.relative_to(PACKAGE)): path for path in PACKAGE.rglob("*.py")}
    assert paths.keys() >= {*HERE}
    sites = [
        (name, *site) for name, path in paths.items() if name not in HERE for site in bare(ast.parse(path.read_text()))
    ]
    assert [(name, package) for name, package, told in sites if not told] == []
    assert {package for _, package, _ in sites} >= {"openai", "mcp", "mcp_types", "anyio", "numpy", "duckdb", "sklearn"}


def test_a_package_that_is_missing_or_broken_is_told_with_what_installs_it() -> None:
    told = f"the demo needs `openai`: {install('openai')}"
    with pytest.raises(MissingExtra) as absent, needs("openai", "the demo"):
        raise ModuleNotFoundError("No module named 'openai'", name="openai")
    with (
        pytest.raises(MissingExtra, match=r"this needs `openai`, which cannot be imported \(too old\): pip"),
        needs("openai"),
    ):
        raise ImportError("too old")
    with pytest.raises(MissingExtra) as within, needs("mcp"), needs("openai", "the demo"):
        raise ModuleNotFoundError("No module named 'openai'", name="openai")
    assert str(absent.value) == str(within.value) == told
