"""
Scripts of sed that only print and change what is printed: no `w`, no `e`, no file that is read beside the operands.

Two readings must agree if sed programs differ in the end of a command.
"""

import re

from typing import Final

from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.values.late_pattern import pattern

from .words import UnsafeError, shown


_BLANK: Final = pattern(r"[ \t]*")
_BETWEEN: Final = pattern(r"[ \t\n;]*")
_LINE: Final = pattern(r"\$|[0-9]+(?:~[0-9]+)?")
_SECOND: Final = pattern(r"\$|[0-9]+|[+~][0-9]+")
_CASE: Final = pattern(r"[IM]*")
_LABEL: Final = pattern(r"[ \t]*[A-Za-z0-9_]*")
_COUNT: Final = pattern(r"[ \t]*[0-9]*")
_FLAGS: Final = pattern(r"[gpiImM0-9]*")
_TEXT: Final = pattern(r"[^\n]*")
_DELIMITERS: Final = frozenset("/|,:;#@!%_+~^&=.'\"<>-")
_PLAIN: Final = frozenset("pdDPnNgGhHx=zF")
_COUNTED: Final = frozenset("lqQ")
_TEXTS: Final = frozenset("aic")
_REASONS: Final = {
    "w": "writes a file",
    "W": "writes a file",
    "e": "runs a command",
    "r": "reads a file of its own",
    "R": "reads a file of its own",
}
_ADVICE: Final = "use `p`, `d`, `s`, `q` and the like only; files are changed with a tool for files"


def check_script(text: str) -> None:
    """
    Raise UnsafeError unless the script *text* writes no file and starts nothing.
    """
    if UNKNOWN in text:
        raise UnsafeError("its script is known only when it runs", "write the script out, between single quotes")
    place, depth = 0, 0
    while True:
        place = _skip(_BETWEEN, text, place)
        if place >= len(text):
            break
        place = _addresses(text, place)
        sign = text[place : place + 1]
        place += 1
        if sign == "{":
            depth += 1
            continue
        if sign == "}":
            depth -= 1
        elif sign == "#":
            place = _skip(_TEXT, text, place)
        elif sign in _TEXTS:
            place = _lines(text, place)
        elif sign == "s":
            place = _skip(_FLAGS, text, _parts(text, place, first_is_regex=True))
            if text[place : place + 1] in ("w", "e"):
                raise UnsafeError(f"`{text[place]}` behind its `s` {_REASONS[text[place]]}", _ADVICE)
        elif sign == "y":
            place = _parts(text, place, first_is_regex=False)
        elif sign in ("b", "t", "T", ":"):
            place = _skip(_LABEL, text, place)
        elif sign in _COUNTED:
            place = _skip(_COUNT, text, place)
        elif sign not in _PLAIN or not sign:
            said = (
                f"`{sign}` in its script {_REASONS[sign]}" if sign in _REASONS else f"{shown(sign)} is not clear there"
            )
            raise UnsafeError(said, _ADVICE)
        place = _skip(_BLANK, text, place)
        if place < len(text) and text[place] not in ";\n}#":
            raise UnsafeError(f"its script is not clear from {shown(text[place:])} on", _ADVICE)
    if depth:
        # What follows in another `-e` would belong to it.
        raise UnsafeError("its script has an open `{`", "write one script, with a `}` for each `{`")


def _skip(part: re.Pattern[str], text: str, place: int) -> int:
    found = part.match(text, place)
    return place if found is None else found.end()


def _addresses(text: str, place: int) -> int:
    """
    Returns where in *text* the command behind the addresses at *place* is.
    """
    found = _address(text, place, _LINE)
    if found != place:
        place = _skip(_BLANK, text, found)
        if text.startswith(",", place):
            start = _skip(_BLANK, text, place + 1)
            place = _address(text, start, _SECOND)
            if place == start:
                raise UnsafeError("its script lacks an address", _ADVICE)
            place = _skip(_BLANK, text, place)
    while text.startswith("!", place):
        place = _skip(_BLANK, text, place + 1)
    return place


def _address(text: str, place: int, numbers: re.Pattern[str]) -> int:
    if text.startswith("\\", place):
        sign = text[place + 1 : place + 2]
        return _skip(_CASE, text, _delimited(text, place + 2, _delimiter(sign), regex=True))
    if text.startswith("/", place):
        return _skip(_CASE, text, _delimited(text, place + 1, "/", regex=True))
    return _skip(numbers, text, place)


def _parts(text: str, place: int, *, first_is_regex: bool) -> int:
    sign = _delimiter(text[place : place + 1])
    middle = _delimited(text, place + 1, sign, regex=first_is_regex)
    return _delimited(text, middle, sign, regex=False)


def _delimiter(sign: str) -> str:
    if not sign or sign not in _DELIMITERS:
        raise UnsafeError(f"{shown(sign)} parts the patterns of its script", "part them by `/` or `|`")
    return sign


def _delimited(text: str, start: int, sign: str, *, regex: bool) -> int:
    """
    Returns where in *text* what begins at *start* and ends with *sign* is over.
    """
    place = start
    while place < len(text) and text[place] not in (sign, "\n"):
        place += 1 + (text[place] == "\\" and text[place + 1 : place + 2] != "\n")
    if place >= len(text) or text[place] != sign:
        raise UnsafeError(f"its script has no closing {shown(sign)}", _ADVICE)
    if regex and _bracketed(text, start, sign) != place:
        raise UnsafeError(f"{shown(sign)} stands between brackets in its script", "part the patterns by another sign")
    return place + 1


def _bracketed(text: str, place: int, sign: str) -> int:
    """
    Returns the same to a sed in which *sign* between `[` and `]` is no end.
    """
    while place < len(text) and text[place] != sign:
        if text[place] == "\\":
            place += 2
        elif text[place] != "[":
            place += 1
        else:
            place += 1 + text.startswith("^", place + 1)
            place += text.startswith("]", place)
            while place < len(text) and text[place] != "]":
                opened = text[place] == "[" and text[place + 1 : place + 2]
                if opened and opened in ":.=":
                    closed = text.find(f"{opened}]", place + 2)
                    if closed < 0:
                        return -1
                    place = closed + 1
                place += 1
            place += 1
    return place


def _lines(text: str, place: int) -> int:
    end = _skip(_TEXT, text, place)
    if not text[place:end].strip() or text[end - 1 : end] == "\\":
        raise UnsafeError(
            "the text of its `a`, `i` or `c` goes on in another line", "write it behind the letter, on one line"
        )
    return end
