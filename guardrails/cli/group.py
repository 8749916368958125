"""
Commands and groups whose help is quick, fits the terminal, and ends with examples.
"""

import re
import shutil

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import typer
import typer.core


Function = TypeVar("Function", bound=Callable[..., Any])

MOST: Final = 80
LEAST: Final = 26
"""Columns of a help; typer's own has 50 at least, on a narrower terminal too."""
_WORDS: Final = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")
_SENTENCE: Final = re.compile(r"(?<=\.) (?=[A-Z])|\n\n")


def examples(*lines: str) -> Callable[[Function], Function]:
    """
    Note command lines that the help of a command or of a group ends with.
    """

    def noted(function: Function) -> Function:
        function.examples = lines  # type: ignore[attr-defined]
        return function

    return noted


def folded(line: str, width: int, indent: str = "  ") -> Iterator[str]:
    """
    The command *line* in lines of *width* characters that a shell reads as one.
    """
    held = indent
    for word in _WORDS.findall(line):
        if held.strip() and len(held) + len(word) + 3 > width:
            yield f"{held} \\"
            held = f"{indent}    {word}"
        else:
            held = f"{held} {word}" if held.strip() else f"{held}{word}"
    yield held


class _Formatter(typer.Context.formatter_class):  # type: ignore[misc,valid-type]
    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        columns = min(shutil.get_terminal_size().columns, max_width or MOST)
        super().__init__(indent_increment, width or max(columns, LEAST) - 2, max_width)

    def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl(rows, min(col_max, self.width * 2 // 5), col_spacing)


class _Context(typer.Context):
    formatter_class = _Formatter


class _Helpful:
    """
    The part that commands and groups share: an unsaid `--help` is false, no value to convert. For that typer imports
    pydantic, which takes longer than all else of a help.
    """

    context_class = _Context
    callback: Any
    help: str | None

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.default = False
        return option

    def get_short_help_str(self, limit: int = 45) -> str:
        """
        The first sentence, whole.
        """
        first = _SENTENCE.split((self.help or "").strip(), maxsplit=1)[0]
        return " ".join(first.split()).rstrip(".:")

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        super().format_epilog(ctx, formatter)  # type: ignore[misc]
        lines = getattr(self.callback, "examples", ())
        if lines:
            formatter.write_paragraph()
            formatter.write_heading("Examples")
            for line in lines:
                formatter.write("".join(f"{part}\n" for part in folded(line, formatter.width)))


class Command(_Helpful, typer.core.TyperCommand):  # type: ignore[misc]
    """
    One command.
    """


class Group(_Helpful, typer.core.TyperGroup):  # type: ignore[misc]
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

    def command(self, name: str | None = None, *, cls: Any = Command, **more: Any) -> Callable[[Function], Function]:
        """
        As `typer.Typer.command`.
        """
        return super().command(name, cls=cls, **more)
