"""
The command `demo`.
"""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.printing import fail, print_json

from .policies import load_policy


if TYPE_CHECKING:
    from guardrails.policy.policy import Policy
    from guardrails.sinks import JsonLines, Sink


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

    from guardrails.core.values.errors import GuardrailsError

    chain = load_policy(policy)
    try:
        with _sink(records) as sink:
            if transcripts:
                _play([*transcripts, *(more or ())], chain, sink, as_json=as_json)
            else:
                _compare(chain, sink, model, base_url, max_requests, as_json=as_json)
    except GuardrailsError as error:
        fail(str(error))
    if sink is not None and (sink.failed or sink.dropped):
        fail(f"not all records could be written to `{records}`")


def _sink(path: Path | None) -> "nullcontext[None] | JsonLines":
    if path is None:
        return nullcontext()
    from guardrails.sinks import JsonLines

    return JsonLines(path)


def _compare(
    policy: "Policy",
    sink: "Sink | None",
    model: str | None,
    base_url: str | None,
    max_requests: int,
    *,
    as_json: bool,
) -> None:
    from guardrails.agent.demo.comparison import compare
    from guardrails.cli.text.demo import comparison_text

    compared = compare(policy, model=model, base_url=base_url, max_requests=max_requests, records=sink)
    if as_json:
        print_json(compared.to_dict())
    else:
        typer.echo(comparison_text(compared, scripted=model is None))


def _play(files: list[str], policy: "Policy", sink: "Sink | None", *, as_json: bool) -> None:
    from guardrails.agent.demo.playback import player
    from guardrails.agent.demo.timeless import NOT_JUDGED
    from guardrails.agent.demo.transcript import read_transcript
    from guardrails.cli.text.demo import played_text, summary_text

    transcripts = [read_transcript(file) for file in files]
    played = []
    with player(policy, sink) as play:
        for transcript in transcripts:
            played.append(play.play(transcript))
            if not as_json:
                typer.echo(played_text(played[-1]))
    if as_json:
        print_json({"policy": policy.name, "not_judged": NOT_JUDGED, "transcripts": [p.to_dict() for p in played]})
    else:
        typer.echo(summary_text(played, policy.name))
