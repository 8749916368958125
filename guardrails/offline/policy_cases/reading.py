"""
A file of cases read into values, with every mistake of it at once.
"""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.schema import fit, quoted
from guardrails.policy.file import Mistake, Node, find, inner, items, lines_of, mistakes_at, parse, plain, shipped
from guardrails.policy.reload import is_name

from .steps import Repeat, Step, cases_type


SUFFIX: Final = ".cases.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """
    One session from its start, and the decision expected of each of its calls.
    """

    name: str
    file: str
    line: int
    tools: tuple[Tool, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFile:
    """
    The cases of one file.
    """

    name: str
    policy: str | None
    """The policy that the cases were written for."""
    cases: tuple[Case, ...]


def find_cases(policy: str) -> Path:
    """
    Returns the cases of a policy: of a shipped one by its name, of a file `team.yaml` those in `team.cases.yaml` beside
    it, or in `cases/team.yaml`.

    Raises PolicyError if there is no such policy, or none of these files.
    """
    path = find(policy)
    folder = path.parent
    beside = [] if is_name(policy) else [folder / f"{path.stem}{SUFFIX}"]
    places = [*beside, folder / "cases" / path.name]
    if found := next(filter(Path.is_file, places), None):
        return found
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
    parsed = parse(text, name)
    mistakes, root, made = list(parsed.mistakes), parsed.root, CaseFile(name=name, policy=None, cases=())
    if root is not None:
        data, faults = fit(cases_type(), plain(root))
        mistakes += mistakes_at(faults, root)
        if not faults:
            cases = [_case(*one, name, mistakes) for one in zip(data["cases"], items(root, "cases"), strict=True)]
            made = CaseFile(name=name, policy=data.get("policy"), cases=tuple(cases))
        lines: dict[Any, int] = {}
        for node in filter(None, (inner(case, "name") for case in items(root, "cases"))):
            if (first := lines.setdefault(node.value, node.position.line)) != node.position.line:
                mistakes.append(Mistake(node.position, f"name: another case has this name, on line {first}"))
    if mistakes or root is None:
        raise PolicyError(lines_of(mistakes, [parsed.source]))
    return made


def _case(data: dict[str, Any], node: Node, file: str, mistakes: list[Mistake]) -> Case:
    tools = []
    for declared, place in zip(data.get("tools", []), items(node, "tools"), strict=True):
        tools.append(Tool(name=declared["name"]).override(declared))
        try:
            tools[-1].arguments()
        except PolicyError as error:
            at = inner(place, "parameters") or place
            mistakes.append(Mistake(at.position, f"parameters: {error}"))
    _place(data["steps"], items(node, "steps"))
    return Case(name=data["name"], file=file, line=node.position.line, tools=tuple(tools), steps=tuple(data["steps"]))


def _place(steps: list[Step], nodes: list[Node]) -> None:
    """
    Give each step its line.
    """
    for step, node in zip(steps, nodes, strict=True):
        step.line = node.position.line
        if isinstance(step, Repeat):
            _place(step.steps, items(node, "steps"))
