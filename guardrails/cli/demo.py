"""
The command `demo`.
"""

import json

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.printing import fail, failures_told, heading, paragraph, print_json, printable, table
from guardrails.offline.figures import plural

from .policies import load_policy


if TYPE_CHECKING:
    from guardrails.agent.demo.comparison import Comparison, Figures
    from guardrails.agent.demo.playback import Played
    from guardrails.sinks import JsonLines

_INDENT: Final = " " * 6
SHORT: Final = 300
"""Characters of arguments that are shown."""


@examples(
    "guardrails demo",
    "guardrails demo --policy strict --json",
    "guardrails demo --transcript chat.json --policy policy.yaml",
)
def demo(
    *,
    transcripts: Annotated[
        list[str] | None,
        typer.Option("--transcript", metavar="FILE", help="Play this recorded OpenAI chat instead; may be repeated."),
    ] = None,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Further recorded chats, after --transcript.")
    ] = None,
    policy: Annotated[str, typer.Option(metavar="NAME_OR_FILE", help="The policy that guards.")] = "default",
    records: Annotated[Path | None, typer.Option(metavar="FILE", help="Append the records of the guarded run.")] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="A real endpoint; its key is in OPENAI_API_KEY.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Run a real model instead of the script.")] = None,
    max_requests: Annotated[int, typer.Option(min=1, help="Requests after which the demo stops a run.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """
    Run a stuck agent without guards and with them, or play recorded chats.

    Needs no key and no network: the model is a script on a loopback server, behind the real openai client.
    """
    if base_url is not None and model is None:
        raise typer.BadParameter("`--base-url` needs `--model`")
    if more and not transcripts:
        raise typer.BadParameter(f"`{more[0]}` comes without `--transcript`")
    if transcripts and model is not None:
        raise typer.BadParameter("`--transcript` plays what a model said; it goes without `--model`")

    chain = load_policy(policy)
    with failures_told(), _sink(records) as sink:
        if transcripts:
            from guardrails.agent.demo.playback import player
            from guardrails.agent.demo.timeless import NOT_JUDGED
            from guardrails.agent.demo.transcript import read_transcript

            recorded = [read_transcript(file) for file in (*transcripts, *(more or ()))]
            with player(chain, sink) as play:
                played = [play.play(chat) for chat in recorded]
            found = {"policy": chain.name, "not_judged": NOT_JUDGED, "transcripts": [one.to_dict() for one in played]}
            said = _played(played, chain.name, NOT_JUDGED)
        else:
            from guardrails.agent.demo.comparison import compare

            compared = compare(chain, model=model, base_url=base_url, max_requests=max_requests, records=sink)
            found, said = compared.to_dict(), _compared(compared, scripted=model is None)
        print_json(found) if as_json else typer.echo("\n\n".join(said))
    if sink is not None and (sink.failed or sink.dropped):
        fail(f"not all records could be written to `{records}`")


def _sink(path: Path | None) -> "nullcontext[None] | JsonLines":
    if path is None:
        return nullcontext()
    from guardrails.sinks import JsonLines

    return JsonLines(path)


def _compared(compared: "Comparison", *, scripted: bool) -> Iterator[str]:
    """
    Both runs side by side, what the model read, and its answer.
    """
    from guardrails.agent.demo.stuck_agent import QUESTION

    who = "The same stuck agent" if scripted else f"`{compared.model}`"
    yield paragraph(f"{who}, through the openai client: once unguarded, once behind the policy `{compared.policy}`.")
    yield paragraph(f"It is asked: {QUESTION}")
    whats = ("model requests", "tool executions", "tokens", "cost", "time", "how it ended")
    yield table(
        [("", "unguarded", "guarded"), *zip(whats, _cells(compared.unguarded), _cells(compared.guarded), strict=True)]
    )
    if compared.usd_per_mtok is None:
        yield paragraph(f"Nobody said what `{compared.model}` costs: a policy file can, under `prices`.")
    else:
        read, written = compared.usd_per_mtok
        made_up = " The price is made up, and tokens are counted as four characters each." if scripted else ""
        yield paragraph(f"Cost at ${read:.2f} for a million tokens in and ${written:.2f} out.{made_up}")
    yield heading("What the model read in the guarded run")
    yield from _read(compared.read)
    yield heading("Its final answer")
    yield paragraph(compared.guarded.answer or "(none)", indent="  ")


def _cells(run: "Figures") -> tuple[str, ...]:
    return (
        f"{run.requests:,}",
        f"{run.executions:,}",
        f"{run.tokens:,}",
        "unknown" if run.cost_usd is None else f"${run.cost_usd:.4f}",
        f"{run.seconds:.2f} s",
        _ended(run),
    )


def _ended(run: "Figures") -> str:
    match run.ended:
        case "stopped":
            return f"stopped by the demo after {run.requests} requests, without an answer; nothing else would have"
        case "answered":
            return "with an answer"
        case "forced":
            return f"with an answer, asked for because of {run.code}"
        case "digest":
            return f"with the session's digest, since the model gave no answer ({run.code})"


def _read(texts: Sequence[str]) -> Iterator[str]:
    """
    One envelope of each kind in a row; those that only repeat it are counted.
    """
    from guardrails.agent.demo.comparison import parsed

    for _, alike in groupby(enumerate(map(parsed, texts), 1), key=lambda one: _kind(one[1])):
        first, *others = alike
        numbers = f"call {first[0]}" if not others else f"calls {first[0]} to {others[-1][0]} alike; the first:"
        yield "\n".join([f"  {numbers}", *_fields(first[1])])


def _kind(envelope: Any) -> Any:
    if not isinstance(envelope, dict):
        return None
    return envelope.get("status"), envelope.get("code"), envelope.get("limit_message")


def _fields(envelope: Any) -> Iterator[str]:
    if not isinstance(envelope, dict):
        yield paragraph(str(envelope), indent="    ")
        return
    for name, value in envelope.items():
        shown = json.dumps(value, ensure_ascii=False)
        yield paragraph(f"{name}: {shown}", indent="    ", hanging="      ")


def _played(played: "Sequence[Played]", policy: str, not_judged: str) -> Iterator[str]:
    """
    Recorded chats: what became of each call, what the recordings lack, and what could not be judged.
    """
    for chat in played:
        denied = len(chat.denied)
        lines = [heading(f"{chat.name}: {chat.recorded_calls} calls, {len(chat.calls) - denied} ran, {denied} denied")]
        column = max((len(printable(call.tool)) for call in chat.calls), default=0)
        for number, call in enumerate(chat.calls, 1):
            said = [call.decision, call.code, *(f"observed {code}" for code in call.observed)]
            said += ["no recorded result"] if call.recorded is None else []
            lines.append(f"{number:>4}  {printable(call.tool).ljust(column)}  {'  '.join(filter(None, said))}")
            if call.reason is not None:
                arguments = call.arguments if len(call.arguments) <= SHORT else f"{call.arguments[:SHORT]}..."
                lines += [paragraph(text, indent=_INDENT) for text in (arguments, call.reason)]
        if chat.code is not None:
            left = chat.recorded_calls - len(chat.calls)
            more = f"; {left} recorded calls were not come to" if left else ""
            over = f"The session was over, and the final answer asked for, because of {chat.code}{more}."
            lines.append(paragraph(over, indent=_INDENT))
        lines += [paragraph(f"The recording {note}.", indent=_INDENT) for note in chat.notes]
        yield "\n".join(lines)
    calls, denied = (sum(map(len, each)) for each in ([c.calls for c in played], [c.denied for c in played]))
    told = f"{denied} of {calls} calls of {plural(len(played), 'recorded chat')} denied by the policy `{policy}`."
    yield paragraph(f"{told} Not judged: {not_judged}.")
