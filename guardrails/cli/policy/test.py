"""
The command `policy test`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardrails.cli.group import examples
from guardrails.cli.policies import Own, load_policy, own_guards
from guardrails.cli.text.printing import FOUND, fail, print_json, printable


if TYPE_CHECKING:
    from guardrails.core.guards.base import Guard
    from guardrails.offline.policy_cases import CaseFile
    from guardrails.offline.policy_cases.report import Suite


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
        from guardrails.offline.policy_cases.document import json_schema

        print_json(json_schema())
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
