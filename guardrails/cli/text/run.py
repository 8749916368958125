"""
Reads and prints for the command `run`: amounts, lists, results.
"""

import json
import os
import re
import shlex
import signal
import sys
import time
import traceback

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TextIO

import typer

from guardrails.processes.streams import let_go_of_stdout, tell_of_loss

from .printing import FOUND, INTERRUPTED, USAGE, print_json, printable, table


if TYPE_CHECKING:
    from pathlib import Path

    from guardrails.agent.agent import Agent
    from guardrails.agent.conversations import Conversations, Summary
    from guardrails.session.turns.loop import LoopResult

_CAME_TO: Final = ("answer", "finish_reason", "requests", "iterations")
_LIMITS: Final = "max_calls, max_turns, max_tokens, max_cost_usd or max_elapsed"


def state_file() -> Path:
    """
    Returns the file of conversations, unless another is named: outside of any workspace, where no tool of an agent
    looks.
    """
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "guardrails" / "conversations.db"


def parsed_amounts(given: Sequence[str]) -> dict[str, Any]:
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


def resume_command(id: str, file: Path | None) -> str:
    """
    Returns the shell's command that goes on with the conversation *id*.
    """
    where = [] if file is None else ["--conversation", str(file.absolute())]
    return shlex.join(["guardrails", "run", *where, "--resume", id])


def list_text(kept: "Conversations", found: "Sequence[Summary]") -> str:
    """
    The kept conversations as a table.
    """
    if not found:
        return f"no conversations are kept in {kept.path}"
    rows = [["id", "used", "messages", "model", "task"]]
    for summary in found:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(summary.last_ms / 1000))
        model = str(summary.settings.get("model", ""))
        rows.append([summary.id, used, str(summary.messages), model, _short(str(summary.settings.get("task", "")))])
    return table(rows)


def list_to_dict(kept: "Conversations", found: "Sequence[Summary]") -> dict[str, Any]:
    """
    The same for another program.
    """
    return {"file": kept.path, "conversations": [{**s._asdict(), "settings": dict(s.settings)} for s in found]}


def result_to_dict(agent: "Agent", result: "LoopResult | None") -> Mapping[str, Any]:
    """
    Returns the result of an agent for another program; without a *result*, its usage.
    """
    session = agent.session
    came_to = {} if result is None else {name: getattr(result, name) for name in _CAME_TO}
    return {
        **came_to,
        "messages": len(agent.chat),
        "denied": agent.view.denied,
        "cost_usd": session.ledger.cost_usd,
        "unpriced": session.ledger.unpriced,
        "progress": session.ledger.progress,
        "interrupted": [call._asdict() for call in agent.repaired],
    }


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:59]}…"


How = Literal["text", "json", "events"]
TERMINATED: Final = 128 + signal.SIGTERM
SHOWN: Final = ("ended", "code", "exit_code", "requests", "iterations", "cost_usd", "session")
"""What the line of text says."""


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
        return None if self._agent is None else resume_command(self._agent.chat.id, self._file)

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
            self._figures |= result_to_dict(agent, result)

    def tell(self, ended: str, code: str | None, exit_code: int, error: str | None = None) -> int:
        """
        Print it; the exit code, which is another if it cannot be printed.
        """
        said = {"event": "end", "ended": ended, "code": code, "exit_code": exit_code, **self._figures, "error": error}
        try:
            if self.how == "events":
                write_line(said, self.out)
            elif self.how == "json":
                print_json(said)
                sys.stdout.flush()
            elif not self._quiet:
                _tell_in_line(said)
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
            _tell_in_line({**self._figures, "ended": "failed", "code": "output", "exit_code": USAGE})
        return USAGE


def code_of(error: BaseException) -> str:
    """
    The code of *error*: its own, else the name of its class.
    """
    own = getattr(error, "code", None)
    return own if isinstance(own, str) else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).lower()


def write_line(event: Mapping[str, Any], out: TextIO) -> None:
    """
    Print *event* as one line of JSON, at once, in any encoding of *out*.
    """
    out.write(json.dumps(event, default=str) + "\n")
    out.flush()


def _tell_in_line(said: Mapping[str, Any]) -> None:
    shown = " ".join(f"{name}={_brief(said.get(name))}" for name in SHOWN)
    typer.echo(f"end {shown}", err=True)


def _brief(value: object) -> str:
    return "-" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


@contextmanager
def ends(ending: Ending) -> Iterator[None]:
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
        raise typer.Exit(ending.tell("failed", code_of(error), USAGE, str(error))) from None
    except typer.Exit:
        raise
    except BaseException as error:  # noqa: BLE001  an end without its event is none
        if isinstance(error, OSError) and ending.result is not None:
            raise typer.Exit(ending.unprinted(error)) from None
        # A mistake of this library, or of a tool's file: whoever looks for it needs all of it.
        traceback.print_exc()
        raise typer.Exit(ending.tell("failed", code_of(error), USAGE, str(error))) from None
    result = ending.result
    limited = result is not None and result.ended != "answered"
    if result is not None and limited and ending.how == "text":
        from guardrails.agent.agent import how_to_go_on

        typer.echo(f"ended by {result.code}. Go on with:\n  {ending.resume} {how_to_go_on(result.code)}", err=True)
    if result is not None:
        code = ending.tell(result.ended, result.code, FOUND if limited else 0)
        if code:
            raise typer.Exit(code)


def written(ending: Ending) -> Callable[[dict[str, Any]], None] | None:
    """
    Print events as they come. Once nobody reads them it prints none, and the run goes on.
    """
    if ending.how != "events":
        return None
    gone = False

    def write(event: dict[str, Any]) -> None:
        nonlocal gone
        if not gone:
            try:
                write_line(event, ending.out)
            except (OSError, ValueError):
                gone = True

    return write
