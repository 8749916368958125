"""
The command `train`.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .console import Json, Quiet, fail, inputs_of, progress, show


def train(
    records: Annotated[list[str], typer.Argument(metavar="RECORDS...", help="Files and folders of records.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The model file.")],
    engine: Annotated[Literal["duckdb", "spark"], typer.Option(help="The engine that reads the records.")] = "duckdb",
    master: Annotated[str | None, typer.Option(metavar="URL", help="The Spark master; local[*] by default.")] = None,
    half_life: Annotated[float, typer.Option(metavar="DAYS", help="After so many days a failure weighs half.")] = 10.0,
    loops: Annotated[bool, typer.Option("--loops", help="Learn what brings nothing new: `loop_score`.")] = False,
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
    inputs_of([], output=output)
    cluster = (master or "local[*]") if engine == "spark" else None
    options: dict[str, Any] = {"dry_run": dry_run, "force": force, "loops": loops}
    with progress(quiet=quiet or as_json) as tell:
        options["progress"] = lambda done: tell and tell(f"{done:,} calls read")
        made = learn(records, output, half_life_days=half_life, master=cluster, **options)
    document = made.to_dict()
    if not as_json:
        compared = {"verdict": made.retries, "corrections": made.corrections}
        document |= {name: verdict and verdict.reason for name, verdict in compared.items()}
        document |= {name: f"{document[name]:,.0f}" for name in ("failures", "retries")}
    show(document, as_json=as_json)
