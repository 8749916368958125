"""
Classes and functions as their source has them: signatures as they are written, fields with what is said of them.
"""

import ast
import inspect
import textwrap

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Member:
    """
    A field, property or method of a class: its name, how it is written, its docstring.
    """

    name: str
    written: str
    says: str


def signature(function: Callable[..., Any], name: str, *, bound: bool = False) -> str:
    """
    How *function* is called, under *name*; without its first parameter if it is *bound*.
    """
    node = _node(function)
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"{name}(...)"
    given = node.args
    if bound and (given.posonlyargs or given.args):
        (given.posonlyargs or given.args).pop(0)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    one = f"{prefix}{name}({ast.unparse(given)}){returns}".replace("'", '"')
    if len(one) <= 100:
        return one
    return f"{prefix}{name}(\n{_lines(given)}){returns}".replace("'", '"')


def fields(cls: type) -> list[Member]:
    """
    The public fields that the body of *cls* declares, and those of its parents in this library.
    """
    found: dict[str, Member] = {}
    for parent in reversed(_own(cls)):
        node = _node(parent)
        found |= {one.name: one for one in _declared(node.body if isinstance(node, ast.ClassDef) else [])}
    return [one for one in found.values() if not one.name.startswith("_")]


def constants(module: ModuleType) -> list[Member]:
    """
    The names that *module* binds with a type, such as its constants.
    """
    return _declared(ast.parse(inspect.getsource(module)).body)


def _declared(body: list[ast.stmt]) -> list[Member]:
    found: list[Member] = []
    for at, line in enumerate(body):
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
            continue
        name, kind = line.target.id, ast.unparse(line.annotation)
        if kind.startswith(("ClassVar", "InitVar")):
            continue
        after = body[at + 1] if at + 1 < len(body) else None
        said = after.value if isinstance(after, ast.Expr) else None
        says = said.value if isinstance(said, ast.Constant) and isinstance(said.value, str) else ""
        value = ast.unparse(line.value) if line.value else ""
        written = f"{name}: {kind}{f' = {value}' if value and len(value) < 80 else ''}"
        found.append(Member(name=name, written=written.replace("'", '"'), says=inspect.cleandoc(says)))
    return found


def methods(cls: type) -> Iterator[Member]:
    """
    The public methods and properties of *cls* with a docstring, in the order of the source.
    """
    taken: set[str] = set()
    for parent in _own(cls):
        for name, value in vars(parent).items():
            if name.startswith("_") or name in taken:
                continue
            kind = "property" if isinstance(value, property) else type(value).__name__
            function = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
            says = inspect.getdoc(function) or ""
            if not inspect.isfunction(function) or not says:
                continue
            taken.add(name)
            if kind in {"property", "cached_property"}:
                node = _node(function)
                of = ast.unparse(node.returns) if isinstance(node, ast.FunctionDef) and node.returns else "Any"
                yield Member(name=name, written=f"{name}: {of}", says=says)
            else:
                yield Member(name=name, written=signature(function, name, bound=kind != "staticmethod"), says=says)


def _own(cls: type) -> list[type]:
    return [parent for parent in cls.__mro__ if parent.__module__.startswith("guardrails")]


def _node(what: Any) -> ast.stmt | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(what))).body[0]
    except (OSError, TypeError, IndentationError):
        return None


def _lines(given: ast.arguments) -> str:
    """
    The parameters, one a line.
    """
    parts: list[str] = []
    plain = [*given.posonlyargs, *given.args]
    for at, one in enumerate(plain):
        default = given.defaults[at - len(plain)] if at >= len(plain) - len(given.defaults) else None
        parts.append(_parameter(one, default))
        if given.posonlyargs and one is given.posonlyargs[-1]:
            parts.append("/")
    if given.vararg:
        parts.append(f"*{ast.unparse(given.vararg)}")
    elif given.kwonlyargs:
        parts.append("*")
    parts += [_parameter(one, default) for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if given.kwarg:
        parts.append(f"**{ast.unparse(given.kwarg)}")
    return "".join(f"    {part},\n" for part in parts)


def _parameter(one: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(one) + (f" = {ast.unparse(default)}" if default is not None else "")
