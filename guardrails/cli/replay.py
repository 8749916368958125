"""
The command `replay`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

import guardrails

from guardrails.offline.figures import plural

from . import console
from .console import FINDINGS, Files, Html, Json, Quiet, inputs_of, must_have, points, say, write_page


FIGURES: Final = {
    "refused": "denied",
    "refused, had worked": "wrong",
    "refused, a repeat": "repeats",
    "refused, had failed": "failed",
    "refused, no result known": "unknown",
    "run with a hint": "nudged",
    "only observed": "observed",
    "only observed, had worked": "wrong_observed",
}
"""Calls by the code of the guard that spoke."""


def replay(
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="A policy file, or the name of a shipped one.")],
    files: Files,
    compare: Annotated[str | None, typer.Option(metavar="POLICY", help="A second policy beside the first.")] = None,
    as_json: Json = False,
    decisions: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a JSON line for each call.")] = None,
    html: Html = None,
    exact: Annotated[bool, typer.Option("--exact", help="Decide our own records again; 1: it differs.")] = False,
    processes: Annotated[int, typer.Option(metavar="N", min=1, help="Judge by N processes at once.")] = 1,
    quiet: Quiet = False,
) -> None:
    """
    Judge a policy on recorded calls: what it would have stopped.

    It says how often that would have been wrong. "had worked": the call was a success, and brought what the same call
    had not brought before. "a repeat": it brought the same as before. "had failed": in another way than before. FILE
    may be sessions of Claude Code, Codex and Gemini CLI, OpenAI chats and Responses, OpenTelemetry spans, LangSmith
    runs, JSON lines of calls, our own records; plain or gzip'd.

    \b
    Examples:
      guardrails replay default sessions/
      guardrails replay policy.yaml sessions/ --compare default
      guardrails replay policy.yaml records.jsonl --exact
    """
    from guardrails.offline.replay.exact import replayed
    from guardrails.offline.replay.run import judge_files

    policies = [guardrails.Policy.load(name) for name in (policy, compare) if name is not None]
    if exact and (decisions or html):
        console.fail("`--exact` goes without `--decisions` and `--html`")
    inputs = inputs_of(files, decisions=decisions, html=html)
    if exact:
        again = replayed(policies[0], inputs, policies[1:])
        console.show(again.to_dict(), as_json=as_json)
        raise typer.Exit(0 if again.same else FINDINGS)
    with console.progress(quiet=quiet or as_json) as tell:
        made = judge_files(policies, inputs, decisions=decisions, tell=tell, processes=processes)
    each = [one.to_dict() for one in made]
    document = {"judgements": each} if compare is not None else each[0]
    if as_json:
        console.print_json(document)
    must_have(made[0].total.calls, files, made[0].report.without)
    if not as_json:
        _show(made)
    write_page(html, "replay", document)


def _show(made: Sequence[Any]) -> None:
    """
    The figures of one policy, or of two side by side; what the last one would have refused wrongly; what was not judged.
    """
    totals, last = [one.total for one in made], made[-1]
    names = " and ".join(one.policy for one in made)
    say(f"{names} on {plural(totals[0].calls, 'recorded call')} of {plural(totals[0].sessions, 'session')}")
    console.table([("calls", *(one.policy for one in made)), *_rows(totals)], figures=True)
    for one in made:
        if (total := one.total).refused:
            rate = f"{total.wrong.total():,} of them had worked ({total.wrong_per_1000:.2f} in 1,000 calls)"
            say(f"{one.policy} refuses {plural(total.refused, 'call')}; {rate}.")
        for path, model in one.models.items():
            asked = f"was asked about {plural(total.asked, 'failure')} and called {total.advised:,} worth a retry"
            say(f"The retry model `{path}` ({model}) {asked}.")
    console.observed(totals[0].recorded_observed, totals[0].recorded_observed_worked)
    wrong = [row for row in last.rows if row.decision == "deny" and row.recorded == "worked"]
    where = [f"{row.source}: {row.session_id}, call {row.call_index}: {row.tool}, {row.code}" for row in wrong]
    points(f"{last.policy} would refuse, though it had worked", where, 5)
    if wrong:
        code = Counter(row.code for row in wrong).most_common(1)[0][0]
        say(f"Is it honest work? `guardrails explain {code}` says how to loosen it; `--decisions` lists all calls.")
    elif last.total.refused and len(made) > 1:
        say(f"{last.policy} refuses none that had worked. Check it (`guardrails policy check`), then enforce it.")
    points("Not judged", sorted({f"{guard}: {why}" for one in made for guard, why in one.not_judged.items()}))
    points("Notices", last.report.notices)


def _rows(totals: Sequence[Any]) -> Iterator[tuple[str, ...]]:
    for name, field in FIGURES.items():
        counts: list[Counter[str]] = [getattr(total, field) for total in totals]
        if any(counts) or name.endswith("refused"):
            yield name, *(f"{each.total():,}" for each in counts)
        for code in sorted({code for each in counts for code in each}):
            yield f"  {code}", *(f"{each[code]:,}" for each in counts)
