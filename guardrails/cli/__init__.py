"""
The command line: parse, call one function, print, exit code.

Exit code 0 is done, 1 found something, 2 is a use that cannot work. A command is a module of this folder that is imported
when it is asked for, and imports what it needs when it runs, so that help is quick.
"""

from importlib import import_module
from typing import Annotated, Any, Final

import typer
import typer.core

from typer.main import get_command

from guardrails.core.values.version import __version__

from .console import FINDINGS, INTERRUPTED, USAGE, fail


__all__ = ["app"]

NAMES: Final = ("demo", "init", "run", "doctor", "replay", "report", "explain", "train", "profile", "policy", "store")
"""The commands in the order of the help. Each is a module of this folder, with a function or a group of its name."""
DOORS: Final = {
    "hook": "Guard a coding CLI by its hooks: install, uninstall, status.",
    "mcp": "Stand in front of an MCP server and guard its tools.",
}
"""Commands that `guardrails.__main__` starts without this module: here they are listed."""


class Group(typer.core.TyperGroup):
    """
    Several commands under one name.
    """

    def get_help_option(self, ctx: Any) -> Any:
        """
        A `--help` that is not given is false, no value to convert: for that typer imports pydantic, which takes longer than
        all else of a help.
        """
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option


def commands(**settings: Any) -> typer.Typer:
    """
    Returns a collection of commands; without rich, whose tracebacks show the values of local variables.
    """
    plain = {"cls": Group, "add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}
    return typer.Typer(no_args_is_help=True, **{**plain, **settings})


class Guardrails(Group):
    """
    All commands.
    """

    def invoke(self, ctx: Any) -> Any:
        """
        Run a command, which returns whether something was found. Ctrl-C, an error of this library and a file that fails
        end it in one line.
        """
        from guardrails.core.values.errors import GuardrailsError, NothingFoundError, os_message
        from guardrails.processes import let_go_of_stdout

        try:
            if super().invoke(ctx) is True:
                raise typer.Exit(FINDINGS)
        except KeyboardInterrupt:
            fail("interrupted", INTERRUPTED)
        except GuardrailsError as error:
            fail(str(error), FINDINGS if isinstance(error, NothingFoundError) else USAGE)
        except OSError as error:
            let_go_of_stdout()
            fail(os_message(error))

    def list_commands(self, ctx: Any) -> list[str]:
        return [*NAMES, *DOORS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        # An unknown name asks for all, since the error suggests those that are alike.
        known = self.list_commands(ctx)
        for name in (cmd_name,) if cmd_name in known else known:
            if name not in self.commands:
                listed = typer.core.TyperCommand(name, help=DOORS[name]) if name in DOORS else _command(name)
                self.add_command(listed, name)
        return super().get_command(ctx, cmd_name)


def _command(name: str) -> Any:
    command = getattr(import_module(f"guardrails.cli.{name}"), name)
    group = command if isinstance(command, typer.Typer) else commands()
    if group is not command:
        group.command(name)(command)
    return get_command(group)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"guardrails {__version__}")
        raise typer.Exit


app = commands(cls=Guardrails, add_completion=True)


@app.callback()
def guardrails(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """
    Guards for the tool calls of an LLM agent.

    `guardrails COMMAND --help` explains a command. Exit codes: 0 done, 1 something was found, 2 the command cannot work
    as it was called, 130 interrupted.

    \b
    Examples:
      guardrails demo
      guardrails init sessions/ -o policy.yaml
      guardrails replay policy.yaml sessions/
    """
