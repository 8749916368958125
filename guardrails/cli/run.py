"""
The command `run`.
"""

import json
import logging
import os
import re
import shlex
import signal
import sys
import time
import traceback

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.printing import FOUND, INTERRUPTED, USAGE, failures_told, print_json, printable, table
from guardrails.processes.streams import let_go_of_stdout, tell_of_loss


if TYPE_CHECKING:
    from guardrails.agent.agent import Agent
    from guardrails.agent.view import View
    from guardrails.integrations.openai.loop import LoopResult

_CAME_TO: Final = ("answer", "finish_reason", "requests", "iterations")
_LIMITS: Final = "max_calls, max_turns, max_tokens, max_cost_usd or max_elapsed"
How = Literal["text", "json", "events"]
TERMINATED: Final = 128 + signal.SIGTERM
SHOWN: Final = ("ended", "code", "exit_code", "requests", "iterations", "cost_usd", "session")
"""What the line of text says."""


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
    wire: Annotated[
        Literal["chat", "responses"] | None, typer.Option(metavar="chat|responses", help="The API to speak (`chat`).")
    ] = None,
    workspace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder that the tools work in (this one).", exists=True, file_okay=False),
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
        Literal["auto", "bwrap", "read-only", "none"] | None,
        typer.Option(
            metavar="auto|bwrap|read-only|none",
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
    file = (conversation or _state_file()).absolute()
    if listed:
        _list(file, as_json=as_json or events)
        return
    with _ends(ending):
        amounts = _amounts(extend or [])
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
            if as_json:
                listed = [{**each._asdict(), "settings": dict(each.settings)} for each in found]
                print_json({"file": kept.path, "conversations": listed})
            elif not found:
                typer.echo(f"no conversations are kept in {kept.path}")
            else:
                rows = [["id", "used", "messages", "model", "task"]]
                for one in found:
                    used = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.last_ms / 1000))
                    model, task = (" ".join(str(one.settings.get(name, "")).split()) for name in ("model", "task"))
                    rows.append([one.id, used, str(one.messages), model, task if len(task) <= 60 else f"{task[:59]}…"])
                typer.echo(table(rows))


def _check(given: dict[str, Any], *, task: str | None, resume: str | None, raised: bool) -> None:
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
    ending: "Ending",
    quiet: bool,
) -> "Iterator[Agent]":
    from guardrails.agent.agent import Agent, prepare, started, working_in
    from guardrails.agent.conversations import Conversations
    from guardrails.agent.endpoint import client_of, imported
    from guardrails.agent.servers import mcp_tools
    from guardrails.agent.settings import Settings
    from guardrails.agent.view import View

    words = ending.out if ending.how == "text" and ending.out.isatty() else None
    view = View(quiet=quiet, words=words, events=ending.events())
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
    agent: "Agent", task: str | None, amounts: dict[str, Any], ending: "Ending", *, forgive: bool, new: bool
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


def _state_file() -> Path:
    """
    Returns the file of conversations, unless another is named: outside of any workspace, where no tool of an agent
    looks.
    """
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "guardrails" / "conversations.db"


def _amounts(given: Sequence[str]) -> dict[str, Any]:
    """
    `max_calls=20` or `max_calls=20,max_elapsed=10m`, several times over. BadParameter for what is no limit or amount.
    """
    from guardrails.core.guards.amounts import internal
    from guardrails.core.guards.budget import Budget
    from guardrails.core.values.errors import SessionError
    from guardrails.core.values.units import duration_ms

    amounts: dict[str, Any] = {}
    for part in ",".join(given).split(",") if given else ():
        name, equals, text = (piece.strip() for piece in part.partition("="))
        limit = name.rpartition(".")[2]
        known = Budget.aliases.get(limit, limit)
        if not equals:
            raise typer.BadParameter(f"`--extend` takes LIMIT=AMOUNT, not `{part}`: {_LIMITS}")
        if name in amounts:
            raise typer.BadParameter(f"`--extend {name}` is given twice")
        try:
            if known == "max_elapsed":
                amounts[name] = duration_ms(float(text) if text.replace(".", "", 1).isdigit() else text) / 1000
            else:
                amounts[name] = float(text) if known == "max_cost_usd" else int(text)
            internal({limit: amounts[name]})
        except (SessionError, ValueError) as error:
            said = str(error) if isinstance(error, SessionError) else f"`{name}` takes an amount, not `{text}`"
            raise typer.BadParameter(f"`--extend`: {said}") from None
    return amounts


class Terminated(KeyboardInterrupt):
    """
    SIGTERM, which ends a command as Ctrl-C does.
    """


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated


class Ending:
    """
    Gathers how a run ended, and tells it: as text on stderr, unless *quiet*; as JSON on stdout.

    *file*: where conversations are kept, if that was said.
    """

    def __init__(self, how: How, *, quiet: bool, file: "Path | None") -> None:
        self.how = how
        self.out = sys.stdout
        tell_of_loss(self.out)
        """Where the answer goes, and nothing else: what tools print goes to stderr."""
        self._quiet = quiet
        self._file = file
        self._agent: Agent | None = None
        self.result: LoopResult | None = None
        """What the agent came to."""
        self._figures: dict[str, Any] = dict.fromkeys(("session", "id", "answer", "finish_reason", "resume"))
        self._figures |= {"requests": 0, "iterations": 0, "cost_usd": 0.0}

    def follows(self, agent: "Agent") -> None:
        """
        From now on it is *agent* whose figures are told.
        """
        self._agent = agent

    @property
    def resume(self) -> str | None:
        """
        Returns the command that goes on, for a shell. Returns None if there is no conversation.
        """
        if self._agent is None:
            return None
        where = [] if self._file is None else ["--conversation", str(self._file.absolute())]
        return shlex.join(["guardrails", "run", *where, "--resume", self._agent.chat.id])

    def take(self, result: "LoopResult | None" = None) -> None:
        """
        Look at the figures while the session can be read.
        """
        agent = self._agent
        if agent is None:
            return
        self._figures |= {"session": agent.chat.id, "id": agent.chat.id, "resume": self.resume}
        self._figures |= {"requests": agent.requests, "iterations": agent.view.iterations}
        # A store that fails has ended the run: its figures are those of nobody.
        with suppress(Exception):
            ledger = agent.session.ledger
            self._figures |= {} if result is None else {name: getattr(result, name) for name in _CAME_TO}
            self._figures |= {"messages": len(agent.chat), "denied": agent.view.denied, "cost_usd": ledger.cost_usd}
            self._figures |= {"unpriced": ledger.unpriced, "progress": ledger.progress}
            self._figures["interrupted"] = [call._asdict() for call in agent.repaired]

    def tell(self, ended: str, code: str | None, exit_code: int, error: str | None = None) -> int:
        """
        Print it; the exit code, which is another if it cannot be printed.
        """
        said = {"event": "end", "ended": ended, "code": code, "exit_code": exit_code, **self._figures, "error": error}
        try:
            if self.how == "events":
                self._write(said)
            elif self.how == "json":
                print_json(said)
                sys.stdout.flush()
            elif not self._quiet:
                self._line(said)
        except (OSError, ValueError) as failed:
            return self.unprinted(failed)
        return exit_code

    def unprinted(self, failed: BaseException) -> int:
        """
        Standard output is gone, or full: say so, and tell the end on stderr; the exit code.
        """
        let_go_of_stdout()
        why = getattr(failed, "strerror", None) or failed
        with suppress(OSError, ValueError):
            typer.echo(printable(f"cannot print the answer: {why}. To print it:\n  {self.resume}"), err=True)
            self._line({**self._figures, "ended": "failed", "code": "output", "exit_code": USAGE})
        return USAGE

    def events(self) -> Callable[[dict[str, Any]], None] | None:
        """
        Returns a function that prints events as they come. Once nobody reads them it prints none, and the run goes on.
        """
        gone = False

        def write(event: dict[str, Any]) -> None:
            nonlocal gone
            try:
                if not gone:
                    self._write(event)
            except (OSError, ValueError):
                gone = True

        return write if self.how == "events" else None

    def _write(self, event: Mapping[str, Any]) -> None:
        # ASCII: in any encoding of the output.
        self.out.write(json.dumps(event, default=str) + "\n")
        self.out.flush()

    def _line(self, said: Mapping[str, Any]) -> None:
        brief = {name: "-" if (value := said.get(name)) is None else value for name in SHOWN}
        brief["cost_usd"] = f"{said['cost_usd']:.4f}"
        typer.echo(f"end {' '.join(f'{name}={value}' for name, value in brief.items())}", err=True)


def _code_of(error: BaseException) -> str:
    """
    The code of *error*: its own, else the name of its class.
    """
    own = getattr(error, "code", None)
    return own if isinstance(own, str) else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).lower()


@contextmanager
def _ends(ending: Ending) -> Iterator[None]:
    """
    At each end of the block: say how to go on, tell the last event, and end with its exit code.
    """
    from guardrails.core.values.errors import GuardrailsError

    try:
        before = signal.signal(signal.SIGTERM, _terminate)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)
    except KeyboardInterrupt as error:
        by, code = ("terminated", TERMINATED) if isinstance(error, Terminated) else ("interrupted", INTERRUPTED)
        if ending.resume is None:
            typer.echo("interrupted; nothing was begun", err=True)
        else:
            typer.echo(f"interrupted; nothing is lost. Go on with:\n  {ending.resume}", err=True)
        raise typer.Exit(ending.tell("interrupted", by, code)) from None
    except typer.BadParameter as error:
        if ending.how != "text":
            ending.tell("failed", "usage", USAGE, error.format_message())
        raise
    except GuardrailsError as error:
        if ending.resume is not None:
            typer.echo(f"the conversation is kept. Go on with:\n  {ending.resume}", err=True)
        typer.echo(printable(str(error)), err=True)
        raise typer.Exit(ending.tell("failed", _code_of(error), USAGE, str(error))) from None
    except typer.Exit:
        raise
    except BaseException as error:  # noqa: BLE001  an end without its event is none
        if isinstance(error, OSError) and ending.result is not None:
            raise typer.Exit(ending.unprinted(error)) from None
        # A mistake of this library, or of a tool's file: whoever looks for it needs all of it.
        traceback.print_exc()
        raise typer.Exit(ending.tell("failed", _code_of(error), USAGE, str(error))) from None
    result = ending.result
    limited = result is not None and result.ended != "answered"
    if result is not None and limited and ending.how == "text":
        from guardrails.agent.agent import how_to_go_on

        typer.echo(f"ended by {result.code}. Go on with:\n  {ending.resume} {how_to_go_on(result.code)}", err=True)
    if result is not None:
        code = ending.tell(result.ended, result.code, FOUND if limited else 0)
        if code:
            raise typer.Exit(code)
