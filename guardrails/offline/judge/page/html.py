"""
One offline HTML page of a judgement: what was stopped when, by which guard, per tool and session, and how often wrongly.

The page needs no network and no script. Words of transcripts in it are text.
"""

from collections.abc import Sequence
from typing import Final

from guardrails.offline.judge.counting import WHY
from guardrails.offline.judge.result import Judgement
from guardrails.offline.pages.document import Section, document, plain_list, words
from guardrails.offline.pages.markup import Markup, join, named, said, tag
from guardrails.offline.pages.numbers import plural
from guardrails.offline.pages.palette import Palette, legend, palette
from guardrails.offline.readers.inputs import formats_told

from . import lists, sections
from .figures import Side, ranked, sides, watches
from .headline import headline, lead
from .timelines import timelines


MAX_NOTICES: Final = 50
OPEN_SESSIONS: Final = 20
"""Shown at once; the others after a click."""
WORDS: Final = (
    (
        "pointless",
        (
            "The call repeats one of the last 20 calls of its session and brought the same: an equal result where both succeeded,"
            " an equal one but for digits where both failed. Every other repeat brought something."
        ),
    ),
    ("second, later", "The second call of its kind among the last 20, and the third or a later one."),
    (
        "wrong",
        (
            "A denial by the guards duplicates or loops of a call that was not pointless. Budgets, rates, growth caps and streaks"
            " are a decision of the policy, neither right nor wrong; they are counted as stopped at a limit."
        ),
    ),
    ("why wrong", f"{'. '.join(f'{name.capitalize()}: {words}' for name, words in WHY.items())}."),
    (
        "lost after the end",
        "Calls that were denied because their session was over; no repeat: they worked and were not pointless.",
    ),
    ("nudged", "The call runs, and its result carries a hint."),
    ("observed", "A guard in observe mode would have denied the call; it ran."),
    (
        "after exhaustion",
        "Calls of a session whose budget or patience for denied calls was used up. They are not among the denied.",
    ),
    ("without cap", "The same with `denials` off, which ends a session that repeats refused calls."),
    (
        "saved at most",
        (
            "Calls that would not have run, and the tokens and dollars of model responses all of whose calls were stopped: an"
            " upper bound, as the model would have done something else instead."
        ),
    ),
)


def page(judgement: Judgement, other: Judgement | None = None) -> str:
    """
    Returns the page as text, to be written as UTF-8. With *other* it shows both policies side by side, and their
    differences.

    The same judgements give the same page. It stays below 3 MB: a part that is cut says so.
    """
    all_sides = sides(judgement, other)
    colours = palette(ranked(all_sides))
    title = "Judgement of " + " and ".join(side.name for side in all_sides)
    heading = tag("h1", "Judgement of ", join([named(side.name) for side in all_sides], " and "))
    leads = [lead(side) for side in all_sides]
    parts = [each if isinstance(each.body, Markup) else each._replace(note="") for each in _parts(all_sides, colours)]
    return document(title, [heading, *leads], headline(all_sides), parts, _footer(all_sides))


def _parts(all_sides: Sequence[Side], colours: Palette) -> list[Section]:
    observed = any(map(watches, all_sides))
    watched = " A policy that only observes shows what it would have denied." if observed else ""
    by_code = tag(
        "div", *(lists.by_code(side, colours) for side in all_sides), class_="pair" if len(all_sides) > 1 else None
    )
    return [
        Section(
            "sources",
            "Stops by source",
            f"Denials per 1,000 calls; colours and letters are codes of guards.{watched}",
            sections.sources(all_sides, colours),
        ),
        Section(
            "verdicts",
            "Right and wrong",
            "The same denials by what the recorded results say of them.",
            sections.right_and_wrong(all_sides),
        ),
        Section(
            "when",
            "When",
            "Denials over time and by how far their session had come.",
            sections.when(all_sides, colours),
        ),
        Section("guards", "By guard", "", by_code),
        Section("figures", "By source, in figures", "", lists.by_source_table(all_sides)),
        Section(
            "tools",
            "By tool",
            "Tools with the most calls, those with the most denials first.",
            lists.by_tool(all_sides),
        ),
        Section("sessions", "Sessions", "", _sessions(all_sides, colours)),
        Section("differences", "Where they differ", "", lists.different(all_sides))
        if len(all_sides) > 1
        else Section("stops", "Stops, one by one", "", lists.stops(all_sides[0])),
        Section("limits", "What could not be judged", "", _limits(all_sides)),
        words(WORDS),
    ]


def _sessions(all_sides: Sequence[Side], colours: Palette) -> str:
    rows, left_out, codes = timelines(all_sides, colours)
    if not rows:
        return "No session had a stop."
    said_left = f" {plural(left_out, 'session')} with fewer stops left out." if left_out else ""
    note = (
        "One cell a call, those with the most stops first. Grey was allowed, a colour and letter is the code that denied it,"
        " a frame with that letter a nudge or an objection in observe mode, red around it: wrong; a number stands for that many calls that went alike."
    )
    listed = [tag("ul", *rows[:OPEN_SESSIONS], class_="sessions")]
    if rest := rows[OPEN_SESSIONS:]:
        more = tag("summary", f"{plural(len(rest), 'further session')}")
        listed.append(tag("details", more, tag("ul", *rest, class_="sessions")))
    return join(
        [
            tag("p", note + said_left, class_="note"),
            legend(colours, codes),
            tag("div", *listed, data_filter=".sessions>li"),
        ]
    )


def _limits(all_sides: Sequence[Side]) -> Markup:
    return tag("div", *(_limits_of(side) for side in all_sides), class_="pair")


def _limits_of(side: Side) -> Markup:
    found = side.judgement
    lines = [join([named(guard), ": ", said(reason)]) for guard, reason in found.not_judged.items()]
    lines = lines or [Markup("Every guard of the policy could be judged.")]
    notices = [said(notice) for notice in found.notices]
    if read := formats_told(found.read_as, found.without):
        notices.insert(0, said(read))
    if found.broken_lines:
        notices.insert(0, Markup(f"{plural(found.broken_lines, 'line')} could not be read."))
    more = len(notices) - MAX_NOTICES
    if more > 0:
        notices = [*notices[:MAX_NOTICES], Markup(f"and {more:,} more")]
    return tag(
        "div",
        tag("h3", named(side.name)),
        plain_list(lines[:MAX_NOTICES], ""),
        tag("h3", "Notices"),
        plain_list(notices, "None."),
    )


def _footer(all_sides: Sequence[Side]) -> Markup:
    lines = []
    for side in all_sides:
        took = side.judgement.seconds
        pace = f", {side.total.calls / took:,.0f} calls a second" if took > 0 else ""
        lines.append(tag("p", named(side.name), f": judged in {took:,.1f} s{pace}."))
    return tag("footer", *lines)
