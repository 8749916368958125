"""
Filters of jq: all they can do is to compute, but for what shows the environment or reads modules.
"""

import re

from typing import Final

from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.values.late_pattern import pattern

from .words import UnsafeError


_TOKEN: Final = pattern(
    r"""(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z0-9_]+)*)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<rest>\.\.|\.[A-Za-z_][A-Za-z0-9_]*|@[A-Za-z0-9_]+|[\s\S])""",
    re.VERBOSE,
)
_STRING: Final = pattern(r'[^"\\]*(?:\\[^(][^"\\]*)*', re.DOTALL)
_COMMENT: Final = pattern(r"[^\n]*")
_KEY: Final = pattern(r"\s*:(?!:)")
_REFUSED: Final = {
    "env": "it shows the environment, which may hold keys",
    "include": "it reads a module",
    "import": "it reads a module",
    "modulemeta": "it reads a module",
    "get_search_list": "it shows where modules are",
}


def check_filter(text: str) -> None:
    """
    Raise UnsafeError unless the filter *text* computes only.
    """
    if UNKNOWN in text:
        raise UnsafeError("its filter is known only when it runs", "write the filter out, between single quotes")
    # How many brackets are open in each string that a `\\(` interrupts.
    nested: list[int] = []
    open_brackets, place, variable = 0, 0, False
    while place < len(text):
        token = _TOKEN.match(text, place)
        assert token is not None  # noqa: S101  its last branch takes any character
        said, place = token[0], token.end()
        if said == "#":
            place = _comment(text, place)
        elif said == '"' or (said == ")" and nested and not open_brackets):
            if said == ")":
                open_brackets = nested.pop()
            place = _string(text, place)
            if text[place - 1] == "(":
                nested.append(open_brackets)
                open_brackets = 0
        elif said in "()":
            open_brackets += 1 if said == "(" else -1
        elif token["name"]:
            word = said.rpartition("::")[2]
            if word == "ENV" if variable else word in _REFUSED and not _KEY.match(text, place):
                raise UnsafeError(f"its filter has `{word}`: {_REFUSED[word.lower()]}", f"leave `{word}` out")
        if said != "#" and not said.isspace():
            variable = said == "$"
    if nested:
        raise UnsafeError("its filter ends within a string", "close the string")


def _string(text: str, place: int) -> int:
    """
    Returns where in *text* the string that begins at *place* ends, or is interrupted.
    """
    found = _STRING.match(text, place)
    end = place if found is None else found.end()
    if text.startswith('"', end):
        return end + 1
    if text.startswith("\\(", end):
        return end + 2
    raise UnsafeError("its filter ends within a string", "close the string")


def _comment(text: str, place: int) -> int:
    found = _COMMENT.match(text, place)
    end = place if found is None else found.end()
    if "\\" in text[place:end]:
        # To some versions it goes on in the next line then.
        raise UnsafeError("its filter has a comment with a backslash", "leave the comment out")
    return end
