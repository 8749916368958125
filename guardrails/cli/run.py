"""
The command `run`.
"""

import logging
import re
import shlex
import signal
import sys
import time
import traceback

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stdout, suppress
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn

import typer

import guardrails

from .console import FINDINGS, INTERRUPTED, USAGE, Json, echo, fail, print_json, table


if TYPE_CHECKING:
    from guardrails.agent.agent import Agent

Several = list[str] | None
Sandbox = Literal["auto", "bwrap", "read-only", "none"]
SHOWN: Final = ("ended", "code", "exit_code", "requests", "iterations", "cost_usd", "session")
"""The fields of the end that the last line on stderr has."""
RESULT: Final = ("answer", "finish_reason", "requests", "iterations")
"""The fields of the end that a run has which came to one."""
OPEN: Final = ("session", "id", *RESULT, "resume", "error")
"""The fields of the end that are there in any case."""


def run(
    ctx: typer.Context,
    task: Annotated[str | None, typer.Argument(help="The task of the agent; `-` reads it from stdin.")] = None,
    base_url: Annotated[str | None, typer.Option(metavar="URL", help="An OpenAI-compatible endpoint.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model.")] = None,
    policy: Annotated[str | None, typer.Option(metavar="POLICY", help="The policy that guards (`agent`).")] = None,
    wire: Annotated[Literal["chat", "responses"] | None, typer.Option(help="The API to speak (`chat`).")] = None,
    workspace: Annotated[str | None, typer.Option(metavar="DIR", help="Where the tools work (this folder).")] = None,
    tools: Annotated[Several, typer.Option(metavar="FILE.py", help="Files with tools of your own.")] = None,
    mcp: Annotated[str | None, typer.Option(metavar="FILE", help="MCP servers to use too: TOML or JSON.")] = None,
    builtins: Annotated[bool | None, typer.Option(help="Files, shell, memory, web, sub-agents (with them).")] = None,
    sandbox: Annotated[Sandbox | None, typer.Option(help="Confines commands (`auto`); see `doctor`.")] = None,
    network: Annotated[bool | None, typer.Option(help="Let commands use the network (they may not).")] = None,
    search: Annotated[str | None, typer.Option(metavar="URL", help="A search service, with `{query}` in it.")] = None,
    allow_hosts: Annotated[Several, typer.Option("--allow-host", metavar="HOST", help="Fetch from it.")] = None,
    conversation: Annotated[Path | None, typer.Option(metavar="FILE", help="Where it is kept.")] = None,
    resume: Annotated[str | None, typer.Option(metavar="ID", help="Go on with a kept conversation.")] = None,
    extend: Annotated[Several, typer.Option(metavar="LIMIT=AMOUNT", help="Raise a limit by that.")] = None,
    forgive: Annotated[bool, typer.Option("--forgive", help="Forgive refused turns and blown growth caps.")] = False,
    scopes: Annotated[Several, typer.Option("--scope", metavar="NAME=ID", help="Whose it is.")] = None,
    stream: Annotated[bool | None, typer.Option(help="Ask for the text as it comes (streamed).")] = None,
    max_iterations: Annotated[int | None, typer.Option(min=1, help="Turns with calls at most (20).")] = None,
    records: Annotated[Path | None, typer.Option(metavar="FILE", help="The file of records.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show the kept conversations.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No view on stderr.")] = False,
    as_json: Json = False,
) -> None:
    """
    Run an agent on a task: guarded, kept, and resumable.

    Its answer goes to stdout. Exit code 0: the model answered. 1: a limit made it answer; raise it with --resume and
    --extend. 2: it cannot be done as it was asked for, or the endpoint failed. 130: interrupted; --resume goes on.

    \b
    Examples:
      guardrails run 'Which tests fail, and why?' --model gpt-5-mini
      guardrails run --list
      guardrails run --resume ID --extend max_calls=20
    """
    from guardrails.stores.places import state_folder

    # Outside of any workspace, where no tool of an agent looks.
    file = (conversation or Path(state_folder()) / "conversations.db").absolute()
    amounts = _amounts(extend or [])
    if task == "-":
        task = typer.get_text_stream("stdin").read()
    if resume is None and not listed and not (task or "").strip():
        fail("say what the agent is to do, or `--resume ID`")
    if resume is not None and wire is not None:
        fail("`--wire` goes with a new conversation: a kept one has its own")
    if (listed or resume is not None) and not file.exists():
        fail(f"no conversations are kept in `{file}`")
    if listed:
        _list(file, as_json=as_json)
        return
    from guardrails.agent.agent import Settings

    # An option that may be given twice, and is not given, is an empty tuple here.
    given = {field.name: ctx.params[field.name] for field in fields(Settings) if ctx.params[field.name] != ()}
    lines = str((records or file.with_suffix(".jsonl")).absolute())
    words = sys.stdout if not as_json and sys.stdout.isatty() else None
    end: dict[str, Any] = {"event": "end", "cost_usd": 0.0, **dict.fromkeys(OPEN)}
    shown, before = False, signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with redirect_stdout(sys.stderr), _agent(file, given, task, resume, lines, words, quiet=quiet) as agent:
            where = [] if conversation is None else ["--conversation", str(file)]
            end["resume"] = shlex.join(["guardrails", "run", *where, "--resume", agent.chat.id])
            try:
                agent.begin()
                if amounts or forgive:
                    agent.extend(amounts)
                if resume is not None:
                    agent.take_up(task, extended=bool(amounts) or forgive)
                result = agent.run()
                shown = agent.view.words is not None and result.requests > 0
            finally:
                end |= _figures(agent)
        end |= {name: getattr(result, name) for name in (*RESULT, "ended", "code")}
        end["exit_code"] = 0 if result.ended == "answered" else FINDINGS
    except (KeyboardInterrupt, Exception) as error:  # an end without its line is none
        end |= _ended_by(error)
    finally:
        signal.signal(signal.SIGTERM, before)
    _tell(end, as_json=as_json, quiet=quiet, shown=shown)


def _list(file: Path, *, as_json: bool) -> None:
    from guardrails.agent.conversations import Conversations

    with Conversations(file) as conversations:
        listed = [{**one._asdict(), "settings": dict(one.settings)} for one in conversations.listed()]
    if as_json:
        print_json({"file": str(file), "conversations": listed})
        return
    rows = [("id", "used", "messages", "model", "task")]
    for one in listed:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(one["last_ms"] / 1000))
        model, task = (" ".join(str(one["settings"].get(name, "")).split()) for name in ("model", "task"))
        rows.append((one["id"], used, str(one["messages"]), model, task[:60]))
    table(rows)


@contextmanager
def _agent(
    file: Path, given: dict[str, Any], task: str | None, resume: str | None, records: str, words: Any, *, quiet: bool
) -> "Iterator[Agent]":
    """
    An agent with a new conversation, or the one to *resume*. What is needed is looked at before any file is made.
    """
    from guardrails.agent.agent import Agent, Settings, client_of, mcp_tools, prepare, started, together
    from guardrails.agent.conversations import Conversations
    from guardrails.agent.view import View
    from guardrails.core.values.logs import log

    view = View(quiet=quiet, words=words)
    with ExitStack() as opened:
        chats = None if resume is None else opened.enter_context(Conversations(file))
        chat = None if chats is None or resume is None else chats.resume(resume)
        settings = Settings.merged({} if chat is None else chat.settings, given)
        client = opened.enter_context(client_of(settings.base_url))
        if settings.mcp is not None:
            # Without the extra nothing of the user's runs.
            import_module("guardrails.mcp.servers")
        _, loaded, tools = prepare(settings)
        opened.enter_context(chdir(settings.workspace))
        if settings.mcp is not None:
            tools = together((opened.enter_context(mcp_tools(settings.mcp, view.say)), tools))
        warnings = _Warnings(view)
        log.addHandler(warnings)
        opened.callback(log.removeHandler, warnings)
        chats = chats or opened.enter_context(Conversations(file))
        chat = chat or started(chats, settings, task or "")
        yield Agent(chats, chat, (settings, loaded, tools), view, client, records)


class _Warnings(logging.Handler):
    """
    Shows what the library warns of where everything else is shown.
    """

    def __init__(self, view: Any) -> None:
        super().__init__(logging.WARNING)
        self._view = view

    def emit(self, record: logging.LogRecord) -> None:
        self._view.say(f"   note: {record.getMessage()}")


def _amounts(given: Sequence[str]) -> dict[str, Any]:
    """
    `max_calls=20` or `max_calls=20,max_elapsed=10m`, several times over. Raises SessionError for what is no limit or
    amount.
    """
    from guardrails.core.guards.budget import internal
    from guardrails.core.values.units import duration_ms

    amounts: dict[str, Any] = {}
    for part in ",".join(given).split(",") if given else ():
        name, _, text = (piece.strip() for piece in part.partition("="))
        amounts[name] = text
        for read in (lambda text: duration_ms(text) / 1000, float, int):
            with suppress(ValueError):
                amounts[name] = read(text)
        internal({name.rpartition(".")[2]: amounts[name]})
    return amounts


def _ended_by(error: BaseException) -> dict[str, Any]:
    if isinstance(error, KeyboardInterrupt):
        return {"ended": "interrupted", "code": "interrupted", "exit_code": INTERRUPTED}
    if not isinstance(error, guardrails.GuardrailsError):
        # A mistake of this library, or of a tool's file: whoever looks for it needs all of it.
        traceback.print_exception(error)
    code = getattr(error, "code", None) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).lower()
    return {"ended": "failed", "code": code, "exit_code": USAGE, "error": str(error)}


def _figures(agent: "Agent") -> dict[str, Any]:
    """
    The figures of *agent*, while its session can be read.
    """
    figures: dict[str, Any] = {"session": agent.chat.id, "id": agent.chat.id}
    # A store that fails has ended the run: its figures are those of nobody.
    with suppress(Exception):
        figures |= {name: getattr(agent.session.ledger, name) for name in ("cost_usd", "unpriced", "progress")}
        figures |= {"messages": len(agent.chat), "denied": agent.view.denied}
        figures["interrupted"] = [call._asdict() for call in agent.repaired]
        agent.view.say(agent.status())
    agent.view.end()
    return figures


def _tell(end: dict[str, Any], *, as_json: bool, quiet: bool, shown: bool) -> NoReturn:
    """
    Print the *end*: as JSON on stdout; else the answer, unless it was *shown* as it came, and a line on stderr. Ends with
    its exit code.
    """
    from guardrails.agent.agent import how_to_go_on

    if end["resume"] is not None and end["exit_code"]:
        limited = end["exit_code"] == FINDINGS
        why, option = (f"ended by {end['code']}", f" {how_to_go_on(end['code'])}") if limited else (end["ended"], "")
        typer.echo(f"{why}; nothing is lost. Go on with:\n  {end['resume']}{option}", err=True)
    if end["error"] is not None:
        echo(end["error"], err=True)
    if as_json:
        print_json(end)
    elif end["answer"] is not None and not shown:
        echo(end["answer"])
    if not as_json and not quiet:
        brief = end | {"cost_usd": f"{end['cost_usd']:.4f}"}
        figures = [f"{name}={'-' if brief[name] is None else brief[name]}" for name in SHOWN]
        typer.echo(" ".join(["end", *figures]), err=True)
    raise typer.Exit(end["exit_code"])
