"""
The command `report`.
"""

import os
import shlex

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.outputs import without_outputs, write_whole
from guardrails.cli.text.printing import (
    fail,
    failures_told,
    formats_text,
    heading,
    paragraph,
    print_json,
    printable,
    table,
    tell_of_nothing,
)
from guardrails.offline.figures import FEW, NONE, duration, plural, share, usd

from .policies import load_policy


if TYPE_CHECKING:
    from guardrails.offline.report.run import Found
    from guardrails.offline.report.tally import Tally

SHOWN: Final = 20
"""Tools in the table; the page and the JSON have them all."""
FIRST: Final = 5
"""Tools that are told why to redesign."""
NAME: Final = 24
NOTICES: Final = 10
_COLUMNS: "Final[tuple[tuple[str, str, Callable[[Tally], str]], ...]]" = (
    ("calls", "Calls that the model made, refused ones too.", lambda t: f"{t.calls:,}"),
    ("score", "Share of calls wasted x calls: what a redesign would save at most.", lambda t: f"{t.score:,}"),
    ("failed", "Calls that failed or were refused for their arguments.", lambda t: share(t.failed, t.calls)),
    (
        "retry ok",
        "Calls made again within 20 calls after they had failed, that then worked.",
        lambda t: share(t.retries.s, t.retries.n),
    ),
    (
        "repeat",
        "The same tool and arguments as one of the last 20 calls that ran, or refused as that.",
        lambda t: share(t.repeated, t.calls),
    ),
    (
        "loop",
        "Idle calls: repeats with the same result as the latest and nothing new done in between, or calls refused for going "
        "round in circles.",
        lambda t: share(t.idle, t.calls),
    ),
    ("no sign", "Successes that do not say whether they are complete.", lambda t: share(t.unsaid, t.results)),
    ("p99", "99 of 100 calls took no longer.", lambda t: duration(t.durations.at(0.99))),
    ("cost", "Of the tool itself.", lambda t: usd(t.cost) if t.cost else NONE),
)
_WASTED: Final = (
    "wasted: Calls that were idle (see loop), were refused for their arguments, or failed but for news of the work."
)


@examples(
    "guardrails report records.jsonl",
    "guardrails report sessions/ --html report.html",
    "guardrails report sessions/ --suggest -o overrides.yaml",
)
def report(
    *,
    records: Annotated[
        list[str],
        typer.Argument(metavar="RECORDS...", help="Records, transcripts, folders of them; - is standard input."),
    ],
    policy: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            help="Says which tools poll or change nothing; what `--suggest` extends.",
        ),
    ] = "default",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write there a page to look at.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    suggest: Annotated[
        bool,
        typer.Option("--suggest", help="Write the policy overrides that the figures support, in place of the table."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file that `--suggest` writes; printed without it."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing of the progress.")] = False,
) -> None:
    """
    Say how good each tool is: errors, retries, self-corrections, pointless repeats, durations, cost; which to redesign first.

    Reads what `replay` reads.
    """
    from guardrails.offline.transcripts.inputs import inputs

    if output is not None and not suggest:
        fail("`--output` goes with `--suggest`")
    known = load_policy(policy)
    try:
        files = inputs(records)
    except OSError as error:
        fail(str(error))
    files = without_outputs(files, {"--html": html, "--output": output})
    from guardrails.cli.text.progress import telling
    from guardrails.offline.report.overrides import overrides
    from guardrails.offline.report.result import suggestions, to_dict
    from guardrails.offline.report.run import count_files
    from guardrails.offline.transcripts.inputs import nothing_found

    with failures_told(), telling(quiet=quiet or as_json) as tell:
        found = count_files(known, files, tell)
    made = suggestions(found.quality, known) if found.quality.calls else []
    if as_json:
        print_json(to_dict(found, made))
    if not found.quality.calls:
        tell_of_nothing(nothing_found(records, found.without))
    if html is not None:
        from guardrails.cli.text.page import write_page

        write_page(html, "report", to_dict(found, made), plural(len(found.quality.tallies), "tool"))
    if suggest:
        named = "overrides.yaml" if output is None else str(output)
        replay = shlex.join(["guardrails", "replay", policy, *records, "--compare", named])
        text = overrides(made, _base(policy, output), _seen(found, ""), replay)
        if output is not None:
            write_whole(output, text)
            settings = sum(len(one.settings) for one in made)
            said = f"{plural(settings, 'setting')} for {plural(len(made), 'tool')} written to `{output}`."
            typer.echo(printable(f"{said} Judge them before you use them:\n  {replay}"), err=as_json)
        elif not as_json:
            typer.echo(text, nl=False)
    elif not as_json:
        typer.echo(_text(found))
        if made:
            of = [] if policy == "default" else ["--policy", policy]
            command = shlex.join(["guardrails", "report", *records, *of, "--suggest", "-o", "overrides.yaml"])
            typer.echo(printable(f"\nNext, what a policy should know of these tools:\n  {command}"))


def _base(policy: str, output: Path | None) -> str:
    """
    Returns the base of the written file, as seen from its folder.
    """
    from guardrails.policy.reload import is_name

    if is_name(policy):
        return policy
    path = Path(policy).resolve()
    return str(path) if output is None else os.path.relpath(path, output.resolve().parent)


def _seen(found: "Found", kind: str = "recorded ") -> str:
    return f"{plural(found.quality.calls, f'{kind}call')} of {plural(found.quality.sessions, 'session')}"


def _text(found: "Found") -> str:
    """
    The table of tools, those to redesign first and why.
    """
    from guardrails.offline.report.reasons import FORMULA, ranked, reasons

    tools = ranked(found.quality.tallies.values())
    priced = any(tally.cost for tally in tools)
    columns = [column for column in _COLUMNS if column[0] != "cost" or priced]
    rows = [(_name(tally), *(of(tally).replace(NONE, "-") for _, _, of in columns)) for tally in tools[:SHOWN]]
    lines = [heading(f"{_seen(found)}, {plural(len(tools), 'tool')}")]
    lines.append(table([("tool", *(name for name, _, _ in columns)), *rows], figures=True))
    if len(tools) > SHOWN:
        lines.append(f"and {len(tools) - SHOWN:,} more, none with a larger score; `--json` has them all")
    meanings = [f"{name}: {meaning}" for name, meaning, _ in columns]
    lines += ["", *(paragraph(meaning, hanging="  ") for meaning in (*meanings, _WASTED))]
    lines.append(f"Of fewer than {FEW} calls a share is told as `1 of 2`, not in per cent.")
    first = [tally for tally in tools if tally.wasted][:FIRST]
    if first:
        lines += ["", heading("Redesign first"), FORMULA]
    for place, tally in enumerate(first, 1):
        of = f" ({share(tally.wasted, tally.calls)})" if tally.calls >= FEW else ""
        wasted = f"{tally.wasted:,} of {plural(tally.calls, 'call')} wasted{of}"
        lines.append(paragraph(f"{place}. {tally.tool}: {wasted}", hanging="   "))
        why = [*map(str, reasons(tally)), *([_loops(tally)] if tally.loops else [])]
        lines += [paragraph(f"   - {reason}", hanging="     ") for reason in why]
    cost = sum(tally.cost for tally in tools)
    if cost or found.quality.model_cost:
        lines += ["", f"Cost: {usd(cost)} of tools, {usd(found.quality.model_cost)} of model responses."]
    more = [f"and {plural(len(found.notices) - NOTICES, 'more notice')}"] if len(found.notices) > NOTICES else []
    lines += ["", *formats_text(found.read_as, found.without)]
    lines += [*(paragraph(notice, hanging="  ") for notice in found.notices[:NOTICES]), *more]
    return "\n".join(lines)


def _loops(tally: "Tally") -> str:
    cost = [plural(tally.loop_tokens, "token")] if tally.loops_told else []
    cost += [duration(tally.loop_ms)] if tally.loops_timed else []
    return ", ".join([f"{plural(tally.loops, 'loop')} of {plural(tally.idle, 'idle call')}", *cost])


def _name(tally: "Tally") -> str:
    name = printable(tally.tool).replace("\n", "\\n").replace("\t", "\\t")
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"
