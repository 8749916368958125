"""
Frozen entries, three layers each, and what two sets of them differ by.
"""

import hashlib
import json
import re

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


FOLDER: Final = Path(__file__).parent / "frozen"
LAYERS: Final = ("decision", "meaning", "text")
ABSENT: Final = "(absent)"


@dataclass(frozen=True)
class Entry:
    """
    One thing that is compared: where it stands, what it is counted under, and its layers. None: it has no such layer.
    """

    at: str
    group: str
    decision: Any = None
    meaning: Any = None
    text: Any = None

    def row(self) -> list[Any]:
        """
        Its fields as JSON has them.
        """
        return [self.at, self.group, self.decision, self.meaning, self.text]


@dataclass(frozen=True)
class Difference:
    """
    One layer of one entry, before and after.
    """

    at: str
    layer: str
    group: str
    before: Any
    after: Any


def digest(data: str | bytes, size: int = 8) -> str:
    """
    A few hexadecimal digits of *data*.
    """
    packed = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    return hashlib.sha256(packed).hexdigest()[:size]


def short(text: str, size: int = 60) -> str:
    """
    A digest of *text* and its beginning, for a reader.
    """
    return f"{digest(text)} {text[:size]}"


def plain(text: str) -> str:
    """
    A hint without what a call puts into it: digits, names in quotes.
    """
    return re.sub(r"\d[\d.,]*", "#", re.sub(r"`[^`]*`|\"[^\"]*\"", "`…`", text))


def write(section: str, entries: Iterable[Entry]) -> None:
    """
    Freeze the entries of a section.
    """
    lines = [json.dumps(entry.row(), sort_keys=True) for entry in entries]
    (FOLDER / f"{section}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read(section: str) -> list[Entry]:
    """
    The frozen entries of a section; none if it never was frozen.
    """
    file = FOLDER / f"{section}.jsonl"
    return [Entry(*json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def differences(before: Iterable[Entry], after: Iterable[Entry]) -> list[Difference]:
    """
    What differs, in the order of the entries.
    """
    old, new = {e.at: e for e in before}, {e.at: e for e in after}
    found = []
    for at in dict.fromkeys([*old, *new]):
        a, b = old.get(at), new.get(at)
        if a is None or b is None:
            pair = (ABSENT if a is None else a.group, ABSENT if b is None else b.group)
            found.append(Difference(at, "decision", f"{pair[0]} -> {pair[1]}", *pair))
            continue
        group = a.group if a.group == b.group else f"{a.group} -> {b.group}"
        for layer in LAYERS:
            x, y = getattr(a, layer), getattr(b, layer)
            if x != y:
                found.append(Difference(at, layer, _named(group, x, y), x, y))
    return found


def _named(group: str, x: Any, y: Any) -> str:
    """
    The group of a difference, with the fields that differ.
    """
    if not (isinstance(x, dict) and isinstance(y, dict)):
        return group
    return f"{group} [{', '.join(sorted(key for key in {*x, *y} if x.get(key) != y.get(key)))}]"


def table(section: str, found: list[Difference], *, whole: bool) -> Iterable[str]:
    """
    Lines for a reader: a count and one example of each group, or all of them.
    """
    for layer in LAYERS:
        own = [one for one in found if one.layer == layer]
        counts = Counter(one.group for one in own)
        for group, count in counts.most_common():
            places = len({one.at.partition("/")[0] for one in own if one.group == group})
            yield f"{section} | {layer:8} | {count:5,} x {group} (at {places:,} places)"
            for one in [one for one in own if one.group == group][: None if whole else 1]:
                yield f"      {one.at}"
                yield from (
                    f"        {sign} {_shown(value, other)}"
                    for sign, value, other in (("-", one.before, one.after), ("+", one.after, one.before))
                )


def _shown(value: Any, other: Any) -> str:
    if isinstance(value, dict) and isinstance(other, dict):
        value = {key: each for key, each in value.items() if other.get(key) != each or key not in other}
    return json.dumps(value, ensure_ascii=False)[:400]
