"""
One row a session, one cell a call.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from ..result import Judgement, Stop
from .figures import DECISIONS, Side, cut, is_wrong, verdict
from .markup import Markup, join, named, short, tag, within
from .numbers import plural
from .palette import Palette


MAX_SESSIONS: Final = 50
MAX_CALLS: Final = 5_000
"""Of one row."""
MAX_BYTES: Final = 1_000_000
"""Of all rows together."""
LONG: Final = 200
"""Calls of a session from which on a long run of calls that went alike is one cell."""
BRIEF: Final = 18
"""Calls of a session that needs no row of its own."""
RUN: Final = 12
"""Calls in a row that went alike and are shown one by one in a long session."""
MAX_PARTS: Final = 1_000
"""Of one row: stopped calls, and runs of calls."""
LISTED: Final = 40
"""Stops of one session that are also told in words."""
ALLOW: Final = "allow"
_TITLE: Final = 40

Cells = Sequence[tuple[int, str]]


class Line(NamedTuple):
    """
    One session under one policy.
    """

    cells: Cells
    stops: Mapping[int, Stop]
    """By call index, as far as they were kept."""


class Timelines(NamedTuple):
    """
    What is to be shown.
    """

    rows: list[Markup]
    """Sessions with the most stops first."""
    left_out: int
    """Sessions."""
    codes: list[Counter[str]]
    """Stops of all time lines by code, for each side."""


def timelines(all_sides: Sequence[Side], colours: Palette) -> Timelines:
    """
    A row to each session.
    """
    found = [_lines(side.judgement) for side in all_sides]
    busiest: Counter[str] = Counter()
    for lines in found:
        for session, cells in lines.items():
            busiest[session] = max(busiest[session], sum(word != ALLOW for _, word in cells))
    order = sorted(busiest, key=lambda session: (-busiest[session], session))
    shown = order[:MAX_SESSIONS]
    kept = [_stops(side.judgement, set(shown)) for side in all_sides]
    rows, left_out = within((_row(session, all_sides, found, kept, colours) for session in shown), MAX_BYTES)
    codes = [Counter(word for cells in lines.values() for _, word in cells if word not in DECISIONS) for lines in found]
    return Timelines(rows, left_out + len(order) - len(shown), codes)


def _lines(judgement: Judgement) -> Mapping[str, Cells]:
    """
    The time lines; of a policy that only watches there are none, so they are made of its stops, up to the last of each.
    """
    if judgement.timelines:
        return judgement.timelines
    found: dict[str, dict[int, str]] = {}
    for stop in judgement.stops:
        found.setdefault(stop.session_id, {})[stop.call_index] = stop.code
    busiest = sorted(found, key=lambda session: (-len(found[session]), session))[:MAX_SESSIONS]
    return {
        session: [(index, found[session].get(index, ALLOW)) for index in range(min(max(found[session]) + 1, MAX_CALLS))]
        for session in busiest
    }


def _stops(judgement: Judgement, sessions: set[str]) -> Mapping[str, Mapping[str, Mapping[int, Stop]]]:
    """
    By session, source and call index: sources may use the same name for sessions of theirs.
    """
    found: dict[str, dict[str, dict[int, Stop]]] = {}
    for stop in judgement.stops:
        if stop.session_id in sessions:
            found.setdefault(stop.session_id, {}).setdefault(stop.source, {})[stop.call_index] = stop
    return found


def _row(
    session: str,
    all_sides: Sequence[Side],
    found: Sequence[Mapping[str, Cells]],
    kept: Sequence[Mapping[str, Mapping[str, Mapping[int, Stop]]]],
    colours: Palette,
) -> Markup:
    longest = max((lines.get(session, []) for lines in found), key=len)
    lines = [
        _line(side.judgement, cells.get(session), longest, stops.get(session, {}))
        for side, cells, stops in zip(all_sides, found, kept, strict=True)
    ]
    sources = [stop.source for line in lines if line for stop in line.stops.values()]
    source = tag("small", "of ", named(sources[0])) if sources else ""
    two = len(all_sides) > 1
    parts: list[str] = [tag("h3", named(session), " ", source)]
    for side, line in zip(all_sides, lines, strict=True):
        who = tag("small", side.name, class_="who") if two else ""
        if line is None:
            shown = tag("small", "not among the sessions that were kept for this policy")
        else:
            shown = join([_strip(line, colours), _words(line)])
        parts.append(tag("div", who, tag("div", shown), class_="strip two" if two else "strip"))
    return tag("li", *parts, class_="long" if len(longest) > BRIEF else None)


def _line(
    judgement: Judgement,
    cells: Cells | None,
    longest: Cells,
    stops: Mapping[str, Mapping[int, Stop]],
) -> Line | None:
    if cells is None and cut(judgement):
        return None
    drawn = longest if cells is None else cells
    # The time line does not say its source: it is the one whose stops are those of the line.
    fits = {
        source: sum(index in of_source and of_source[index].code == word for index, word in drawn)
        for source, of_source in stops.items()
    }
    mine = stops[max(fits, key=lambda source: (fits[source], source))] if fits else {}
    if cells is None:
        # All stops of this policy are known, so every other call of the session was allowed.
        drawn = [(index, ALLOW) for index, _ in longest]
    # Calls that a guard in observe mode objected to are allowed ones of the time line.
    return Line([(index, mine[index].code if word == ALLOW and index in mine else word) for index, word in drawn], mine)


def _strip(line: Line, colours: Palette) -> Markup:
    cells, stops = line
    parts: list[Markup] = []
    told = 0
    found = [(_css(word, stops.get(index), colours), index, word) for index, word in cells]
    for css, run in groupby(found, key=itemgetter(0)):
        calls = list(run)
        if len(parts) >= MAX_PARTS:
            break
        told += len(calls)
        where = _calls(calls[0][1], calls[-1][1])
        if len(cells) > LONG and len(calls) > RUN:
            said = f"{where}: {short(calls[0][2], _TITLE) if css else 'allowed'}"
            parts.append(tag("b", f"{len(calls):,}", class_=css or None, title=said, style=_wide(len(calls))))
        elif css:
            parts += (_cell(css, index, word, stops.get(index)) for _, index, word in calls)
        else:
            parts.append(tag("span", Markup("<i></i>" * len(calls)), title=f"{where}: allowed"))
    if told < len(cells):
        parts.append(tag("small", f" and {len(cells) - told:,} calls more"))
    return tag("div", *parts, class_="cells", role="img", aria_label=_summary(cells))


def _wide(calls: int) -> str:
    return f"min-width:min(100%,{min(calls * 0.08, 60):.2g}rem)"


def _css(word: str, stop: Stop | None, colours: Palette) -> str:
    if word == ALLOW:
        return ""
    css = colours.css(stop.code if stop else word)
    if (stop.decision if stop else word) in {"nudge", "observe"}:
        css += " ran"
    return f"{css} wrong" if stop is not None and is_wrong(stop) else css


def _cell(css: str, index: int, word: str, stop: Stop | None) -> Markup:
    return tag("i", class_=css, title=_said(f"call {index}", word, stop))


def _said(calls: str, word: str, stop: Stop | None) -> str:
    if stop is None:
        return f"{calls}: {short(word, _TITLE)}"
    known = f", {verdict(stop)}" if verdict(stop) else ""
    return f"{calls}: {short(stop.tool, _TITLE)}, {stop.decision} {short(stop.code, _TITLE)}{known}"


def _summary(cells: Cells) -> str:
    stopped = Counter(word for _, word in cells if word != ALLOW)
    said = [f"{n:,} {short(code, _TITLE)}" for code, n in sorted(stopped.items(), key=lambda item: (-item[1], item[0]))]
    return f"{plural(len(cells), 'call')}, " + (", ".join(said[:8]) if said else "all allowed")


def _words(line: Line) -> Markup:
    """
    The stops in words, those alike that follow each other as one: for those who cannot point at a cell.
    """
    cells, stops = line
    lines: list[tuple[int, int, str]] = []
    at = -1
    for place, (index, word) in enumerate(cells):
        if word == ALLOW:
            continue
        what = _said("", word, stops.get(index))
        if lines and at == place - 1 and lines[-1][2] == what:
            lines[-1] = (lines[-1][0], index, what)
        else:
            lines.append((index, index, what))
        at = place
    said = _summary(cells)
    if not lines:
        return tag("p", tag("small", said))
    told = [tag("li", f"{_calls(first, last)}{what}") for first, last, what in lines[:LISTED]]
    if len(lines) > LISTED:
        told.append(tag("li", f"and {len(lines) - LISTED:,} more"))
    return tag("details", tag("summary", said), tag("ul", join(told)))


def _calls(first: int, last: int) -> str:
    return f"call {first}" if first == last else f"calls {first}-{last}"
