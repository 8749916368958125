"""
The command that a client starts for each event: written for its shell, and known again.
"""

import contextlib
import os
import re
import shlex

from collections.abc import Iterable
from typing import Final

from ..options import Options


ISOLATED: Final = "-I"
"""Python's option by which nothing is imported from the folder it is started in, nor from where PYTHONPATH says."""
_PYTHON: Final = re.compile(r"(?i)python[\d.]*w?(?:\.exe)?|pypy[\d.]*(?:\.exe)?")
_GUARDRAILS: Final = re.compile(r"(?i)guardrails(?:\.exe)?")
_SHELL_SYNTAX: Final = re.compile(r"[;&|<>()`\r\n]|\$\(")
_DOUBLED: Final = re.compile("(['\u2018\u2019\u201a\u201b])\\1")
"""PowerShell takes the typographic quotes for the plain one."""
_PLAIN: Final = re.compile(r"[\w.:\\/=,@+-]+", re.ASCII)
_PLAIN_IN_POWERSHELL: Final = re.compile(r"[\w:\\/][\w.:\\/+-]*|-+[A-Za-z]+", re.ASCII)


def words(python: str, options: Options) -> list[str]:
    """
    The command of *options* as a list, started by the interpreter *python*. Raises ValueError for what no file can hold.
    """
    said = [python, ISOLATED, "-m", "guardrails", "hook", *options.words()]
    for word in said:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{word!r} is not UTF-8: a settings file cannot hold it") from None
        if re.search(r"[\x00-\x1f\x7f]", word):
            raise ValueError(f"{word!r} holds a control character")
    return said


def quoted(words: Iterable[str], shell: str) -> str:
    """
    *words* as one line for *shell*: `sh`, `powershell` or `cmd`. Raises ValueError if it has no way to write one.
    """
    if shell == "sh":
        return shlex.join(words)
    return _powershell(list(words)) if shell == "powershell" else " ".join(_cmd(word) for word in words)


def _powershell(words: list[str]) -> str:
    said = [word if _PLAIN_IN_POWERSHELL.fullmatch(word) else _single(word) for word in words]
    # A quoted path alone would be a text, not a command.
    return " ".join(["&", *said] if said[0] != words[0] else said)


def _single(word: str) -> str:
    return "'" + re.sub("(['\u2018\u2019\u201a\u201b])", r"\1\1", word) + "'"


def _cmd(word: str) -> str:
    if '"' in word or "%" in word:
        raise ValueError(f"{word!r} has no safe form for cmd.exe")
    if _PLAIN.fullmatch(word):
        return word
    # The C runtime reads backslashes before the closing quote as escapes.
    return f'"{word}{"" if not word.endswith(chr(92)) else chr(92) * (len(word) - len(word.rstrip(chr(92))))}"'


def split(command: str, *, windows: bool = os.name == "nt") -> list[str] | None:
    """
    Returns the words of a *command* of ours, for any shell it was written for. If it has two meanings, one of this
    machine or of *windows* counts. Returns None if it is not ours.

    Ours is one plain command: an interpreter that starts `-m guardrails hook`, or `guardrails hook`, with options of the hook.
    A script of somebody's own that calls it is theirs.
    """
    readings = list(_readings(command))
    for words in reversed(readings) if windows else readings:
        at = _options_at(words)
        if at is None:
            continue
        try:
            Options.of(words[at:])
        except ValueError:
            continue
        return words
    return None


def _readings(command: str) -> Iterable[list[str]]:
    with contextlib.suppress(ValueError):
        yield [] if _SHELL_SYNTAX.search(_unquoted(command)) else shlex.split(command)
    # Of cmd.exe and PowerShell, in which a backslash is no escape.
    bare = command.removeprefix("& ")
    found = re.findall(r"""'(?:[^']|'')*'|"[^"]*"|[^\s'"]+""", bare)
    if " ".join(found) == bare and not _SHELL_SYNTAX.search(_unquoted(bare)):
        yield [
            _DOUBLED.sub(r"\1", word[1:-1]) if word[0] == "'" else word.strip('"') if word[0] == '"' else word
            for word in found
        ]


def _unquoted(command: str) -> str:
    return re.sub(r"""'[^']*'|"[^"]*"|\\.""", "", command)


def _options_at(words: list[str]) -> int | None:
    """
    Returns the place of the first option of the hook. Returns None if *words* start anything else.
    """
    if not words:
        return None
    name = re.split(r"[\\/]", words[0])[-1]
    if _GUARDRAILS.fullmatch(name):
        return 2 if words[1:2] == ["hook"] else None
    if not _PYTHON.fullmatch(name):
        return None
    at = 1
    while at < len(words) and re.fullmatch(r"-(?!m$)[A-Za-z]+", words[at]):
        at += 1
    return at + 3 if words[at : at + 3] == ["-m", "guardrails", "hook"] else None


def options_of(words: list[str]) -> Options:
    """
    The options that *words* of `split` give the hook.
    """
    return Options.of(words[_options_at(words) or 0 :])


def is_ours(command: str) -> bool:
    """
    *command* is one that the installer writes, or a person in its place.
    """
    return split(command) is not None


def shell_of(client: str) -> str:
    """
    The shell in which *client* starts a hook on this machine.
    """
    if os.name != "nt":
        return "sh"
    return "cmd" if client == "codex" else "powershell"
