"""
The command `run`.
"""

import logging
import signal

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from guardrails.cli.text.printing import FOUND, fail, print_json, printable
from guardrails.cli.text.run import list_text, list_to_dict, parsed_amounts, result_to_dict, resume_command, state_file


if TYPE_CHECKING:
    from guardrails.agent.agent import Agent
    from guardrails.agent.conversations import Conversations
    from guardrails.agent.view import View

TERMINATED = 128 + signal.SIGTERM
INTERRUPTED = 128 + signal.SIGINT


def run(
    *,
    task: Annotated[str | None, typer.Argument(help="What the agent is to do; `-` reads it from stdin.")] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="An OpenAI-compatible endpoint; its key is in OPENAI_API_KEY.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model.")] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME_OR_FILE", help="The policy that guards (`agent`).")
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
    search: Annotated[
        str | None, typer.Option(metavar="URL", help="A search service, with `{query}` where the query goes.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="A private host or network that may be fetched from.")
    ] = None,
    conversation: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where conversations are kept (your state folder).")
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
    max_iterations: Annotated[
        int | None, typer.Option(min=1, help="Turns with calls until the answer is asked for (20).")
    ] = None,
    records: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where records go (beside the conversations).")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show the kept conversations.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No view on stderr.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """
    Run an agent on a task: guarded, kept, and resumable. Its answer goes to stdout.

    Exit code 0: the model answered. 1: a limit made it answer; raise it with --resume and --extend. 2: it cannot be done
    as it was asked for, or the endpoint failed. 130: interrupted; --resume goes on.
    """
    from guardrails.core.values.errors import GuardrailsError

    amounts = parsed_amounts(extend or [])
    given = {
        "model": model,
        "base_url": base_url,
        "policy": policy,
        "wire": wire,
        "workspace": None if workspace is None else str(workspace),
        "tools": tools or None,
        "mcp": None if mcp is None else str(mcp),
        "builtins": builtins,
        "search": search,
        "allow_hosts": allow_host or None,
        "max_iterations": max_iterations,
        "scopes": scope or None,
    }
    _check(given, task=task, resume=resume, listed=listed, raised=bool(amounts) or forgive)
    file = conversation or state_file()
    try:
        with _kept(file, must_exist=listed or resume is not None) as kept:
            if listed:
                found = kept.listed()
                print_json(list_to_dict(kept, found)) if as_json else typer.echo(list_text(kept, found))
                return
            said = typer.get_text_stream("stdin").read() if task == "-" else task
            with _agent(kept, given, said, resume, records, quiet=quiet) as agent:
                _work(agent, said, amounts, file=conversation, forgive=forgive, new=resume is None, as_json=as_json)
    except GuardrailsError as error:
        fail(str(error))


def _check(given: dict[str, Any], *, task: str | None, resume: str | None, listed: bool, raised: bool) -> None:
    if given["wire"] not in (None, "chat", "responses"):
        raise typer.BadParameter(f"`--wire` is chat or responses, not `{given['wire']}`")
    if given["workspace"] is not None and not Path(given["workspace"]).is_dir():
        raise typer.BadParameter(f"`--workspace`: there is no folder `{given['workspace']}`")
    if listed:
        return
    if resume is None and (task is None or not task.strip()):
        raise typer.BadParameter("say what the agent is to do, or `--resume ID`")
    if resume is None and raised:
        raise typer.BadParameter(
            "`--extend` and `--forgive` go with `--resume ID`: a new session has its policy's limits"
        )
    if resume is not None and given["wire"] is not None:
        raise typer.BadParameter("`--wire` goes with a new conversation: a kept one has its own")


@contextmanager
def _kept(file: Path, *, must_exist: bool) -> "Iterator[Conversations]":
    from guardrails.agent.conversations import Conversations

    if must_exist and not file.exists():
        fail(f"no conversations are kept in `{file}`")
    with Conversations(file) as kept:
        yield kept


@contextmanager
def _agent(
    kept: "Conversations",
    given: dict[str, Any],
    task: str | None,
    resume: str | None,
    records: Path | None,
    *,
    quiet: bool,
) -> "Iterator[Agent]":
    from guardrails.agent.agent import Agent, prepare, started, working_in
    from guardrails.agent.servers import mcp_tools
    from guardrails.agent.settings import Settings
    from guardrails.agent.view import View

    view = View(quiet=quiet)
    lines = str((records or Path(kept.path).with_suffix(".jsonl")).absolute())
    with nullcontext() if resume is None else kept.resume(resume) as chat:
        settings = Settings.kept({} if chat is None else chat.settings, given).anywhere()
        prepared = prepare(settings)
        with working_in(settings.workspace), mcp_tools(settings.mcp, view.say) as servers:
            prepared = prepared._replace(tools=(*servers, *prepared.tools))
            if chat is not None:
                yield Agent(kept, chat, prepared, view, lines)
                return
            with started(kept, prepared, task or "", view, records=lines) as agent:
                yield agent


def _work(
    agent: "Agent",
    task: str | None,
    amounts: dict[str, Any],
    *,
    file: Path | None,
    forgive: bool,
    new: bool,
    as_json: bool,
) -> None:
    command = resume_command(agent.chat.id, file)
    settings = agent.settings
    agent.view.say(f"conversation {agent.chat.id}: {settings.model}, policy {settings.policy}, {agent.offered}")
    try:
        with _terminated_as_interrupted(), _warnings_in(agent.view):
            if amounts or forgive:
                agent.extend(amounts)
            if not new:
                agent.take_up(task, extended=bool(amounts) or forgive)
            result = agent.run()
    except KeyboardInterrupt as error:
        agent.view.end()
        typer.echo(f"interrupted; nothing is lost. Go on with:\n  {command}", err=True)
        raise typer.Exit(TERMINATED if isinstance(error, _Terminated) else INTERRUPTED) from None
    except Exception:
        agent.view.end()
        typer.echo(f"the conversation is kept. Go on with:\n  {command}", err=True)
        raise
    agent.view.say(agent.status())
    agent.view.end()
    if as_json:
        print_json(result_to_dict(agent, result, command))
    else:
        typer.echo(printable(result.answer))
    if result.ended != "answered":
        _limited(agent, result.code, command, as_json=as_json)


def _limited(agent: "Agent", code: str | None, command: str, *, as_json: bool) -> NoReturn:
    from guardrails.agent.agent import how_to_go_on

    if not as_json:
        typer.echo(f"ended by {code}. Go on with:\n  {command} {how_to_go_on(code)}", err=True)
    raise typer.Exit(FOUND)


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


class _Terminated(KeyboardInterrupt):
    """
    SIGTERM, which ends a run as Ctrl-C does.
    """


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    def end(number: int, frame: object) -> NoReturn:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
