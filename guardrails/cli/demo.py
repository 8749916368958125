"""
The command `demo`.
"""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardrails.offline.figures import plural

from .printing import Json, fail, points, print_json, say, table


if TYPE_CHECKING:
    from guardrails.agent.demo.comparison import Comparison


def demo(
    *,
    transcripts: Annotated[list[str] | None, typer.Option("--transcript", metavar="FILE", help="Play it.")] = None,
    policy: Annotated[str, typer.Option(metavar="NAME_OR_FILE", help="The policy that guards.")] = "default",
    records: Annotated[Path | None, typer.Option(metavar="FILE", help="Append the records of the guarded run.")] = None,
    base_url: Annotated[str | None, typer.Option(help="A real endpoint; its key is in OPENAI_API_KEY.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Run a real model instead of the script.")] = None,
    max_requests: Annotated[int, typer.Option(min=1, help="Requests after which the demo stops a run.")] = 50,
    as_json: Json = False,
) -> None:
    """
    Run a stuck agent without guards and with them.

    Needs no key and no network: the model is a script on a loopback server, behind the real openai client.

    \b
    Examples:
      guardrails demo
      guardrails demo --policy strict --json
      guardrails demo --transcript chat.json --policy policy.yaml
    """
    from guardrails.policy.policy import Policy
    from guardrails.sinks import JsonLines

    if base_url is not None and model is None:
        raise typer.BadParameter("`--base-url` needs `--model`")
    if transcripts and model is not None:
        raise typer.BadParameter("`--transcript` plays what a model said; it goes without `--model`")
    chain = Policy.load(policy)
    with ExitStack() as stack:
        sink = stack.enter_context(JsonLines(records)) if records else None
        if transcripts:
            from guardrails.agent.demo.playback import NOT_JUDGED, play
            from guardrails.offline.transcripts import Report

            report = Report()
            played = [one for file in transcripts for one in play(chain, file, report, sink)]
            found = {"policy": chain.name, "not_judged": NOT_JUDGED, "transcripts": [one.to_dict() for one in played]}
            found["notes"] = report.notices
        else:
            from guardrails.agent.demo.comparison import compare

            compared = compare(chain, model=model, base_url=base_url, max_requests=max_requests, records=sink)
            found = compared.to_dict()
    if as_json:
        print_json(found)
    elif transcripts:
        for one in played:
            say(f"{one.name}: {plural(one.recorded_calls, 'call')}, {len(one.denied)} denied")
            said = [(call, call.code or " ".join(call.observed), call.reason or "") for call in one.calls]
            table([("tool", "decision", "code", "reason"), *((call.tool, call.decision, *why) for call, *why in said)])
        points("Not judged", [*report.notices, NOT_JUDGED])
    else:
        _show(compared)
    if sink is not None and (sink.failed or sink.dropped):
        fail(f"not all records could be written to `{records}`")


def _show(compared: "Comparison") -> None:
    """
    Both runs side by side, what the model read, and its answer.
    """
    from guardrails.agent.demo.stuck_agent import QUESTION

    say(f"`{compared.model}`, once unguarded, once behind the policy `{compared.policy}`. It is asked: {QUESTION}")
    typer.echo()
    runs = {name: asdict(getattr(compared, name)) for name in ("unguarded", "guarded")}
    answer = runs["guarded"].pop("answer")
    rows = [(name, *(_text(run[name]) for run in runs.values())) for name in runs["guarded"]]
    table([("", *runs), *rows])
    if compared.usd_per_mtok is not None:
        read, written = compared.usd_per_mtok
        say(f"Cost at ${read:.2f} for a million tokens in and ${written:.2f} out.")
    points("What the model read in the guarded run", [f"{n}. {text}" for n, text in enumerate(compared.read, 1)], 20)
    points("Its final answer", [answer or "(none)"])


def _text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "" if value is None else str(value)
