"""
The commands about policy files: check, schema, show; `test` has a module of its own.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardrails.cli.group import Commands, examples
from guardrails.cli.policies import Own, chain_of, check_file, load_policy, own_guards, schema_text, shown
from guardrails.cli.text.needs import HOSTS
from guardrails.cli.text.printing import FOUND, USAGE, fail, print_json, printable


if TYPE_CHECKING:
    from guardrails.core.guards.base import Guard
    from guardrails.offline.policy_cases import CaseFile
    from guardrails.offline.policy_cases.report import Suite

policy = Commands(no_args_is_help=True)


@policy.callback()
@examples(
    "guardrails policy check policy.yaml",
    "guardrails policy test policy.yaml cases.yaml",
    "guardrails policy schema -o policy.schema.json",
)
def _about() -> None:
    """
    Check policy files, test them by cases, show their chains, print their JSON Schema.
    """


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@policy.command()
@examples("guardrails policy check policy.yaml", "guardrails policy check default strict --json")
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Policy files, or names of shipped ones.")],
    own: Own = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="NAME", help="Refuse limits that this host cannot hold, such as mcp."),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """
    Report every mistake of policy files, each as file:line:column. Exit code 1: there are mistakes.
    """
    if host is not None and host not in HOSTS:
        raise typer.BadParameter(f"`--host` takes one of {', '.join(sorted(HOSTS))}, not `{host}`")
    guards = own_guards(own or ())
    checked = [check_file(file, guards, host) for file in files]
    if as_json:
        print_json({"ok": all(c.ok for c in checked), "files": [c.to_dict() for c in checked]})
    for found in () if as_json else checked:
        typer.echo(printable(str(found)), err=found.missing)
    if any(c.missing for c in checked):
        raise typer.Exit(USAGE)
    if not all(c.ok for c in checked):
        raise typer.Exit(FOUND)


@policy.command()
@examples("guardrails policy schema", "guardrails policy schema -o policy.schema.json")
def schema(
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it there.")] = None,
    own: Own = None,
) -> None:
    """
    Print the JSON Schema of policy files, for editors.
    """
    text = schema_text(own_guards(own or ()))
    if output is None:
        typer.echo(text, nl=False)
        return
    from guardrails.cli.text.outputs import write_whole

    write_whole(output, text)


@policy.command()
@examples("guardrails policy show default", "guardrails policy show policy.yaml --json")
def show(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME_OR_FILE", help="A policy file, or the name of a shipped one."),
    ],
    own: Own = None,
    as_json: Json = False,
) -> None:
    """
    Print the chain of a policy in order.
    """
    loaded = load_policy(name, own_guards(own or ()))
    if as_json:
        print_json(chain_of(loaded))
    else:
        typer.echo(shown(loaded))


@policy.command("test")
@examples(
    "guardrails policy test",
    "guardrails policy test policy.yaml cases.yaml",
    "guardrails policy test policy.yaml -k refund",
)
def policy_test(
    policy: Annotated[
        str | None,
        typer.Argument(
            metavar="POLICY",
            help="A policy file, or the name of a shipped one. Without it all shipped policies are tested.",
        ),
    ] = None,
    cases: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="CASES", help="Files of cases. Without one the policy's own cases are taken, found by its name."
        ),
    ] = None,
    *,
    only: Annotated[str, typer.Option("-k", metavar="TEXT", help="Only cases with this in their name.")] = "",
    own: Own = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of case files instead.")] = False,
) -> None:
    """
    Hold a policy to its cases: sequences of calls, with the expected decision of each. Exit code 1: one fails.
    """
    from guardrails.core.values.errors import PolicyError
    from guardrails.offline.policy_cases import find_cases, report, shipped_with_cases

    if schema:
        from guardrails.offline.policy_cases.steps import cases_schema

        print_json(cases_schema())
        return
    policies = shipped_with_cases() if policy is None else [policy]
    try:
        wanted = {name: cases or [_near(find_cases(name))] for name in policies}
    except PolicyError as error:
        fail(str(error))
    files = _loaded(dict.fromkeys(path for paths in wanted.values() for path in paths))
    guards = own_guards(own or ())
    suites = [_suite(name, guards, files[path], only) for name, paths in wanted.items() for path in paths]
    suites = [suite for suite in suites if suite.results]
    if not suites:
        fail(f"no case has `{only}` in its name")
    if as_json:
        print_json(report.to_dict(suites))
    else:
        typer.echo(printable("\n".join(report.lines(suites))))
    if any(suite.failed for suite in suites):
        raise typer.Exit(FOUND)


def _near(path: Path) -> Path:
    """
    Returns *path* as seen from the working directory if it lies below it, so that a build server can find it.
    """
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _loaded(paths: Iterable[Path]) -> "dict[Path, CaseFile]":
    """
    Returns the files of *paths*. Ends the command with the mistakes of all of them if there are any.
    """
    from guardrails.core.values.errors import PolicyError
    from guardrails.offline.policy_cases import load_cases

    loaded: dict[Path, CaseFile] = {}
    mistakes: list[str] = []
    for path in paths:
        try:
            loaded[path] = load_cases(path)
        except PolicyError as error:
            mistakes += error.mistakes
        except OSError as error:
            fail(f"cannot read `{path}`: {error.strerror}")
    if mistakes:
        fail("\n".join(mistakes), FOUND)
    return loaded


def _suite(name: str, guards: "tuple[type[Guard], ...]", file: "CaseFile", only: str) -> "Suite":
    from guardrails.offline.policy_cases import run_case
    from guardrails.offline.policy_cases.report import Suite

    policy = load_policy(name, guards)
    if file.policy is not None and file.policy != Path(name).stem:
        typer.echo(printable(f"{file.name}: written for the policy `{file.policy}`, run by `{name}`"), err=True)
    chosen = [case for case in file.cases if only.casefold() in case.name.casefold()]
    return Suite(name, file.name, [run_case(policy.chain, case, policy.scopes) for case in chosen])
