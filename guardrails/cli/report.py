"""
The command `report`.
"""

import os
import shlex

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.outputs import without_outputs, write_whole
from guardrails.cli.text.printing import fail, failures_told, print_json, tell_of_nothing

from .policies import load_policy


if TYPE_CHECKING:
    from guardrails.offline.quality.run import Found
    from guardrails.offline.transcripts.inputs import Input
    from guardrails.policy.policy import Policy


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
    found = _counted(known, files, quiet=quiet or as_json)
    if not found.quality.calls:
        _tell_of_nothing(records, found, as_json=as_json)
    _show(found, known, policy, records, html, output, suggest=suggest, as_json=as_json)


def _counted(policy: "Policy", files: "list[Input]", *, quiet: bool) -> "Found":
    from guardrails.cli.text.progress import telling
    from guardrails.offline.quality.run import count_files

    with failures_told(), telling(quiet=quiet) as tell:
        return count_files(policy, files, tell)


def _tell_of_nothing(records: list[str], found: "Found", *, as_json: bool) -> NoReturn:
    from guardrails.offline.quality.result import to_dict
    from guardrails.offline.transcripts.inputs import nothing_found

    if as_json:
        print_json(to_dict(found, []))
    tell_of_nothing(nothing_found(records, found.without))


def _show(
    found: "Found",
    known: "Policy",
    policy: str,
    records: list[str],
    html: Path | None,
    output: Path | None,
    *,
    suggest: bool,
    as_json: bool,
) -> None:
    from guardrails.cli.text.report import report_text, suggested_text
    from guardrails.offline.figures import plural
    from guardrails.offline.quality.overrides import overrides
    from guardrails.offline.quality.result import suggestions, to_dict

    made = suggestions(found.quality, known)
    if html is not None:
        from guardrails.cli.text.page import write_page

        write_page(html, "report", to_dict(found, made), plural(len(found.quality.tallies), "tool"))
    if suggest:
        seen = f"{plural(found.quality.calls, 'call')} of {plural(found.quality.sessions, 'session')}"
        base = _base(policy, output)
        named = "overrides.yaml" if output is None else str(output)
        replay = shlex.join(["guardrails", "replay", policy, *records, "--compare", named])
        text = overrides(made, base, seen, replay)
        if output is not None:
            write_whole(output, text)
            typer.echo(suggested_text(made, output, replay), err=as_json)
        elif not as_json:
            typer.echo(text, nl=False)
    if as_json:
        print_json(to_dict(found, made))
    elif not suggest:
        of = [] if policy == "default" else ["--policy", policy]
        suggest_too = shlex.join(["guardrails", "report", *records, *of, "--suggest", "-o", "overrides.yaml"])
        typer.echo(report_text(found, suggest_too if made else ""))


def _base(policy: str, output: Path | None) -> str:
    """
    Returns the base of the written file, as seen from its folder.
    """
    from guardrails.policy.reload import is_name

    if is_name(policy):
        return policy
    path = Path(policy).resolve()
    return str(path) if output is None else os.path.relpath(path, output.resolve().parent)
