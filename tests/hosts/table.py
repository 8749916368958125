"""
The table of hosts and behaviours, from the contract and from what each driver says its host cannot do.

    python -m tests.hosts.table            print it
    python -m tests.hosts.table --write    put it into docs/hosts/README.md

The drivers are read, not imported, since no environment has all hosts: `cannot` is a dict of texts, whose values may be texts
of the module by name, joined by `+`; others are joined to it by `**` or `|`, and `dict.fromkeys(names, text)` is one too.
"""

import ast
import sys
import tomllib

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.hosts.contract import behaviours


HERE: Final = Path(__file__).parent
PAGE: Final = HERE.parents[1] / "docs/hosts/README.md"
BEGIN: Final = "<!-- python -m tests.hosts.table --write -->\n"
END: Final = "<!-- end -->\n"


def hosts() -> dict[str, dict[str, str]]:
    """
    The hosts that have a driver, in order, and of each what it cannot do and why.
    """
    names = [name for name in tomllib.loads((HERE / "versions.toml").read_text()) if name != "tests"]
    files = {name: HERE / f"test_{name}.py" for name in names}
    return {name: cannot(file) for name, file in files.items() if file.is_file()}


def cannot(file: Path) -> dict[str, str]:
    """
    What the drivers in *file* say that their host cannot do, or those that it imports from beside it. ValueError where that
    cannot be read.
    """
    _, own, others = _read(file)
    said = own or others
    if not said:
        raise ValueError(f"no driver of {file.name} says what its host cannot do")
    return {name: why for one in said.values() for name, why in one.items()}


def _read(file: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """
    The texts of a module by their names, and what its drivers cannot do, its own and those that it imports.
    """
    known: dict[str, Any] = {}
    own: dict[str, Any] = {}
    others: dict[str, Any] = {}
    module = ast.parse(file.read_text(encoding="utf-8"))
    for statement in module.body:
        if isinstance(statement, ast.ImportFrom) and statement.level == 1 and statement.module:
            beside = file.parent.joinpath(*statement.module.split(".")).with_suffix(".py")
            if beside.is_file():
                texts, drivers, more = _read(beside)
                for alias in statement.names:
                    if alias.name in texts:
                        known[alias.asname or alias.name] = texts[alias.name]
                    if alias.name in drivers | more:
                        others[alias.asname or alias.name] = (drivers | more)[alias.name]
        elif isinstance(statement, ast.ClassDef):
            inner: dict[str, Any] = {}
            for line in statement.body:
                _learn(line, inner, known)
            if "cannot" in inner:
                own[statement.name] = inner["cannot"]
        else:
            _learn(statement, known, known)
    return known, own, others


def _learn(node: ast.stmt, made: dict[str, Any], known: Mapping[str, Any]) -> None:
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    value = getattr(node, "value", None)
    if isinstance(target, ast.Name) and isinstance(value, ast.expr):
        try:
            made[target.id] = _value(value, known)
        except ValueError:
            if target.id == "cannot":
                raise


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(str() as text):
            return text
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return [_value(part, known) for part in parts]
        case ast.BinOp(left=left, op=ast.Add(), right=right) | ast.BinOp(left=left, op=ast.BitOr(), right=right):
            first, second = _value(left, known), _value(right, known)
            return {**first, **second} if isinstance(first, dict) else first + second
        case ast.JoinedStr(values=parts):
            return "".join(
                _value(part.value if isinstance(part, ast.FormattedValue) else part, known) for part in parts
            )
        case ast.Dict(keys=keys, values=values):
            made: dict[str, str] = {}
            for key, value in zip(keys, values, strict=True):
                made |= _value(value, known) if key is None else {_value(key, known): _value(value, known)}
            return made
        case ast.Call(func=ast.Attribute(value=ast.Name(id="dict"), attr="fromkeys"), args=[names, text]):
            return dict.fromkeys(_value(names, known), _value(text, known))
    raise ValueError(f"`{ast.unparse(node):.80}` is no text that can be read without being run")


def table() -> str:
    """
    A row a behaviour, a column a host; below it the reasons, each once.
    """
    known, columns = behaviours(), hosts()
    reasons: dict[tuple[str, str], int] = {}
    for host, own in columns.items():
        if unknown := own.keys() - known.keys():
            raise ValueError(f"`{host}` cannot do `{min(unknown)}`, which is no behaviour")
        for name in known:
            if name in own:
                reasons.setdefault((host, own[name]), len(reasons) + 1)
    rows = [
        [said, *(f"no ({reasons[host, own[name]]})" if name in own else "yes" for host, own in columns.items())]
        for name, said in known.items()
    ]
    held = [f"{len(known) - len(own)} of {len(known)}" for own in columns.values()]
    lines = [
        "|".join(["", *row, ""])
        for row in [["behaviour", *columns], ["---"] * (len(columns) + 1), *rows, ["**hold**", *held]]
    ]
    notes = [f"{n}. {host}: {reason}" for (host, reason), n in reasons.items()]
    return "\n".join([*lines, "", *notes, ""] if notes else [*lines, ""])


def page(text: str) -> str:
    """
    The page *text* with the table as it is now.
    """
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table())
