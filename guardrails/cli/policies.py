"""
Prints for the policy commands: the mistakes of a file, the schema, a chain.
"""

import importlib.util
import json
import re
import sys

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from guardrails.cli.text.printing import FOUND, fail, paragraph

from .text.needs import lacking


if TYPE_CHECKING:
    from guardrails.core.guards.base import Guard
    from guardrails.policy.policy import Policy

_PLACED: Final = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?P<message>[^\n]*)")


Own = Annotated[
    list[str] | None, typer.Option("--guards", metavar="FILE", help="A Python file with guards of your own; it is run.")
]


@dataclass(frozen=True, slots=True)
class Checked:
    """
    The findings in one policy file.
    """

    file: str
    guards: int | None = None
    """In its chain; None where there is none."""
    mistakes: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    """What is read, and written otherwise now."""
    missing: bool = False
    """There is no such file."""

    @property
    def ok(self) -> bool:
        """
        There is nothing to correct.
        """
        return not self.mistakes

    def __str__(self) -> str:
        said = self.mistakes or (f"{self.file}: ok, {self.guards} guard{'' if self.guards == 1 else 's'}",)
        return "\n".join((*said, *self.hints))

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the findings for another program, each mistake with its place if it has one.
        """
        return {
            "file": self.file,
            "ok": self.ok,
            "guards": self.guards,
            "mistakes": [_placed(mistake) for mistake in self.mistakes],
            "hints": [_placed(hint.replace(": hint: ", ": ", 1)) for hint in self.hints],
        }


def _placed(mistake: str) -> dict[str, Any]:
    found = _PLACED.match(mistake)
    if found is None:
        return {"file": None, "line": None, "column": None, "message": mistake.partition("\n")[0]}
    return {**found.groupdict(), "line": int(found["line"]), "column": int(found["column"])}


def own_guards(files: Iterable[str]) -> "tuple[type[Guard], ...]":
    """
    Returns the guards that Python *files* define; ends the command if one cannot be used.
    """
    return tuple(guard for file in files for guard in _guards_in(file))


def _guards_in(file: str) -> "Iterable[type[Guard]]":
    """
    The guards that a Python *file* defines, in their order. The file is run: it is to be one that is trusted.
    """
    from guardrails.core.guards.base import Guard

    name = f"guardrails_own_{Path(file).stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if not Path(file).is_file():
        fail(f"no file `{file}` with guards")
    if spec is None or spec.loader is None:
        fail(f"`{file}` is no Python file")
    # The types of its settings are looked up there.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001  whatever a person's own file raises
        fail(f"`{file}` cannot be run: {type(error).__name__}: {error}")
    found = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == name]
    guards = [each for each in found if issubclass(each, Guard)]
    if not guards:
        fail(f"`{file}` defines no guard: write `@guard` above a `class Mine(Guard)`")
    return guards


def check_file(file: str, own: "tuple[type[Guard], ...]" = (), host: str | None = None) -> Checked:
    """
    All that is wrong with the policy *file*, or with the shipped policy of that name, in *host*; *own* are a person's own guards.
    """
    from guardrails.core.guards import kinds_of
    from guardrails.core.values.errors import PolicyError
    from guardrails.policy.document import renamed
    from guardrails.policy.file import find, read
    from guardrails.policy.policy import Policy

    try:
        find(file)
    except PolicyError as error:
        return Checked(file, mistakes=tuple(error.mistakes), missing=True)
    try:
        document = read(file, kinds_of(own))
        policy = Policy.load(file, guards=own)
        found = tuple(lacking(policy, document.root, host))
        guards = len(policy.chain)
        return Checked(
            file,
            guards=guards,
            mistakes=found,
            hints=tuple(renamed(document)),
        )
    except PolicyError as error:
        # What is found after the file was read has no place in it.
        told = (one if _PLACED.match(one) else f"{file}: {one}" for one in error.mistakes)
        return Checked(file, mistakes=tuple(told))


def load_policy(name: str, own: "tuple[type[Guard], ...]" = ()) -> "Policy":
    """
    Returns the policy *name*, which may have a person's *own* guards; ends the command if it cannot be used.
    """
    from guardrails.core.values.errors import PolicyError
    from guardrails.policy.file import find
    from guardrails.policy.policy import Policy

    try:
        find(name)
    except PolicyError as error:
        fail(str(error))
    try:
        return Policy.load(name, guards=own)
    except PolicyError as error:
        fail(str(error), FOUND)


def schema_text(own: "tuple[type[Guard], ...]" = ()) -> str:
    """
    The JSON Schema of policy files as it is shipped beside them; with the keys of a person's *own* guards.
    """
    from guardrails.policy.policy import Policy

    return json.dumps(Policy.schema(own), indent=2, ensure_ascii=False) + "\n"


def chain_of(policy: "Policy") -> dict[str, Any]:
    """
    A policy for another program: its guards in order, with the settings that are not the default.
    """
    chain = policy.chain
    return {
        "name": policy.name,
        "mode": chain.mode,
        **({} if policy.stop is None else {"stop": policy.stop.values["reason"]}),
        "on_error": chain.on_error,
        "envelope": chain.form or "nested",
        "guards": [{"guard": guard.name, **guard.settings()} for guard in chain],
        "tools": [
            {
                "match": list(rule.match),
                **rule.declared,
                **({"mode": rule.mode} if rule.mode else {}),
                **({"on_error": rule.on_error} if rule.on_error else {}),
                **rule.guards,
            }
            for rule in chain.rules
        ],
        "scopes": {
            scope: [{"guard": guard.name, **guard.settings()} for guard in own] for scope, own in policy.scopes.items()
        },
        "prices": {
            model: {"input_mtok": price.input_mtok, "output_mtok": price.output_mtok}
            for model, price in policy.prices.items()
        },
    }


def shown(policy: "Policy") -> str:
    """
    A policy as a person reads it: its guards in order, then what it says of single tools.
    """
    said = chain_of(policy)
    head = f"{policy.name}: {said['mode']}, {policy.chain.on_error} on a guard's error, {said['envelope']} envelopes"
    lines = [f"stopped, so that every call is refused: {said['stop']}"] if "stop" in said else []
    lines += str(policy.chain).splitlines()
    for rule in said["tools"]:
        match = ", ".join(rule.pop("match"))
        settings = ", ".join(f"{key}={value!r}" for key, value in rule.items())
        lines.append(f"tools with {settings}: {match}")
    for scope, own in policy.scopes.items():
        lines += [f"scope {scope}: {guard}" for guard in own]
    lines += [f"price of {m}: ${p['input_mtok']:g} / ${p['output_mtok']:g} per Mtok" for m, p in said["prices"].items()]
    return "\n".join(
        [paragraph(head, hanging="  "), *(paragraph(line, indent="  ", hanging="      ") for line in lines)]
    )
