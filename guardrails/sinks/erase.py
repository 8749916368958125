"""
Values that a record must not show: secrets, arguments and results as a whole, values by dotted path.

A path leads through the tags of the canonical form as if they were not there. A tool that changes a value before it
repeats it (another encoding, a part of less than 8 letters and digits) is not found out.
"""

import json
import re
import unicodedata

from collections.abc import Iterator
from typing import Any, Final, Literal, get_args

import orjson

from guardrails.core.result.redaction import may_hold_secrets, secrets_out
from guardrails.core.text.plain_json import plain, to_json


Record = dict[str, Any]
Arguments = Literal["full", "hash", "off"]
Results = Literal["full", "hash", "off"]
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
        *,
        redact: str | tuple[str, ...] = (),
        arguments: str = "full",
        results: str = "full",
        redact_secrets: bool = True,
    ) -> None:
        paths = (redact,) if isinstance(redact, str) else tuple(redact)
        self._secrets = redact_secrets
        self._withheld = (*_withheld("arguments", arguments), *_withheld("result", results))
        self._path = re.compile("|".join(map(_pattern, paths)), re.DOTALL) if paths else None
        tops = [re.compile(_pattern(path.partition(".")[0]), re.DOTALL) for path in paths if "." in path]
        self._opened = tuple(key for key in PAYLOADS if any(top.fullmatch(key) for top in tops))
        may_go = "arguments" in self._withheld or bool(paths and self._path and self._path.fullmatch("arguments"))
        self._arguments_go = may_go or "arguments" in self._opened

    def __call__(self, record: Record) -> Record:
        gone: Erased = []
        shown = record
        for key in self._withheld:
            if key in record:
                shown = shown.copy() if shown is record else shown
                gone.append((key, shown.pop(key)))
        if self._secrets:
            shown = _without_secrets(shown, gone)
        if self._path is not None:
            shown = {key: plain(value) for key, value in shown.items()}
            for key in self._opened:
                if isinstance(shown.get(key), str):
                    gone.append((key, shown.pop(key)))
            self._erase(shown, "", gone)
        if gone or self._arguments_go:
            shown = self._without_repeats(record, shown, gone)
        if "arguments" in record and record.get("event") == "settle":
            # They were there for the messages: the line of the call has them.
            shown = {key: value for key, value in shown.items() if key != "arguments"}
            gone = [each for each in gone if each[0].partition(".")[0] != "arguments"]
        return (
            {**shown, "erased": list(dict.fromkeys([*shown.get("erased", ()), *(w for w, _ in gone)]))}
            if gone
            else shown
        )

    def _erase(self, node: Any, at: str, gone: Erased) -> None:
        assert self._path is not None
        for holder, key, name in _members(node):
            where = f"{at}\0{name}" if at else name
            if not self._path.fullmatch(where.casefold()) and (
                name != _CUT or at.partition("\0")[0] not in self._opened
            ):
                self._erase(holder[key], where, gone)
                continue
            gone.append((where.replace("\0", "."), holder[key]))
            if isinstance(holder, dict):
                del holder[key]
            else:
                holder[key] = None

    def _without_repeats(self, record: Record, shown: Record, gone: Erased) -> Record:
        told = {key: value for key in MESSAGES if (value := shown.get(key))}
        if not told:
            return shown
        known = "arguments" in record
        texts = {
            text for where, value in gone if where.partition(".")[0] == "arguments" for text in _texts(plain(value))
        }
        if (known and not texts) or (not known and not self._arguments_go):
            return shown
        for key, value in told.items():
            cleared = _cleared(value, texts if known else None)
            if cleared != value:
                shown = {**shown, key: cleared}
                gone.append((key, None))
        return shown


def _withheld(key: str, mode: str) -> tuple[str, ...]:
    if mode not in get_args(Arguments):
        raise ValueError(f"what stays of `{key}` must be full, hash or off, not `{mode}`")
    return {"full": (), "hash": (key,), "off": (key, *PAYLOADS[key])}[mode]


def _pattern(path: str) -> str:
    segments = path.casefold().split(".")
    if not all(segments):
        raise ValueError(f"not a dotted path: `{path}`")
    # At the end of a path, everything below is all that is there.
    *above, last = segments
    parts = ["(?:.*\0)?" if each == "**" else _segment(each) + "\0" for each in above]
    return "".join(parts) + _segment("*" if last == "**" else last)


def _segment(text: str) -> str:
    globs = {"*": "[^\0]*", "?": "[^\0]"}
    parts = re.findall(r"\[!?[^\]]+\]|.", text, re.DOTALL)
    return "".join(globs.get(p) or (p.replace("[!", "[^") if len(p) > 1 else re.escape(p)) for p in parts)


def _without_secrets(shown: Record, gone: Erased) -> Record:
    before = shown
    for key in FOREIGN:
        value = before.get(key)
        if not value or not may_hold_secrets(to_json(value)):
            continue
        found: Erased = []
        clean = secrets_out(plain(value), key, found)
        if found:
            shown = {**shown, key: orjson.Fragment(to_json(clean)) if key in PAYLOADS else clean}
            gone += found
    return shown


def _members(node: Any) -> list[tuple[Any, Any, str]]:
    """
    Returns the container, the key in it and the name of each value in *node*.
    """
    node = _untagged(node)
    if isinstance(node, list):
        return [(node, index, str(index)) for index in range(len(node))]
    if not isinstance(node, dict):
        return []
    pairs = node.get("!dict")
    if len(node) == 1 and isinstance(pairs, list):
        return [(pair, 1, str(_untagged(pair[0]))) for pair in pairs if isinstance(pair, list) and len(pair) > 1]
    return [(node, key, key) for key in node]


def _untagged(value: Any) -> Any:
    match value:
        case {"!object": [str(), fields], **rest} if not rest:
            return fields
        case {"!set": list() as members, **rest} if not rest:
            return members
        case {"!bytes": str() as digits, **rest} if not rest:
            return (
                bytes.fromhex(digits).decode(errors="replace") if re.fullmatch(r"(?:[0-9a-f]{2})*", digits) else digits
            )
        case _:
            return value


def _texts(value: Any) -> Iterator[str]:
    """
    Returns the letters and digits of the texts and numbers in *value*, and of keys that are no names.
    """
    value = _untagged(value)
    if isinstance(value, dict | list):
        keys = [key for key in value if not str(key).isidentifier()] if isinstance(value, dict) else []
        for each in [*keys, *(value.values() if isinstance(value, dict) else value)]:
            yield from _texts(each)
    elif not isinstance(value, bool) and value is not None:
        for form in {str(value), json.dumps(value)}:
            if len(text := _letters(form)) >= SHORTEST:
                yield text


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _cleared(told: Any, texts: set[str] | None) -> Any:
    """
    Returns what was *told* with `[erased]` for each message that repeats one of *texts*; None: any may.
    """
    if isinstance(told, str):
        said = _letters(told)
        runs = {said[at : at + REPEATED] for at in range(len(said) - REPEATED + 1)}
        shows = texts is None or any(
            text in said if len(text) < REPEATED else any(run in text for run in runs) for text in texts
        )
        return ERASED if shows else told
    if not isinstance(told, list | tuple):
        return told
    # A row of three is a problem, whose field may be the model's; of a guard's error the guard is the library's own word.
    return [
        [_cleared(row[0], texts) if len(row) > 2 and texts else row[0], _cleared(row[1], texts), *row[2:]]
        if isinstance(row, list | tuple) and len(row) > 1
        else row
        for row in told
    ]
