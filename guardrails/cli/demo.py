"""
The command `demo`.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

import guardrails

from guardrails.offline.figures import plural

from .console import Json, points, print_json, say, table


def demo(
    transcripts: Annotated[
        list[str] | None, typer.Option("--transcript", metavar="FILE", help="Judge it instead.")
    ] = None,
    policy: Annotated[str, typer.Option(metavar="NAME_OR_FILE", help="The policy that guards.")] = "default",
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
    if transcripts:
        _play(chain, transcripts, as_json=as_json)
        return
    from guardrails.agent.demo import compare

    result = asdict(compare(chain, max_requests=max_requests))
    if as_json:
        print_json(result)
    else:
        _show(result)


def _play(policy: "guardrails.Policy", files: list[str], *, as_json: bool) -> None:
    """
    Show the word of *policy* on each recorded call, as `replay --decisions` has it.
    """
    from guardrails.offline.replay.judge import Judge, sessions_of
    from guardrails.offline.transcripts import Report, open_calls

    judge, report = Judge(policy), Report()
    names, chats = ("tool", "decision", "code"), list[dict[str, Any]]()
    for made in sessions_of(call for file in files for call in open_calls(file, report)):
        calls = [{name: getattr(row, name) for name in names} for row in judge.judge(made)]
        chats.append({"name": Path(made[0].session_id).name, "calls": calls})
    if as_json:
        print_json({"policy": policy.name, "transcripts": chats, "notes": report.notices})
        return
    for chat in chats:
        denied = sum(call["decision"] == "deny" for call in chat["calls"])
        say(f"{chat['name']}: {plural(len(chat['calls']), 'call')}, {denied} denied")
        table([names, *([call[name] or "" for name in names] for call in chat["calls"])])
    points("Not judged", report.notices)


def _show(result: dict[str, Any]) -> None:
    """
    Both runs side by side, what the model read, and its answer.
    """
    from guardrails.agent.demo import QUESTION

    say(f"A stuck agent, once unguarded, once behind the policy `{result['policy']}`. It is asked: {QUESTION}")
    typer.echo()
    runs = {name: result[name] for name in ("unguarded", "guarded")}
    names = [name for name in result["guarded"] if name != "answer"]
    table([("", *runs), *((name, *(_text(run[name]) for run in runs.values())) for name in names)])
    read, written = result["usd_per_mtok"]
    say(f"Cost at ${read:.2f} for a million tokens in and ${written:.2f} out.")
    points("What the model read in the guarded run", [f"{n}. {text}" for n, text in enumerate(result["read"], 1)], 20)
    points("Its final answer", [result["guarded"]["answer"] or "(none)"])


def _text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "" if value is None else str(value)
