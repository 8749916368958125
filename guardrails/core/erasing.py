"""
Values that a record must not show: secrets, arguments and results as a whole, values by dotted path.

A tool that changes a value before it repeats it (another encoding, a part of less than 8 letters and digits) is not found out.
"""

import re
import unicodedata

from fnmatch import translate
from typing import Any, Final, Literal

from guardrails.core.text.plain_json import plain, to_json
from guardrails.core.text.redaction import secrets_out


Record = dict[str, Any]
Stays = Literal["full", "hash", "off"]
Paths = str | tuple[str, ...]
"""A dotted path, or several."""
Erased = list[tuple[str, Any]]
"""Where each value was, as a dotted path, and the value."""
PAYLOADS: Final = {"arguments": ("sig", "near_sig"), "result": ("result_hash", "result_hash_masked")}
"""The keys of a record that hold what the caller's tools saw and said, and the keys that hold their hashes."""
MESSAGES: Final = ("error_message", "problems", "guard_errors")
"""The keys that hold messages: one text, or rows with texts."""
FOREIGN: Final = (*PAYLOADS, *MESSAGES, "reason", "by", "stop")
"""The keys with text that is not the library's own. Names and ids, by which lines are joined, stay."""
ERASED: Final = "[erased]"
REPEATED: Final = 8
"""Letters and digits in a row that are no chance."""
SHORTEST: Final = 4
"""A shorter value is a part of too many words."""
_CLOSED: Final = re.compile("_truncated_json|!.*")
"""Keys of what was too long or, in records of 0.2.0, is no JSON: a path cannot look into it, so it goes."""


class Erasing:
    """
    A function of a record that returns a copy of it as a sink may have it; its key `erased` lists what went. Raises ValueError
    for a setting that is not valid.
    """

    def __init__(
        self, redact: Paths = (), arguments: Stays = "full", results: Stays = "full", *, redact_secrets: bool = True
    ) -> None:
        paths = (redact,) if isinstance(redact, str) else redact
        if not all(key for path in paths for key in path.split(".")):
            raise ValueError(f"not a dotted path: one of `{paths}`")
        self._secrets = redact_secrets
        self._withheld: list[str] = []
        for (key, hashes), stays in zip(PAYLOADS.items(), (arguments, results), strict=True):
            if stays not in ("full", "hash", "off"):
                raise ValueError(f"what stays of `{key}` must be full, hash or off, not `{stays}`")
            self._withheld += (*hashes, key) if stays == "off" else (key,) if stays == "hash" else ()
        # Any number of keys may be none.
        self._path = _any_of([form for path in paths for form in (path, path.replace("**.", ""))])
        into = _any_of([path.partition(".")[0] for path in paths])
        self._opened = [key for key in PAYLOADS if into.fullmatch(key)]
        self._hides = "arguments" in (*self._withheld, *self._opened)

    def __call__(self, record: Record) -> Record:
        shown, gone = record.copy(), list[tuple[str, Any]]()
        gone += [(key, shown.pop(key)) for key in self._withheld if key in shown]
        for key in FOREIGN if self._secrets else ():
            clean, secrets = secrets_out(to_json(shown[key]), key) if shown.get(key) else (None, [])
            if secrets:
                shown[key] = clean
                gone += secrets
        if self._path.pattern:
            shown = {key: plain(value) for key, value in shown.items()}
            self._erase(shown, "", gone)
        if gone or self._hides:
            self._clear(shown, record, gone)
        if "arguments" in record and record.get("event") == "settle":
            # They were there for the messages: the line of the call has them.
            shown.pop("arguments", None)
            gone = [each for each in gone if not _is_argument(each[0])]
        if gone:
            shown["erased"] = list(dict.fromkeys([*shown.get("erased", ()), *dict(gone)]))
        return shown

    def _erase(self, node: Any, at: str, gone: Erased) -> None:
        names = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for name in names:
            where, value = f"{at}.{name}".lstrip("."), node[name]
            closed = _CLOSED.fullmatch(str(name)) or (not at and isinstance(value, str))
            if not self._path.fullmatch(where) and not (closed and where.partition(".")[0] in self._opened):
                self._erase(value, where, gone)
                continue
            gone.append((where, value))
            if isinstance(node, dict):
                del node[name]
            else:
                node[name] = None

    def _clear(self, shown: Record, record: Record, gone: Erased) -> None:
        """
        Erase the messages of *shown* that repeat an argument that went. If the record has none, nobody knows what they repeat.
        """
        unknown = self._hides and "arguments" not in record
        texts = {""} if unknown else {text for at, value in gone if _is_argument(at) for text in _texts(plain(value))}
        for key in MESSAGES if texts else ():
            if (message := shown.get(key)) and (cleared := _cleared(message, texts)) != message:
                shown[key] = cleared
                gone.append((key, None))


def _is_argument(path: str) -> bool:
    return path.partition(".")[0] == "arguments"


def _any_of(globs: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs)), re.IGNORECASE)


def _texts(value: Any) -> set[str]:
    """
    Returns the letters and digits of the texts and numbers in *value*.
    """
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return {text for part in parts for text in _texts(part)}
    text = "" if value is None or isinstance(value, bool) else _letters(str(value))
    return {text} if len(text) >= SHORTEST else set()


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _cleared(message: Any, texts: set[str]) -> Any:
    """
    Returns *message* with `[erased]` for each text that repeats one of *texts*.
    """
    if isinstance(message, list | tuple):
        return [_cleared(one, texts) for one in message]
    letters = _letters(message) if isinstance(message, str) else ""
    runs = {letters[at : at + REPEATED] for at in range(len(letters) - REPEATED + 1)}
    return ERASED if any(text in letters or any(run in text for run in runs) for text in texts) else message
