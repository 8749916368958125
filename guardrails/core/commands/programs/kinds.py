"""
The values that an option or an operand may take, by the name of their kind.

Each kind takes the text, with `UNKNOWN` for parts that only the running command knows. It raises UnsafeError for text
that may do more than read.
"""

from collections.abc import Callable, Mapping
from typing import Final

from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.values.late_pattern import pattern

from .jq import check_filter
from .sed import check_script
from .words import UnsafeError, shown


_NUMBER: Final = pattern(r"[-+]?[0-9]+(?:\.[0-9]+)?[A-Za-z]{0,3}|[-+]?[0-9]+(?:[,:/~-][0-9]*)+%?|[0-9]+%|auto")
_WORD: Final = pattern(r"[\w.,:+@%/=-]*")
_SELECTION: Final = pattern(r"(?!.*__)[\w\s()\[\]:.,+/='\"-]*")
_STARTING_FORMAT: Final = pattern(r"%[-+ ]?(?:G|\(\*?(?:signature|describe))")
_COUNT: Final = pattern(r"%[^A-Za-z%]*[hljztL]*n")
_PRETTY: Final = pattern(r"oneline|short|medium|full|fuller|reference|email|mboxrd|raw")
_KERNEL: Final = frozenset({"proc", "sys", "dev"})
_PLAIN_DEVICES: Final = frozenset(
    {"dev/null", "dev/stdin", "dev/stdout", "dev/stderr"}
    | {"proc/cpuinfo", "proc/loadavg", "proc/meminfo", "proc/uptime", "proc/version", "proc/filesystems"}
)
"""Of the folders of the kernel all that is as harmless as a file."""


def _text(text: str) -> None:
    pass


def _known(text: str) -> None:
    if UNKNOWN in text:
        raise UnsafeError("a word of it that must be written out is known only when it runs", "write that word out")


def _number(text: str) -> None:
    _known(text)
    if not _NUMBER.fullmatch(text):
        raise UnsafeError(f"{shown(text)} is no number", "write a number there")


def _word(text: str) -> None:
    _known(text)
    if not _WORD.fullmatch(text):
        raise UnsafeError(f"{shown(text)} is no plain word", "write letters and digits there")


def path(text: str) -> None:
    """
    A file to read, wherever that is: the guard `workspace` and the sandbox say where. Devices, and what the kernel shows of
    processes, are no files.
    """
    known, unknown, _ = text.partition(UNKNOWN)
    rooted, parts = known.startswith("/"), list[str]()
    for part in known.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part == "..":
            rooted = True
        elif part not in ("", "."):
            parts.append(part)
    if not rooted:
        return
    whole = "/".join(parts).lower()
    # The first folder is known if another part follows it.
    first = parts[0].lower() if parts else ""
    guessed = bool(unknown) and (not parts or (len(parts) == 1 and not known.endswith("/")))
    if guessed and any(folder.startswith(first) for folder in _KERNEL):
        raise UnsafeError(f"{shown(known)} may be any folder", "name the first folder of a path from `/`")
    if first in _KERNEL and (unknown or whole not in _PLAIN_DEVICES):
        raise UnsafeError(
            f"{shown(text.replace(UNKNOWN, ''))} is no file but a device, or what the kernel shows of processes",
            "name a file of the workspace",
        )


def _searched(text: str) -> None:
    # As a path, and all that is below it is read as well.
    path(text)
    if text and not text.strip("/"):
        raise UnsafeError("it would read devices, and what the kernel shows of processes", "name a folder below `/`")


def _setting(text: str) -> None:
    _known(text)
    if "." not in text:
        # Without a section it is a subcommand to some versions: `edit`.
        raise UnsafeError(f"{shown(text)} is no name of a setting", "write it with its section, as `user.name`")


def _printed(text: str) -> None:
    if _COUNT.search(text):
        raise UnsafeError("a format with `%n` sets a variable of the shell", "leave `%n` out")


def _archive(text: str) -> None:
    # Before a folder no colon names a machine; what is found may stand without one.
    known, unknown, _ = text.partition(UNKNOWN)
    if ":" in text or (unknown and "/" not in known.removeprefix("./")):
        raise UnsafeError(
            f"{shown(text.replace(UNKNOWN, '…'))} may name another machine",
            "write the name of one file out, without `:` in its path",
        )
    path(text)


def _inside(text: str) -> None:
    if text.startswith(("/", "-", "@", "~", UNKNOWN)) or ".." in text.split("/") or "\\" in text:
        raise UnsafeError(
            f"{shown(text.replace(UNKNOWN, ''))} is not surely inside the workspace",
            "write its path from the workspace on",
        )


def _tests(text: str) -> None:
    _inside(text)
    file = text.partition("::")[0]
    if file.lower().endswith((".txt", ".rst")) or (UNKNOWN in file and not file.endswith(".py")):
        # pytest runs the examples in a text that is named to it.
        raise UnsafeError("it may run the examples in a text", "name folders, and files that end with `.py`")


def _selection(text: str) -> None:
    _known(text)
    if not _SELECTION.fullmatch(text):
        raise UnsafeError(f"{shown(text)} is no plain expression", "write names, `and`, `or`, `not` there")


def _format(text: str) -> None:
    _known(text)
    if _STARTING_FORMAT.search(text):
        raise UnsafeError("a format with `%G`, `%(signature)` or `%(describe)` starts a program", "leave that part out")


def _pretty(text: str) -> None:
    _format(text)
    if not (_PRETTY.fullmatch(text) or "%" in text or text.startswith(("format:", "tformat:"))):
        raise UnsafeError(f"{shown(text)} is no form of its own", "write `oneline`, `short`, `full` or a format there")


def _order(text: str) -> None:
    _word(text)
    if "signature" in text or "describe" in text:
        raise UnsafeError("it starts a program", "sort by something else")


def _clock(text: str) -> None:
    _known(text)
    if not text.startswith("+"):
        raise UnsafeError(f"{shown(text)} may set the clock", "begin the format with `+`")


def _plain_operand(text: str) -> None:
    # `+5` is an option of old, `@FILE` more words.
    if text.startswith(("+", "@")):
        raise UnsafeError(f"{shown(text)} may be an option", "write `./` before it")
    path(text)


KINDS: Final[Mapping[str, Callable[[str], None]]] = {
    "text": _text,
    "number": _number,
    "word": _word,
    "path": path,
    "searched": _searched,
    "setting": _setting,
    "printed": _printed,
    "archive": _archive,
    "inside": _inside,
    "tests": _tests,
    "selection": _selection,
    "format": _format,
    "pretty": _pretty,
    "order": _order,
    "clock": _clock,
    "plain": _plain_operand,
    "sed": check_script,
    "jq": check_filter,
}
"""Kinds by the names that the files of rules use."""
