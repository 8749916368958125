"""
Code that is given to an interpreter on its command line, and the shell commands that it names.

Nothing understands the code: only its string literals are looked at, if it speaks of running a program at all.
"""

import re

from collections.abc import Sequence
from typing import Final

from guardrails.core.values.late_pattern import pattern


_INLINE: Final = {
    "python": "-c",
    "perl": "-e -E",
    "ruby": "-e",
    "node": "-e -p --eval --print",
    "nodejs": "-e -p --eval --print",
    "deno": "eval",
    "bun": "-e --eval",
    "php": "-r",
    "lua": "-e",
    "tclsh": "",
    "osascript": "-e",
}
_AWKS: Final = frozenset({"awk", "gawk", "mawk", "nawk"})
_RUNS: Final = pattern(r"system|popen|exec|spawn|subprocess|shell|`|%x|\bqx|\|\s*getline|\bdo\b.{0,3}script")
_LITERAL: Final = pattern(
    r"""'((?:[^'\\\n]|\\.)*+)'|"((?:[^"\\\n]|\\.)*+)"|`([^`\n]*+)`|(?:qx|%x)[({/]([^)}/\n]++)|['"`][^\n]*"""
)
"""A string; what begins with a quote that its line does not close is none, to the end of that line."""
_LONGEST: Final = 4_000
_EMBEDDED: Final = pattern(r"(?:^:?!|=!|\bexec=|[Cc]ommand=|--to-command=)\s*([^\n]{1,4000})")
"""Commands in the options of other programs: `git -c alias.x='!...'`, `tar --checkpoint-action=exec=...`."""
_MAX: Final = 32


def literals(name: str, words: Sequence[str], stdin: str | None = None) -> list[list[str]]:
    """
    Returns the groups of string literals in the code that *words*, or *stdin*, give the program *name*. The list is
    empty if the program runs no such code.

    The first group holds all literals in a row, as an argument list is written.
    """
    found: list[str] = [each for word in words[1:] for each in _EMBEDDED.findall(word)]
    if found:
        return [[text] for text in found[:_MAX]]
    codes = _code(name, words)
    if stdin and not codes and _language(name) in _INLINE and not [w for w in words[1:] if not w.startswith("-")]:
        codes = [stdin]
    for code in codes:
        if _RUNS.search(code):
            found += (next(filter(None, literal.groups()), "") for literal in _LITERAL.finditer(code))
    found = [re.sub(r"\\(.)", r"\1", text) for text in found if text.strip() and len(text) <= _LONGEST][:_MAX]
    return [found, *([text] for text in found)] if found else []


def _code(name: str, words: Sequence[str]) -> list[str]:
    if name in _AWKS:
        return [word for word in words[1:] if not word.startswith("-")][:2]
    flags = _INLINE.get(_language(name))
    if not flags:
        return []
    known = flags.split()
    codes = [words[i + 1] for i, word in enumerate(words[:-1]) if word in known]
    # Merged with others: `perl -we CODE`, `python -Sc CODE`.
    codes += [
        words[i + 1]
        for i, word in enumerate(words[:-1])
        if re.fullmatch(r"-[A-Za-z]{2,5}", word) and any(word[-1] == flag[-1] and len(flag) == 2 for flag in known)
    ]
    return codes


def _language(name: str) -> str:
    return name.rstrip("0123456789.")
