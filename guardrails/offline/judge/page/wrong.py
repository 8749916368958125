"""
Why denials were wrong, and what was lost after the end of sessions, as a table to each policy.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from guardrails.offline.judge.counting import WHY
from guardrails.offline.judge.result import Tally
from guardrails.offline.pages.markup import Markup, named, tag
from guardrails.offline.pages.numbers import count
from guardrails.offline.pages.tables import Heading, row, table

from .figures import Side, by_source, rows, watches


MAX_ROWS: Final = 40


def why_wrong(side: Side) -> Markup:
    """
    Returns, source by source, the gains of the calls that were wrongly denied, and the calls lost. Empty if there are
    none.
    """
    found = [(name, tally) for name, (tally,) in rows([by_source(side.judgement)], MAX_ROWS) if _any(side, tally)]
    if not found:
        return Markup("")
    total = _reasons(side, side.total)[0]
    shown = [why for why in WHY if total[why]]
    groups = [("", 2), *((why, 2) for why in shown)]
    headings = [Heading("source", number=False), Heading("wrong")]
    headings += [Heading(name) for _ in shown for name in ("calls", "worked")]
    if side.total.lost:
        groups.append(("lost after the end", 3))
        headings += [Heading(name) for name in ("calls", "worked", "no repeat")]
    lines = [_line(side, named(name), tally, shown) for name, tally in found]
    foot = _line(side, Markup("total"), side.total, shown)
    return table(f"{side.name}: why denials were wrong", headings, lines, groups=groups, foot=foot)


def in_words(why: str | None) -> Markup:
    """
    Returns why a denial was wrong, to stand behind that word. Empty if nobody knows.
    """
    said = next((words for name, words in WHY.items() if name == why), None)
    return Markup("") if said is None else tag("span", f", {why}", title=said)


def _any(side: Side, tally: Tally) -> bool:
    return bool(_reasons(side, tally)[0] or tally.lost)


def _reasons(side: Side, tally: Tally) -> tuple[Counter[str], Counter[str]]:
    if watches(side):
        return tally.wrong_observed_why, tally.wrong_observed_worked
    return tally.wrong_why, tally.wrong_worked


def _line(side: Side, first: Markup, tally: Tally, shown: Sequence[str]) -> Markup:
    why, worked = _reasons(side, tally)
    cells = [why.total(), *(counter[each] for each in shown for counter in (why, worked))]
    if side.total.lost:
        cells += [tally.lost.total(), tally.lost_worked.total(), tally.lost_new.total()]
    return row(first, *map(count, cells))
