"""
Text without control characters, as it is and as JSON, and without halves of characters.
"""

import re

from typing import Final

from guardrails.core.values.caches import pattern


_CONTROL: Final = {code: None for code in (*range(32), 127) if chr(code) not in "\n\r\t"}
_NOT_TEXT: Final = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]"
_ESCAPE: Final = pattern(r"\x7f|\\(?:u00(?:0[0-8bBcCeEfF]|1[0-9a-fA-F]|7[fF])|[bf]|(.))")


def repaired(text: str) -> str:
    """
    Returns *text* with surrogate pairs joined and lone surrogates replaced by U+FFFD: JSON is UTF-8, which has none.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def sanitise(text: str) -> str:
    """
    Returns *text* without NUL, DEL and the other ASCII control characters; newline, carriage return and tab stay.

    Surrogates that form a pair become their character, lone ones U+FFFD, so that the answer always encodes to UTF-8.
    """
    if text.isprintable() or not (text.isascii() or re.search(_NOT_TEXT, text)):
        return text
    return repaired(text).translate(_CONTROL)


def visible(text: str) -> str:
    """
    *text* without what a person does not see: control and direction characters, and all of plane 14. Joiners stay, as scripts and emoji
    need them.
    """
    return "".join(one for one in text if one in "\n\t\u200c\u200d" or (one.isprintable() and one < "\U000e0000"))


def cleaned(text: str) -> str:
    """
    Returns the JSON *text* whose strings hold no NUL, DEL or other ASCII control character but newline, carriage return
    and tab.
    """
    # Most text has no backslash, or one before a letter of none; to look for one character is next to nothing.
    may = "\x7f" in text or ("\\" in text and re.search(r"\\[ubf]", text) is not None)
    return _ESCAPE.sub(lambda escape: f"\\{escape[1]}" if escape[1] else "", text) if may else text
