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
from collections.abc import Callable, Iterator
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
    Each name that `guardrails` exports, how it is made or called, its fields and methods.
    """
    for name in guardrails.__all__:
        found = getattr(guardrails, name)
        if inspect.isfunction(found):
            yield f"python {flat(signature(found, name))}"
        elif not inspect.isclass(found):
            yield f"python {name}"
        else:
            declared, made = fields(found), found.__dict__.get("__init__")
            yield f"python {name}"
            if inspect.isfunction(made) and not declared:
                yield f"python {flat(signature(made, name, bound=True))}"
            yield from (f"python {name}.{flat(one)}" for one in declared)
            if found not in GUARDS:
                yield from (f"python {name}.{flat(one)}" for one in methods(found))


def elsewhere() -> Iterator[str]:
    """
    Each name that fewer programs need, where it is imported from.
    """
    for place, names in guardrails._ELSEWHERE.items():
        yield from (f"name guardrails.{place}.{name}" for name in names.split())


def signature(function: Callable[..., Any], name: str, *, bound: bool = False) -> str:
    """
    The call of *function* under *name*, as its source has it; without its first parameter if it is *bound*.
    """
    node = node_of(function)
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"{name}(...)"
    given = node.args
    if bound and (given.posonlyargs or given.args):
        (given.posonlyargs or given.args).pop(0)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{prefix}{name}({ast.unparse(given)}){returns}".replace("'", '"')


def fields(cls: type) -> list[str]:
    """
    The public fields that the body of *cls* declares, and those of its parents in this library.
    """
    found: dict[str, str] = {}
    for parent in reversed(own(cls)):
        node = node_of(parent)
        for line in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                kind, value = ast.unparse(line.annotation), ast.unparse(line.value) if line.value else ""
                if not kind.startswith(("ClassVar", "InitVar")):
                    default = f" = {value}" if value and len(value) < 80 else ""
                    found[line.target.id] = f"{line.target.id}: {kind}{default}".replace("'", '"')
    return [written for name, written in found.items() if not name.startswith("_")]


def methods(cls: type) -> Iterator[str]:
    """
    The public methods and properties of *cls* that have a docstring.
    """
    taken: set[str] = set()
    for parent in own(cls):
        for name, value in vars(parent).items():
            kind = "property" if isinstance(value, property) else type(value).__name__
            function = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
            if name.startswith("_") or name in taken or not inspect.isfunction(function) or not function.__doc__:
                continue
            taken.add(name)
            if kind in {"property", "cached_property"}:
                node = node_of(function)
                of = ast.unparse(node.returns) if isinstance(node, ast.FunctionDef) and node.returns else "Any"
                yield f"{name}: {of}"
            else:
                yield signature(function, name, bound=kind != "staticmethod")


def own(cls: type) -> list[type]:
    return [parent for parent in cls.__mro__ if parent.__module__.startswith("guardrails")]


def node_of(what: Any) -> ast.stmt | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(what))).body[0]
    except (OSError, TypeError, IndentationError):
        return None


def flat(written: str) -> str:
    """
    What may stand on several lines, on one.
    """
    line = re.sub(r" ?= ?", "=", " ".join(written.split()))
    return line.replace("( ", "(").replace(",)", ")").replace(", )", ")").replace(" )", ")")


def adapters() -> Iterator[str]:
    """
    The names that each adapter exports, read without its host; those of the testing tools beside them.
    """
    folder = ROOT / "guardrails"
    places = [
        folder / "otel/__init__.py",
        *(folder / "integrations").glob("*.py"),
        *(folder / "integrations").glob("*/__init__.py"),
    ]
    places += [folder / "mcp/__init__.py", folder / "testing/scripted_openai.py"]
    for path in places:
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        if path.parent.name != "integrations" or path.stem not in {"__init__", "hosting"}:
            yield from (f"adapter {module}.{name}" for name in exported(ast.parse(path.read_text())))


def exported(tree: ast.Module) -> list[str]:
    """
    The names of `__all__`; else those that are imported under their own name or defined, and are not private.
    """
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    imported = [one for node in tree.body if isinstance(node, ast.ImportFrom) for one in node.names]
    again = [one.name for one in imported if one.asname == one.name]
    own = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
    return [name for name in (*again, *own) if not name.startswith("_")]


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
    found = defaultdict[str, set[str]](set)
    found["call"] |= {*record._CALL, *record._TOOL}
    found["settle"] |= {*record._END, *record._FAILURE, *record._DECISION}
    for name in ("expire", "park"):
        found[name] |= {*record._PENDING}
    tree = ast.parse(inspect.getsource(record))
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        event = re.fullmatch(r"(\w+)_record", function.name)
        if event and event[1] != "event":
            found[event[1]] |= keys(function)
        elif function.name == "_declared":
            found["call"] |= keys(function)
        elif function.name == "event_record":
            head = keys(function)
    for path in sorted((ROOT / "tests/golden").rglob("*.jsonl")):
        for line in path.read_text().splitlines():
            said = json.loads(line)
            found[said["event"]] |= said.keys()
    for event_name, names in found.items():
        yield from (f"record {event_name}.{name}" for name in names | head)


def keys(function: ast.FunctionDef) -> set[str]:
    """
    The texts that *function* uses as keys of a mapping.
    """
    nodes = [*ast.walk(function)]
    places = [key for node in nodes if isinstance(node, ast.Dict) for key in node.keys]
    targets = [target for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    places += [target.slice for target in targets if isinstance(target, ast.Subscript)]
    return {key.value for key in places if isinstance(key, ast.Constant) and isinstance(key.value, str)}


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
