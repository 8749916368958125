"""
The command `init`.
"""

import shlex
import tempfile

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import guardrails

from guardrails.offline.figures import plural

from .files import inputs_of, must_have, write_text
from .printing import Json, Quiet, fail, print_json, printable, progress


if TYPE_CHECKING:
    from guardrails.offline.transcripts.files import Input

BASE: Final = "default"
"""What the written policy extends."""


def init(
    *,
    transcripts: Annotated[list[str] | None, typer.Argument(metavar="TRANSCRIPT", help="Recorded calls.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The policy file.")] = Path("policy.yaml"),
    source: Annotated[str | None, typer.Option("--from", metavar="intercept", help="Convert its policy file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """
    Write a first policy with comments, from recorded calls if any.

    A comment says how often each tool was called and failed. The limits leave room above what was seen. The policy is
    judged on the same calls, and only observes if it would refuse some of them wrongly. Guesses about a tool are
    comments, for a person to confirm. Reads what `replay` reads.

    \b
    Examples:
      guardrails init
      guardrails init records.jsonl -o policy.yaml --force
      guardrails init --from intercept intercept.yaml
    """
    from guardrails.offline.report.quality import count_files, suggestions
    from guardrails.offline.report.starter import starter

    named = transcripts or []
    if output.exists() and not force:
        fail(f"`{output}` is there already: add --force to replace it, or name another file with -o")
    if source is not None:
        _convert(source, named, output)
        return
    if "-" in named:
        fail("the calls are read twice, so that `-` cannot be: name a file")
    files, policy, found = inputs_of(named, output=output), guardrails.Policy.load(BASE), None
    if named:
        with progress(quiet=quiet or as_json) as tell:
            found = count_files(policy, files, tell)
        must_have(found.calls, named, found.report)
    path = str(output) if output.parent != Path() else f"./{output}"
    judged = ["guardrails", "replay", path, *(named or ["sessions/"]), "--compare", BASE]
    steps = shlex.join(["guardrails", "policy", "check", path]), shlex.join(judged)
    text = partial(starter, found, suggestions(found, policy) if found else [], policy, steps=steps)
    mode = "observe" if found and _refuses_wrongly(text(mode="enforce"), files) else "enforce"
    write_text(output, text(mode=mode))
    calls, sessions, tools = (found.calls, found.sessions, sorted(found.tallies)) if found else (0, 0, [])
    if as_json:
        figures = {"calls": calls, "sessions": sessions, "tools": tools}
        print_json({"output": str(output), "mode": mode, **figures, "next": steps})
    else:
        seen = f" from {plural(calls, 'call')} of {plural(sessions, 'session')}" if found else ""
        typer.echo(printable("\n  ".join([f"`{output}` is written{seen}. Next:", *steps])))


def _convert(source: str, named: list[str], output: Path) -> None:
    """
    Write the policy that another tool's file stands for, and say what of it does not map.
    """
    from .intercept import converted

    if source != "intercept" or len(named) != 1:
        fail("`--from` takes `intercept` and one file, its policy in YAML")
    try:
        text, lost = converted(Path(named[0]).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        fail(f"`{named[0]}` cannot be converted: {error}")
    write_text(output, text)
    said = [f"not mapped: {place}: {why}" for place, why in lost]
    typer.echo(printable("\n  ".join([f"`{output}` is written. Next: guardrails policy check {output}", *said])))


def _refuses_wrongly(text: str, files: "list[Input]") -> bool:
    """
    Whether the policy of this *text* would have refused calls of *files* that had worked, or at a limit.
    """
    from guardrails.offline.replay.run import judge_files
    from guardrails.offline.replay.tally import LIMITS

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.yaml"
        path.write_text(text, encoding="utf-8")
        judged = judge_files([guardrails.Policy.load(path, reload=None)], files)[0].total
    return bool(judged.wrong) or any(code.startswith(LIMITS) for code in judged.denied)
