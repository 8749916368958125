"""
The texts that `guardrails report` prints for a person.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from guardrails.offline.pages.numbers import NONE, plural, usd

from .printing import formats_text, heading, paragraph, printable, table


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


def report_text(found: "Found", suggest: str = "") -> str:
    """
    The table of tools, those to redesign first and why; last the command *suggest*, if there is something to suggest.
    """
    from guardrails.offline.quality.page.columns import COLUMNS, SHARES, brief, loops_told, told_of, wasted_told
    from guardrails.offline.quality.page.reasons import FORMULA, ranked

    quality = found.quality
    tools = ranked(quality.tallies.values())
    lines = [
        heading(
            f"{plural(quality.calls, 'recorded call')} of {plural(quality.sessions, 'session')},"
            f" {plural(len(tools), 'tool')}"
        )
    ]
    if tools:
        columns = brief(tools)
        rows = [["tool", *(column.name for column in columns)]]
        rows += [[_name(tally), *(_ascii(column.cell(tally).text) for column in columns)] for tally in tools[:SHOWN]]
        lines.append(table(rows))
        if len(tools) > SHOWN:
            lines.append(f"and {len(tools) - SHOWN:,} more, none with a larger score; `--json` has them all")
        lines.append("")
        explained = [column for column in COLUMNS if column in columns or column.name == "wasted"]
        lines += [paragraph(f"{column.name}: {column.meaning}", hanging="  ") for column in explained]
        lines.append(SHARES)
    first = [tally for tally in tools if tally.wasted][:FIRST]
    if first:
        lines += ["", heading("Redesign first"), FORMULA]
        for place, tally in enumerate(first, 1):
            lines.append(paragraph(f"{place}. {tally.tool}: {wasted_told(tally)}", hanging="   "))
            lines += [paragraph(f"   - {reason}", hanging="     ") for reason in told_of(tally)]
    looped = loops_told(tools)
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


def _name(tally: "Tally") -> str:
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
