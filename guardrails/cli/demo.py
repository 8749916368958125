"""
The command `demo`.
"""

import json

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardrails.offline.figures import plural

from .policy import load_policy
from .printing import Json, fail, points, print_json, say, table, title


if TYPE_CHECKING:
    from guardrails.agent.demo.comparison import Comparison, Figures
    from guardrails.agent.demo.playback import Played


def demo(
    *,
    transcripts: Annotated[
        list[str] | None,
        typer.Option("--transcript", metavar="FILE", help="Play this recorded OpenAI chat instead; may be repeated."),
    ] = None,
    policy: Annotated[str, typer.Option(metavar="NAME_OR_FILE", help="The policy that guards.")] = "default",
    records: Annotated[Path | None, typer.Option(metavar="FILE", help="Append the records of the guarded run.")] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="A real endpoint; its key is in OPENAI_API_KEY.")
    ] = None,
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
    from guardrails.sinks import JsonLines

    if base_url is not None and model is None:
        raise typer.BadParameter("`--base-url` needs `--model`")
    if transcripts and model is not None:
        raise typer.BadParameter("`--transcript` plays what a model said; it goes without `--model`")
    chain = load_policy(policy)
    with ExitStack() as stack:
        sink = stack.enter_context(JsonLines(records)) if records else None
        if transcripts:
            from guardrails.agent.demo.playback import player
            from guardrails.agent.demo.timeless import NOT_JUDGED
            from guardrails.agent.demo.transcript import read_transcript

            chats = [read_transcript(file) for file in transcripts]
            play = stack.enter_context(player(chain, sink))
            played = [play.play(chat) for chat in chats]
            found = {"policy": chain.name, "not_judged": NOT_JUDGED, "transcripts": [one.to_dict() for one in played]}
        else:
            from guardrails.agent.demo.comparison import compare

            compared = compare(chain, model=model, base_url=base_url, max_requests=max_requests, records=sink)
            found = compared.to_dict()
    if as_json:
        print_json(found)
    elif transcripts:
        for one in played:
            _show_played(one)
        say(f"Not judged: {NOT_JUDGED}.")
    else:
        _show(compared)
    if sink is not None and (sink.failed or sink.dropped):
        fail(f"not all records could be written to `{records}`")


def _show(compared: "Comparison") -> None:
    """
    Both runs side by side, what the model read, and its answer.
    """
    from guardrails.agent.demo.comparison import parsed
    from guardrails.agent.demo.stuck_agent import QUESTION

    say(f"`{compared.model}`, once unguarded, once behind the policy `{compared.policy}`. It is asked: {QUESTION}")
    typer.echo()
    names = ("", "model requests", "tool executions", "tokens", "cost", "time", "how it ended")
    runs = [_cells("unguarded", compared.unguarded), _cells("guarded", compared.guarded)]
    table(zip(names, *runs, strict=True))
    if compared.usd_per_mtok is not None:
        read, written = compared.usd_per_mtok
        say(f"Cost at ${read:.2f} for a million tokens in and ${written:.2f} out.")
    title("\nWhat the model read in the guarded run")
    before: Any = None
    for number, envelope in enumerate(map(parsed, compared.read), 1):
        kind = (
            {name: envelope.get(name) for name in ("status", "code", "limit_message")}
            if isinstance(envelope, dict)
            else envelope
        )
        say(f"call {number}{': alike' if kind == before else ''}", 2)
        parts = envelope if isinstance(envelope, dict) else {"result": envelope}
        for name, value in parts.items() if kind != before else ():
            say(f"{name}: {json.dumps(value, ensure_ascii=False)}", 4)
        before = kind
    points("Its final answer", [compared.guarded.answer or "(none)"])


def _cells(name: str, run: "Figures") -> Iterator[str]:
    ends = {
        "stopped": f"stopped by the demo after {run.requests} requests; nothing else would have",
        "answered": "with an answer",
        "forced": f"with an answer, asked for because of {run.code}",
        "digest": f"with the session's digest: the model gave no answer ({run.code})",
    }
    yield from (name, f"{run.requests:,}", f"{run.executions:,}", f"{run.tokens:,}")
    yield "unknown" if run.cost_usd is None else f"${run.cost_usd:.4f}"
    yield from (f"{run.seconds:.2f} s", ends[run.ended])


def _show_played(chat: "Played") -> None:
    """
    What became of each call of a recorded chat, and what the recording lacks.
    """
    title(f"\n{chat.name}: {plural(chat.recorded_calls, 'call')}, {len(chat.denied)} denied")
    for number, call in enumerate(chat.calls, 1):
        say(" ".join(filter(None, (f"{number}. {call.tool} {call.decision}", call.code, *call.observed))), 2)
        if call.reason is not None:
            say(call.arguments[:300], 5)
            say(call.reason, 5)
    if chat.code is not None:
        say(f"The session was over, and the final answer asked for, because of {chat.code}.", 2)
    for note in chat.notes:
        say(f"The recording {note}.", 2)
