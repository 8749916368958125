"""
How the lines of two runs differ, and what came up in them.
"""

import json

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from itertools import islice, zip_longest
from typing import Final

from .trees import ITSELF, Lines


SHOWN: Final = 3
"""Sessions whose first difference is shown."""
AROUND: Final = 4
"""Lines of a session that are looked at from its first difference on."""
LENGTH: Final = 60
"""Lines of one difference."""
NOTHING: Final = ("nothing", "")


def different(before: Lines, after: Lines) -> dict[int, Counter[str]]:
    """
    How many lines of each kind differ, by session; without those that are equal byte for byte.
    """
    found = {}
    for number in sorted({*before, *after} - {ITSELF}):
        old, new = before.get(number, []), after.get(number, [])
        if old != new:
            gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
            kinds = (Counter(kind for kind, _ in each.elements()) for each in (gone, come))
            # The same lines in another order differ too.
            found[number] = next(kinds) | next(kinds) or Counter({"order": 1})
    return found


def shown(before: Lines, after: Lines, numbers: Iterable[int]) -> Iterator[str]:
    """
    The first difference of the first few sessions in *numbers*.
    """
    for number in islice(numbers, SHOWN):
        old, new = before.get(number, []), after.get(number, [])
        at = next(at for at, (a, b) in enumerate(zip_longest(old, new, fillvalue=NOTHING)) if a != b)
        where = [f"{kind} {said}"[:200] for kind, said in old[:at] if kind in ("passage", "asked")]
        yield f"session {number}, line {at + 1}, after {' / '.join(where[-2:])}"
        a, b = ([line for each in lines[at : at + AROUND] for line in opened(*each)] for lines in (old, new))
        yield from islice(unified_diff(a, b, "before", "after", n=2, lineterm=""), LENGTH)


def opened(kind: str, said: str) -> list[str]:
    """
    A line as several: its JSON, if it has any, with one value in each.
    """
    start = min((at for at in map(said.find, "{[") if at >= 0), default=0)
    try:
        return [
            f"{kind} {said[:start]}",
            *json.dumps(json.loads(said[start:]), indent=1, ensure_ascii=False).split("\n"),
        ]
    except ValueError:
        return [kind, *said.split("\n")]


def figures(lines: Lines) -> Counter[str]:
    """
    How many lines there are of each kind; `sessions` too.
    """
    kinds = Counter(kind for number, each in lines.items() if number != ITSELF for kind, _ in each)
    kinds["sessions"] = len(lines.keys() - {ITSELF})
    return kinds


def came_up(lines: Lines) -> tuple[Counter[str], Counter[str], list[str]]:
    """
    Of a run: statuses, codes that were said (denials, nudges, limits), and codes of the library that were not.
    """
    statuses: Counter[str] = Counter()
    said: Counter[str] = Counter()
    for number, each in lines.items():
        if number == ITSELF:
            continue
        for kind, text in each:
            match kind:
                case "envelope":
                    statuses[text.split(maxsplit=1)[0]] += 1
                case "heard":
                    said[json.loads(text)[1] or ""] += 1
                case "record":
                    record = json.loads(text)
                    said.update(record.get("nudges") or ())
                    said[record.get("limit") or ""] += record["event"] == "settle"
    del said[""]
    return statuses, said, sorted({*json.loads(dict(lines[ITSELF])["codes"])} - said.keys())
