"""
The figures that are read first: one sentence to a policy, and a tile to each figure.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from guardrails.offline.judge.result import Tally
from guardrails.offline.pages.document import tiles
from guardrails.offline.pages.markup import Markup, named, tag
from guardrails.offline.pages.numbers import FEW, NONE, change, count, of, per_1000, plural, share, usd
from guardrails.offline.pages.tables import Heading, table

from .figures import Side, verdicts, watches


class Figure(NamedTuple):
    """
    One figure of one policy.
    """

    value: float | None
    """What a difference is taken of; None: there is nothing to count."""
    text: str
    detail: str


LABELS: Final = (
    "Calls",
    "Denied",
    "Wrong denials per 1,000 calls",
    "Pointless second calls stopped",
    "Pointless later calls stopped",
    "Stopped at a limit",
    "After exhaustion",
    "Nudged",
    "Observed",
    "Saved at most",
)
_DIGITS: Final = {"Wrong denials per 1,000 calls": 2}
_SAVED: Final = "Saved at most"
_IF_ANY: Final = {"After exhaustion", "Nudged", "Observed"}


def lead(side: Side) -> Markup:
    """
    Returns a sentence about the things that the policy would have done.
    """
    total = side.total
    if not total.calls:
        return tag("p", "No calls were found, so there is nothing to judge ", named(side.name), " by.", class_="lead")
    seen = f"{plural(total.calls, 'call')} in {plural(total.sessions, 'session')}"
    if not total.denials and not total.after_exhaustion and not total.observed:
        return tag("p", named(side.name), f" would have denied none of {seen}.", class_="lead")
    right, wrong, unknown, limit, rule = verdicts(side, total)
    kinds = [
        plural(right, "pointless repeat"),
        f"{count(wrong)} wrongly ({per_1000(wrong, total.calls)} per 1,000 calls)",
    ]
    kinds += [f"{count(unknown)} without a result to judge by"] if unknown else []
    kinds += [f"{count(limit)} at a limit"] if limit else []
    kinds += [f"{count(rule)} by other rules"] if rule else []
    watched, after = sum(total.observed.values()), sum(total.after_exhaustion.values())
    if watches(side):
        said = f" only observes: it would have denied none of {seen}, and objected {plural(watched, 'time')}:"
        return tag("p", named(side.name), f"{said} {', '.join(kinds)}.", class_="lead")
    said = f" would have denied {count(total.denials)} of {seen}: {', '.join(kinds)}."
    said += f" {plural(after, 'further call')} came after exhaustion." if after else ""
    said += f" Its guards in observe mode objected {plural(watched, 'time')}." if watched else ""
    return tag("p", named(side.name), said, class_="lead")


def figures(total: Tally, sources: int) -> dict[str, Figure]:
    """
    Returns all figures by label.
    """
    wrong = sum(total.wrong.values())
    after, nudged, watched = (sum(each.values()) for each in (total.after_exhaustion, total.nudged, total.observed))
    limit = sum(total.limit_stops.values())
    seen = f"{plural(total.sessions, 'session')}, {plural(sources, 'source')}"
    cap = sum(total.denied_without_cap.values())
    uncapped = f"; {count(cap)} without the denial cap" if cap != total.denials else ""
    wrong_cap = sum(total.wrong_without_cap.values())
    wrong_uncapped = f"; {per_1000(wrong_cap, total.calls)} without the denial cap" if wrong_cap != wrong else ""
    values = (
        Figure(total.calls, count(total.calls), seen),
        Figure(
            total.denials,
            count(total.denials),
            f"{_of_calls(total)}{uncapped}" if total.calls else "",
        ),
        Figure(
            total.wrong_per_1000 if total.calls else None,
            per_1000(wrong, total.calls),
            f"{plural(wrong, 'denial')} of calls that brought something{_because(total)}{wrong_uncapped}",
        ),
        _stopped(total.stopped_second, total.pointless_second),
        _stopped(total.stopped_later, total.pointless_later),
        Figure(limit, count(limit), "by budget, rate, growth or streak"),
        Figure(after, count(after), f"{'call' if after == 1 else 'calls'} of sessions that were over{_lost(total)}"),
        Figure(nudged, count(nudged), f"{count(sum(total.wrong_nudges.values()))} of them wrongly"),
        Figure(watched, count(watched), _objected(total)),
        _saved(total),
    )
    return dict(zip(LABELS, values, strict=True))


def headline(all_sides: Sequence[Side]) -> Markup:
    """
    Returns a tile to each figure; of two policies a table with their differences.
    """
    every = [figures(side.total, len({tally.source for tally in side.judgement.tallies})) for side in all_sides]
    shown = [label for label in LABELS if label not in _IF_ANY or any(each[label].value for each in every)]
    if len(every) == 1:
        return tiles((label, every[0][label].text, every[0][label].detail) for label in shown)
    headings = [Heading(name, number=False) for name in ("figure", *(side.name for side in all_sides), "change")]
    lines = [_line(label, [each[label] for each in every]) for label in shown]
    return table("the figures of both", headings, lines, sortable=False)


def _line(label: str, each: Sequence[Figure]) -> Markup:
    first, second = (figure.value for figure in each)
    known = first is not None and second is not None and label not in {"Calls", _SAVED}
    moved = change((second or 0) - (first or 0), _DIGITS.get(label, 0)) if known else ""
    cells = [tag("td", tag("b", figure.text), " ", tag("small", figure.detail), class_="w") for figure in each]
    return tag("tr", tag("th", label, scope="row"), *cells, tag("td", tag("b", moved), class_="o"))


def _because(total: Tally) -> str:
    found = [f"{count(n)} {why}" for why, n in total.wrong_why.most_common()]
    return f": {', '.join(found)}" if found else ""


def _lost(total: Tally) -> str:
    lost, worked = total.lost.total(), total.lost_worked.total()
    return f"; {count(lost)} with the first of each, of which {count(worked)} had worked" if lost else ""


def _stopped(n: int, whole: int) -> Figure:
    detail = "there were none" if not whole else "too few for a share" if whole < FEW else of(n, whole)
    return Figure(n if whole else None, share(n, whole), detail)


def _of_calls(total: Tally) -> str:
    return f"of {plural(total.calls, 'call')}" if total.calls < FEW else f"{share(total.denials, total.calls)} of calls"


def _objected(total: Tally) -> str:
    objections = "objection" if total.observed.total() == 1 else "objections"
    wrong = f"{objections} in observe mode, {total.wrong_observed_per_1000:,.2f} wrong per 1,000 calls"
    pointless = (
        (total.observed_second, total.pointless_second, "second"),
        (total.observed_later, total.pointless_later, "later"),
    )
    met = [
        f"{of(n, whole)} pointless {name} {'call' if whole == 1 else 'calls'}" for n, whole, name in pointless if whole
    ]
    return f"{wrong}; they met {' and '.join(met)}" if met else wrong


def _saved(total: Tally) -> Figure:
    known = []
    if total.tokens:
        known.append(f"{plural(total.saved_tokens, 'token')} ({share(total.saved_tokens, total.tokens)})")
    if total.micro_usd:
        known.append(f"{usd(total.saved_micro_usd)} of {usd(total.micro_usd)}")
    known.append(f"{plural(total.saved_responses, 'model response')}, all of whose calls were stopped")
    text = plural(total.saved_calls, "call") if total.calls else NONE
    return Figure(total.saved_calls, text, "; ".join(known))
