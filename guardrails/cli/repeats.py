"""
The command `repeats`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardrails.cli.front.group import examples
from guardrails.cli.text.printing import fail, failures_told, print_json, table, tell_of_nothing
from guardrails.cli.text.ticker import Ticker


if TYPE_CHECKING:
    from guardrails.offline.learning.repeats.rows import Row


@examples(
    "guardrails repeats records/ --from default -o repeats.json",
    "guardrails repeats web/ code/ -o repeats.json --base code/",
)
def repeats(
    records: Annotated[list[str], typer.Argument(metavar="RECORDS...", help="Files and folders of records.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The model file.")],
    model: Annotated[
        str | None,
        typer.Option("--from", metavar="MODEL", help="Fit only the base rate of MODEL: `default`, or a file."),
    ] = None,
    base: Annotated[
        list[str] | None, typer.Option(metavar="SOURCE", help="Whose base rate the model has; all by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002
) -> None:
    """
    Learn from records which calls bring nothing new, for `loops: {model: FILE}`.

    `--from default` takes the shipped model and fits how often that is so in your own records: all that a deployment
    needs. Without it the whole model is learned, from at least two sources (files or folders). Each source is judged by
    a model that has not seen it.
    """
    from guardrails.core.repetition.learned.model_format import parse, repeat_model, text_of
    from guardrails.offline.judge.files.inputs import inputs, nothing_found
    from guardrails.offline.learning.repeats.rows import rows_in
    from guardrails.offline.learning.repeats.train import adapted, trained
    from guardrails.offline.learning.train import write
    from guardrails.offline.readers import Report

    if model is not None and base:
        fail("`--base` goes with a whole training, `--from` with your own base rate")
    with failures_told():
        started = None if model is None else repeat_model(model)
        report = Report()
        rows = list(_told(rows_in(inputs(records), report), quiet=as_json))
        if not rows:
            tell_of_nothing(nothing_found(records, report.without))
        body = trained(rows, base or ())[0] if started is None else adapted(started, rows)
        text = text_of(body)
        parse(text)
        write(output, text)
    if as_json:
        print_json({"calls": len(rows), "output": str(output), "deny_at": body["deny_at"], **body["training"]})
    else:
        typer.echo("\n".join([f"{len(rows):,} calls read", *report.notices]))
        typer.echo(_left_out(body) if started is None else _adapted(body))
        typer.echo(f"written to `{output}`; use it by `loops: {{model: {output.name}}}`")


def _told(rows: "Iterable[Row]", *, quiet: bool) -> "Iterator[Row]":
    ticker = Ticker(quiet=quiet)
    for at, row in enumerate(rows, 1):
        if at % 256 == 0 and ticker.due():
            ticker.tell(f"{at:,} calls")
        yield row


def _adapted(body: dict[str, Any]) -> str:
    found = body["training"]["adapted"]
    share = 100 * found["nothing_new"] / found["labelled"]
    return (
        f"{found['nothing_new']:,} of {found['labelled']:,} calls that it is asked about brought nothing new ({share:.1f} %): "
        f"intercept {body['intercept']:.3f}, before {found['intercept_before']:.3f}"
    )


def _left_out(body: dict[str, Any]) -> str:
    from guardrails.offline.learning.repeats.fit import NEVER

    rows = [["left out", "calls", "nothing new", "AUC", "AP", "nudged", "right", "refused", "wrong"]]
    for source, found in body["training"]["left_out"].items():
        by = found["denied_by_it"]
        told = [found[key] for key in ("calls", "nothing_new", "auc", "ap", "nudged", "nudged_right")]
        rows.append([source, *map(str, told), str(by["caught"] + by["wrong"]), str(by["wrong"])])
    second = body["training"]["second_occurrences"]["all"]
    said = "never" if body["deny_at"] == NEVER else f"from p = {body['deny_at']:g} on"
    return "\n".join(
        [
            table(rows),
            f"the second of two identical calls is refused {said}: {second['caught']} rightly, {second['wrong']} wrongly",
        ]
    )
