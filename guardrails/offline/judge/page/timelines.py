"""
One row a session, one cell a call.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from guardrails.offline.judge.result import Cell, Judgement, Stop
from guardrails.offline.pages.markup import Markup, join, named, short, tag, within
from guardrails.offline.pages.numbers import plural
from guardrails.offline.pages.palette import Palette

from .figures import Side, cut, is_wrong, verdict


MAX_SESSIONS: Final = 50
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
DENY: Final = "deny"
_TITLE: Final = 40

Key = tuple[str, str, str]
"""Source, session, life."""


class Line(NamedTuple):
    """
    One session under one policy.
    """

    cells: Sequence[Cell]
    stops: Mapping[int, Stop]
    """By call index, as far as they were kept."""


class Timelines(NamedTuple):
    """
    The timelines to show.
    """

    rows: list[Markup]
    """Sessions with the most stops first."""
    left_out: int
    """Sessions."""
    codes: list[Counter[str]]
    """Stops of all time lines by code, for each side."""


def timelines(all_sides: Sequence[Side], colours: Palette) -> Timelines:
    """
    Returns a row to each session.
    """
    found = [
        {(line.source, line.session_id, line.run): line.cells for line in s.judgement.timelines} for s in all_sides
    ]
    busiest: Counter[Key] = Counter()
    for lines in found:
        for key, cells in lines.items():
            busiest[key] = max(busiest[key], sum(decision != ALLOW for _, decision, _ in cells))
    order = sorted(busiest, key=lambda key: (-busiest[key], key))
    shown = order[:MAX_SESSIONS]
    kept = [_stops(side.judgement, set(shown)) for side in all_sides]
    lives = Counter((source, session) for source, session, _ in order)
    rows, left_out = within(
        (_row(key, all_sides, found, kept, colours, lives=lives[key[:2]]) for key in shown), MAX_BYTES
    )
    codes = [Counter(code for cells in lines.values() for _, _, code in cells if code) for lines in found]
    return Timelines(rows, left_out + len(order) - len(shown), codes)


def _stops(judgement: Judgement, sessions: set[Key]) -> Mapping[Key, Mapping[int, Stop]]:
    """
    By session and call index.
    """
    found: dict[Key, dict[int, Stop]] = {}
    for stop in judgement.stops:
        key = stop.source, stop.session_id, stop.run
        if key in sessions:
            found.setdefault(key, {})[stop.call_index] = stop
    return found


def _row(
    key: Key,
    all_sides: Sequence[Side],
    found: Sequence[Mapping[Key, Sequence[Cell]]],
    kept: Sequence[Mapping[Key, Mapping[int, Stop]]],
    colours: Palette,
    *,
    lives: int,
) -> Markup:
    source, session, run = key
    longest = max((lines.get(key, []) for lines in found), key=len)
    lines = [
        _line(side.judgement, cells.get(key), longest, stops.get(key, {}))
        for side, cells, stops in zip(all_sides, found, kept, strict=True)
    ]
    life = tag("small", " life ", named(run)) if lives > 1 and run else ""
    two = len(all_sides) > 1
    parts: list[str] = [tag("h3", named(session), life, " ", tag("small", "of ", named(source)))]
    for side, line in zip(all_sides, lines, strict=True):
        who = tag("small", side.name, class_="who") if two else ""
        if line is None:
            shown = tag("small", "not among the sessions that were kept for this policy")
        else:
            shown = join([_strip(line, colours), _words(line)])
        parts.append(tag("div", who, tag("div", shown), class_="strip two" if two else "strip"))
    return tag("li", *parts, class_="long" if len(longest) > BRIEF else None)


def _line(
    judgement: Judgement, cells: Sequence[Cell] | None, longest: Sequence[Cell], stops: Mapping[int, Stop]
) -> Line | None:
    if cells is None:
        if cut(judgement):
            return None
        # All stops of this policy are known, so every other call of the session was allowed.
        cells = [_cell_of(index, stops.get(index)) for index, _, _ in longest]
    return Line(cells, stops)


def _cell_of(index: int, stop: Stop | None) -> Cell:
    return (index, ALLOW, "") if stop is None else (index, stop.decision, stop.code)


def _strip(line: Line, colours: Palette) -> Markup:
    cells, stops = line
    parts: list[Markup] = []
    told = 0
    found = [(_css(cell, stops.get(cell[0]), colours), cell) for cell in cells]
    for css, run in groupby(found, key=itemgetter(0)):
        calls = [cell for _, cell in run]
        if len(parts) >= MAX_PARTS:
            break
        told += len(calls)
        where = _calls(calls[0][0], calls[-1][0])
        if len(cells) > LONG and len(calls) > RUN:
            said = f"{where}: {short(calls[0][2], _TITLE) if css else 'allowed'}"
            parts.append(tag("b", f"{len(calls):,}", class_=css or None, title=said, style=_wide(len(calls))))
        elif css:
            parts += (tag("i", class_=css, title=_said(f"call {cell[0]}", cell, stops.get(cell[0]))) for cell in calls)
        else:
            parts.append(tag("span", Markup("<i></i>" * len(calls)), title=f"{where}: allowed"))
    if told < len(cells):
        parts.append(tag("small", f" and {len(cells) - told:,} calls more"))
    return tag("div", *parts, class_="cells", role="img", aria_label=_summary(cells))


def _wide(calls: int) -> str:
    return f"min-width:min(100%,{min(calls * 0.08, 60):.2g}rem)"


def _css(cell: Cell, stop: Stop | None, colours: Palette) -> str:
    _, decision, code = cell
    if decision == ALLOW:
        return ""
    css = colours.css(code)
    if decision != DENY:
        css += " ran"
    return f"{css} wrong" if stop is not None and is_wrong(stop) else css


def _said(calls: str, cell: Cell, stop: Stop | None) -> str:
    _, decision, code = cell
    tool = f"{short(stop.tool, _TITLE)}, " if stop is not None else ""
    known = f", {verdict(stop)}" if stop is not None and verdict(stop) else ""
    return f"{calls}: {tool}{decision} {short(code, _TITLE)}{known}"


def _summary(cells: Sequence[Cell]) -> str:
    stopped = Counter(_word(cell) for cell in cells if cell[1] != ALLOW)
    said = [f"{n:,} {word}" for word, n in sorted(stopped.items(), key=lambda item: (-item[1], item[0]))]
    return f"{plural(len(cells), 'call')}, " + (", ".join(said[:8]) if said else "all allowed")


def _word(cell: Cell) -> str:
    _, decision, code = cell
    return short(code, _TITLE) if decision == DENY else f"{decision} {short(code, _TITLE)}"


def _words(line: Line) -> Markup:
    """
    The stops in words, those alike that follow each other as one: for those who cannot point at a cell.
    """
    cells, stops = line
    lines: list[tuple[int, int, str]] = []
    at = -1
    for place, cell in enumerate(cells):
        index, decision, _ = cell
        if decision == ALLOW:
            continue
        what = _said("", cell, stops.get(index))
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
