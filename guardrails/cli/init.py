"""
The command `init`.
"""

import shlex
import tempfile

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

import guardrails

from guardrails.offline.figures import plural

from .console import Json, Quiet, echo, fail, inputs_of, must_have, print_json, progress, show, write_text


BASE: Final = "default"
"""What the written policy extends."""


def init(
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
        _convert(source, named, output, as_json=as_json)
        return
    if "-" in named:
        fail("the calls are read twice, so that `-` cannot be: name a file")
    files, policy = inputs_of(named, output=output), guardrails.Policy.load(BASE)
    with progress(quiet=quiet or as_json) as tell:
        quality = count_files(policy, files, tell)
    if named:
        must_have(quality.calls, named, quality.report.without)
    path = str(output) if output.parent != Path() else f"./{output}"
    judged = ["guardrails", "replay", path, *(named or ["sessions/"]), "--compare", BASE]
    steps = shlex.join(["guardrails", "policy", "check", path]), shlex.join(judged)
    text = partial(starter, quality if named else None, suggestions(quality, policy), policy, steps=steps)
    mode = "observe" if named and _refuses_wrongly(text(mode="enforce"), files) else "enforce"
    write_text(output, text(mode=mode))
    if as_json:
        figures = {"calls": quality.calls, "sessions": quality.sessions, "tools": sorted(quality.tallies)}
        print_json({"output": str(output), "mode": mode, **figures, "next": steps})
    else:
        origin = f" from {plural(quality.calls, 'call')} of {plural(quality.sessions, 'session')}" if named else ""
        echo("\n  ".join([f"`{output}` is written{origin}. Next:", *steps]))


def _convert(source: str, named: list[str], output: Path, *, as_json: bool) -> None:
    """
    Write the policy that another tool's file stands for, and say what of it does not map.
    """
    from .intercept import converted

    if source != "intercept" or len(named) != 1:
        fail("`--from` takes `intercept` and one file, its policy in YAML")
    try:
        text, unmapped = converted(Path(named[0]).read_text(encoding="utf-8"))
    except ValueError as error:
        fail(f"`{named[0]}` cannot be converted: {error}")
    write_text(output, text)
    reasons = [{"place": place, "why": why} for place, why in unmapped.items()]
    step = shlex.join(["guardrails", "policy", "check", str(output)])
    show({"output": str(output), "not_mapped": reasons, "next": step}, as_json=as_json)


def _refuses_wrongly(text: str, files: list[Any]) -> bool:
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
