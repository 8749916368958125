"""
A file of cases read into values, with every mistake of it at once.
"""

import json

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Final

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import PolicyError
from guardrails.policy.file import MAX_BYTES, Mistake, Node, find, find_mistakes, parse, plain, quoted, shipped
from guardrails.policy.reload import is_name

from .case import (
    Answer,
    Call,
    Case,
    CaseFile,
    Charge,
    Exhausted,
    Expected,
    Extend,
    Failed,
    Ran,
    Repeat,
    Request,
    Settle,
    Step,
    Turn,
    Wait,
)
from .step_rules import step_mistakes


SUFFIX: Final = ".cases.yaml"


def find_cases(policy: str) -> Path:
    """
    Returns the cases of a policy: of a shipped one by its name, of a file `team.yaml` those in `team.cases.yaml` beside
    it, or in `cases/team.yaml`.

    Raises PolicyError if there is no such policy, or none of these files.
    """
    path = find(policy)
    folder = path.parent
    places = [folder / "cases" / path.name]
    if not is_name(policy):
        places.insert(0, folder / f"{path.stem}{SUFFIX}")
    for place in places:
        if place.is_file():
            return place
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
    with Path(path).open("rb") as stream:
        return read_cases(stream.read(MAX_BYTES + 1), str(path))


def read_cases(text: str | bytes, name: str = "<text>") -> CaseFile:
    """
    Returns the cases of a YAML text called *name* in messages.

    Raises PolicyError with every mistake as `file:line:column: message`, the source line and a caret.
    """
    from pydantic import ValidationError

    from .document import adapter, json_schema

    parsed = parse(text, name)
    mistakes, root, data = list(parsed.mistakes), parsed.root, None
    if root is not None:
        try:
            data = adapter().validate_json(json.dumps(plain(root)))
        except ValidationError as error:
            mistakes += find_mistakes(error.errors(include_url=False), root, json_schema())
        mistakes += _rules(root)
    cases: tuple[Case, ...] = ()
    if root is not None and data is not None:
        nodes = _items(root, "cases")
        made = [_case(entry, node, name, mistakes) for entry, node in zip(data["cases"], nodes, strict=True)]
        cases = tuple(made)
    if mistakes or data is None:
        ordered = sorted(dict.fromkeys(mistakes), key=lambda m: (*m.position[1:], m.message))
        raise PolicyError([str(mistake) for mistake in ordered])
    return CaseFile(name=name, policy=data.get("policy"), cases=cases)


def _items(node: Node, key: str) -> list[Node]:
    """
    Returns the nodes of the list under *key*, an empty list if there is none.
    """
    entry = node.value.get(key) if isinstance(node.value, dict) else None
    return entry.node.value if entry is not None and isinstance(entry.node.value, list) else []


def _rules(root: Node) -> Iterator[Mistake]:
    lines: dict[str, int] = {}
    for case in _items(root, "cases"):
        yield from step_mistakes(case)
        name = case.value.get("name") if isinstance(case.value, dict) else None
        if name is None or not isinstance(name.node.value, str):
            continue
        if name.node.value in lines:
            first = f"another case has this name, on line {lines[name.node.value]}"
            yield Mistake(name.place, f"name: {first}")
        lines.setdefault(name.node.value, name.place.line)


def _case(data: dict[str, Any], node: Node, file: str, mistakes: list[Mistake]) -> Case:
    tools = []
    for declared, place in zip(data.get("tools", []), _items(node, "tools"), strict=True):
        settings = {key: tuple(value) if isinstance(value, list) else value for key, value in declared.items()}
        tools.append(Tool(name=declared["name"]).override(settings))
        try:
            tools[-1].arguments()
        except PolicyError as error:
            at = place.value["parameters"].place if isinstance(place.value, dict) else place.position
            mistakes.append(Mistake(at, f"parameters: {error}"))
    steps = () if mistakes else _steps(data["steps"], _items(node, "steps"))
    return Case(name=data["name"], file=file, line=node.position.line, tools=tuple(tools), steps=steps)


def _steps(data: list[dict[str, Any]], nodes: list[Node]) -> tuple[Step, ...]:
    return tuple(_step(entry, node) for entry, node in zip(data, nodes, strict=True))


def _step(data: dict[str, Any], node: Node) -> Step:
    at = data.get("at")
    place: dict[str, Any] = {"line": node.position.line}
    if at is not None:
        place |= {"at_ms": at.ms, "relative": at.relative}
    match data:
        case {"call": tool}:
            return Call(
                **place,
                tool=tool,
                arguments=data.get("arguments", {}),
                id=data.get("id"),
                ran=None if "pending" in data or "lost" in data else _ran(data),
                lost="lost" in data,
                expected=_expected(data),
            )
        case {"settle": id}:
            return Settle(**place, id=id, ran=_ran(data), expected=_expected(data))
        case {"turn": calls}:
            return Turn(**place, calls=calls)
        case {"charge": charge}:
            return Charge(**place, **charge)
        case {"request": times}:
            return Request(**place, times=times)
        case {"wait": seconds}:
            return Wait(**place, ms=_ms(seconds))
        case {"extend": amounts}:
            return Extend(**place, amounts=amounts)
        case {"approve": id}:
            return Answer(**place, id=id, approved=True)
        case {"refuse": id}:
            return Answer(**place, id=id, approved=False, reason=data.get("reason", ""))
        case {"repeat": times}:
            return Repeat(**place, times=times, steps=_steps(data["steps"], _items(node, "steps")))
    return Exhausted(**place, code=data["exhausted"])


def _ran(data: dict[str, Any]) -> Ran:
    error = data.get("error")
    given = {key: data[key] for key in ("result", "result_bytes", "cost_usd", "tokens") if key in data}
    return Ran(**given, failed=None if error is None else _failed(error), takes_ms=_ms(data.get("takes", 0)))


def _failed(error: Any) -> Failed:
    if isinstance(error, str):
        return Failed(type=error)  # type: ignore[arg-type]
    given = {key: value for key, value in error.items() if key != "retry_after"}
    wait = error.get("retry_after")
    return Failed(**given, retry_after_ms=None if wait is None else _ms(wait))


def _expected(data: dict[str, Any]) -> Expected:
    observed = data.get("observed", [])
    return Expected(
        said=data.get("expect", "allow"),
        code=data.get("code"),
        observed=frozenset([observed] if isinstance(observed, str) else observed),
        status=data.get("status"),
        envelope=data.get("envelope"),
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
