"""
What is public, as lines: python -m tests.release.surface writes them into `surface.txt`.

A change of a line is a change for users: see docs/operate.md for which need a new major version.
"""

import ast
import inspect
import json
import re
import textwrap
import tomllib

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

import guardrails

from guardrails.cli import app
from guardrails.cli.explain import explanations
from guardrails.core import record
from guardrails.core.guards import GUARDS
from guardrails.core.packing import VERSION as STATE
from guardrails.core.retries import model as retry_model
from guardrails.hooks import install as hook
from guardrails.mcp.command import parser as proxy
from guardrails.policy.check import VERSION as POLICY
from guardrails.stores import sqlite
from guardrails.stores.redis import FORMAT


ROOT: Final = Path(__file__).parents[2]
LIST: Final = Path(__file__).with_name("surface.txt")


def surface() -> list[str]:
    """
    Returns the lines in their order.
    """
    parts = (python(), elsewhere(), adapters(), commands(), policy_keys(), codes(), records(), formats())
    return [line for part in parts for line in sorted(set(part))]


def python() -> Iterator[str]:
    """
    Each name that `guardrails` exports, how it is made or called, its fields and methods; then names that fewer programs need.
    """
    for name in guardrails.__all__:
        found = getattr(guardrails, name)
        yield f"python {name}{called(node_of(found)) if inspect.isfunction(found) else ''}"
        of_class = members(found) if inspect.isclass(found) else {}
        yield from (f"python {name}{text}" for own, text in of_class.items() if own == "__init__" or own[0] != "_")


def elsewhere() -> Iterator[str]:
    """
    Each name that fewer programs need, where it is imported from.
    """
    for place, names in guardrails._ELSEWHERE.items():
        yield from (f"name guardrails.{place}.{name}" for name in names.split())


def node_of(what: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(what))).body[0]


def members(cls: type) -> dict[str, str]:
    """
    By name, the fields that the body of *cls* declares, how it is made, and its methods and properties with a docstring; those of its
    parents in this library too. Of a guard, the fields.
    """
    made: dict[str, str] = {}
    for parent in reversed([parent for parent in cls.__mro__ if parent.__module__.startswith("guardrails")]):
        for node in node_of(parent).body:
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                    default = ast.unparse(value) if value else ""
                    if not ast.unparse(kind).startswith(("ClassVar", "InitVar")):
                        written = f"={default}" if default and len(default) < 80 else ""
                        made[name] = flat(f".{name}: {ast.unparse(kind)}{written}")
                case ast.FunctionDef(name="__init__") if parent is cls:
                    made["__init__"] = called(node, bound=True)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if ast.get_docstring(node):
                    if cls not in GUARDS:
                        made[name] = f".{name}{called(node, bound=True)}"
    return made


def called(node: Any, *, bound: bool = False) -> str:
    """
    The call of a function, as its source has it, without its first parameter if it is *bound*; or the type of a property.
    """
    kinds = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
    returns = ast.unparse(node.returns) if node.returns else "Any"
    if kinds & {"property", "cached_property"}:
        return flat(f": {returns}")
    if bound and "staticmethod" not in kinds:
        (node.args.posonlyargs or node.args.args).pop(0)
    awaited = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return flat(f"({ast.unparse(node.args)}) -> {awaited}{returns}")


def flat(written: str) -> str:
    return re.sub(r" ?= ?", "=", " ".join(written.replace("'", '"').split()))


def adapters() -> Iterator[str]:
    """
    The names that each adapter exports, read without its host; those of the testing tools beside them.
    """
    folder = ROOT / "guardrails"
    paths = [folder / "otel/__init__.py", folder / "mcp/__init__.py", folder / "testing/scripted_openai.py"]
    paths += [*(folder / "integrations").glob("[!_]*.py"), *(folder / "integrations").glob("*/__init__.py")]
    for path in paths:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if path.stem != "hosting":
            yield from (f"adapter {module}.{name}" for name in exported(ast.parse(path.read_text())))


def exported(tree: ast.Module) -> list[str]:
    """
    The names of `__all__`; else those that are imported under their own name or defined, and are not private.
    """
    found: list[str] = []
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return list(ast.literal_eval(value))
            case ast.ImportFrom(names=names):
                found += [one.name for one in names if one.asname == one.name]
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.append(name)
    return [name for name in found if not name.startswith("_")]


def below(group: Any, name: str = "guardrails") -> Iterator[tuple[str, Any]]:
    """
    The words and the object of every command of *group*, and of the groups in it.
    """
    for word in group.list_commands(None) if hasattr(group, "list_commands") else ():
        command = group.get_command(None, word)
        yield f"{name} {word}", command
        yield from below(command, f"{name} {word}")


def commands() -> Iterator[str]:
    """
    Each command with its options and its arguments.
    """
    for name, command in below(get_command(app)):
        yield f"command {name}"
        options = [option for given in command.params for option in (*given.opts, *given.secondary_opts)]
        yield from (f"command {name} {option}" for option in options if option != "--help")
    for name, usage in (("hook", hook.__doc__ or ""), ("mcp", proxy().format_help())):
        yield from (f"command guardrails {name} {option}" for option in re.findall(r"(?<![\w-])--[a-z][\w-]+", usage))


def policy_keys() -> Iterator[str]:
    """
    Each key of a policy file.
    """
    said = guardrails.Policy.schema()
    yield from (f"policy {key}" for key in said["properties"])
    for kind, of in said["$defs"].items():
        yield from (f"policy {kind}.{key}" for key in of.get("properties", ()))


def codes() -> Iterator[str]:
    """
    Each code, kind of failure and status.
    """
    yield from (f"{'code' if '.' in word else 'word'} {word}" for word in explanations())


def records() -> Iterator[str]:
    """
    The fields of each event of a record: those that the code writes, and those that recorded sessions have.
    """
    own: dict[str, set[str]] = {}
    uses: dict[str, set[str]] = {}
    for node in ast.parse(inspect.getsource(record)).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[ast.Constant(value=str(words))])):
                own[name], uses[name] = {word.partition("=")[0] for word in words.split()}, set()
            case ast.FunctionDef(name=name):
                own[name] = set(keys(node))
                uses[name] = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}

    def of(name: str) -> set[str]:
        return own[name].union(*map(of, uses[name] & own.keys()))

    found: defaultdict[str, set[str]] = defaultdict(lambda: of("event_record"))
    found |= {name.removesuffix("_record"): of(name) for name in own if name.endswith("_record")}
    del found["event"]
    for path in sorted((ROOT / "tests/golden").rglob("*.jsonl")):
        for line in path.read_text().splitlines():
            said = json.loads(line)
            found[said["event"]] |= said.keys()
    for event, names in found.items():
        yield from (f"record {event}.{name}" for name in names)


def keys(function: ast.FunctionDef) -> Iterator[str]:
    """
    The texts that *function* uses as keys of a mapping.
    """
    for node in ast.walk(function):
        match node:
            case ast.Dict(keys=named):
                yield from (key.value for key in named if isinstance(key, ast.Constant))  # type: ignore[misc]
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=str(key)))]):
                yield key


def formats() -> Iterator[str]:
    """
    The versions of what is kept, the extras, and the entry points that other packages may have.
    """
    yield f"format policy {POLICY}"
    yield f"format record {record.SCHEMA_VERSION}"
    yield f"format redis {FORMAT.decode()}"
    yield f"format retry-model {retry_model.VERSION}"
    yield f"format sqlite {sqlite.VERSION}"
    yield f"format state {STATE}"
    yield "entry-points guardrails.readers"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].keys() - {"dev", "docs", "notebook", "test"}
    yield from (f"extra {extra}" for extra in extras)
    yield f"python-versions {project['requires-python']}"


if __name__ == "__main__":
    LIST.write_text("".join(f"{line}\n" for line in surface()))
