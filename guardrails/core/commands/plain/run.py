"""
The commands that a command in the plain form would run: its own, and those that its programs start.

Text that is piped, found or read is not known here. An option that is not listed may take the next word for itself. So
a program that starts others is read with the listed options only.
"""

from collections.abc import Sequence
from typing import Final

from guardrails.core.commands.found import Command, Found
from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.commands.grammar.syntax import MAX_BYTES, UnreadableError
from guardrails.core.commands.run import MAX_COMMANDS, MAX_NESTED
from guardrails.core.values.late_pattern import pattern

from .form import NotPlainError, steps
from .started import started


_NAMES: Final = frozenset(
    {"read", "unset", "export", "readonly", "declare", "typeset", "local", "mapfile", "readarray"}
    | {"wait", "getopts", "compgen", "complete"}
)
"""Commands of a shell that take a word for the name of a variable and work out what stands in its brackets."""
_EVALUATED: Final = frozenset("$`[")
ARITHMETIC: Final = frozenset({"let", "integer", "float"})
"""Commands of a shell that work out their words, and the values of the variables in these."""
_COMPARED: Final = frozenset({"-eq", "-ne", "-lt", "-gt", "-le", "-ge"})
_NUMBER: Final = pattern(r"[-+]?\d+")
_OPTIONS: Final = {
    **dict.fromkeys(("declare", "typeset", "local"), "inEF"),
    **dict.fromkeys(("export", "readonly"), "iEF"),
    **dict.fromkeys(("mapfile", "readarray", "compgen", "complete"), "C"),
    **dict.fromkeys(("jobs", "bind"), "x"),
}
"""Letters of the options by which commands of a shell run text, or work out what is the value of a variable."""


def plainly(command: str | Sequence[str]) -> Found:
    """
    Returns all that *command* may run: text in the plain form, or the words of one command that no shell splits again.

    Raises NotPlainError for other text, UnreadableError if nobody can say what it runs.
    """
    if any(UNKNOWN in part for part in ([command] if isinstance(command, str) else command)):
        raise UnreadableError("it holds a NUL")
    return started_by(command, None)


def started_by(command: str | Sequence[str], stdin: str | None) -> Found:
    """
    Returns the same of a command that reads *stdin*: text, `UNKNOWN` if nobody knows it, None if nothing is piped into
    it. `UNKNOWN` in its words is what only the running command knows.
    """
    found = Found()
    longest = 0 if isinstance(command, str) else max(map(len, command), default=0)
    if longest > MAX_BYTES:
        raise UnreadableError(
            f"a word of it has {longest:,} characters (limit {MAX_BYTES:,})", "write the text to a file, and name that"
        )
    try:
        if isinstance(command, str):
            _script(found, command, stdin, 0)
        else:
            _run(found, command, stdin, 0, by_shell=False)
    except UnreadableError:
        raise
    except Exception as error:
        # Whatever fails in reading it, nobody has read it.
        raise UnreadableError(f"reading it failed ({type(error).__name__})") from error
    return found


def _script(found: Found, text: str, stdin: str | None, depth: int) -> None:
    if text == UNKNOWN:
        _doubt(found, "what it runs is known only when it runs")
        return
    if UNKNOWN in text:
        raise UnreadableError(
            "it runs a script that is put together only when it runs",
            "give what is found to the program as words of its own, or to a script in a file",
        )
    try:
        read = steps(text)
    except NotPlainError as error:
        raise NotPlainError(error.kind, error.place, f"`{text[:80]}`") if depth else error from None
    for _, pipeline in read:
        for number, words in enumerate(pipeline):
            _run(found, words, UNKNOWN if number else stdin, depth, by_shell=True)


def _run(found: Found, words: Sequence[str], stdin: str | None, depth: int, *, by_shell: bool) -> None:
    if not words:
        return
    if depth > MAX_NESTED:
        raise UnreadableError(f"it wraps commands in commands, more than {MAX_NESTED} deep")
    if len(found.commands) >= MAX_COMMANDS:
        raise UnreadableError(f"it may run more than {MAX_COMMANDS:,} commands")
    command = Command(tuple(words))
    found.commands.append(command)
    if UNKNOWN in words[0]:
        _doubt(found, "which program it runs is known only when it runs")
    if by_shell:
        _check_builtin(words)
    for each in started(words, stdin):
        if each.script is not None:
            # A script that is read from there leaves nothing to its commands.
            _script(found, each.script, None if each.script is stdin else stdin, depth + 1)
        else:
            _run(found, each.words, stdin, depth + 1, by_shell=by_shell)


def _doubt(found: Found, reason: str) -> None:
    if reason not in found.doubts:
        found.doubts.append(reason)


def _check_builtin(words: Sequence[str]) -> None:
    """
    Raise UnreadableError if *words* are a command of the shell itself that takes some of them for text to work out.
    """
    name, rest = words[0], words[1:]
    if name in ARITHMETIC:
        raise UnreadableError(f"`{name}` works out what its words are", "write the number itself")
    options = set(_OPTIONS.get(name, ""))
    option = next((word for word in rest if word[:1] in ("-", "+") and not options.isdisjoint(word)), None)
    if option is not None:
        raise UnreadableError(f"`{name} {option[:40]}` works out text of its own", "leave that option out")
    if _evaluates(name, rest) and not all(_EVALUATED.isdisjoint(word) for word in rest):
        raise UnreadableError(
            f"`{name}` would work out what stands behind a `$`, a backtick or a `[` in its words",
            "write the words without these characters",
        )
    if name == "test":
        for place, word in enumerate(rest):
            sides = (*rest[max(place - 1, 0) : place], *rest[place + 1 : place + 2])
            if word in _COMPARED and not all(map(_NUMBER.fullmatch, sides)):
                raise UnreadableError(
                    f"`test` may work out what stands beside `{word}`", "write the numbers themselves"
                )


def _evaluates(name: str, rest: Sequence[str]) -> bool:
    if name == "test":
        return not {"-v", "-R", *_COMPARED}.isdisjoint(rest)
    return name in _NAMES or (name == "printf" and bool(rest) and rest[0].startswith("-v"))
