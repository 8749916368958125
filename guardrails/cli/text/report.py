"""
The texts that `guardrails report` prints for a person.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from guardrails.offline.figures import FEW, NONE, duration, plural, share, usd
from guardrails.offline.quality.reasons import FORMULA, ranked, reasons
from guardrails.offline.quality.tally import Tally

from .printing import formats_text, heading, paragraph, printable, table


if TYPE_CHECKING:
    from guardrails.offline.quality.run import Found
    from guardrails.offline.quality.suggestions import Suggestion

SHOWN: Final = 20
"""Tools in the table; the page and the JSON have them all."""
FIRST: Final = 5
"""Tools that are told why to redesign."""
NAME: Final = 24
NOTICES: Final = 10


class Column(NamedTuple):
    """
    One figure of each tool.
    """

    name: str
    meaning: str
    cell: Callable[[Tally], str]


def _shared(odds: Callable[[Tally], tuple[int, int]]) -> Callable[[Tally], str]:
    return lambda tally: share(*odds(tally))


WASTED: Final = (
    "wasted: Calls that were idle (see loop), were refused for their arguments, or failed. Non-zero exits, code errors and "
    "cancellations are news of the work, not failures of the tool. Each call counts once."
)
SHARES: Final = f"Of fewer than {FEW} calls a share is told as `1 of 2`, not in per cent."
COLUMNS: Final = (
    Column("calls", "Calls that the model made, refused ones too.", lambda t: f"{t.calls:,}"),
    Column(
        "score",
        f"{FORMULA.partition('= ')[2].capitalize()}: what a redesign would save at most.",
        lambda t: f"{t.score:,}",
    ),
    Column(
        "failed",
        "Calls that failed, non-zero exits and the like too, or were refused for their arguments.",
        _shared(lambda t: (t.failed, t.calls)),
    ),
    Column(
        "retry ok",
        "Calls made again within 20 calls after they had failed, that then worked.",
        _shared(lambda t: (t.retries.s, t.retries.n)),
    ),
    Column(
        "fixed",
        "Wrong arguments after which the next call of the tool, within 5 calls, had other ones and worked.",
        _shared(lambda t: (t.corrections.s, t.corrections.n)),
    ),
    Column(
        "repeat",
        "The same tool and arguments as one of the last 20 calls that ran, or refused as that.",
        _shared(lambda t: (t.repeated, t.calls)),
    ),
    Column(
        "loop",
        "Idle calls: repeats with the same result as the latest (of a failure: the same but for digits) and nothing new done "
        "in between, or calls refused for going round in circles. Tools that poll have none that ran.",
        _shared(lambda t: (t.idle, t.calls)),
    ),
    Column(
        "no sign",
        "Successes that do not say whether they are complete, or that they are not and not how to go on.",
        _shared(lambda t: (t.unsaid, t.results)),
    ),
    Column(
        "p50",
        "Half of the calls took no longer.",
        lambda t: duration(t.durations.at(0.5)),
    ),
    Column("p99", "99 of 100 calls took no longer.", lambda t: duration(t.durations.at(0.99))),
    Column("cost", "Of the tool itself.", lambda t: usd(t.cost) if t.cost else NONE),
)


def report_text(found: "Found", suggest: str = "") -> str:
    """
    The table of tools, those to redesign first and why; last the command *suggest*, if there is something to suggest.
    """
    quality = found.quality
    tools = ranked(quality.tallies.values())
    lines = [
        heading(
            f"{plural(quality.calls, 'recorded call')} of {plural(quality.sessions, 'session')},"
            f" {plural(len(tools), 'tool')}"
        )
    ]
    if tools:
        priced = any(tally.cost for tally in tools)
        columns = [column for column in COLUMNS if column.name != "cost" or priced]
        rows = [["tool", *(column.name for column in columns)]]
        rows += [[_name(tally), *(_ascii(column.cell(tally)) for column in columns)] for tally in tools[:SHOWN]]
        lines.append(table(rows))
        if len(tools) > SHOWN:
            lines.append(f"and {len(tools) - SHOWN:,} more, none with a larger score; `--json` has them all")
        lines.append("")
        meanings = [f"{column.name}: {column.meaning}" for column in columns]
        lines += [paragraph(said, hanging="  ") for said in (*meanings[:2], WASTED, *meanings[2:])]
        lines.append(SHARES)
    first = [tally for tally in tools if tally.wasted][:FIRST]
    if first:
        lines += ["", heading("Redesign first"), FORMULA]
        for place, tally in enumerate(first, 1):
            lines.append(paragraph(f"{place}. {tally.tool}: {_wasted(tally)}", hanging="   "))
            why = [*map(str, reasons(tally)), *filter(None, [_loops(tally)])]
            lines += [paragraph(f"   - {reason}", hanging="     ") for reason in why]
    looped = _loops(*tools)
    if looped and sum(tally.loops > 0 for tally in tools) > 1:
        lines += ["", paragraph(f"{looped[0].upper()}{looped[1:]}.")]
    cost = sum(tally.cost for tally in tools)
    if cost or quality.model_cost:
        lines += ["", f"Cost: {usd(cost)} of tools, {usd(quality.model_cost)} of model responses."]
    read = list(formats_text(found.read_as, found.without))
    lines += ["", *read] if read else []
    lines += ["", *(paragraph(notice, hanging="  ") for notice in found.notices[:NOTICES])] if found.notices else []
    if len(found.notices) > NOTICES:
        lines.append(f"and {plural(len(found.notices) - NOTICES, 'more notice')}")
    lines += ["", "Next, what a policy should know of these tools:", f"  {printable(suggest)}"] if suggest else []
    return "\n".join(lines)


def _loops(*tools: Tally) -> str:
    """
    The cost of the loops of *tools*, in all and each; empty if there are none.
    """
    loops, calls = sum(tally.loops for tally in tools), sum(tally.idle for tally in tools if tally.loops)
    if not loops:
        return ""
    tokens, ms = sum(tally.loop_tokens for tally in tools), sum(tally.loop_ms for tally in tools)
    each: tuple[tuple[int, str, Callable[[float], str], float, str], ...] = (
        (sum(tally.loops_told for tally in tools), plural(tokens, "token"), lambda n: f"{n:,.0f}", tokens, "tokens"),
        (sum(tally.loops_timed for tally in tools), duration(ms), duration, ms, "times"),
    )
    said = [f"{plural(loops, 'loop')} of {plural(calls, 'idle call')}"]
    for known, whole, shown, total, what in each:
        if known:
            of = "" if known == loops else f" ({known:,} with recorded {what})"
            said.append(f"{whole}, {shown(total / known)} a loop{of}" if loops > 1 else whole)
    return "; ".join(said if len(said) > 1 else [*said, "tokens and times are not recorded"])


def _wasted(tally: Tally) -> str:
    verb = f"{tally.wasted:,} of {plural(tally.calls, 'call')} wasted"
    return f"{verb} ({share(tally.wasted, tally.calls)})" if tally.calls >= FEW else verb


def _name(tally: Tally) -> str:
    name = printable(tally.tool).replace("\n", "\\n").replace("\t", "\\t")
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"


def _ascii(cell: str) -> str:
    return "-" if cell == NONE else cell


def suggested_text(suggestions: "Sequence[Suggestion]", path: Path, replay: str) -> str:
    """
    Returns the text about a written suggestion: its path, and the way to judge it.
    """
    settings = sum(len(one.settings) for one in suggestions)
    if not settings:
        return f"`{path}` suggests nothing: there are too few calls, or the policy says it already."
    said = f"{plural(settings, 'setting')} for {plural(len(suggestions), 'tool')} written to `{path}`."
    return f"{printable(said)} Judge them before you use them:\n  {printable(replay)}"
