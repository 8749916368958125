"""
The commands about policy files: check, schema, show, test. Other commands load a policy as these do.
"""

import json
import re

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from guardrails.offline.figures import plural

from .files import write_whole
from .group import Commands
from .printing import FOUND, Json, fail, print_json, printable
from .printing import show as document


if TYPE_CHECKING:
    from guardrails.core.guards.base import Guard
    from guardrails.offline.policy_cases.report import Suite
    from guardrails.policy.file import Node
    from guardrails.policy.policy import Policy

_PLACED: Final = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?P<message>[^\n]*)")
WITHOUT_MODEL: Final = ("mcp", "fastmcp", "proxy")
OF_MODELS: Final[dict[tuple[str, ...], str]] = {
    ("budget", "max_turns"): "",
    ("budget", "max_tokens"): "tokens",
    ("budget", "max_cost_usd"): "cost_usd",
    ("growth", "max_requests_per_second"): "",
    ("growth", "max_tokens_per_minute"): "tokens",
}
"""Limits of what a model does; with the declaration of a tool by which they count too."""
HOSTS: Final[dict[str, tuple[str, dict[tuple[str, ...], str]]]] = {
    **dict.fromkeys(("agent-framework", "crewai", "google-adk", "langchain", "openai-agents"), ("", {})),
    **dict.fromkeys(("pydantic-ai", "strands"), ("", {})),
    **dict.fromkeys(WITHOUT_MODEL, ("tells of no model response", OF_MODELS)),
    "claude-agent-sdk": ("ends no tool that runs", {("timeout",): ""}),
}
"""Hosts that an adapter is for, and the MCP proxy: what each does not do, and the settings that limit nothing there."""
Own = Annotated[
    list[str] | None, typer.Option("--guards", metavar="FILE", help="Python of your own guards; it is run.")
]

policy = Commands(no_args_is_help=True)


@policy.callback()
def _about() -> None:
    """
    Check, test and show policy files, and print their schema.

    \b
    Examples:
      guardrails policy check policy.yaml
      guardrails policy test policy.yaml cases.yaml
      guardrails policy schema -o policy.schema.json
    """


@policy.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Policy files, or names of shipped ones.")],
    own: Own = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="NAME", help="Refuse limits that it cannot hold: mcp, strands, ...")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """
    Report every mistake of policy files, each as file:line:column.

    Exit code 1: there are mistakes.

    \b
    Examples:
      guardrails policy check policy.yaml
      guardrails policy check default strict --json
    """
    from guardrails.policy.file import find

    if host is not None and host not in HOSTS:
        raise typer.BadParameter(f"`--host` takes one of {', '.join(sorted(HOSTS))}, not `{host}`")
    guards = own_guards(own)
    for file in files:
        find(file)
    checked = [check_file(file, guards, host) for file in files]
    ok = not any(one.mistakes for one in checked)
    if as_json:
        print_json({"ok": ok, "files": [_to_dict(one) for one in checked]})
    else:
        for file, count, mistakes, hints in checked:
            typer.echo(printable("\n".join([*(mistakes or [f"{file}: ok, {plural(count or 0, 'guard')}"]), *hints])))
    if not ok:
        raise typer.Exit(FOUND)


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
    from guardrails.policy.policy import Policy

    text = json.dumps(Policy.schema(own_guards(own)), indent=2, ensure_ascii=False)
    write_whole(output, f"{text}\n") if output else typer.echo(text)


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
    document(chain_of(load_policy(name, own_guards(own))), as_json=as_json)


@policy.command("test")
def policy_test(
    policy: Annotated[str | None, typer.Argument(metavar="POLICY", help="Without it all shipped ones.")] = None,
    cases: Annotated[list[Path] | None, typer.Argument(metavar="CASES", help="Without one the policy's own.")] = None,
    *,
    only: Annotated[str, typer.Option("-k", metavar="TEXT", help="Only cases with this in their name.")] = "",
    own: Own = None,
    as_json: Json = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of case files instead.")] = False,
) -> None:
    """
    Hold a policy to its cases: calls, each with its decision.

    The policy's own cases are found beside it, by its name. Exit code 1: a case fails.

    \b
    Examples:
      guardrails policy test
      guardrails policy test policy.yaml cases.yaml
      guardrails policy test policy.yaml -k refund
    """
    from guardrails.offline.policy_cases import find_cases, report, shipped_with_cases

    if schema:
        from guardrails.offline.policy_cases.steps import cases_schema

        print_json(cases_schema())
        return
    guards, names = own_guards(own), [policy] if policy else shipped_with_cases()
    found = [_suite(name, guards, path, only) for name in names for path in cases or [find_cases(name)]]
    suites = [suite for suite in found if suite.results]
    if not suites:
        fail(f"no case has `{only}` in its name")
    if as_json:
        print_json(report.to_dict(suites))
    else:
        typer.echo(printable("\n".join(report.lines(suites))))
    if any(suite.failed for suite in suites):
        raise typer.Exit(FOUND)


def _suite(name: str, guards: "tuple[type[Guard], ...]", path: Path, only: str) -> "Suite":
    from guardrails.core.values.errors import PolicyError
    from guardrails.offline.policy_cases import load_cases, run_case
    from guardrails.offline.policy_cases.report import Suite

    policy = load_policy(name, guards)
    try:
        file = load_cases(path)
    except PolicyError as error:
        fail(str(error), FOUND)
    if file.policy is not None and file.policy != Path(name).stem:
        typer.echo(printable(f"{file.file}: written for the policy `{file.policy}`, run by `{name}`"), err=True)
    chosen = [case for case in file.cases if only.casefold() in case.name.casefold()]
    return Suite(name, file.file, [run_case(policy, case) for case in chosen])


def load_policy(name: str, own: "tuple[type[Guard], ...]" = ()) -> "Policy":
    """
    Returns the policy *name*, which may have a person's *own* guards; ends the command if it cannot be used.
    """
    from guardrails.core.values.errors import PolicyError
    from guardrails.policy.file import find
    from guardrails.policy.policy import Policy

    find(name)
    try:
        return Policy.load(name, guards=own)
    except PolicyError as error:
        fail(str(error), FOUND)


def own_guards(files: Iterable[str] | None) -> "tuple[type[Guard], ...]":
    """
    Returns the guards that Python *files* define; ends the command if one cannot be used.
    """
    return tuple(guard for file in files or () for guard in _guards_in(file))


def _guards_in(file: str) -> "Iterable[type[Guard]]":
    """
    The guards that a Python *file* defines, in their order. The file is run: it is to be one that is trusted.
    """
    from guardrails.core.guards.base import Guard
    from guardrails.policy.own_file import run_file

    try:
        module = run_file(file, "guards")
    except ImportError as error:
        fail(str(error))
    found = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    guards = [each for each in found if issubclass(each, Guard)]
    if not guards:
        fail(f"`{file}` defines no guard: write `@guard` above a `class Mine(Guard)`")
    return guards


class Checked(NamedTuple):
    """
    The findings in one policy file.
    """

    file: str
    guards: int | None
    """In its chain; None where there is none."""
    mistakes: list[str]
    hints: list[str]
    """Older words that still work, and what stands for them now; the values of other files that it overrides."""


def _to_dict(one: Checked) -> dict[str, Any]:
    found = {"file": one.file, "ok": not one.mistakes, "guards": one.guards}
    return found | {"mistakes": [*map(_placed, one.mistakes)], "hints": [*map(_placed, one.hints)]}


def _placed(mistake: str) -> dict[str, Any]:
    found = _PLACED.match(mistake)
    if found is None:
        return {"file": None, "line": None, "column": None, "message": mistake.partition("\n")[0]}
    return {**found.groupdict(), "line": int(found["line"]), "column": int(found["column"])}


def check_file(file: str, own: "tuple[type[Guard], ...]" = (), host: str | None = None) -> Checked:
    """
    All that is wrong with the policy *file*, or with the shipped policy of that name, in *host*; *own* are a person's own guards.
    """
    from guardrails.core.values.errors import PolicyError
    from guardrails.policy.document import Document
    from guardrails.policy.file import find, shipped
    from guardrails.policy.policy import Policy

    try:
        document = Document(file, own)
        count = len(Policy(**document.arguments()).chain)
        # What a shipped policy says is not written by whoever checks it.
        own_words = () if find(file).parent == shipped() else document.overridden()
        hints = [*document.older_words(), *own_words]
        return Checked(file, count, list(_not_held(document.root, host)), hints)
    except PolicyError as error:
        # What is found after the file was read has no place in it.
        mistakes = [one if _PLACED.match(one) else f"{file}: {one}" for one in error.mistakes]
        return Checked(file, None, mistakes, [])


def _not_held(root: "Node", host: str | None) -> Iterator[str]:
    """
    Settings of a person's own that limit nothing in *host*: what a limit counts is told by nobody there, or declared by no tool.
    """
    from guardrails.policy.file import Mistake, inner, plain, shipped

    lacks, limits = HOSTS.get(host or "", ("", {}))
    written: Any = plain(root)
    tools, scopes = written.get("tools") or [], written.get("scopes") or {}
    declared = {key for tool in tools for key in tool}
    places: list[tuple[str | int, ...]] = [(), *(("scopes", name) for name in scopes)]
    places += [("tools", number) for number in range(len(tools))]
    for place in places:
        for limit, by in limits.items():
            found = inner(root, *place, *limit)
            # A shipped policy is for all hosts; the limits that a person wrote are wanted.
            if (
                found is None
                or found.value is None
                or by in declared
                or Path(found.named.source.name).parent == shipped()
            ):
                continue
            hint = f", and no tool declares `{by}`" if by else ""
            where = ".".join(map(str, (*place, *limit)))
            yield str(Mistake(found.named, f"{where}: `{host}` {lacks}, so that this limits nothing there{hint}"))


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
