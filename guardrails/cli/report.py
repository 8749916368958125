"""
The command `report`.
"""

import os
import shlex

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

import guardrails

from guardrails.offline.figures import one_line, plural, share, usd

from . import console
from .console import Files, Html, Json, Quiet, echo, inputs_of, must_have, say, write_page


SHOWN: Final = 10
"""Tools in a table; the page and the JSON have them all."""
FIRST: Final = 5
"""Tools of which the reasons to redesign them are shown."""
COLUMNS: Final[tuple[tuple[str, Callable[[Any], str]], ...]] = (
    ("calls", lambda t: f"{t.calls:,}"),
    ("wasted", lambda t: f"{t.wasted:,}"),
    ("failed", lambda t: share(t.failed, t.calls)),
    ("retried", lambda t: share(t.retries.n, t.retriable)),
    ("repeat", lambda t: share(t.repeated, t.calls)),
    ("loop", lambda t: share(t.idle, t.calls)),
)
"""The page and the JSON have more of them."""


def report(
    records: Files,
    policy: Annotated[str, typer.Option(help="What is known of the tools; `--suggest` extends it.")] = "default",
    html: Html = None,
    as_json: Json = False,
    suggest: Annotated[bool, typer.Option("--suggest", help="Write the policy that the figures support.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file that `--suggest` writes.")] = None,
    quiet: Quiet = False,
) -> None:
    """
    Say how good each tool is, and which to redesign first.

    wasted: calls that were idle, refused for their arguments, or failed. retried: failed calls that were made again
    soon. repeat: the same call as one of the last 20. loop: repeats with the same result and nothing new done in
    between. The page and the JSON have all figures. Reads what `replay` reads.

    \b
    Examples:
      guardrails report records.jsonl
      guardrails report sessions/ --html report.html
      guardrails report sessions/ --suggest -o overrides.yaml
    """
    from guardrails.offline.report.quality import count_files, suggestions, to_dict
    from guardrails.offline.report.suggestions import overrides
    from guardrails.policy.reload import is_name

    if output is not None and not suggest:
        console.fail("`--output` goes with `--suggest`")
    known = guardrails.Policy.load(policy)
    files = inputs_of(records, html=html, output=output)
    with console.progress(quiet=quiet or as_json) as tell:
        quality = count_files(known, files, tell)
    made = suggestions(quality, known)
    document = to_dict(quality, made)
    if as_json:
        console.print_json(document)
    must_have(quality.calls, records, quality.report.without)
    write_page(html, "report", document)
    if not suggest:
        if not as_json:
            _show(quality)
            wanted = shlex.join(["guardrails", "report", *records, "--policy", policy, "--suggest"])
            echo(f"\nWhat a policy should know of these tools:\n  {wanted}" if made else "")
        return
    again = shlex.join(["guardrails", "replay", policy, *records, "--compare", str(output or "overrides.yaml")])
    # A file is named as it is seen from that which extends it.
    base = policy if is_name(policy) else os.path.relpath(os.path.realpath(policy), output and output.resolve().parent)
    text = overrides(made, base, _seen(quality, ""), again)
    if output is not None:
        console.write_text(output, text)
        count = f"{plural(sum(len(one.settings) for one in made), 'setting')} for {plural(len(made), 'tool')}"
        echo(f"{count} written to `{output}`. Judge them before you use them:\n  {again}", err=as_json)
    elif not as_json:
        typer.echo(text, nl=False)


def _seen(quality: Any, kind: str = "recorded ") -> str:
    return f"{plural(quality.calls, f'{kind}call')} of {plural(quality.sessions, 'session')}"


def _show(quality: Any) -> None:
    """
    The tables of tools; those to redesign first, and why.
    """
    from guardrails.offline.report.reasons import FORMULA, ranked, reasons

    tools = ranked(quality.tallies.values())
    say(f"{_seen(quality)}, {plural(len(tools), 'tool')}")
    rows = [(one_line(tally.tool), *(of(tally) for _, of in COLUMNS)) for tally in tools[:SHOWN]]
    console.table([("tool", *(name for name, _ in COLUMNS)), *rows], figures=True)
    console.observed(*(sum(getattr(tally, name) for tally in tools) for name in ("observed", "observed_worked")))
    cost = sum(tally.cost for tally in tools)
    if cost or quality.model_cost:
        say(f"Cost: {usd(cost)} of tools, {usd(quality.model_cost)} of model responses.")
    first = [tally for tally in tools[:FIRST] if tally.wasted]
    if first:
        say(f"Redesign first: {FORMULA}")
    for place, tally in enumerate(first, 1):
        say(f"{place}. {tally.tool}: {tally.wasted:,} of {plural(tally.calls, 'call')} wasted")
        for reason in reasons(tally):
            say(f"- {reason}", 3)
    console.points("Notices", quality.report.notices)
