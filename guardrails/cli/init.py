"""
The command `init`.
"""

import shlex
import tempfile

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.outputs import without_outputs, write_whole
from guardrails.cli.text.printing import fail, failures_told, print_json, printable, tell_of_nothing


if TYPE_CHECKING:
    from guardrails.offline.replay.tally import Judgement
    from guardrails.offline.report.quality import Quality
    from guardrails.offline.transcripts.inputs import Input

BASE: Final = "default"
"""What the written policy extends."""


@examples(
    "guardrails init",
    "guardrails init sessions/ -o policy.yaml",
    "guardrails init records.jsonl -o policy.yaml --force",
)
def init(
    *,
    transcripts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TRANSCRIPT", help="Recorded calls and folders of them. Without one a starter is written."
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The policy file.")] = Path(
        "policy.yaml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing of the progress.")] = False,
) -> None:
    """
    Write a first policy with comments, from recorded calls if there are any.

    A comment says how often each tool was called and failed. The limits leave room above what was seen. The policy is
    judged on the same calls, and only observes if it would refuse some of them wrongly. Guesses about a tool are
    comments, for a person to confirm. Reads what `replay` reads.
    """
    from guardrails.offline.transcripts.files import STDIN
    from guardrails.offline.transcripts.inputs import inputs

    if output.exists() and not force:
        fail(f"`{output}` is there already: add --force to replace it, or name another file with -o")
    named = transcripts or []
    if STDIN in named:
        fail("the calls are read twice, so that `-` cannot be: name a file")
    try:
        files = without_outputs(inputs(named), {"--output": output})
    except OSError as error:
        fail(str(error))
    if not named:
        without_outputs([], {"--output": output})
    steps = _steps(named, output)
    found = _counted(named, files, quiet=quiet or as_json) if named else None
    text, mode = _policy(found, files, steps)
    write_whole(output, text)
    if as_json:
        print_json({"output": str(output), "mode": mode, **_figures(found), "next": steps})
        return
    from guardrails.offline.figures import plural

    seen = "" if found is None else f" from {plural(found.calls, 'call')} of {plural(found.sessions, 'session')}"
    typer.echo(printable(f"`{output}` is written{seen}. Next:\n  {steps[0]}\n  {steps[1]}"))


def _steps(named: list[str], output: Path) -> tuple[str, str]:
    judged = [*named, "--compare", BASE] if named else ["sessions/", "--compare", BASE]
    path = str(output) if output.parent != Path() else f"./{output}"
    return shlex.join(["guardrails", "policy", "check", path]), shlex.join(["guardrails", "replay", path, *judged])


def _figures(found: "Quality | None") -> dict[str, Any]:
    if found is None:
        return {"calls": 0, "sessions": 0, "tools": []}
    return {"calls": found.calls, "sessions": found.sessions, "tools": sorted(found.tallies)}


def _counted(named: list[str], files: "list[Input]", *, quiet: bool) -> "Quality":
    from guardrails.cli.text.progress import telling
    from guardrails.offline.report.quality import count_files
    from guardrails.offline.transcripts.inputs import nothing_found
    from guardrails.policy.policy import Policy

    with failures_told(), telling(quiet=quiet) as tell:
        found = count_files(Policy.load(BASE), files, tell)
    if not found.calls:
        tell_of_nothing(nothing_found(named, found.report.without))
    return found


def _policy(found: "Quality | None", files: "list[Input]", steps: tuple[str, str]) -> tuple[str, str]:
    """
    The text of the file, and its mode: it only observes if it would have refused calls wrongly.
    """
    from guardrails.offline.report.quality import suggestions
    from guardrails.offline.report.starter import starter
    from guardrails.policy.policy import Policy

    policy = Policy.load(BASE)
    made = [] if found is None else suggestions(found, policy)
    text = starter(found, made, policy, steps=steps, mode="enforce")
    if found is None or not _refused_wrongly(_judged(text, files)):
        return text, "enforce"
    return starter(found, made, policy, steps=steps, mode="observe"), "observe"


def _judged(text: str, files: "list[Input]") -> "Judgement":
    from guardrails.offline.replay.run import judge_files
    from guardrails.policy.policy import Policy

    with tempfile.TemporaryDirectory() as folder, failures_told():
        path = Path(folder) / "policy.yaml"
        path.write_text(text, encoding="utf-8")
        return judge_files([Policy.load(path, reload=None)], files)[0]


def _refused_wrongly(judged: "Judgement") -> bool:
    from guardrails.offline.replay.tally import LIMITS

    total = judged.total
    return bool(total.wrong) or any(code.startswith(LIMITS) for code in total.denied)
