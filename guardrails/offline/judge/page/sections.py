"""
The sections of the page with pictures: by source, right and wrong, over time. A section without figures is a plain
sentence.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from guardrails.offline.judge.result import MAX_STOPS, Stop, Tally
from guardrails.offline.pages.bars import Bar, Part, bar_rows, columns
from guardrails.offline.pages.markup import Markup, join, named, short, tag
from guardrails.offline.pages.numbers import count, per_1000, plural
from guardrails.offline.pages.palette import Palette, legend

from .figures import Side, by_source, cut, objections, rows, verdicts, watches
from .spans import positions, span
from .wrong import why_wrong


MAX_BARS: Final = 40
"""Sources that are drawn one by one."""
_TITLE: Final = 30
_VERDICTS: Final = (
    ("right", "right: a pointless repeat"),
    ("wrongbar", "wrong: it brought something"),
    ("unknown", "unknown: no result is recorded"),
    ("limit", "limit: budget, rate, growth, streak"),
    ("rule", "another rule"),
)


def sources(all_sides: Sequence[Side], colours: Palette) -> str:
    """
    Returns a bar to each source, the denials by code.
    """
    drawn = [objections(side, side.total) for side in all_sides]
    if not any(map(Counter.total, drawn)):
        return "Nothing would have been stopped."
    bars = bar_rows(
        [
            (name, [_by_code(*each, colours) for each in zip(all_sides, _names(all_sides), found, strict=True)])
            for name, found in _rows(all_sides)
        ],
        "denials by source",
    )
    return join([legend(colours, drawn), bars])


def _by_code(side: Side, who: str, tally: Tally, colours: Palette) -> Bar:
    codes = objections(side, tally)
    parts = [
        Part(f"k{slot}", n / tally.calls, f"{short(code)}: {count(n)}, {per_1000(n, tally.calls)} per 1,000")
        for slot, code, n in colours.by_slot(codes)
        if tally.calls
    ]
    said = f"{count(codes.total())} of {count(tally.calls)}, {per_1000(codes.total(), tally.calls)} per 1,000"
    return Bar(who, parts, said if tally.calls else "no calls")


def right_and_wrong(all_sides: Sequence[Side]) -> str:
    """
    Returns a bar to each source, with the denials by their verdicts.
    """
    if not any(objections(side, side.total) for side in all_sides):
        return "Nothing would have been denied, so nothing wrongly."
    found = [verdicts(side, side.total) for side in all_sides]
    shown = [
        (css, name, " / ".join(count(each[n]) for each in found))
        for n, (css, name) in enumerate(_VERDICTS)
        if any(each[n] for each in found)
    ]
    key = tag(
        "ul",
        *(tag("li", tag("i", class_=css, aria_hidden="true"), name, " ", tag("small", n)) for css, name, n in shown),
        class_="legend",
    )
    bars = bar_rows(
        [
            (name, [_by_verdict(*each) for each in zip(all_sides, _names(all_sides), found, strict=True)])
            for name, found in _rows(all_sides)
        ],
        "right and wrong denials by source",
    )
    return join([key, bars, *map(why_wrong, all_sides)])


def _by_verdict(side: Side, who: str, tally: Tally) -> Bar:
    if not tally.calls:
        return Bar(who, [], "no calls")
    found = verdicts(side, tally)
    said = f"{count(found.right)} right, {count(found.wrong)} wrong ({per_1000(found.wrong, tally.calls)} per 1,000)"
    said += f", {count(found.unknown)} unknown" if found.unknown else ""
    said += f", {count(found.limit)} at a limit" if found.limit else ""
    said += f", {count(found.rule)} by a rule" if found.rule else ""
    parts = [Part(css, n / tally.calls, f"{name}: {count(n)}") for (css, name), n in zip(_VERDICTS, found, strict=True)]
    return Bar(who, parts, said)


def when(all_sides: Sequence[Side], colours: Palette) -> str:
    """
    Denials over time, and by position in their session.
    """
    wanted = [("observe" if watches(side) else "deny", side.judgement.stops) for side in all_sides]
    denied = [[stop for stop in stops if stop.decision == decision] for decision, stops in wanted]
    if not any(denied):
        return "There are no stops to show."
    lists = zip(all_sides, denied, strict=True)
    capped = [f"the first {MAX_STOPS:,} of {side.name}" for side, _ in lists if cut(side.judgement)]
    note = tag("p", f"Only the stops that were kept: {', '.join(capped)}.", class_="note") if capped else ""
    counted = [Counter(stop.code for stop in stops) for stops in denied]
    return join(
        [
            note,
            legend(colours, counted),
            _over_time(all_sides, denied, colours),
            _by_position(all_sides, denied, colours),
        ]
    )


def _over_time(all_sides: Sequence[Side], denied: Sequence[Sequence[Stop]], colours: Palette) -> Markup:
    timed = [[(stop.at_ms, stop.code) for stop in stops if stop.at_ms is not None] for stops in denied]
    over = span(at for stops in timed for at, _ in stops)
    if over is None:
        return tag("p", "The transcripts have no times.", class_="note")
    bins: list[list[Counter[str]]] = []
    for stops in timed:
        found: list[Counter[str]] = [Counter() for _ in range(over.bins)]
        for at, code in stops:
            found[over.place(at)][code] += 1
        bins.append(found)
    scale = max(codes.total() for found in bins for codes in found)
    parts: list[Markup] = []
    for side, found, stops in zip(all_sides, bins, timed, strict=True):
        who = f"{side.name}: " if len(all_sides) > 1 else ""
        label = f"{who}{plural(len(stops), 'stop')} with a time, by {over.unit} (UTC)"
        drawn = [(over.label(n), _stack(codes, colours)) for n, codes in enumerate(found)]
        parts += [tag("h3", label), columns(drawn, scale, f"{label}, at most {scale:,}")]
    without = sum(map(len, denied)) - sum(map(len, timed))
    if without:
        parts.append(
            tag("p", f"{plural(without, 'stop')} without a time: of transcripts that have none.", class_="note")
        )
    return join(parts)


def _by_position(all_sides: Sequence[Side], denied: Sequence[Sequence[Stop]], colours: Palette) -> Markup:
    found = [positions(stops) for stops in denied]
    longest = max(found, key=len)
    drawn = []
    for n, (name, _) in enumerate(longest):
        codes = [each[n][1] if n < len(each) else Counter[str]() for each in found]
        bars = [
            Bar(who, _stack(each, colours), count(each.total()))
            for who, each in zip(_names(all_sides), codes, strict=True)
        ]
        drawn.append((tag("span", f"calls {name}"), bars))
    return join(
        [tag("h3", "By position in the session, counted from 0"), bar_rows(drawn, "stops by position in the session")]
    )


def _stack(codes: Mapping[str, int], colours: Palette) -> list[Part]:
    return [Part(f"k{slot}", n, f"{short(code, _TITLE)} {count(n)}") for slot, code, n in colours.by_slot(codes)]


def _names(all_sides: Sequence[Side]) -> list[str]:
    return [side.name if len(all_sides) > 1 else "" for side in all_sides]


def _rows(all_sides: Sequence[Side]) -> list[tuple[Markup, list[Tally]]]:
    found = rows([by_source(side.judgement) for side in all_sides], MAX_BARS)
    return [(named(name), tallies) for name, tallies in found]
