"""
The command `replay`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.outputs import tell_of_written, without_outputs
from guardrails.cli.text.printing import FOUND, fail, failures_told, print_json, tell_of_nothing

from .policies import load_policy


if TYPE_CHECKING:
    from guardrails.offline.judge.result import Judgement
    from guardrails.offline.transcripts.inputs import Input
    from guardrails.policy.policy import Policy


@examples(
    "guardrails replay default sessions/",
    "guardrails replay policy.yaml sessions/ --compare default --html page.html",
    "guardrails replay policy.yaml records.jsonl --exact",
)
def replay(
    *,
    policy: Annotated[
        str,
        typer.Argument(metavar="POLICY", help="A policy file, or the name of a shipped one."),
    ],
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Transcripts and folders of them; - is standard input.")
    ],
    compare: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="A second policy, shown beside the first."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    decisions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write there one JSON line for each recorded call.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write there a page to look at.")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Decide our own records again exactly; exit code 1: something differs.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing of the progress.")] = False,
) -> None:
    """
    Judge a policy on recorded calls: what it would have stopped, and how often it would have been wrong.

    Reads OpenAI chats, Responses items, OpenTelemetry spans, LangSmith runs, JSON lines of calls and our own records. Reads
    sessions of Claude Code, Codex and Gemini CLI too. Files may be plain, gzip'd or zstd-compressed.
    """
    from guardrails.offline.transcripts.inputs import inputs

    policies = [load_policy(policy), *([load_policy(compare)] if compare is not None else [])]
    try:
        found = inputs(files)
    except OSError as error:
        fail(str(error))
    if exact and (decisions is not None or html is not None):
        fail("`--exact` goes without `--decisions` and `--html`")
    found = without_outputs(found, {"--decisions": decisions, "--html": html})
    if exact:
        _exact(policies, found, as_json=as_json)
        return
    made = _judged(policies, found, decisions, quiet=quiet or as_json)
    if not made[0].total.calls:
        _tell_of_nothing(files, made, as_json=as_json)
    _show(made, html, decisions, as_json=as_json)


def _judged(
    policies: "list[Policy]", files: "list[Input]", decisions: Path | None, *, quiet: bool
) -> "list[Judgement]":
    from guardrails.cli.text.progress import telling
    from guardrails.offline.judge.run import judge_files

    with failures_told(), telling(quiet=quiet) as tell:
        return judge_files(policies, files, decisions=decisions, tell=tell)


def _tell_of_nothing(files: list[str], made: "list[Judgement]", *, as_json: bool) -> NoReturn:
    from guardrails.offline.transcripts.inputs import nothing_found

    if as_json:
        print_json(_document(made))
    tell_of_nothing(nothing_found(files, made[0].without))


def _document(made: "list[Judgement]") -> dict[str, Any]:
    said = [one.to_dict() for one in made]
    return said[0] if len(said) == 1 else {"judgements": said}


def _show(made: "list[Judgement]", html: Path | None, decisions: Path | None, *, as_json: bool) -> None:
    from guardrails.cli.text.replay import compared_text, judged_text
    from guardrails.offline.figures import plural

    if as_json:
        print_json(_document(made))
    else:
        typer.echo(judged_text(made[0]) if len(made) == 1 else compared_text(*made))
    # After the figures: a full disk does not cost those too.
    if html is not None:
        from guardrails.cli.text.page import write_page

        write_page(html, "replay", _document(made), plural(made[0].total.calls, "call"))
    if decisions is not None:
        tell_of_written(decisions, f"{plural(made[0].total.calls, 'decision')} of {made[0].policy}, one to a line,")


def _exact(policies: "list[Policy]", files: "list[Input]", *, as_json: bool) -> None:
    from guardrails.cli.text.replay import exact_text
    from guardrails.offline.judge.exact import NoRecordsError, replayed

    with failures_told():
        try:
            found = replayed(policies[0], files, policies[1:])
        except NoRecordsError as error:
            tell_of_nothing(str(error))
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(exact_text(found))
    if not found.same:
        raise typer.Exit(FOUND)
