"""
The command `demo`.
"""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import guardrails

from guardrails.offline.figures import plural

from .printing import Json, fail, points, print_json, say, table


if TYPE_CHECKING:
    from guardrails.agent.demo import Comparison


def demo(
    *,
    transcripts: Annotated[list[str] | None, typer.Option("--transcript", metavar="FILE", help="Play it.")] = None,
    policy: Annotated[str, typer.Option(metavar="NAME_OR_FILE", help="The policy that guards.")] = "default",
    records: Annotated[Path | None, typer.Option(metavar="FILE", help="Append the records of the guarded run.")] = None,
    max_requests: Annotated[int, typer.Option(min=1, help="Requests after which the demo stops a run.")] = 50,
    as_json: Json = False,
) -> None:
    """
    Run a stuck agent without guards and with them.

    Needs no key and no network: the model is a script behind the real openai client.

    \b
    Examples:
      guardrails demo
      guardrails demo --policy strict --json
      guardrails demo --transcript chat.json --policy policy.yaml
    """
    chain = guardrails.Policy.load(policy)
    with ExitStack() as stack:
        sink = stack.enter_context(guardrails.JsonLines(records)) if records else None
        if transcripts:
            from guardrails.agent.demo import NOT_JUDGED, play
            from guardrails.offline.transcripts import Report

            report = Report()
            played = [one for file in transcripts for one in play(chain, file, report, sink)]
            found = {"policy": chain.name, "not_judged": NOT_JUDGED, "transcripts": [asdict(one) for one in played]}
            found["notes"] = report.notices
        else:
            from guardrails.agent.demo import compare

            compared = compare(chain, max_requests=max_requests, records=sink)
            found = asdict(compared)
    if as_json:
        print_json(found)
    elif transcripts:
        for one in played:
            denied = sum(call["decision"] == "denied" for call in one.calls)
            say(f"{one.name}: {plural(one.recorded_calls, 'call')}, {denied} denied")
            said = [(call, call["code"] or " ".join(call["observed"]), call["reason"] or "") for call in one.calls]
            table(
                [
                    ("tool", "decision", "code", "reason"),
                    *((call["tool"], call["decision"], *why) for call, *why in said),
                ]
            )
        points("Not judged", [*report.notices, NOT_JUDGED])
    else:
        _show(compared)
    if sink is not None and (sink.failed or sink.dropped):
        fail(f"not all records could be written to `{records}`")


def _show(compared: "Comparison") -> None:
    """
    Both runs side by side, what the model read, and its answer.
    """
    from guardrails.agent.demo import QUESTION, USD_PER_MTOK

    say(f"A stuck agent, once unguarded, once behind the policy `{compared.policy}`. It is asked: {QUESTION}")
    typer.echo()
    runs = {name: asdict(getattr(compared, name)) for name in ("unguarded", "guarded")}
    answer = runs["guarded"].pop("answer")
    rows = [(name, *(_text(run[name]) for run in runs.values())) for name in runs["guarded"]]
    table([("", *runs), *rows])
    read, written = USD_PER_MTOK
    say(f"Cost at ${read:.2f} for a million tokens in and ${written:.2f} out.")
    points("What the model read in the guarded run", [f"{n}. {text}" for n, text in enumerate(compared.read, 1)], 20)
    points("Its final answer", [answer or "(none)"])


def _text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "" if value is None else str(value)
