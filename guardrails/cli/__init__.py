"""
The command line: parse, call one function, print, exit code.

Exit code 0 is done, 1 found something, 2 is a use that cannot work. Commands import what they need when they run, so
that help is quick.
"""

from typing import Annotated

import typer

from . import demo, policy, policy_test, profile, repeats, replay, report, run, train
from .group import Group


__all__ = ["app"]

# rich would double the time that `--help` takes, and its tracebacks show the values of local variables.
app = typer.Typer(
    name="guardrails",
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("replay")(replay.replay)
app.command("report")(report.report)
app.command("train")(train.train)
app.command("repeats")(repeats.repeats)
app.command("profile")(profile.profile)
policy.app.command("test")(policy_test.policy_test)
app.add_typer(policy.app, name="policy")


def _version(wanted: bool) -> None:  # noqa: FBT001 (typer calls it by position)
    if wanted:
        from guardrails.core.values.version import __version__

        typer.echo(f"guardrails {__version__}")
        raise typer.Exit


@app.callback()
def guardrails(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,  # noqa: FBT002
) -> None:
    """
    Guards for the tool calls of an LLM agent.
    """
