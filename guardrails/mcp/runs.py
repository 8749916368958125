"""
Which session the call of an MCP client belongs to: the protocol has none of its own.
"""

import json
import time

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack
from uuid import uuid4

from guardrails.core.values.errors import needs
from guardrails.policy.policy import Policy
from guardrails.policy.sessions import SessionOptions, Sessions
from guardrails.session.session import Session

from .answers import RUN


if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken


PROCESS: Final = "process"
"""The run of calls that name none and come from a process of one's own: MCP has no sessions."""
IDLE_S: Final = 1800.0
"""Seconds without a call after which calls that name no run are another run: a server outlives conversations."""
STUCK_S: Final = 60.0
"""The same if a model only repeated what was refused, or ran away, until its tools were off: who asks anew takes as long."""
MAX_HELD: Final = 1_000
"""Of those whose calls name no run, how many are told apart by their pauses."""


class Run(NamedTuple):
    """
    The key that tells the calls of one conversation from others; the *name* of a stranger's is None.
    """

    name: str | None
    named: bool
    """By the client: it says where one ends."""


class Runs:
    """
    The sessions of runs. *guarded* and *options* as `Sessions` takes them.
    """

    def __init__(self, guarded: Policy | Session, **options: Unpack[SessionOptions]) -> None:
        self.sessions = Sessions(guarded, **options)
        self._clock: Callable[[], float] = options.get("clock") or time.time
        self._held: OrderedDict[str, tuple[Session, float]] = OrderedDict()
        """Sessions of calls that name no run by whose they are, each with the time of its latest call, in seconds."""

    def session(self, run: Run) -> Session:
        """
        The session of *run*; a stranger's is new each time, for its caller to end.
        """
        return self.sessions.of(run.name) if run.named or run.name is None else self._unnamed(run.name)

    def _unnamed(self, whose: str) -> Session:
        """
        Returns the session for calls of *whose* that name no run. It is a new one after a pause, since nobody could
        take up one that is used up.
        """
        now = self._clock()
        held = self._held.pop(whose, None)
        if held is None:
            # Other processes may have the same store.
            own = whose == PROCESS
            session = self.sessions.of(f"{PROCESS}:{uuid4()}" if own else whose, run=own)
        else:
            session, called_at = held
            idle = now - called_at
            if idle > IDLE_S or (idle > STUCK_S and is_stuck(session)):
                session = self.sessions.of(f"{whose}:{uuid4()}", run=True)
        self._held[whose] = session, now
        if len(self._held) > MAX_HELD:
            self._held.popitem(last=False)
        return session


def watches(policy: Policy) -> bool:
    """
    Whether *policy* decides and records, and changes nothing.
    """
    chain = policy.chain
    return chain.mode != "enforce" and not any(rule.mode == "enforce" for rule in chain.rules)


def is_stuck(session: Session) -> bool:
    """
    Whether what its model did has ended *session*, and not what was used up: it repeated refused calls, or was too fast.
    """
    try:
        return (session.exhausted or "").startswith(("denials.", "growth."))
    except Exception:  # noqa: BLE001  what a store raises, the call hears of
        return False


def run_of(meta: Mapping[str, Any] | None, token: "AccessToken | None", *, request: Any = None) -> Run:
    """
    Returns the run that a call belongs to. It is the run that its client names in *meta*, apart for each *token* that
    authenticates. Without a name, all calls of a token are one run. Without either it is the transport's session, or
    the process if the client has it for itself.

    Strangers over HTTP (*request*) who name none are not one conversation: the results of one are none of another's.
    """
    named = (meta or {}).get(RUN)
    if token is not None:
        with needs("mcp", "`guardrails.mcp`"):
            from mcp.server.auth.provider import principal_components
        return Run(json.dumps([*principal_components(token), named]), named=named is not None)
    if named is not None:
        return Run(str(named), named=True)
    return Run(PROCESS if request is None else request.headers.get("mcp-session-id"), named=False)
