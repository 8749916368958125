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
    from guardrails.offline.report.quality import Quality
    from guardrails.offline.report.tally import Tally


SHOWN: Final = 10
"""Tools in a table; the page and the JSON have them all."""
FIRST: Final = 5
"""Tools that are told why to redesign."""
NAME: Final = 22
NOTICES: Final = 6
_CALLS: "Final[tuple[tuple[str, str, Callable[[Tally], str]], ...]]" = (
    ("calls", "calls that the model made, refused ones too", lambda t: f"{t.calls:,}"),
    (
        "wasted",
        "idle (see loop), refused for their arguments, or failed but for news of the work",
        lambda t: f"{t.wasted:,}",
    ),
    ("failed", "failed or refused for their arguments", lambda t: share(t.failed, t.calls)),
    ("retried", "failed calls that were made again within 20 calls", lambda t: share(t.retries.n, t.retriable)),
    (
        "repeat",
        "the same call as one of the last 20 that ran, or refused as that",
        lambda t: share(t.repeated, t.calls),
    ),
    (
        "loop",
        "idle calls: repeats with the same result as the latest and nothing new done in between, or calls refused for going "
        "round in circles",
        lambda t: share(t.idle, t.calls),
    ),
)
_ANSWERS: "Final[tuple[tuple[str, str, Callable[[Tally], str]], ...]]" = (
    ("no end", "successes that do not say whether they are complete", lambda t: share(t.unsaid, t.results)),
    ("unclear", "failures whose kind nobody can tell", lambda t: share(t.errors["other"], t.failed)),
    ("unchecked", "wrong arguments that ran: nothing had checked them", lambda t: share(t.unchecked, t.calls)),
    (
        "mended",
        "calls with wrong arguments that the next one of the tool mended",
        lambda t: share(t.corrections.s, t.corrections.n),
    ),
    ("p99", "99 of 100 calls took no longer", lambda t: duration(t.p99_ms)),
    ("cost", "of the tool itself", lambda t: usd(t.cost) if t.cost else NONE),
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
    legend: Annotated[bool, typer.Option("--legend", help="Say what each word of the tables means.")] = False,
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
    from guardrails.offline.report.quality import count_files, suggestions, to_dict
    from guardrails.offline.report.suggestions import overrides
    from guardrails.offline.transcripts.inputs import nothing_found

    with failures_told(), telling(quiet=quiet or as_json) as tell:
        found = count_files(known, files, tell)
    made = suggestions(found, known)
    if as_json:
        print_json(to_dict(found, made))
    if not found.calls:
        tell_of_nothing(nothing_found(records, found.report.without))
    if html is not None:
        from guardrails.cli.text.page import write_page

        write_page(html, "report", to_dict(found, made), plural(len(found.tallies), "tool"))
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
        typer.echo("\n" + (_legend() if legend else "`--legend` says what each word means."))
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


def _seen(found: "Quality", kind: str = "recorded ") -> str:
    return f"{plural(found.calls, f'{kind}call')} of {plural(found.sessions, 'session')}"


def _text(found: "Quality") -> str:
    """
    The table of tools, those to redesign first and why.
    """
    from guardrails.offline.report.reasons import FORMULA, ranked, reasons

    tools = ranked(found.tallies.values())
    lines = [
        heading(f"{_seen(found)}, {plural(len(tools), 'tool')}"),
        _table("tool", _CALLS, tools),
        "",
        _table("answers", _ANSWERS, tools),
    ]
    if len(tools) > SHOWN:
        lines.append(f"and {len(tools) - SHOWN:,} more, none of which wastes more calls; `--json` has them all")
    observed, worked = (sum(getattr(tally, name) for tally in tools) for name in ("observed", "observed_worked"))
    if observed:
        had = f"would have refused {observed:,}, of which {worked:,} had worked"
        lines += ["", paragraph(f"When these calls were recorded, guards observed them: they {had}.")]
    first = [tally for tally in tools if tally.wasted][:FIRST]
    if first:
        lines += ["", heading("Redesign first"), FORMULA]
    for place, tally in enumerate(first, 1):
        of = f" ({share(tally.wasted, tally.calls)})" if tally.calls >= FEW else ""
        wasted = f"{tally.wasted:,} of {plural(tally.calls, 'call')} wasted{of}"
        lines.append(paragraph(f"{place}. {tally.tool}: {wasted}", hanging="   "))
        lines += [paragraph(f"   - {reason}", hanging="     ") for reason in reasons(tally)]
    cost = sum(tally.cost for tally in tools)
    if cost or found.model_cost:
        lines += ["", f"Cost: {usd(cost)} of tools, {usd(found.model_cost)} of model responses."]
    report = found.report
    more = [f"and {plural(len(report.notices) - NOTICES, 'more notice')}"] if len(report.notices) > NOTICES else []
    lines += [""] if report.notices else []
    lines += [*(paragraph(notice, hanging="  ") for notice in report.notices[:NOTICES]), *more]
    return "\n".join(lines)


def _table(title: str, columns: "tuple[tuple[str, str, Callable[[Tally], str]], ...]", tools: "list[Tally]") -> str:
    """
    A table of the tools; a column in which nothing stands is left out.
    """
    cells = [[of(tally).replace(NONE, "-") for tally in tools[:SHOWN]] for _, _, of in columns]
    shown = [(name, column) for (name, _, _), column in zip(columns, cells, strict=True) if set(column) != {"-"}]
    rows = zip(map(_name, tools[:SHOWN]), *(column for _, column in shown), strict=True)
    return table([(title, *(name for name, _ in shown)), *rows], figures=True)


def _legend() -> str:
    words = [f"{name}: {meaning}" for name, meaning, _ in (*_CALLS, *_ANSWERS)]
    few = f"Of fewer than {FEW} calls a share is told as `1 of 2`, not in per cent."
    return "\n".join(paragraph(word, hanging="  ") for word in (*words, few))


def _name(tally: "Tally") -> str:
    name = printable(tally.tool).replace("\n", "\\n").replace("\t", "\\t")
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"
