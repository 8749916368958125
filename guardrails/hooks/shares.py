"""
The sub-agents of a session, and what this process has seen of both.
"""

from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from guardrails.core.decision import Decision
from guardrails.core.values.errors import SessionError
from guardrails.core.values.names import session_name
from guardrails.session.ledger import SHARE


if TYPE_CHECKING:
    from guardrails.session.session import Session

_LIVES: Final = 9
"""Times that a sub-agent of one id may be taken up again with a share of its own."""
AGENT: Final = "agent:"
"""What the names of the shares of sub-agents begin with."""


@dataclass(slots=True)
class Known:
    """
    The part of a session that this process has seen.
    """

    children: "dict[str, Session]" = field(default_factory=dict)
    """Of its sub-agents that run, by their ids."""
    events: int = 0
    told: int | None = None
    """Turns of nothing but refusals before the model was told that the session is over."""
    unknown: int = 0
    """Refusals in a row because the state could not be read."""
    open: OrderedDict[str, Decision] = field(default_factory=OrderedDict)
    """Calls that it decided and that run, by their ids: a result is read though the store fails meanwhile."""


KNOWN: "WeakKeyDictionary[Session, Known]" = WeakKeyDictionary()


def session_of(session: "Session", event: Mapping[str, Any]) -> "Session":
    """
    The session of the agent that *event* of Claude Code is of: see `share_of`.
    """
    return share_of(session, event.get("agent_id"))


def share_of(session: "Session", agent: str | None) -> "Session":
    """
    The session of *agent*: *session* itself, or the share of the sub-agent, which has a context of its own. A sub-agent
    for which nothing is left uses the share of its parent.
    """
    if not agent:
        return session
    children = KNOWN.setdefault(session, Known()).children
    child = children.get(agent)
    if child is None:
        name = session_name(f"{AGENT}{agent}")
        for n in range(1, _LIVES + 1):
            # A name is used up once its sub-agent has stopped.
            with suppress(SessionError):
                child = children[agent] = session.child(name if n == 1 else f"{name}~{n}", share=SHARE, again=True)
                break
    return session if child is None else child


def end_share(session: "Session", agent: str | None) -> None:
    """
    Give back what the sub-agent did not use, if it has a share.
    """
    child = KNOWN.setdefault(session, Known()).children.pop(agent or "", None)
    if child is not None:
        child.close()
