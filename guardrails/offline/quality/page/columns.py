"""
The columns of the tables of tools: what each shows, and what that means, for a page and for a terminal.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from guardrails.offline.pages.numbers import FEW, NONE, count, plural, share, usd
from guardrails.offline.pages.tables import Figure
from guardrails.offline.quality.tally import Tally, ratio

from .durations import duration
from .reasons import FORMULA, reasons


class Column(NamedTuple):
    """
    One figure of each tool.
    """

    name: str
    meaning: str
    cell: Callable[[Tally], Figure]
    brief: bool = True
    """It is in the table of a terminal, too."""


def _counted(n: Callable[[Tally], int]) -> Callable[[Tally], Figure]:
    return lambda tally: Figure(count(n(tally)), n(tally))


def _shared(odds: Callable[[Tally], tuple[int, int]]) -> Callable[[Tally], Figure]:
    def cell(tally: Tally) -> Figure:
        n, of = odds(tally)
        return Figure(share(n, of), n / of if of else None)

    return cell


def _timed(ms: Callable[[Tally], float | None]) -> Callable[[Tally], Figure]:
    return lambda tally: Figure(duration(ms(tally)), ms(tally))


def _tokens(tally: Tally) -> Figure:
    each = ratio(tally.loop_tokens, tally.loops_told)
    return Figure(NONE if each is None else f"{each:,.0f}", each)


SHARES: Final = f"Of fewer than {FEW} calls a share is told as `1 of 2`, not in per cent."
COLUMNS: Final = (
    Column("calls", "Calls that the model made, refused ones too.", _counted(lambda t: t.calls)),
    Column(
        "score",
        f"{FORMULA.partition('= ')[2].capitalize()}: what a redesign would save at most.",
        _counted(lambda t: t.score),
    ),
    Column(
        "wasted",
        (
            "Calls that were idle (see loop), were refused for their arguments, or failed. Non-zero exits, code errors and"
            " cancellations are news of the work, not failures of the tool. Each call counts once."
        ),
        _shared(lambda t: (t.wasted, t.calls)),
        brief=False,
    ),
    Column(
        "failed",
        "Calls that failed, non-zero exits and the like too, or were refused for their arguments.",
        _shared(lambda t: (t.failed, t.calls)),
    ),
    Column(
        "retried",
        "Failures after which the same call was made again within 20 calls.",
        _shared(lambda t: (t.retries.n, t.retriable)),
        brief=False,
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
        (
            "Idle calls: repeats with the same result as the latest (of a failure: the same but for digits) and nothing new"
            " done in between, or calls refused for going round in circles. Tools that poll have none that ran."
        ),
        _shared(lambda t: (t.idle, t.calls)),
    ),
    Column(
        "loops", "Runs of idle calls, up to the first that brought something.", _counted(lambda t: t.loops), brief=False
    ),
    Column(
        "tokens a loop",
        "Of model responses that made idle calls and no others, by loop, input and output.",
        _tokens,
        brief=False,
    ),
    Column(
        "time a loop",
        "What the idle calls took that ran, by loop.",
        _timed(lambda t: ratio(t.loop_ms, t.loops_timed)),
        brief=False,
    ),
    Column(
        "no sign",
        "Successes that do not say whether they are complete, or that they are not and not how to go on.",
        _shared(lambda t: (t.unsaid, t.results)),
    ),
    Column("p50", "Half of the calls took no longer; within 1 % (DDSketch).", _timed(lambda t: t.durations.at(0.5))),
    Column("p99", "99 of 100 calls took no longer.", _timed(lambda t: t.durations.at(0.99))),
    Column(
        "cost",
        "Of the tool itself.",
        lambda t: Figure(usd(t.cost) if t.cost else NONE, t.cost or None),
    ),
    Column(
        "untyped",
        "Failures that no type says what to do about: `other`.",
        _counted(lambda t: t.errors["other"]),
        brief=False,
    ),
    Column(
        "unchecked",
        "Calls with wrong arguments that ran, since nobody had checked them before.",
        _counted(lambda t: t.unchecked),
        brief=False,
    ),
)


def brief(tools: Iterable[Tally]) -> list[Column]:
    """
    Returns the columns for a terminal: costs only if there are any.
    """
    priced = any(tally.cost for tally in tools)
    return [column for column in COLUMNS if column.brief and (column.name != "cost" or priced)]


def loops_told(tools: Iterable[Tally]) -> str:
    """
    Returns the cost of the loops of *tools*, in all and each. Empty if there are none.
    """
    tools = [tally for tally in tools if tally.loops]
    loops, calls = sum(tally.loops for tally in tools), sum(tally.idle for tally in tools)
    if not loops:
        return ""
    tokens = sum(tally.loop_tokens for tally in tools)
    ms = sum(tally.loop_ms for tally in tools)
    costs = (
        (
            sum(tally.loops_told for tally in tools),
            plural(tokens, "token"),
            lambda each: f"{each:,.0f}",
            tokens,
            "tokens",
        ),
        (sum(tally.loops_timed for tally in tools), duration(ms), duration, ms, "times"),
    )
    said = [f"{plural(loops, 'loop')} of {plural(calls, 'idle call')}"]
    for known, whole, shown, total, what in costs:
        if known:
            of = "" if known == loops else f" ({known:,} with recorded {what})"
            said.append(f"{whole}, {shown(total / known)} a loop{of}" if loops > 1 else whole)
    return "; ".join(said if len(said) > 1 else [*said, "tokens and times are not recorded"])


def wasted_told(tally: Tally) -> str:
    """
    Returns how many calls were wasted, with their share if there are enough of them for one.
    """
    verb = f"{tally.wasted:,} of {plural(tally.calls, 'call')} wasted"
    return f"{verb} ({share(tally.wasted, tally.calls)})" if tally.calls >= FEW else verb


def told_of(tally: Tally) -> list[str]:
    """
    Returns the reasons of a tool's wasted calls with their remedies, and the cost of its loops.
    """
    looped = loops_told([tally])
    return [*map(str, reasons(tally)), *([looped] if looped else [])]
