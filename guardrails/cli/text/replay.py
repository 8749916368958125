"""
The texts that `guardrails replay` prints for a person.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from guardrails.offline.figures import plural
from guardrails.offline.judge.counting import WHY
from guardrails.offline.judge.result import Judgement, Stop, Tally

from .printing import formats_text, heading, paragraph, printable, width


if TYPE_CHECKING:
    from guardrails.offline.judge.exact import Exactness

MAX_ROWS: Final = 40
"""Sources in a table; the others are one row."""
MAX_NOTICES: Final = 12
NAME: Final = 24
"""Characters of a source's name."""
_OTHERS: Final = "all others"

_COLUMNS: Final[tuple[tuple[str, Callable[[Tally], str]], ...]] = (
    ("calls", lambda t: f"{t.calls:,}"),
    ("denied", lambda t: f"{t.denials:,}"),
    ("wrong", lambda t: f"{t.wrong.total():,}"),
    ("per 1,000", lambda t: f"{t.wrong_per_1000:.2f}"),
    ("limits", lambda t: f"{t.limit_stops.total():,}"),
    ("after", lambda t: f"{t.after_exhaustion.total():,}"),
    ("2nd", lambda t: f"{t.stopped_second:,}/{t.pointless_second:,}"),
    ("later", lambda t: f"{t.stopped_later:,}/{t.pointless_later:,}"),
    ("nudged", lambda t: f"{t.nudged.total():,}"),
)
_LEGEND: Final = (
    "wrong: denials by duplicates or loops of calls that brought something new, and per 1,000 calls; limits: denials by "
    "budget, rate, growth and streak; after: further calls of sessions that were exhausted by then; 2nd, later: pointless "
    "repeats that were stopped, by any code, of those there are."
)


def judged_text(judgement: Judgement) -> str:
    """
    One policy.
    """
    total = judgement.total
    rows = [*_rows(judgement)[:-1], total]
    lines = _table([("", *(name for name, _ in _COLUMNS)), *((_name(t), *(of(t) for _, of in _COLUMNS)) for t in rows)])
    shown = [heading(f"{judgement.policy} on {plural(total.calls, 'recorded call')} of {_sessions(total)}"), lines[0]]
    for tally, line in zip(rows, lines[1:], strict=True):
        shown.append(line)
        shown += _codes(tally)
        if tally is not total and tally.saved_calls:
            shown.append(_listed(["saved at most: " + plural(tally.saved_calls, "call"), *_of_responses(tally)]))
    why = [paragraph(LEGEND)] if any(True for _ in wrong_lists(total)) else []
    blocks = ["\n".join(shown), paragraph(_LEGEND), *why, *_watched(judgement), _saved(total), *_ends(judgement)]
    return "\n\n".join(blocks)


def compared_text(one: Judgement, other: Judgement) -> str:
    """
    Two policies side by side.
    """
    names = one.policy, other.policy
    if names[0] == names[1]:
        names = f"{names[0]} (1)", f"{names[1]} (2)"
    title = heading(
        f"{names[0]} and {names[1]} on {plural(one.total.calls, 'recorded call')} of {_sessions(one.total)}"
    )
    rows = [("total", *names, "difference")]
    for what, figure in _figures(one.total, other.total):
        rows.append((what, *_differing(figure(one.total), figure(other.total))))
    others = {tally.source: tally for tally in _rows(other)}
    of_sources: list[tuple[str, ...]] = [
        ("by source", "calls", "denied", "", "", "wrong", "", "", "later stopped", "", "")
    ]
    for tally in _rows(one)[:-1]:
        beside = others.get(tally.source, Tally(tally.source))
        cells = [f"{tally.calls:,}"]
        for figure in (_stopped, lambda t: t.wrong.total(), lambda t: t.stopped_later):
            cells += _differing(figure(tally), figure(beside))
        of_sources.append((_name(tally), *cells))
    sides = f"By source: all denied calls (also after exhaustion), wrong ones, and later pointless repeats stopped; each {names[0]}, {names[1]}, difference."
    return "\n\n".join(
        [
            title,
            harm_text(names, one, other),
            "\n".join(_table(rows)),
            "\n".join(_table(of_sources)),
            paragraph(sides),
            *_ends_of_both(names, one, other),
            next_text(names, one, other),
        ]
    )


def exact_text(found: "Exactness") -> str:
    """
    Returns the text about records that were decided again.
    """
    what = f"{plural(found.calls, 'call')} of {plural(found.sessions, 'session')} decided again by `{found.policy}`"
    lines = [f"{what}: " + ("every decision is the recorded one." if found.same else f"{found.differing:,} differ.")]
    for each in found.first:
        place = each.session_id if each.n is None else f"{each.session_id}, event {each.n}, {each.tool}"
        lines.append(f"  {place}: recorded {each.recorded}; now {each.replayed}")
    left = found.differing - len(found.first)
    lines += [f"  and {left:,} more"] if left > 0 else []
    lines += [f"{plural(found.broken_lines, 'broken line')} skipped."] if found.broken_lines else []
    said = [printable("\n".join(lines)), *_not_judged(found.not_judged), *_notices(found.notices)]
    return "\n\n".join(said)


def _figures(one: Tally, other: Tally) -> Iterator[tuple[str, Callable[[Tally], float]]]:
    yield "denied", lambda t: t.denials
    for code in sorted({*one.denied, *other.denied}):
        yield f"  {code}", lambda t, code=code: t.denied[code]  # type: ignore[misc]
    yield "after exhaustion", lambda t: t.after_exhaustion.total()
    yield "nudged", lambda t: t.nudged.total()
    yield "observed", lambda t: t.observed.total()
    yield "wrong", lambda t: t.wrong.total()
    yield from wrong_figures(one, other)
    yield "wrong per 1,000", lambda t: t.wrong_per_1000
    yield "wrong observed", lambda t: t.wrong_observed.total()
    yield "limit stops", lambda t: t.limit_stops.total()
    yield f"2nd pointless stopped, of {one.pointless_second:,}", lambda t: t.stopped_second
    yield f"later pointless stopped, of {one.pointless_later:,}", lambda t: t.stopped_later
    yield "saved calls, at most", lambda t: t.saved_calls
    yield "saved responses, at most", lambda t: t.saved_responses
    yield "saved tokens, at most", lambda t: t.saved_tokens
    yield "saved USD, at most", lambda t: t.saved_micro_usd / 1_000_000


def _differing(one: float, other: float) -> tuple[str, str, str]:
    if isinstance(one, int) and isinstance(other, int):
        return f"{one:,}", f"{other:,}", f"{other - one:+,}" if other != one else "="
    return f"{one:,.2f}", f"{other:,.2f}", f"{other - one:+,.2f}" if round(other - one, 2) else "="


def _rows(judgement: Judgement) -> list[Tally]:
    """
    Returns the sources and the total; the smallest sources are one row if they are many.
    """
    from guardrails.offline.judge.result import add

    tallies = judgement.tallies
    if len(tallies) > MAX_ROWS:
        kept = {t.source for t in sorted(tallies, key=lambda t: -t.calls)[: MAX_ROWS - 1]}
        others = Tally(f"{_OTHERS} ({len(tallies) - len(kept):,})")
        for tally in tallies:
            if tally.source not in kept:
                add(others, tally)
        tallies = [*(t for t in tallies if t.source in kept), others]
    return [*tallies, judgement.total]


def _codes(tally: Tally) -> Iterator[str]:
    """
    Below a row: the denials by code, and what is otherwise with the cap on refused turns off.
    """
    said = []
    for code, count in tally.denied.most_common():
        more = [f"{tally.wrong[code]:,} wrong"] if tally.wrong[code] else []
        more += [f"{tally.unknown[code]:,} without a recorded result"] if tally.unknown[code] else []
        said.append(f"{code} {count:,}" + (f" ({', '.join(more)})" if more else ""))
    said += [f"after {code} {count:,}" for code, count in tally.after_exhaustion.most_common()]
    said += [f"nudge {code} {count:,}" for code, count in tally.nudged.most_common()]
    for code, count in tally.observed.most_common():
        wrong = f" ({tally.wrong_observed[code]:,} wrong)" if tally.wrong_observed[code] else ""
        said.append(f"observed {code} {count:,}{wrong}")
    if said:
        yield _listed(said)
    yield from map(_listed, wrong_lists(tally))
    free = tally.denied_without_cap, tally.after_exhaustion_without_cap
    if free != (tally.denied, tally.after_exhaustion):
        off = [f"{code} {count:,}" for code, count in free[0].most_common()]
        off += [f"after {code} {count:,}" for code, count in free[1].most_common()]
        wrong = f"{tally.wrong_without_cap.total():,} wrong"
        later = f"later {tally.stopped_later_without_cap:,}/{tally.pointless_later:,}"
        yield _listed([f"with the denial cap off: {off[0] if off else 'nothing denied'}", *off[1:], wrong, later])


def _listed(items: Sequence[str]) -> str:
    """
    *items*, with commas, none of them broken, indented below a row.
    """
    lines = ["  "]
    for number, item in enumerate(items, 1):
        part = printable(item) + ("," if number < len(items) else "")
        if len(lines[-1]) + len(part) > width() and lines[-1].strip():
            lines.append("    ")
        lines[-1] += part + " "
    return "\n".join(line.rstrip() for line in lines)


def _watched(judgement: Judgement) -> Iterator[str]:
    total = judgement.total
    if not total.observed:
        return
    codes = ", ".join(
        f"{code} {count:,}" + (f" ({total.wrong_observed[code]:,} wrong)" if total.wrong_observed[code] else "")
        for code, count in total.observed.most_common()
    )
    repeats = (
        f"pointless repeats among them: {total.observed_second:,} of {total.pointless_second:,} second, "
        f"{total.observed_later:,} of {total.pointless_later:,} later"
    )
    yield paragraph(f"Guards in observe mode would have denied: {codes}; {repeats}.")


def _saved(total: Tally) -> str:
    usd = f"${total.saved_micro_usd / 1_000_000:,.2f}"
    spent = f"{plural(total.tokens, 'token')} and ${total.micro_usd / 1_000_000:,.2f} are recorded"
    return paragraph(
        f"Saved at most: {plural(total.saved_calls, 'call')}; {plural(total.saved_responses, 'model response')} all of whose "
        f"calls were stopped, with {plural(total.saved_tokens, 'token')} and {usd} ({spent}). A model that is stopped may do "
        "something else, so this is an upper bound."
    )


def _of_responses(tally: Tally) -> list[str]:
    """
    Returns the savings of model responses all of whose calls were stopped.
    """
    tokens, usd = plural(tally.saved_tokens, "token"), f"${tally.saved_micro_usd / 1_000_000:,.4f}"
    said = [plural(tally.saved_responses, "model response"), *([tokens] if tally.saved_tokens else [])]
    return [*said, *([usd] if tally.saved_micro_usd else [])] if tally.saved_responses else []


def _ends(judgement: Judgement) -> Iterator[str]:
    """
    Returns the calls that were not judged, and the notices met on the way.
    """
    yield from _not_judged(judgement.not_judged)
    yield from formats_text(judgement.read_as, judgement.without)
    yield from _notices(judgement.notices)


def _ends_of_both(names: tuple[str, str], one: Judgement, other: Judgement) -> Iterator[str]:
    """
    The same of two policies: what is so of both, then what is so of one.
    """
    both = dict(one.not_judged.items() & other.not_judged.items())
    yield from _not_judged({guard: reason for guard, reason in one.not_judged.items() if guard in both})
    for name, judgement in zip(names, (one, other), strict=True):
        own = {guard: reason for guard, reason in judgement.not_judged.items() if guard not in both}
        yield from _not_judged(own, f"Not judged of {name}")
    yield from formats_text(one.read_as, one.without)
    yield from _notices(list(dict.fromkeys([*one.notices, *other.notices])))


def _not_judged(guards_of: Mapping[str, str], title: str = "Not judged") -> Iterator[str]:
    if not guards_of:
        return
    reasons: dict[str, list[str]] = {}
    for guard, reason in guards_of.items():
        reasons.setdefault(reason, []).append(guard)
    lines = [heading(title)]
    lines += [
        paragraph(f"{', '.join(guards)}: {reason}", indent="  ", hanging="    ") for reason, guards in reasons.items()
    ]
    yield "\n".join(lines)


def _notices(notices: Sequence[str]) -> Iterator[str]:
    if not notices:
        return
    lines = [heading("Notices")]
    lines += [paragraph(notice, indent="  ", hanging="    ") for notice in notices[:MAX_NOTICES]]
    left = len(notices) - MAX_NOTICES
    lines += [f"  and {left:,} more; --json has them"] if left > 0 else []
    yield "\n".join(lines)


def _stopped(tally: Tally) -> int:
    return tally.denials + tally.after_exhaustion.total()


def _sessions(total: Tally) -> str:
    return plural(total.sessions, "session")


def _name(tally: Tally) -> str:
    name = printable(tally.source).replace("\n", " ")
    return name if len(name) <= NAME else f"{name[: NAME - 8]}...{name[-5:]}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """
    *rows* in columns as wide as they need, numbers to the right, the first row in bold.
    """
    cells = [[printable(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = []
    for number, row in enumerate(cells):
        rest = "".join(f"  {cell.rjust(size)}" for cell, size in zip(row[1:], widths[1:], strict=True))
        line = (row[0].ljust(widths[0]) + rest).rstrip()
        lines.append(heading(line) if number == 0 else line)
    return lines


SHOWN: Final = 10
"""Refused calls that are shown one by one."""

LEGEND = (
    "Why wrong, with those that are recorded as a success: "
    + "; ".join(f"{name}: {words}" for name, words in WHY.items())
    + ". Lost: calls that were denied because their session was over."
)


def wrong_lists(tally: Tally) -> Iterator[list[str]]:
    """
    The wrong denials of *tally* by what the calls brought, and the calls lost after an end; nothing if there are none.
    """
    if tally.wrong:
        yield _reasons("wrong because", tally.wrong_why, tally.wrong_worked)
    if tally.wrong_observed:
        yield _reasons("observed wrongly because", tally.wrong_observed_why, tally.wrong_observed_worked)
    if tally.lost:
        worked, new = tally.lost_worked.total(), tally.lost_new.total()
        yield [f"lost after the end {tally.lost.total():,} ({worked:,} worked, {new:,} of them no repeat)"]


def wrong_figures(one: Tally, other: Tally) -> Iterator[tuple[str, Callable[[Tally], float]]]:
    """
    The same as (name, figure) of what is in *one* or the *other*.
    """
    for why in WHY:
        if one.wrong_why[why] or other.wrong_why[why]:
            yield f"  {why}", lambda t, why=why: t.wrong_why[why]  # type: ignore[misc]
    if one.lost or other.lost:
        yield "lost after the end", lambda t: t.lost.total()
        yield "  of them worked", lambda t: t.lost_worked.total()


def harmed(tally: Tally) -> int:
    """
    Calls that were denied and were no pointless repeat, those after the end of a session too.
    """
    return tally.denials + tally.after_exhaustion.total() - tally.stopped_second - tally.stopped_later


def harm_text(names: tuple[str, str], one: Judgement, other: Judgement) -> str:
    """
    Returns the number of calls that two policies deny though they were no pointless repeat, and those that the *other*
    denies.
    """
    counts = harmed(one.total), harmed(other.total)
    figures = "; ".join(f"{name} {plural(n, 'call')}" for name, n in zip(names, counts, strict=True))
    said = [paragraph(f"Refused, and no pointless repeat: {figures}.")]
    if counts[1]:
        before = {_place(stop) for stop in _harming(one)}
        shown = _harming(other)[:SHOWN]
        said.append(heading(f"{names[1]} would refuse"))
        said += [_one(stop, names[0], before) for stop in shown]
        if counts[1] > len(shown):
            more = f"and {counts[1] - len(shown):,} more; `--decisions FILE` has all"
            said.append(paragraph(more, indent="  ", hanging="  "))
    return "\n".join(said)


def next_text(names: tuple[str, str], one: Judgement, other: Judgement) -> str:
    """
    The next step with the *other* policy, after it was held against *one*.
    """
    policy, total = names[1].removesuffix(" (2)"), other.total
    denied = total.denials + total.after_exhaustion.total()
    codes = [code for code, _ in Counter(stop.code for stop in _harming(other)).most_common(1)]
    if codes:
        said = (
            f"look at the calls above: what is honest work must not be refused. `guardrails explain {codes[0]}` says how to "
            f"loosen it in `{policy}`. Then give this command again."
        )
    elif denied:
        said = (
            f"`{policy}` refuses pointless repeats only, {denied:,} of {plural(total.calls, 'call')}. Check it "
            f"(`guardrails policy check {policy}`), load it in place of the one that observes, and report on the next day."
        )
    elif total.observed:
        said = f"`{policy}` refuses nothing: it observes. Set `mode: enforce` once what it would have refused is right."
    else:
        said = (
            f"`{policy}` refuses none of these calls. Record more days, or ask for more: `guardrails report --suggest`."
        )
    return paragraph(f"Next: {said}")


def _harming(judgement: Judgement) -> list[Stop]:
    return [stop for stop in judgement.stops if stop.decision == "deny" and not stop.pointless]


def _place(stop: Stop) -> tuple[str, str, str, int]:
    return stop.source, stop.session_id, stop.run, stop.call_index


def _one(stop: Stop, name: str, before: set[tuple[str, str, str, int]]) -> str:
    why = [stop.why] if stop.why else []
    why += ["no recorded result"] if stop.pointless is None else []
    why.append(f"so does {name}" if _place(stop) in before else f"{name} does not")
    where = f"{stop.source}: {stop.session_id}, call {stop.call_index}"
    return paragraph(f"{where}: {stop.tool}, {stop.code} ({', '.join(why)})", indent="  ", hanging="    ")


def _reasons(name: str, why: Counter[str], worked: Counter[str]) -> list[str]:
    each = [f"{reason} {count:,} ({worked[reason]:,} worked)" for reason, count in why.most_common()]
    return [f"{name}: {each[0]}", *each[1:]]
