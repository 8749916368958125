"""
Commands and groups of commands whose help is quick.
"""

from collections.abc import Callable
from typing import Any

import typer
import typer.core


class _Quick:
    """
    A `--help` that is not given is false, no value to convert: typer imports pydantic for that, which takes longer than
    all else of a help.
    """

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.default = False
        return option


class Command(_Quick, typer.core.TyperCommand):
    """
    One command.
    """


class Group(_Quick, typer.core.TyperGroup):
    """
    Several commands under one name.
    """


class Commands(typer.Typer):
    """
    A collection of commands of this kind.
    """

    def __init__(self, *, cls: type[Group] = Group, add_completion: bool = False, **more: Any) -> None:
        # rich would double the time that `--help` takes, and its tracebacks show the values of local variables.
        more |= {"rich_markup_mode": None, "pretty_exceptions_enable": False}
        super().__init__(cls=cls, add_completion=add_completion, **more)

    def command(self, name: str | None = None, *, cls: Any = Command, **more: Any) -> Callable[[Any], Any]:
        """
        As `typer.Typer.command`.
        """
        return super().command(name, cls=cls, **more)
