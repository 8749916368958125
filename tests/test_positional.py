"""
At most six arguments are told apart by their place alone: beyond that they have names.
"""

import ast

from collections.abc import Iterator
from pathlib import Path

import pytest


PACKAGE = Path(__file__).parents[1] / "guardrails"
MOST = 6


def crowded(source: str) -> Iterator[tuple[int, str]]:
    """
    (line, text) of each function that takes more by place, and of each call that gives more.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
            if len(names) - (names[:1] in (["self"], ["cls"])) > MOST:
                yield node.lineno, f"def {getattr(node, 'name', 'lambda')}"
        elif isinstance(node, ast.Call) and len(node.args) > MOST:
            yield node.lineno, ast.unparse(node.func)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_at_most_six_arguments_have_no_name(path: Path) -> None:
    assert list(crowded(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "def f(a, b, c, d, e, f, g): ...",
        "async def f(a, b, c, /, d, e, f, g): ...",
        "class A:\n    def f(self, a, b, c, d, e, f, g): ...",
        "lambda a, b, c, d, e, f, g: 0",
        "f(1, 2, 3, 4, 5, 6, 7)",
        "a.f(*b, 2, 3, 4, 5, 6, 7)",
    ],
)
def test_a_planted_seventh_is_found(source: str) -> None:
    assert list(crowded(source))


@pytest.mark.parametrize(
    "source", ["class A:\n    def f(self, a, b, c, d, e, f, *, g): ...", "f(1, 2, 3, 4, 5, 6, g=7)", "f(*many)"]
)
def test_a_name_makes_room(source: str) -> None:
    assert not list(crowded(source))
