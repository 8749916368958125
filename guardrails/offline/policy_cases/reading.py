"""
A file of cases read into values, with every mistake of it at once.
"""

import re

from os import PathLike
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from guardrails.core.envelope import FIELDS
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.schema import Fault, MapType, fit, quoted, suggestion, unknown
from guardrails.policy.file import Mistake, Node, find, inner, items, lines_of, mistakes_at, parse, plain, shipped
from guardrails.policy.reload import is_name

from .steps import KINDS, PARTS, CaseFile, tool_type


SUFFIX: Final = ".cases.yaml"


def find_cases(policy: str) -> Path:
    """
    Returns the cases of a policy: of a shipped one by its name, of a file `team.yaml` those in `team.cases.yaml` beside
    it, or in `cases/team.yaml`.

    Raises PolicyError if there is no such policy, or none of these files.
    """
    path = find(policy)
    folder = path.parent
    places = [] if is_name(policy) else [folder / f"{path.stem}{SUFFIX}"]
    places = [*places, folder / "cases" / path.name]
    if file := next(filter(Path.is_file, places), None):
        return file
    looked = " and ".join(quoted(str(place.relative_to(folder))) for place in places)
    raise PolicyError(
        [f"no cases for {quoted(policy)}: looked for {looked} beside it; name their file after the policy"]
    )


def shipped_with_cases() -> list[str]:
    """
    Returns the names of the shipped policies that have cases, sorted.
    """
    folder = shipped()
    return sorted(path.stem for path in (folder / "cases").glob("*.yaml") if (folder / path.name).is_file())


def load_cases(path: str | PathLike[str]) -> CaseFile:
    """
    Returns the cases of a file.

    Raises OSError if it cannot be read, and PolicyError with every mistake as `file:line:column: message`.
    """
    return read_cases(Path(path).read_bytes(), str(path))


def read_cases(text: str | bytes, name: str = "<text>") -> CaseFile:
    """
    Returns the cases of a YAML text called *name* in messages.

    Raises PolicyError with every mistake as `file:line:column: message`, the source line and a caret.
    """
    source, root, mistakes = parse(text, name)
    made = None
    if root is not None:
        try:
            made = CaseFile.model_validate(plain(root))
            made.place(root)
        except ValidationError as error:
            mistakes += mistakes_at((_fault(each, root) for each in error.errors()), root)
        lines: dict[Any, int] = {}
        for number, node in enumerate(items(root, "cases")):
            named, tools = inner(node, "name"), _tools(node, ("cases", number), root, mistakes)
            if made is not None and not mistakes:
                made.cases[number].tools = tools
            if named and (first := lines.setdefault(named.value, named.position.line)) != named.position.line:
                mistakes.append(Mistake(named.position, f"name: another case has this name, on line {first}"))
    if mistakes or made is None:
        raise PolicyError(lines_of(mistakes, [source]))
    return made


def _tools(case: Node, path: tuple[str | int, ...], root: Node, mistakes: list[Mistake]) -> list[Tool]:
    """
    Returns the tools that a *case* declares.
    """
    tools = []
    for place, declared in enumerate(items(case, "tools")):
        settings, faults = fit(tool_type(), plain(declared), (*path, "tools", place))
        mistakes += mistakes_at(faults, root)
        if not faults:
            tools.append(Tool(name=settings["name"]).override(settings))
            try:
                tools[-1].arguments()
            except PolicyError as error:
                at = inner(declared, "parameters") or declared
                mistakes.append(Mistake(at.position, f"parameters: {error}"))
    return tools


_EXPECTED: Final = {
    **dict.fromkeys(("dict_type", "model_type", "union_tag_not_found"), "a map of keys"),
    "list_type": "a list",
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
}
"""The kind of value that was wanted, by the type of pydantic's error."""


def _fault(error: Any, root: Node) -> Fault:
    """
    Returns an *error* of pydantic's as a fault in the data of *root*. Its way there has also names of types, which are no keys.
    """
    loc, value, kind, path, node = error["loc"], error["input"], error["type"], tuple[str | int, ...](), root
    for part in loc:
        if (below := inner(node, part)) is not None:
            path, node = (*path, part), below
    last = str(loc[-1]) if loc else ""
    if kind == "extra_forbidden" or last == "[key]":
        model = next((PARTS[part] for part in reversed(loc[:-1]) if part in PARTS), CaseFile)
        known = FIELDS if last == "[key]" else model.model_fields
        return Fault(path, value, unknown(str(path[-1]), MapType("", dict.fromkeys(known))), kind="key")
    if kind == "missing" or (kind == "union_tag_not_found" and isinstance(value, dict)):
        names = [last] if kind == "missing" else KINDS
        return Fault(path, value, f"missing key {' or '.join(map(quoted, names))}", kind="missing")
    if kind == "literal_error":
        words = re.split(", | or ", error["ctx"]["expected"].replace("'", "").replace("True", "true"))
        expected = "one of " * (len(words) > 1) + ", ".join(map(quoted, words))
        return Fault(path, value, "", (expected,), suggestion(value, words) if isinstance(value, str) else "")
    sentence = error["msg"].removeprefix("Value error, ").removeprefix("Input ").replace("should", "must")
    return Fault(path, value, sentence, (_EXPECTED[kind],) if kind in _EXPECTED else ())
