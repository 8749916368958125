"""
The command `train`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.printing import fail, failures_told, paragraph, print_json, printable, table
from guardrails.cli.text.progress import telling
from guardrails.offline.figures import plural


if TYPE_CHECKING:
    from guardrails.offline.learning.train import Learned


@examples("guardrails train records/ -o model.json", "guardrails train records/ -o model.json --dry-run --json")
def train(
    *,
    records: Annotated[list[str], typer.Argument(metavar="RECORDS...", help="Files and folders of records.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The model file.")],
    engine: Annotated[Literal["duckdb", "spark"], typer.Option(help="The engine that reads the records.")] = "duckdb",
    master: Annotated[str | None, typer.Option(metavar="URL", help="The Spark master; local[*] by default.")] = None,
    half_life: Annotated[float, typer.Option(metavar="DAYS", help="After so many days a failure weighs half.")] = 10.0,
    loops: Annotated[
        bool, typer.Option("--loops", help="Learn which calls bring nothing new, for `loop_score`.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compare, and write no model.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write the model even if it is not better.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing of the progress.")] = False,
) -> None:
    """
    Learn from records which failures are worth retrying; the model is replaced only if the new one is better.

    Run it daily on the records that are kept: older days weigh less. With Spark, RECORDS are any places that it reads: JSON
    lines or Parquet.
    """
    from guardrails.offline.learning.train import train as run

    if master is not None and engine != "spark":
        fail("`--master` goes with `--engine spark`")
    if loops and engine == "spark":
        fail("`--loops` reads on this machine: leave `--engine spark` out")
    if not half_life > 0:
        fail(f"`--half-life` is more than 0 days, not `{half_life:g}`")
    if output.is_dir():
        fail(f"`{printable(str(output))}` is a folder: name the model file")
    if not output.absolute().parent.is_dir():
        fail(f"there is no folder `{printable(str(output.parent))}` for the model file: make it first")
    with failures_told(), telling(quiet=quiet or as_json) as tell:
        made = run(
            records,
            output,
            half_life_days=half_life,
            master=(master or "local[*]") if engine == "spark" else None,
            dry_run=dry_run,
            force=force,
            loops=loops,
            progress=lambda done: tell and tell(f"{done:,} calls read"),
        )
    if as_json:
        print_json(made.to_dict())
    else:
        typer.echo("\n\n".join(_text(made, dry_run=dry_run, loops=loops)))


def _text(made: "Learned", *, dry_run: bool, loops: bool) -> Iterator[str]:
    """
    What was learned, how it compares, the fate of the model file, and points to look at.
    """
    events, failures = made.model.body["training"]["retries"], plural(round(made.facts.failures), "failure")
    days, files = plural(len(made.facts.days), "day"), plural(made.files, "file")
    learned = f"{failures} on {days}, {events:,.0f} of them retried" if not loops else f"{events:,.0f} calls on {days}"
    yield paragraph(f"{learned}; {files}.")
    judged = {"calls" if loops else "retries": made.retries, "calls with other arguments": made.corrections}
    verdicts = {what: verdict for what, verdict in judged.items() if verdict is not None}
    if verdicts:
        rows = [["log loss, held out", "of", "nothing new" if loops else "worked", "new", "present", "one rate"]]
        for what, one in verdicts.items():
            losses = (f"{loss:.4f}" for loss in (one.new, one.present, one.base))
            rows.append([what, f"{one.events:,.0f}", f"{100 * one.worked:.0f} %", *losses])
        yield table(rows, figures=True)
        yield "\n".join(paragraph(f"Gate, {what}: {verdict.reason}.") for what, verdict in verdicts.items())
    else:
        yield "Nothing is held out, for want of times or days, so nothing says how good the model is."
    yield paragraph(_outcome(made, dry_run=dry_run))
    if made.notes:
        yield "\n".join(paragraph(f"Note: {note}", hanging="  ") for note in made.notes)


def _outcome(made: "Learned", *, dry_run: bool) -> str:
    path = printable(str(made.output))
    if made.written:
        return f"`{path}` is now the model {made.model.name} ({len(made.text) / 1024:,.0f} KiB)."
    if dry_run:
        return f"`{path}` is left as it is (--dry-run); the new model {'would' if made.better else 'would not'} replace it."
    if made.present is None:
        return "No model is written: what is shipped stays in use. Train again with more records, or use --force."
    return f"`{path}` is left as it is."
