"""
JSON text without the control characters that no message may hold (MISSION D9).
"""

import re

from typing import Final

from guardrails.core.values.late_pattern import pattern


_CODE: Final = r"(?:u00(?:0[0-8bBcCeEfF]|1[0-9a-fA-F]|7[fF])|[bf])"
_MAY: Final = pattern(r"\\[ubf]")
_CONTROL: Final = pattern(rf"\x7f|(?<!\\)(?:\\\\)*+\\{_CODE}")
_ESCAPE: Final = pattern(rf"\x7f|\\(?:{_CODE}|(.))")
_STRING: Final = pattern(r'"((?:[^"\\]|\\.)*+)"(\s*+:)?')


def cleaned(text: str) -> str:
    """
    Returns the JSON *text* whose strings hold no NUL, DEL or other ASCII control character but newline, carriage return
    and tab.

    The names of members stay, so that no two become one; what is no character there is an escape, as JSON writes it.
    """
    # Most text has no backslash, or one before a letter of none; to look for one character is next to nothing.
    if "\x7f" not in text and ("\\" not in text or _MAY.search(text) is None):
        return text
    return text if _CONTROL.search(text) is None else _STRING.sub(_cleaned, text)


def _cleaned(string: re.Match[str]) -> str:
    body, colon = string[1], string[2] or ""
    said = body.replace("\x7f", r"\u007f") if colon else _ESCAPE.sub(_kept, body)
    return f'"{said}"{colon}'


def _kept(escape: re.Match[str]) -> str:
    return f"\\{escape[1]}" if escape[1] else ""
