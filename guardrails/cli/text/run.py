"""
Reads and prints for the command `run`: amounts, lists, results.
"""

import os
import shlex
import time

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from .printing import table


if TYPE_CHECKING:
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
    from guardrails.core.guards.limits.amounts import internal
    from guardrails.core.guards.limits.budget import Budget
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
        "cost_usd": session.cost_usd,
        "unpriced": session.unpriced,
        "progress": session.progress,
        "interrupted": [call._asdict() for call in agent.repaired],
    }


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:59]}…"
