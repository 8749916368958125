"""
The pages of all public names: what `guardrails` exports, from its docstrings.
"""

import ast
import inspect

from collections.abc import Iterable
from importlib import import_module

import guardrails

from guardrails.core.guards import GUARDS

from .nav import page_of
from .sources import Member, constants, fields, methods, signature


PARTS = {
    "policy": "policies",
    "agent": "policies",
    "session": "sessions",
    "core.guards": "guards",
    "core.engine": "calls",
    "core.envelope": "envelopes",
    "core": "calls",
    "sinks": "records",
    "stores": "stores",
}
"""Where a name lives, and the page that holds it; the longest fits."""
TITLES = {
    "policies": "Policies, in Python",
    "sessions": "Sessions, in Python",
    "guards": "Guards, in Python",
    "envelopes": "Envelopes, in Python",
    "calls": "Calls and tools, in Python",
    "records": "Records, in Python",
    "stores": "Stores, in Python",
}


def names_of(part: str) -> list[str]:
    """
    The public names that the page *part* holds.
    """
    return sorted((name for name in guardrails.__all__ if part_of(name) == part), key=str.lower)


def api(part: str) -> str:
    """
    One page, as Markdown.
    """
    names = names_of(part)
    text = f"# {TITLES[part]}\n\nFrom the docstrings; each name comes by `from guardrails import {names[0]}`.\n"
    return text + "".join(entry(name) for name in names)


def part_of(name: str) -> str:
    """
    The part of the page that holds *name*. Raises KeyError if no part does.
    """
    home = guardrails._HOME[name]  # noqa: SLF001
    fitting = [start for start in PARTS if home == start or home.startswith(f"{start}.")]
    if not fitting:
        raise KeyError(f"no part of the reference holds `{name}` of {home}")
    return PARTS[max(fitting, key=len)]


def entry(name: str) -> str:
    """
    Returns the text of the page about one public name.
    """
    found = getattr(guardrails, name)
    says = inspect.getdoc(found) or ""
    if inspect.isclass(found):
        return f"\n## {name}\n\n{says}\n{members(found)}"
    if inspect.isfunction(found):
        return f"\n## {name}\n\n{block(signature(found, name))}\n{says}\n"
    home = import_module(f"guardrails.{guardrails._HOME[name]}")  # noqa: SLF001
    [one] = [one for one in constants(home) if one.name == name]
    return f"\n## {name}\n\n{block(one.written)}\n{one.says}\n"


def members(cls: type) -> str:
    """
    The fields of *cls*, how it is made, and its methods.
    """
    text, declared = "", fields(cls)
    made = cls.__dict__.get("__init__")
    if made is not None and inspect.isfunction(made) and not declared:
        text += f"\n{block(signature(made, cls.__name__, bound=True))}"
    if declared:
        text += f"\n{block(chr(10).join(plain(one.written) for one in declared))}"
        text += listed(one for one in declared if one.says)
    if cls in GUARDS:
        return f"{text}\n[Its section](../{page_of(cls.name)}) has examples.\n"
    for one in methods(cls):
        text += f"\n### {cls.__name__}.{one.name}\n\n{block(one.written)}\n{one.says}\n"
    return text


def plain(written: str) -> str:
    """
    The declaration of a field with the default that its users know, in place of `field(...)`.
    """
    [line] = ast.parse(written).body
    value = line.value if isinstance(line, ast.AnnAssign) else None
    if not isinstance(value, ast.Call) or ast.unparse(value.func) != "field":
        return written
    given = {one.arg: ast.unparse(one.value) for one in value.keywords}
    default = f"{given['default_factory']}()" if "default_factory" in given else given.get("default", "")
    declared = written.partition(" = ")[0]
    return f"{declared} = {default}".replace("'", '"') if default else declared


def listed(told: Iterable[Member]) -> str:
    """
    Fields with what is said of them, one a line.
    """
    lines = "".join(f"* `{one.name}`: {' '.join(one.says.split())}\n" for one in told)
    return f"\n{lines}" if lines else ""


def block(code: str) -> str:
    """
    *code* as a block of Python.
    """
    return f"```python\n{code}\n```\n"
