"""
The command `train`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.printing import fail, failures_told, print_json, printable
from guardrails.cli.text.progress import Ticker


if TYPE_CHECKING:
    from guardrails.offline.learning.train import Trained


@examples("guardrails train records/ -o model.json", "guardrails train records/ -o model.json --dry-run --json")
def train(
    *,
    records: Annotated[list[str], typer.Argument(metavar="RECORDS...", help="Files and folders of records.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The model file.")],
    engine: Annotated[Literal["duckdb", "spark"], typer.Option(help="The engine that reads the records.")] = "duckdb",
    master: Annotated[str | None, typer.Option(metavar="URL", help="The Spark master; local[*] by default.")] = None,
    half_life: Annotated[float, typer.Option(metavar="DAYS", help="After so many days a failure weighs half.")] = 10.0,
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
    if not half_life > 0:
        fail(f"`--half-life` is more than 0 days, not `{half_life:g}`")
    if output.is_dir():
        fail(f"`{printable(str(output))}` is a folder: name the model file")
    if not output.absolute().parent.is_dir():
        fail(f"there is no folder `{printable(str(output.parent))}` for the model file: make it first")
    with failures_told():
        made = run(
            records,
            output,
            half_life_days=half_life,
            master=(master or "local[*]") if engine == "spark" else None,
            dry_run=dry_run,
            force=force,
            progress=_progress(quiet=quiet or as_json),
        )
    if as_json:
        print_json(made.to_dict())
    else:
        _show(made, dry_run=dry_run)


def _progress(*, quiet: bool) -> Callable[[int, str], None]:
    ticker = Ticker(quiet=quiet)

    def tell(done: int, what: str) -> None:
        if ticker.due():
            ticker.tell(f"{done:,} {what} read")

    return tell


def _show(made: "Trained", *, dry_run: bool) -> None:
    from guardrails.cli.text.train import trained_text

    typer.echo(trained_text(made, dry_run=dry_run))
