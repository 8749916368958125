"""
A group of commands whose help is quick.
"""

from typing import Any

import typer.core


class Group(typer.core.TyperGroup):
    """
    A group that takes an unsaid `--help` for false, not for a value to convert: for that, typer imports pydantic, which
    takes longer than all else of a help.
    """

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option
