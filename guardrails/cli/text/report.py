"""
What `guardrails report` prints for a person.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .printing import heading, paragraph, printable, table


if TYPE_CHECKING:
    from guardrails.offline.quality.run import Found
    from guardrails.offline.quality.suggestions.suggest import Suggestion
    from guardrails.offline.quality.tally import Tally

SHOWN: Final = 20
"""Tools in the table; the page and the JSON have them all."""
FIRST: Final = 5
"""Tools that are told why to redesign."""
NAME: Final = 24
NOTICES: Final = 10


def report_text(found: "Found") -> str:
    """
    The table of tools, those to redesign first and why.
    """
    from guardrails.core.values.types import MICRO
    from guardrails.offline.quality.page.reasons import FORMULA, ranked, reasons

    quality = found.quality
    tools = ranked(quality.tallies.values())
    calls = f"{quality.calls:,} recorded call{'' if quality.calls == 1 else 's'}"
    lines = [heading(f"{calls} of {quality.sessions:,} sessions, {len(tools):,} tools")]
    if not found.finished:
        lines.append("Interrupted: the figures are of what was read until then.")
    if tools:
        priced = any(tally.cost for tally in tools)
        rows = [["tool", "calls", "score", "failed", "retry ok", "fixed", "repeat", "loop", "no sign", "p50", "p99"]]
        rows += [_row(tally) for tally in tools[:SHOWN]]
        if priced:
            costs = [f"${tally.cost / MICRO:,.4f}" for tally in tools[:SHOWN]]
            rows = [[*row, cost] for row, cost in zip(rows, ["cost", *costs], strict=True)]
        lines.append(table(rows))
        if len(tools) > SHOWN:
            lines.append(f"and {len(tools) - SHOWN:,} more with smaller scores; `--json` has them all")
    first = [tally for tally in tools if tally.wasted][:FIRST]
    if first:
        lines += ["", heading("Redesign first"), f"{FORMULA}"]
        for place, tally in enumerate(first, 1):
            share = f"{tally.wasted:,} of {tally.calls:,} calls wasted ({100 * tally.wasted / tally.calls:.0f} %)"
            lines.append(paragraph(f"{place}. {tally.tool}: {share}", hanging="   "))
            lines += [paragraph(f"   - {reason}", hanging="     ") for reason in reasons(tally)]
    cost = sum(tally.cost for tally in tools)
    if cost or quality.model_cost:
        lines += ["", f"Cost: ${cost / MICRO:,.4f} of tools, ${quality.model_cost / MICRO:,.4f} of model responses."]
    lines += ["", *(paragraph(notice, hanging="  ") for notice in found.notices[:NOTICES])] if found.notices else []
    if len(found.notices) > NOTICES:
        lines.append(f"and {len(found.notices) - NOTICES:,} more notices")
    return "\n".join(lines)


def _row(tally: "Tally") -> list[str]:
    from guardrails.offline.quality.page.durations import duration

    name = printable(tally.tool)
    return [
        name if len(name) <= NAME else f"{name[: NAME - 1]}…",
        f"{tally.calls:,}",
        f"{tally.score:,}",
        _share(tally.failed, tally.calls),
        _share(tally.retries.s, tally.retries.n),
        _share(tally.corrections.s, tally.corrections.n),
        _share(tally.repeats + tally.refused_repeats, tally.calls),
        _share(tally.idle, tally.calls),
        _share(tally.unsaid, tally.results),
        duration(tally.durations.at(0.5)).replace("\N{EN DASH}", "-"),
        duration(tally.durations.at(0.99)).replace("\N{EN DASH}", "-"),
    ]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def suggested_text(suggestions: "Sequence[Suggestion]", path: Path, replay: str) -> str:
    """
    What was written where, and how to judge it.
    """
    settings = sum(len(one.settings) for one in suggestions)
    if not settings:
        return f"`{path}` suggests nothing: there are too few calls, or the policy says it already."
    said = f"{settings:,} setting{'' if settings == 1 else 's'} for {len(suggestions):,} tool{'' if len(suggestions) == 1 else 's'} written to `{path}`."
    return f"{printable(said)} Judge them before you use them:\n  {printable(replay)}"
