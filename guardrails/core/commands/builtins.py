"""
What the shell's own commands do to it, and what the plainest programs print.
"""

import base64
import binascii
import re

from collections.abc import Sequence
from typing import Final

from guardrails.core.commands.grammar.escapes import ansi
from guardrails.core.commands.grammar.paths import under
from guardrails.core.commands.grammar.scope import SPLIT, UNKNOWN, Scope
from guardrails.core.values.late_pattern import pattern

from .wrappers import below


_DECODES: Final = frozenset({"-d", "-D", "--decode", "-di", "--dec", "--deco", "--decod"})
_PLACES: Final = pattern(r"%(?:[-+ #0]*\d*(?:\.\d+)?)([sdibqcxXo%])")


def apply(name: str, words: Sequence[str], scope: Scope, *, certain: bool) -> None:
    """
    Let the command *words* of the shell itself change *scope*.
    """
    rest = [word for word in words[1:] if not word.startswith("-") or word == "-"]
    if name in ("cd", "pushd", "chdir"):
        target = rest[0] if rest else "~"
        known = UNKNOWN not in target and target != "-"
        scope.go(tuple(under(one, target) for one in scope.directories) if known else (UNKNOWN,))
    elif name in ("read", "mapfile", "readarray", "getopts"):
        for variable in rest:
            scope.assign(variable, (UNKNOWN,), certain=certain)
    elif name == "alias":
        scope.aliases |= {key: value for key, sign, value in (word.partition("=") for word in rest) if sign}
    elif name == "set":
        given = list(words[words.index("--") + 1 :]) if "--" in words else rest
        if given:
            positional(scope, given)
    elif name == "printf" and "-v" in words[:3] and len(words) > words.index("-v") + 2:
        place = words.index("-v")
        scope.assign(
            words[place + 1], (printed("printf", ["printf", *words[place + 2 :]], None) or "",), certain=certain
        )
    elif name in ("export", "declare", "local", "readonly", "typeset"):
        for word in rest:
            variable, sign, value = word.partition("=")
            if sign:
                scope.assign(variable, (value,), certain=certain)


def positional(scope: Scope, given: Sequence[str]) -> None:
    """
    Let *given* be `$1`, `$2`, ..., `$@` and `$*`.
    """
    for number, word in enumerate(given[:64], 1):
        scope.variables[str(number)] = (word,)
    scope.variables["@"] = scope.variables["*"] = (SPLIT.join(given),)


def printed(name: str, words: Sequence[str], stdin: str | None) -> str | None:
    """
    What the program *name* prints when called with *words*; None where nobody knows.
    """
    rest = list(words[1:])
    if name == "echo":
        flags = []
        while rest and re.fullmatch(r"-[neE]+", rest[0]):
            flags.append(rest.pop(0))
        text = " ".join(rest)
        return ansi(text) if any("e" in flag for flag in flags) else text
    if name == "printf" and rest:
        return _printf(rest)
    if name in ("cat", "tee") and (not [word for word in rest if word != "-"] or name == "tee"):
        return stdin
    if name == "pwd":
        return "."
    if name in (":", "true", "cd", "set", "export", "alias"):
        return ""
    if name == "rev" and not rest and known(stdin):
        return "\n".join(line[::-1] for line in (stdin or "").splitlines())
    if name == "base64" and rest and rest[0] in _DECODES and len(rest) == 1 and known(stdin):
        try:
            return base64.b64decode("".join((stdin or "").split())).decode()
        except (binascii.Error, ValueError):
            return None
    if name == "find" and not any(word.startswith(("-exec", "-ok", "-printf", "-fprint")) for word in rest):
        return "\n".join(below(rest))
    if name in ("which", "basename") and len(rest) == 1:
        return rest[0].rpartition("/")[2]
    return None


def known(text: str | None) -> bool:
    """
    Whether every character of *text* is known.
    """
    return text is not None and UNKNOWN not in text


def _printf(rest: list[str]) -> str:
    given = iter(rest[1:])

    def filled(match: re.Match[str]) -> str:
        if match[1] == "%":
            return "%"
        value = next(given, "")
        return ansi(value) if match[1] == "b" else value

    form = ansi(rest[0])
    text = _PLACES.sub(filled, form)
    # The format is used again while there is something left to fill in.
    for _ in range(64):
        before = text
        rest_of = next(given, None)
        if rest_of is None or not _PLACES.search(form):
            break
        given = iter([rest_of, *given])
        text = before + _PLACES.sub(filled, form)
    return text
