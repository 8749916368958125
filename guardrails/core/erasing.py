"""
Values that a record must not show: secrets, arguments and results as a whole, values by dotted path.

A path leads through the tags of the canonical form as if they were not there. A tool that changes a value before it
repeats it (another encoding, a part of less than 8 letters and digits) is not found out.
"""

import json
import re
import unicodedata

from collections.abc import Iterator
from fnmatch import translate
from functools import partial
from typing import Any, Final, Literal

import orjson

from guardrails.core.text.plain_json import plain, to_json
from guardrails.core.text.redaction import secrets_out


Record = dict[str, Any]
Stays = Literal["full", "hash", "off"]
Erased = list[tuple[str, Any]]
"""Where each value was, as a dotted path, and the value."""
PAYLOADS: Final = {"arguments": ("sig", "near_sig"), "result": ("result_hash", "result_hash_masked")}
"""The keys of a record that hold what the caller's tools saw and said, and the keys that hold their hashes."""
MESSAGES: Final = ("error_message", "problems", "guard_errors")
"""The keys that hold messages: one text, or rows with the text in second place."""
FOREIGN: Final = (*PAYLOADS, *MESSAGES, "reason", "stop")
"""The keys with text that is not the library's own. Names and ids, by which lines are joined, stay."""
ERASED: Final = "[erased]"
REPEATED: Final = 8
"""Letters and digits in a row that are no chance."""
SHORTEST: Final = 4
"""A shorter value is a part of too many words."""
_CUT: Final = "_truncated_json"
"""Where a value that was too long has its beginning, as text: paths cannot look into it, so it goes."""


class Erasing:
    """
    A function of a record that returns the record as a sink may have it: itself if nothing is to go, else a copy whose
    key `erased` lists what went. Raises ValueError for a setting that is not valid.
    """

    def __init__(
        self,
        redact: str | tuple[str, ...] = (),
        arguments: Stays = "full",
        results: Stays = "full",
        *,
        redact_secrets: bool = True,
    ) -> None:
        paths = [path.casefold() for path in ((redact,) if isinstance(redact, str) else redact)]
        for path in paths:
            if not all(path.split(".")):
                raise ValueError(f"not a dotted path: `{path}`")
        self._secrets = redact_secrets
        self._withheld = [
            key for which in zip(PAYLOADS, (arguments, results), strict=True) for key in _withheld(*which)
        ]
        # Any number of keys may be none.
        self._path = _any_of([form for path in paths for form in (path, path.replace("**.", ""))])
        into = _any_of([path.partition(".")[0] for path in paths if "." in path])
        self._opened = [key for key in PAYLOADS if into.fullmatch(key)]
        self._arguments_go = (
            "arguments" in [*self._withheld, *self._opened] or self._path.fullmatch("arguments") is not None
        )

    def __call__(self, record: Record) -> Record:
        gone: Erased = [(key, record[key]) for key in self._withheld if key in record]
        shown = record
        if gone:
            shown = record.copy()
            for key, _ in gone:
                del shown[key]
        for key in FOREIGN if self._secrets else ():
            if value := shown.get(key):
                payload = orjson.dumps(value) if type(value) is orjson.Fragment else to_json(value)
                clean, found = secrets_out(payload, key)
                if found:
                    shown = {**shown, key: orjson.Fragment(to_json(clean)) if key in PAYLOADS else clean}
                    gone += found
        if self._path.pattern:
            shown = {key: plain(value) for key, value in shown.items()}
            self._erase(shown, "", gone)
        if self._arguments_go or any(at.startswith("arguments") for at, _ in gone):
            shown = self._without_repeats(record, shown, gone)
        if record.get("event") == "settle" and "arguments" in record:
            # They were there for the messages: the line of the call has them.
            shown = {key: value for key, value in shown.items() if key != "arguments"}
            gone = [each for each in gone if each[0].partition(".")[0] != "arguments"]
        if gone:
            shown = record.copy() if shown is record else shown
            shown["erased"] = list(dict.fromkeys([*shown.get("erased", ()), *dict(gone)]))
        return shown

    def _erase(self, node: Any, at: str, gone: Erased) -> None:
        for holder, key, name in _members(node):
            where, value = f"{at}.{name}".lstrip("."), holder[key]
            bare = name == _CUT or (not at and isinstance(value, str))
            if not self._path.fullmatch(where.casefold()) and not (bare and where.partition(".")[0] in self._opened):
                self._erase(value, where, gone)
                continue
            gone.append((where, value))
            if isinstance(holder, dict):
                del holder[key]
            else:
                holder[key] = None

    def _without_repeats(self, record: Record, shown: Record, gone: Erased) -> Record:
        texts = {text for at, value in gone if at.partition(".")[0] == "arguments" for text in _texts(plain(value))}
        if "arguments" not in record:
            # Nobody knows what a message may repeat.
            texts = {""} if self._arguments_go else set()
        cleared = {key: _cleared(shown[key], texts) for key in MESSAGES if texts and shown.get(key)}
        cleared = {key: told for key, told in cleared.items() if told != shown[key]}
        gone += dict.fromkeys(cleared).items()
        return {**shown, **cleared}


def _withheld(key: str, stays: str) -> tuple[str, ...]:
    keys = {"full": (), "hash": (key,), "off": (*PAYLOADS[key], key)}.get(stays)
    if keys is None:
        raise ValueError(f"what stays of `{key}` must be full, hash or off, not `{stays}`")
    return keys


def _any_of(globs: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs)))


def _members(node: Any) -> list[tuple[Any, Any, str]]:
    """
    Returns the container, the key in it and the name of each value in *node*.
    """
    if isinstance(node, dict) and len(node) == 1 and isinstance(inside := next(iter(node.values())), list):
        tag = next(iter(node))
        if tag == "!dict":
            return [(pair, 1, str(pair[0])) for pair in inside if isinstance(pair, list) and len(pair) > 1]
        node = inside[-1] if tag == "!object" and inside else inside if tag == "!set" else node
    if isinstance(node, dict | list):
        return [(node, key, str(key)) for key in (list(node) if isinstance(node, dict) else range(len(node)))]
    return []


def _texts(value: Any) -> Iterator[str]:
    """
    Returns the letters and digits of the texts and numbers in *value*, and of keys that are no names.
    """
    if isinstance(value, dict | list):
        names = [key for key in value if not str(key).isidentifier()] if isinstance(value, dict) else []
        for each in [*names, *(holder[key] for holder, key, _ in _members(value))]:
            yield from _texts(each)
    elif not isinstance(value, bool) and value is not None:
        yield from (text for form in {str(value), json.dumps(value)} if len(text := _letters(form)) >= SHORTEST)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _cleared(told: Any, texts: set[str]) -> Any:
    """
    Returns what was *told* with `[erased]` for each text that repeats one of *texts*.
    """
    if isinstance(told, list | tuple):
        return [[*map(partial(_cleared, texts=texts), row)] if isinstance(row, list | tuple) else row for row in told]
    said = _letters(told) if isinstance(told, str) else ""
    runs = {said[at : at + REPEATED] for at in range(len(said) - REPEATED + 1)}
    return ERASED if any(text in said or any(run in text for run in runs) for text in texts) else told
