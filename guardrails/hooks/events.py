"""
Answers an event of a client: one logic for all clients, one event at a time, in any process.

    session = policy.session(session_name(event["session_id"]), store=SqliteStore("sessions.db"))
    print(json.dumps(answer(session, event)))
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from guardrails.core.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.denials import Denials, refused_turns
from guardrails.core.refusals import FORCED_ASKS
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import log

from .clients import CLIENTS
from .shares import AGENT, KNOWN, Known, end_share, share_of
from .told import Answer, Client, Event, Kind, Said, Told
from .transcripts import tail


if TYPE_CHECKING:
    from guardrails.session.session import Session

CLAUDE: Final = CLIENTS["claude"]
MOST_UNKNOWN: Final = 5
"""Refusals in a row because the state cannot be read, after which the run is stopped."""
MAX_OPEN: Final = 1_000
"""Calls of a session that run at once, or whose end nobody told."""
_RAISED: Final = {
    "budget.max_calls": "max_calls",
    "budget.max_turns": "max_turns",
    "budget.max_tokens": "max_tokens",
    "budget.max_cost_usd": "max_cost",
    "budget.max_elapsed": "max_elapsed",
}
"""Limits of a session by the codes of what has ended it."""


def answer(
    session: "Session",
    event: Event | Told,
    *,
    client: Client = CLAUDE,
    envelopes: bool = False,
    asks: bool = False,
    stops: bool = True,
) -> Answer:
    """
    The answer of a hook to *event*, as *client* writes both; `{}`: no opinion.

    *session* is that of the event's `session_id`. With *envelopes* every text that a tool of an MCP server returns
    reads as an envelope. Without, results are changed only if there is a note to add. With *asks* a person is asked in
    the client's own way about calls that wait for one. If it *stops*, a run whose model goes on calling at a limit is
    ended, with the session's digest. A store that fails raises nothing: the policy's `on_error` says what runs.
    """
    if not isinstance(event, (Mapping, Told)):
        return {}
    known = KNOWN.setdefault(session, Known())
    known.events += 1
    told = None
    try:
        told = event if isinstance(event, Told) else client.read(event)
        if told is None:
            return {}
        said = (
            _before(session, told, client, asks=asks, stops=stops)
            if told.kind == "before"
            else _OTHERS[told.kind](session, told)
        )
        if said is None:
            return {}
        said.envelopes = envelopes
        return client.write(told, said)
    except Exception as error:  # noqa: BLE001  whatever a store raises: the conversation goes on
        log.error("store failed: %s", error, extra={"session": session.id})
        return {}


# Calls


def _before(session: "Session", told: Told, client: Client, *, asks: bool, stops: bool) -> Said | None:
    try:
        own = share_of(session, told.agent)
    except Exception as error:  # noqa: BLE001
        log.error("store failed: %s", error, extra={"session": session.id})
        own = session
    decision = _decided(own, told)
    if decision.envelope is None:
        running = KNOWN.setdefault(own, Known()).open
        running[decision.call.id] = decision
        if len(running) > MAX_OPEN:
            running.popitem(last=False)
        return None
    said = Said(decision.envelope, asks=asks and decision.pending)
    over = False
    with suppress(Exception):
        over = stops and _is_over(own, decision, told, client, alone=KNOWN[session].events <= 1)
    if over:
        said.digest = own.digest()
    return said


def _decided(own: "Session", told: Told) -> Decision:
    decision = own.decide(told.tool, told.arguments, id=told.call_id, claim=True)
    if decision.code == "call.in_flight" and told.call_id is not None:
        # The same hook asked twice is no second executor.
        again = own.decide(told.tool, told.arguments, id=told.call_id)
        return again if again.repeated else decision
    return decision


def _is_over(own: "Session", decision: Decision, told: Told, client: Client, *, alone: bool) -> bool:
    """
    Whether the model was told often enough that no more calls run: the run is stopped. *alone*: this process has seen nothing
    else of the session, so that what was told before is known by the state alone.
    """
    known = KNOWN.setdefault(own, Known())
    if not decision.n:
        known.unknown += 1
        return known.unknown >= MOST_UNKNOWN
    known.unknown = 0
    code = own.exhausted
    if code is None:
        known.told = None
        return False
    refused = own.ledger.read(lambda state, _: refused_turns(state))
    if known.told is None:
        known.told = min(refused - 1, _refused_by_then(own, code)) if alone else refused - 1
    return refused - known.told >= FORCED_ASKS and _was_read(code, told, client)


def _was_read(code: str, told: Told, client: Client) -> bool:
    """
    Whether the model has answered since it could read that *code* ended the session. A client may refuse the calls of one
    response one after the other, and its events do not say so. Without a transcript nobody can tell.
    """
    lines = tail(told.transcript)
    if not lines:
        return True
    at = next((n for n, line in enumerate(lines) if code.encode() in line), len(lines))
    keys = (one.key.partition(":")[2].encode() for one in client.used(lines[at:], told))
    return any(not any(key in line for line in lines[:at]) for key in keys)


def _refused_by_then(own: "Session", code: str) -> int:
    if not code.startswith("denials."):
        return 0
    limits = (guard.max_turns_in_a_row for guard in own.ledger.chain.guards if isinstance(guard, Denials))
    return 1 + next((limit for limit in limits if limit is not None), 0)


def _after(session: "Session", told: Told) -> Said | None:
    envelope = _completed(session, told)
    return None if envelope is None else Said(envelope)


def _completed(session: "Session", told: Told) -> Envelope | None:
    """
    Returns the answer to the event of a call that was run. Returns None if nobody decided it.
    """
    own = share_of(session, told.agent)
    family = (own,) if own is session else (own, session)
    call_id = told.call_id or _id_of(family, told)
    if call_id is None:
        return None
    known = KNOWN.get(own)
    decision = None if known is None else known.open.pop(call_id, None)
    if decision is not None:
        return own.complete(decision, told.outcome)
    for one in family:
        # Other hooks may have changed the arguments.
        for arguments in (told.arguments, None):
            with suppress(SessionError):
                envelope = one.complete(call_id, told.outcome, arguments=arguments)
                if envelope.code != "approve.pending":
                    return envelope
                # A person has let it run, in the client's own way.
                one.approve(call_id, by="client")
                return one.complete(one.decide(told.tool, told.arguments, id=call_id, claim=True), told.outcome)
    return None


def _id_of(family: tuple["Session", ...], told: Told) -> str | None:
    """
    Returns the id of the call whose end is told without one: the oldest open call that is the same. Else it is the only
    call of its tool, whose arguments other hooks have changed.
    """
    for one in family:
        same = one.calls.open_calls(told.tool, told.arguments)
        if same:
            return same[0].id
    for one in family:
        found = one.ledger.read(lambda state, _: [each.id for each in state.pending.values() if each.tool == told.tool])
        if len(found) == 1:
            return found[0]
    return None


def _chosen(session: "Session", told: Told) -> Said | None:
    return Said(final=True) if share_of(session, told.agent).exhausted else None


def _released(session: "Session", told: Told) -> None:
    own = share_of(session, told.agent)
    if told.call_id is None:
        return
    for one in (own,) if own is session else (own, session):
        with suppress(SessionError):
            KNOWN.setdefault(one, Known()).open.pop(told.call_id, None)
            one.calls.release(told.call_id)
            break


# The rest of a run


def _nothing(session: "Session", told: Told) -> None:
    """
    There is nothing to be said to it.
    """


def _prompted(session: "Session", told: Told) -> None:
    if told.agent is None and not session.ledger.go_on() and _is_raised(session):
        session.extend()


def _is_raised(session: "Session") -> bool:
    """
    Returns whether a limit has ended *session* that its policy has raised since, so that something is left of it.
    """
    name = _RAISED.get(session.exhausted or "")
    if name is None:
        return False
    left = session.ledger.read(lambda state, now: session.ledger.limits.left(state, name, now))
    return left is None or left > 0


def _started(session: "Session", told: Told) -> None:
    share_of(session, told.agent)


def _stopped(session: "Session", told: Told) -> Said | None:
    if not told.background:
        KNOWN[session].children.clear()
        # Those that nobody ended, of other processes too.
        for child in session.ledger.read(lambda state, _: list(state.reserved)):
            name = child.removeprefix(f"{session.id}/")
            if name.startswith(AGENT):
                session.child(name, again=True).close()
    return _silent(session, told)


def _agent_stopped(session: "Session", told: Told) -> Said | None:
    own = share_of(session, told.agent)
    said = None if own is session else _silent(own, told)
    end_share(session, told.agent)
    return said


def _silent(own: "Session", told: Told) -> Said | None:
    """
    Returns the sentence for a person whose model has ended without a word because a limit is used up.
    """
    if (told.answer or "").strip() or not own.exhausted:
        return None
    return Said(notice=own.digest())


_OTHERS: Final[Mapping[Kind, Callable[["Session", Told], Said | None]]] = {
    "after": _after,
    "failed": _after,
    "denied": _released,
    "prompt": _prompted,
    "agent_started": _started,
    "agent_stopped": _agent_stopped,
    "stopped": _stopped,
    "choice": _chosen,
    "model": _nothing,
    "turn": _nothing,
    "started": _nothing,
}
EVENTS: Final = CLAUDE.EVENTS
"""The events of Claude Code that are answered."""
