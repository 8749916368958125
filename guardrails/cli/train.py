"""
The command `train`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from guardrails.offline.figures import plural

from .printing import Json, Quiet, fail, points, print_json, progress, say


if TYPE_CHECKING:
    from guardrails.offline.learning.train import Learned


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
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """
    Learn from records which failures are worth retrying.

    The model is replaced only if the new one is better. Run it daily on the records that are kept: older days weigh
    less. With Spark, RECORDS are any places that it reads: JSON lines or Parquet.

    \b
    Examples:
      guardrails train records/ -o model.json
      guardrails train records/ -o model.json --dry-run --json
    """
    from guardrails.offline.learning.train import train as learn

    if master is not None and engine != "spark":
        fail("`--master` goes with `--engine spark`")
    if loops and engine == "spark":
        fail("`--loops` reads on this machine: leave `--engine spark` out")
    if not half_life > 0:
        fail(f"`--half-life` is more than 0 days, not `{half_life:g}`")
    if output.is_dir() or not output.absolute().parent.is_dir():
        fail(f"cannot write the model file `{output}`: {'it' if output.is_dir() else 'there'} is a folder")
    with progress(quiet=quiet or as_json) as tell:
        made = learn(
            records,
            output,
            half_life_days=half_life,
            master=(master or "local[*]") if engine == "spark" else None,
            dry_run=dry_run,
            force=force,
            loops=loops,
            progress=lambda done: tell and tell(f"{done:,} calls read"),
        )
    print_json(made.to_dict()) if as_json else _show(made)


def _show(made: "Learned") -> None:
    events, failures = made.model.body["training"]["retries"], plural(round(made.facts.failures), "failure")
    days, files = plural(len(made.facts.days), "day"), plural(made.files, "file")
    say(f"{failures} on {days} in {files}; {events:,.0f} calls to learn from.")
    judged = {"retries": made.retries, "calls with other arguments": made.corrections}
    for what, verdict in judged.items():
        if verdict is not None:
            say(f"Held out, {verdict.events:,.0f} {what}, of which {verdict.worked:.0%} worked: {verdict.reason}.")
    if not any(judged.values()):
        say("Nothing is held out, for want of times or days, so nothing says how good the model is.")
    say(_outcome(made))
    points("Notes", made.notes)


def _outcome(made: "Learned") -> str:
    if made.written:
        return f"`{made.output}` is now the model {made.model.name} ({len(made.text) / 1024:,.0f} KiB)."
    if made.present is None and not made.better:
        return "No model is written: what is shipped stays in use. Train again with more records, or use --force."
    return f"`{made.output}` is left as it is; the new model {'would' if made.better else 'would not'} replace it."
