"""
The sections of the page with tables: by guard, by source, by tool, and the calls one by one. A section without figures
is a plain sentence.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from guardrails.offline.judge.result import MAX_STOPS, REPEATS, Stop, Tally
from guardrails.offline.pages import numbers
from guardrails.offline.pages.markup import Markup, join, named, tag, within
from guardrails.offline.pages.numbers import NONE, change, count, per_1000, plural, share, usd
from guardrails.offline.pages.palette import Palette, swatch
from guardrails.offline.pages.tables import Heading, row, table

from .differences import ALLOW, Change, changes, tally
from .figures import Side, by_source, cut, is_wrong, objections, rows, verdict
from .wrong import in_words


MAX_ROWS: Final = 200
"""Of the tables by source and by tool."""
MAX_CODES: Final = 60
MAX_LISTED: Final = 500
"""Calls that are listed one by one."""
MAX_BYTES: Final = 500_000
"""Of that list."""
_LAST_MS: Final = 253_402_300_799_000
"""The last second that has a date, of the year 9999."""


class Column(NamedTuple):
    """
    One figure of a tally.
    """

    name: str
    text: Callable[[Tally], str]
    value: Callable[[Tally], float] | None = None
    """Set where two policies are compared by it."""
    digits: int = 0
    if_any: Callable[[Tally], int] | None = None
    """Set where the column is left out as long as there is nothing of it in any total."""


def _sum(name: str) -> Callable[[Tally], int]:
    return lambda each: sum(getattr(each, name).values())


def _counted(name: str, of: str, *, always: bool = False) -> Column:
    number = _sum(of)
    return Column(name, lambda each: count(number(each)), number, if_any=None if always else number)


COLUMNS: Final = (
    _counted("denied", "denied", always=True),
    Column("per 1,000", lambda each: per_1000(each.denials, each.calls)),
    _counted("wrong", "wrong", always=True),
    Column(
        "wrong per 1,000", lambda each: per_1000(_sum("wrong")(each), each.calls), lambda each: each.wrong_per_1000, 2
    ),
    _counted("unknown", "unknown"),
    _counted("at a limit", "limit_stops"),
    Column("second stopped", lambda each: numbers.of(each.stopped_second, each.pointless_second)),
    Column(
        "later stopped",
        lambda each: numbers.of(each.stopped_later, each.pointless_later),
        lambda each: each.stopped_later,
    ),
    _counted("after exhaustion", "after_exhaustion"),
    _counted("nudged", "nudged"),
    _counted("observed", "observed"),
    _counted("wrong observed", "wrong_observed"),
    Column(
        "denied without cap", lambda each: count(_sum("denied_without_cap")(each)), if_any=_sum("denied_without_cap")
    ),
    Column("wrong without cap", lambda each: count(_sum("wrong_without_cap")(each)), if_any=_sum("wrong_without_cap")),
    Column("saved at most: calls", lambda each: count(each.saved_calls)),
    Column("tokens", lambda each: count(each.saved_tokens), if_any=lambda each: each.tokens),
    Column("USD", lambda each: usd(each.saved_micro_usd), if_any=lambda each: each.micro_usd),
)


def by_tally(all_sides: Sequence[Side], name: str, found: Sequence[Mapping[str, Tally]], *, foot: bool) -> str:
    """
    Returns a table of tallies: of one policy with all figures, of two with those that are compared.
    """
    lines = rows(found, MAX_ROWS)
    if not lines:
        return "No calls were found."
    two = len(all_sides) > 1
    totals = [side.total for side in all_sides]
    shown = [
        each
        for each in COLUMNS
        if (each.value or not two) and (each.if_any is None or any(each.if_any(total) for total in totals))
    ]
    body = [_line(named(key), tallies, shown) for key, tallies in lines]
    last = _line(Markup("total"), totals, shown) if foot else None
    headings = [Heading(name, number=False), Heading("calls")]
    groups: list[tuple[str, int]] = []
    if two:
        headings += [Heading(head) for _ in shown for head in (*(side.name for side in all_sides), "change")]
        groups = [("", 2), *((each.name, 3) for each in shown)]
    else:
        headings += [Heading(each.name) for each in shown]
    return table(plural(len(lines), name), headings, body, groups=groups, foot=last, filtered=True)


def _line(first: Markup, tallies: Sequence[Tally], shown: Sequence[Column]) -> Markup:
    cells = [count(max(each.calls for each in tallies))]
    for column in shown:
        cells += [column.text(each) for each in tallies]
        if len(tallies) > 1 and column.value:
            before, after = map(column.value, tallies)
            cells.append(change(after - before, column.digits))
    return row(first, *cells)


def by_source_table(all_sides: Sequence[Side]) -> str:
    """
    Returns the figures of each source and of all.
    """
    return by_tally(all_sides, "source", [by_source(side.judgement) for side in all_sides], foot=True)


def by_tool(all_sides: Sequence[Side]) -> str:
    """
    Returns the figures of each tool, the ones with the most denials first.
    """
    denials: dict[str, tuple[int, int]] = {}
    for side in all_sides:
        for name, each in side.judgement.tools.items():
            denials[name] = max(denials.get(name, (0, 0)), (sum(objections(side, each).values()), each.calls))
    order = sorted(denials, key=lambda name: (-denials[name][0], -denials[name][1], name))
    found = [{name: side.judgement.tools[name] for name in order if name in side.judgement.tools} for side in all_sides]
    # The first side decides the order of rows, so it gets all names.
    found[0] = {name: found[0].get(name) or Tally(name) for name in order} if found else {}
    return by_tally(all_sides, "tool", found, foot=False)


def by_code(side: Side, colours: Palette) -> Markup:
    """
    Every counter of one policy by code.
    """
    total = side.total
    denied, observed = total.denied, total.observed
    counters = {
        "denied": denied,
        "of them wrong": total.wrong,
        "unknown": total.unknown,
        "nudged": total.nudged,
        "wrong nudges": total.wrong_nudges,
        "observed": observed,
        "wrong observed": total.wrong_observed,
        "after exhaustion": total.after_exhaustion,
        "denied without cap": total.denied_without_cap,
        "after exhaustion without cap": total.after_exhaustion_without_cap,
    }
    codes = {code for counter in counters.values() for code in counter}
    if not codes:
        return tag("p", f"{side.name}: no guard objected to any call.")
    shown = {
        name: counter
        for name, counter in counters.items()
        if name in {"denied", "of them wrong"} or any(counter.values())
    }
    order = sorted(codes, key=lambda code: (-denied[code], -observed[code], code))
    lines = []
    for code in order[:MAX_CODES]:
        judged = code.startswith(REPEATS)
        cells = [NONE if "wrong" in name and not judged else count(counter[code]) for name, counter in shown.items()]
        cells.append(share(total.wrong[code], denied[code]) if judged else NONE)
        lines.append(row(join([swatch(colours.css(code)), named(code)]), *cells))
    headings = [Heading("code", number=False), *(Heading(name) for name in shown), Heading("wrong of denied")]
    left = f"; {len(order) - MAX_CODES:,} more are left out" if len(order) > MAX_CODES else ""
    return table(f"{side.name}: calls by code of the guard{left}", headings, lines)


def stops(side: Side) -> str:
    """
    Returns the stops one by one, wrong ones first.
    """
    found = side.judgement.stops
    if not found:
        return "No call was stopped or nudged."
    order = sorted(found, key=lambda stop: not is_wrong(stop))
    names = ("session", "source", "tool", "decision", "code", "verdict")
    headings = [Heading(names[0], number=False), Heading("call"), *(Heading(name, number=False) for name in names[1:])]
    headings.append(Heading("time (UTC)", number=False))
    lines, _ = within(map(_stop, order[:MAX_LISTED]), MAX_BYTES)
    every = f"the first {MAX_STOPS:,} stops" if cut(side.judgement) else plural(len(found), "stop")
    caption = f"{len(lines):,} of {every}, wrong denials first"
    return table(caption, headings, lines, filtered=True)


def _stop(stop: Stop) -> Markup:
    bad = is_wrong(stop)
    said = join([verdict(stop), in_words(stop.why)]) if bad else verdict(stop)
    cells = [named(stop.source), named(stop.tool), stop.decision, named(stop.code), said, _time(stop.at_ms)]
    return _call(stop, cells, bad=bad)


def _call(stop: Stop, cells: Sequence[str], *, bad: bool) -> Markup:
    return tag(
        "tr",
        tag("th", named(stop.session_id), scope="row"),
        tag("td", count(stop.call_index), class_="n"),
        *(tag("td", cell, class_="w" if isinstance(cell, Markup) else None) for cell in cells),
        class_="bad" if bad else None,
    )


def different(all_sides: Sequence[Side]) -> Markup:
    """
    Returns the calls that two policies decide differently: how many of each kind, and one by one.
    """
    first, second = all_sides
    found = changes(first.judgement, second.judgement)
    capped = [side.name for side in all_sides if cut(side.judgement)]
    note = f"Only {MAX_STOPS:,} stops are kept of {' and of '.join(capped)}: later calls are not compared."
    above = tag("p", note, class_="note") if capped else ""
    if not found:
        return join([above, tag("p", "Both decide every call alike.")])
    kinds = [
        row(named(before), named(after), count(n), count(wrong), count(pointless))
        for before, after, n, wrong, pointless in tally(found)[:MAX_CODES]
    ]
    headings = [Heading(first.name, number=False), Heading(second.name, number=False)]
    summed = table(
        f"{plural(len(found), 'call')} decided differently",
        [*headings, Heading("calls"), Heading("of them wrong stops"), Heading("pointless repeats")],
        kinds,
    )
    lines, _ = within(map(_change, found[:MAX_LISTED]), MAX_BYTES)
    names = ("source", "tool", first.name, second.name, "verdict on the stop")
    listed = table(
        f"{len(lines):,} of {plural(len(found), 'call')} decided differently, wrong stops first",
        [Heading("session", number=False), Heading("call"), *(Heading(name, number=False) for name in names)],
        lines,
        filtered=True,
    )
    return join([above, summed, listed])


def _change(each: Change) -> Markup:
    stop = each.stop
    cells = [named(stop.source), named(stop.tool), named(each.before), named(each.after), each.verdict]
    return _call(stop, cells, bad=each.verdict == "wrong" and each.before == ALLOW)


def _time(at_ms: int | None) -> str:
    if at_ms is None or not 0 <= at_ms <= _LAST_MS:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
