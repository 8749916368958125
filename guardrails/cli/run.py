"""
The command `run`.
"""

import logging
import sys

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.printing import failures_told, print_json, printable
from guardrails.cli.text.run import Ending, ends, list_text, list_to_dict, parsed_amounts, state_file, written


if TYPE_CHECKING:
    from guardrails.agent.agent import Agent
    from guardrails.agent.view import View


@examples(
    "guardrails run 'Which tests fail, and why?' --model gpt-5-mini",
    "guardrails run --list",
    "guardrails run --resume ID --extend max_calls=20",
)
def run(
    *,
    task: Annotated[str | None, typer.Argument(help="The task of the agent; `-` reads it from stdin.")] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="An OpenAI-compatible endpoint; its key is in OPENAI_API_KEY.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model.")] = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="NAME_OR_FILE", help="The policy that guards (`agent`)."),
    ] = None,
    wire: Annotated[str | None, typer.Option(metavar="chat|responses", help="The API to speak (`chat`).")] = None,
    workspace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder that the tools work in (this one).")
    ] = None,
    tools: Annotated[
        list[str] | None, typer.Option(metavar="FILE.py", help="Python files with tools of your own.")
    ] = None,
    mcp: Annotated[
        Path | None, typer.Option(metavar="FILE", help="MCP servers whose tools are used too: TOML or JSON.")
    ] = None,
    builtins: Annotated[
        bool | None, typer.Option("--builtins/--no-builtins", help="Files, shell, memory, web, sub-agents (with them).")
    ] = None,
    sandbox: Annotated[
        str | None,
        typer.Option(
            metavar="auto|bwrap|none",
            help="The sandbox of commands (`auto`); see `guardrails doctor`.",
        ),
    ] = None,
    network: Annotated[
        bool | None, typer.Option("--network/--no-network", help="Let commands use the network (they may not).")
    ] = None,
    search: Annotated[
        str | None, typer.Option(metavar="URL", help="A search service, with `{query}` where the query goes.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="A private host or network that may be fetched from.")
    ] = None,
    conversation: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file of conversations (in your state folder).")
    ] = None,
    resume: Annotated[str | None, typer.Option(metavar="ID", help="Go on with a kept conversation.")] = None,
    extend: Annotated[
        list[str] | None,
        typer.Option(metavar="LIMIT=AMOUNT", help="Raise a limit by so much: max_calls=20, max_cost_usd=0.5, ..."),
    ] = None,
    forgive: Annotated[bool, typer.Option("--forgive", help="Forgive refused turns and blown growth caps.")] = False,
    scope: Annotated[
        list[str] | None, typer.Option(metavar="NAME=ID", help="Whose it is, for a scope of the policy: user=me.")
    ] = None,
    stream: Annotated[
        bool | None, typer.Option("--stream/--no-stream", help="Ask for the text as it comes (streamed).")
    ] = None,
    max_iterations: Annotated[
        int | None, typer.Option(min=1, help="Turns with calls until the answer is asked for (20).")
    ] = None,
    records: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file of records (beside the conversations).")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show the kept conversations.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No view on stderr.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    events: Annotated[
        bool, typer.Option("--events", help="Print a line of JSON for each event, the end last.")
    ] = False,
) -> None:
    """
    Run an agent on a task: guarded, kept, and resumable. Its answer goes to stdout.

    Exit code 0: the model answered. 1: a limit made it answer; raise it with --resume and --extend. 2: it cannot be done
    as it was asked for, or the endpoint failed. 130: interrupted; --resume goes on.
    """
    ending = Ending("events" if events else "json" if as_json else "text", quiet=quiet, file=conversation)
    given = {
        "model": model,
        "base_url": base_url,
        "policy": policy,
        "wire": wire,
        "workspace": None if workspace is None else str(workspace),
        "tools": tools or None,
        "mcp": None if mcp is None else str(mcp),
        "builtins": builtins,
        "sandbox": sandbox,
        "network": network,
        "search": search,
        "allow_hosts": allow_host or None,
        "stream": stream,
        "max_iterations": max_iterations,
        "scopes": scope or None,
    }
    file = (conversation or state_file()).absolute()
    if listed:
        _list(file, as_json=as_json or events)
        return
    with ends(ending):
        amounts = parsed_amounts(extend or [])
        said = typer.get_text_stream("stdin").read() if task == "-" else task
        _check(given, task=said, resume=resume, raised=bool(amounts) or forgive)
        lines = (records or file.with_suffix(".jsonl")).absolute()
        with (
            redirect_stdout(sys.stderr),
            _agent(file, given, said, resume, str(lines), ending=ending, quiet=quiet) as agent,
        ):
            _work(agent, said, amounts, ending, forgive=forgive, new=resume is None)


def _list(file: Path, *, as_json: bool) -> None:
    from guardrails.agent.conversations import Conversations

    with failures_told():
        _must_exist(file)
        with Conversations(file) as kept:
            found = kept.listed()
            print_json(list_to_dict(kept, found)) if as_json else typer.echo(list_text(kept, found))


def _check(given: dict[str, Any], *, task: str | None, resume: str | None, raised: bool) -> None:
    if given["wire"] not in (None, "chat", "responses"):
        raise typer.BadParameter(f"`--wire` is chat or responses, not `{given['wire']}`")
    if given["sandbox"] not in (None, "auto", "bwrap", "none"):
        raise typer.BadParameter(f"`--sandbox` is auto, bwrap or none, not `{given['sandbox']}`")
    if given["workspace"] is not None and not Path(given["workspace"]).is_dir():
        raise typer.BadParameter(f"`--workspace`: there is no folder `{given['workspace']}`")
    if resume is None and (task is None or not task.strip()):
        raise typer.BadParameter("say what the agent is to do, or `--resume ID`")
    if resume is None and raised:
        raise typer.BadParameter(
            "`--extend` and `--forgive` go with `--resume ID`: a new session has its policy's limits"
        )
    if resume is not None and given["wire"] is not None:
        raise typer.BadParameter("`--wire` goes with a new conversation: a kept one has its own")


def _must_exist(file: Path) -> None:
    from guardrails.agent.conversations import ConversationError

    if not file.exists():
        raise ConversationError(f"no conversations are kept in `{file}`")


@contextmanager
def _agent(
    file: Path,
    given: dict[str, Any],
    task: str | None,
    resume: str | None,
    records: str,
    *,
    ending: Ending,
    quiet: bool,
) -> "Iterator[Agent]":
    from guardrails.agent.agent import Agent, prepare, started, working_in
    from guardrails.agent.conversations import Conversations
    from guardrails.agent.endpoint import client_of, imported
    from guardrails.agent.servers import mcp_tools
    from guardrails.agent.settings import Settings
    from guardrails.agent.view import View

    view = View(quiet=quiet, words=_terminal(ending.out) if ending.how == "text" else None, events=written(ending))
    # What is needed is looked at before any file is made.
    imported("`guardrails run`")
    with ExitStack() as opened:
        kept = chat = None
        if resume is not None:
            _must_exist(file)
            kept = opened.enter_context(Conversations(file))
            chat = kept.resume(resume)
        settings = Settings.kept({} if chat is None else chat.settings, given).anywhere()
        if settings.mcp is not None:
            from guardrails.mcp import McpTools  # noqa: F401
        prepared = prepare(settings)
        client = opened.enter_context(client_of(settings.base_url))
        opened.enter_context(working_in(settings.workspace))
        servers = opened.enter_context(mcp_tools(settings.mcp, view.say))
        prepared = prepared._replace(tools=(*servers, *prepared.tools))
        if chat is not None and kept is not None:
            yield Agent(kept, chat, prepared, view, client=client, records=records)
            return
        kept = opened.enter_context(Conversations(file))
        yield started(kept, prepared, task or "", view, client=client, records=records)


def _work(
    agent: "Agent", task: str | None, amounts: dict[str, Any], ending: Ending, *, forgive: bool, new: bool
) -> None:
    ending.follows(agent)
    view, result = agent.view, None
    try:
        agent.begin()
        with _warnings_in(view):
            if amounts or forgive:
                agent.extend(amounts)
            if not new:
                agent.take_up(task, extended=bool(amounts) or forgive)
            result = agent.run()
    finally:
        ending.take(result)
        shown = result is not None and view.showed(result.answer)
        if result is not None:
            view.say(agent.status())
        view.end()
    ending.result = result
    if ending.how == "text" and not shown:
        typer.echo(printable(result.answer), file=ending.out)
        ending.out.flush()


def _terminal(out: TextIO) -> TextIO | None:
    """
    *out* if a person reads it.
    """
    return out if out.isatty() else None


class _Warnings(logging.Handler):
    """
    Shows what the library warns of where everything else is shown.
    """

    def __init__(self, view: "View") -> None:
        super().__init__(logging.WARNING)
        self._view = view

    def emit(self, record: logging.LogRecord) -> None:
        self._view.say(f"   note: {record.getMessage()}")


@contextmanager
def _warnings_in(view: "View") -> Iterator[None]:
    from guardrails.core.values.logs import log

    shown = _Warnings(view)
    log.addHandler(shown)
    try:
        yield
    finally:
        log.removeHandler(shown)
