"""
The commands about policy files: check, schema, show; `test` has a module of its own.
"""

from pathlib import Path
from typing import Annotated

import typer

from guardrails.cli.group import Commands, examples
from guardrails.cli.policies import Own, chain_of, check_file, load_policy, own_guards, schema_text, shown
from guardrails.cli.text.printing import FOUND, USAGE, print_json, printable

from .test import policy_test


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
    as_json: Json = False,  # noqa: FBT002 (a flag)
) -> None:
    """
    Report every mistake of policy files, each as file:line:column. Exit code 1: there are mistakes.
    """
    guards = own_guards(own or ())
    checked = [check_file(file, guards) for file in files]
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
    as_json: Json = False,  # noqa: FBT002 (a flag)
) -> None:
    """
    Print the chain of a policy in order.
    """
    loaded = load_policy(name, own_guards(own or ()))
    if as_json:
        print_json(chain_of(loaded))
    else:
        typer.echo(shown(loaded))


policy.command("test")(policy_test)
