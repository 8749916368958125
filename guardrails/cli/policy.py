"""
Check, test and show policy files, and print their schema.

\b
Examples:
  guardrails policy check policy.yaml
  guardrails policy test policy.yaml cases.yaml
  guardrails policy schema -o policy.schema.json
"""

import json
import re

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

import guardrails

from guardrails.offline.figures import plural

from . import commands
from .console import Json, echo, fail, print_json, write_text
from .console import show as document


_PLACED: Final = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?P<message>[^\n]*)")
PRICED: Final = ("input_mtok", "output_mtok")
Own = Annotated[list[str] | None, typer.Option("--guards", metavar="FILE", help="Python of your guards; it is run.")]

policy = commands(help=__doc__)


@policy.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Policy files, or names of shipped ones.")],
    own: Own = None,
    as_json: Json = False,
) -> bool:
    """
    Report every mistake of policy files, each as file:line:column.

    Exit code 1: there are mistakes.

    \b
    Examples:
      guardrails policy check policy.yaml
      guardrails policy check default strict --json
    """
    from guardrails.policy.file import find

    guards = own_guards(own)
    for file in files:
        find(file)
    checked = [check_file(file, guards) for file in files]
    ok = all(one["ok"] for one in checked)
    if as_json:
        kinds = ("mistakes", "hints")
        print_json({"ok": ok, "files": [one | {kind: [*map(_placed, one[kind])] for kind in kinds} for one in checked]})
    for one in () if as_json else checked:
        verdict = one["mistakes"] or [f"{one['file']}: ok, {plural(one['guards'], 'guard')}"]
        echo("\n".join([*verdict, *one["hints"]]))
    return not ok


@policy.command()
def schema(
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it there.")] = None,
    own: Own = None,
) -> None:
    """
    Print the JSON Schema of policy files, for editors.

    \b
    Examples:
      guardrails policy schema
      guardrails policy schema -o policy.schema.json
    """
    text = json.dumps(guardrails.Policy.schema(own_guards(own)), indent=2, ensure_ascii=False)
    write_text(output, f"{text}\n") if output else typer.echo(text)


@policy.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME_OR_FILE", help="A policy file, or the name of a shipped one.")],
    own: Own = None,
    as_json: Json = False,
) -> None:
    """
    Print the chain of a policy in order.

    \b
    Examples:
      guardrails policy show default
      guardrails policy show policy.yaml --json
    """
    document(chain_of(guardrails.Policy.load(name, guards=own_guards(own))), as_json=as_json)


@policy.command("test")
def policy_test(
    policy: Annotated[str | None, typer.Argument(metavar="POLICY", help="Without it all shipped ones.")] = None,
    cases: Annotated[list[Path] | None, typer.Argument(metavar="CASES", help="Without one the policy's own.")] = None,
    only: Annotated[str, typer.Option("-k", metavar="TEXT", help="Only cases with this in their name.")] = "",
    own: Own = None,
    as_json: Json = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of case files instead.")] = False,
) -> bool:
    """
    Hold a policy to its cases: calls, each with its decision.

    The policy's own cases are found beside it, by its name. Exit code 1: a case fails.

    \b
    Examples:
      guardrails policy test
      guardrails policy test policy.yaml cases.yaml
      guardrails policy test policy.yaml -k refund
    """
    from guardrails.offline.policy_cases import find_cases, load_cases, run_case, shipped_with_cases
    from guardrails.offline.policy_cases.run import Suite, lines, to_dict
    from guardrails.offline.policy_cases.steps import cases_schema

    if schema:
        print_json(cases_schema())
        return False
    guards, suites = own_guards(own), []
    for name in [policy] if policy else shipped_with_cases():
        loaded = guardrails.Policy.load(name, guards=guards)
        for file in map(load_cases, cases or [find_cases(name)]):
            if file.policy not in (None, Path(name).stem):
                echo(f"{file.file}: written for the policy `{file.policy}`, run by `{name}`", err=True)
            chosen = [case for case in file.cases if only.casefold() in case.name.casefold()]
            if chosen:
                suites.append(Suite(name, file.file, [run_case(loaded, case) for case in chosen]))
    if not suites:
        fail(f"no case has `{only}` in its name")
    if as_json:
        print_json(to_dict(suites))
    else:
        echo("\n".join(lines(suites)))
    return any(suite.failed for suite in suites)


def own_guards(files: Iterable[str] | None) -> "tuple[type[guardrails.Guard], ...]":
    """
    Returns the guards that Python *files* define, in their order; ends the command if one cannot be used. A file is run: it is to be one that
    is trusted.
    """
    from guardrails.policy.tools import run_file

    guards: list[type[guardrails.Guard]] = []
    for file in files or ():
        module = run_file(file, "guards")
        classes = [each for each in vars(module).values() if isinstance(each, type)]
        own = [each for each in classes if issubclass(each, guardrails.Guard) and each.__module__ == module.__name__]
        if not own:
            fail(f"`{file}` defines no guard: write `@guard` above a `class Mine(Guard)`")
        guards += own
    return tuple(guards)


def check_file(file: str, own: "tuple[type[guardrails.Guard], ...]" = ()) -> dict[str, Any]:
    """
    All that is wrong with the policy *file*, or with the shipped policy of that name; *own* are a person's own guards. The hints are older words, and
    the values of other files that it overrides.
    """
    from guardrails.policy.file import Document, find, shipped

    try:
        document = Document(file, own)
        guards = len(guardrails.Policy(**document.arguments()).chain.guards)
    except guardrails.PolicyError as error:
        # A mistake of the whole has no place in the file.
        mistakes = [one if _PLACED.match(one) else f"{file}: {one}" for one in error.mistakes]
        return {"file": file, "guards": None, "hints": [], "mistakes": mistakes, "ok": False}
    # What a shipped policy says is not written by whoever checks it.
    hints = [] if find(file).parent == shipped() else document.hints()
    return {"file": file, "guards": guards, "hints": hints, "mistakes": [], "ok": True}


def _placed(sentence: str) -> dict[str, Any]:
    place = _PLACED.match(sentence)
    if place is None:
        return {"file": None, "line": None, "column": None, "message": sentence.partition("\n")[0]}
    return {**place.groupdict(), "line": int(place["line"]), "column": int(place["column"])}


def chain_of(policy: "guardrails.Policy") -> dict[str, Any]:
    """
    A policy for another program: its guards in order, with the settings that are not the default.
    """
    chain = policy.chain
    stop = {} if policy.stop is None else {"stop": policy.stop.values["reason"]}
    modes = [{name: mode for name in ("mode", "on_error") if (mode := getattr(rule, name))} for rule in chain.rules]
    rules = zip(chain.rules, modes, strict=True)
    named = {"name": policy.name, "mode": chain.mode, **stop, "on_error": chain.on_error}
    return named | {
        "envelope": chain.form or "nested",
        "guards": _settings_of(chain.guards),
        "tools": [{"match": list(rule.match), **rule.declared, **own, **rule.guards} for rule, own in rules],
        "scopes": {scope: _settings_of(own.guards) for scope, own in policy.scopes.items()},
        "prices": {model: {name: getattr(one, name) for name in PRICED} for model, one in policy.prices.items()},
    }


def _settings_of(guards: "Iterable[guardrails.Guard]") -> list[dict[str, Any]]:
    return [{"guard": guard.name, **guard.settings()} for guard in guards]
