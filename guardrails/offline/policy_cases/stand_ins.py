"""
Short stand-ins for the texts of a recorded session: without secrets, and one for each different text.

Equal texts get equal stand-ins and different texts different ones, so that every repeat stays a repeat and every new
result stays new.
"""

import math

from typing import Any, Final

from xxhash import xxh3_64_intdigest, xxh3_128_digest

from guardrails.core.outcome.redaction import EDGE_CHARS, REDACTED, SCAN_CHARS, sanitise, without_secrets
from guardrails.core.text.signature import canonical


MAX_TEXT: Final = 160
"""Characters of a text that are kept."""
MAX_NESTED: Final = 1_000
"""Bytes of JSON from where a list or map inside the arguments becomes a text."""
MAX_DEPTH: Final = 8
MAX_KEYS: Final = 50
"""Arguments of one call."""
MARK: Final = "#"

_LARGE: Final = 1 << 62
_DIGITS: Final = {ord(digit): None for digit in "0123456789"}


class StandIns:
    """
    The stand-ins of one session, in the order in which its texts come.
    """

    def __init__(self) -> None:
        self._known: dict[object, str] = {}
        self._taken: dict[str, int] = {}
        self._arguments: dict[object, dict[str, Any] | str] = {}
        self._written: dict[tuple[str, bytes | None], int] = {}

    def text(self, original: str, key: object = None, *, numbers: bool = True) -> str:
        """
        Returns the stand-in of *original*; *key* tells it from others if the text alone does not. Without *numbers*
        two stand-ins differ in more than their digits.
        """
        known = key if key is not None else ("text", _digest(original))
        stand_in = self._known.get(known)
        if stand_in is None:
            stand_in = self._known[known] = self._free(_short(original), numbers=numbers)
        return stand_in

    def _free(self, wanted: str, *, numbers: bool) -> str:
        """
        *wanted*, with a mark if another text has that already.
        """
        shown = wanted
        while True:
            form = shown if numbers else f"\0{shown.translate(_DIGITS)}"
            times = self._taken.get(form, 0)
            self._taken[form] = times + 1
            if not times:
                return shown
            shown = f"{wanted} {MARK}{letters(times)}"

    def arguments(self, tool: str, original: Any, sig: int | None = None) -> dict[str, Any] | str:
        """
        Returns the stand-in of a call's arguments. Its signature is *sig*, if that was recorded.
        """
        written = canonical(original)
        key: object = (tool, sig) if sig is not None else (tool, _digest(written))
        if sig is None and written is None:
            # Without a signature no call is like another.
            key = (tool, "unsignable", len(self._arguments))
        made = self._arguments.get(key)
        if made is None:
            made = self._arguments[key] = self._distinct(tool, self._of_arguments(original))
        return made

    def _distinct(self, tool: str, wanted: dict[str, Any] | str) -> dict[str, Any] | str:
        """
        *wanted*, with a mark if other arguments of that tool have become the same.
        """
        made = wanted
        while True:
            form = tool, canonical(made)
            times = self._written.get(form, 0)
            self._written[form] = times + 1
            if not times:
                return made
            mark = letters(times)
            made = f"{wanted} {MARK}{mark}" if isinstance(wanted, str) else {**wanted, MARK: mark}

    def _of_arguments(self, original: Any) -> dict[str, Any] | str:
        if isinstance(original, str):
            return self.text(original)
        if not isinstance(original, dict):
            return {"": self._value(original, "", MAX_DEPTH)}
        made: dict[str, Any] = {}
        for key, value in original.items():
            if len(made) == MAX_KEYS:
                made["..."] = f"{len(original) - MAX_KEYS} more"
                break
            name = str(key)
            made[self.text(name)] = self._argument(value, name)
        return made

    def _argument(self, value: Any, name: str) -> Any:
        if isinstance(value, dict | list):
            written = canonical(value)
            if written is None or len(written) > MAX_NESTED or _depth(value, MAX_DEPTH) > MAX_DEPTH:
                return self.text(f"(a {type(value).__name__})" if written is None else written.decode())
        return self._value(value, name, MAX_DEPTH)

    def _value(self, value: Any, name: str, depth: int) -> Any:
        if isinstance(value, dict) and depth:
            return {self.text(str(key)): self._value(each, str(key), depth - 1) for key, each in value.items()}
        if isinstance(value, list) and depth:
            return [self._value(each, name, depth - 1) for each in value]
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            if _names_secret(name, str(value) if abs(value) < _LARGE else "0"):
                return self.text(REDACTED, ("number", value))
            plain = abs(value) < _LARGE if isinstance(value, int) else math.isfinite(value)
            return value if plain else self.text(f"{value:x}" if isinstance(value, int) else str(value))
        text = value if isinstance(value, str) else f"(a {type(value).__name__})"
        if _names_secret(name, text):
            return self.text(REDACTED, ("secret", _digest(text)))
        return self.text(text)


def letters(number: int) -> str:
    """
    Returns *number* written with the letters a to z: a mark that survives if digits are deleted.
    """
    made = ""
    while True:
        number, digit = divmod(number, 26)
        made = chr(ord("a") + digit) + made
        if not number:
            return made


def _digest(text: str | bytes | None) -> object:
    if text is None or len(text) <= MAX_TEXT:
        return text
    return len(text), xxh3_128_digest(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))


def _short(text: str) -> str:
    """
    *text* without secrets; what is too long is cut and told by a hash.

    The hash is of the redacted text, so that nobody can try out what was redacted. For a text above 16,384 characters
    it stands for the whole, most of which is not shown.
    """
    whole = len(text) <= SCAN_CHARS
    safe = without_secrets(sanitise(text[:SCAN_CHARS]))
    if not whole:
        safe = safe[:-EDGE_CHARS]
    if whole and len(safe) <= MAX_TEXT:
        return safe
    hashed = (safe if whole else text).encode("utf-8", "surrogatepass")
    return f"{safe[:MAX_TEXT]}... {MARK}{letters(xxh3_64_intdigest(hashed) >> 24)}"


def _names_secret(name: str, value: str) -> bool:
    """
    Whether *name* says that *value* is one.
    """
    if not name or without_secrets(value) != value:
        return False
    shown = value[:MAX_TEXT].replace("\\", "").replace('"', "").replace("\n", " ")
    pair = f'"{name[:MAX_TEXT]}": "{shown}"'
    return without_secrets(pair) != pair


def _depth(value: Any, most: int) -> int:
    if not isinstance(value, dict | list) or most < 0:
        return 0
    inside = value.values() if isinstance(value, dict) else value
    return 1 + max((_depth(each, most - 1) for each in inside), default=0)
