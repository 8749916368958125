"""
Answers an event of a client: one logic for all clients, one event at a time, in any process.

    session = policy.session(session_name(event["session_id"]), store=SqliteStore("sessions.db"))
    print(json.dumps(answer(session, event)))
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from guardrails.core.decision import Decision
from guardrails.core.envelope import Envelope
from guardrails.core.guards.denials import Denials, refused_turns
from guardrails.core.state import Pending, SessionState
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import log
from guardrails.core.values.names import session_name
from guardrails.session.ledger import SHARE
from guardrails.session.session import Session, key_hash

from .clients import CLIENTS, Answer, Client, Event, specific
from .results import reason_of, tail


CLAUDE: Final = CLIENTS["claude"]
EVENTS: Final = tuple(CLAUDE.kinds)
"""The events of Claude Code that are answered."""
AGENT: Final = "agent:"
"""The beginning of the names of the shares of sub-agents."""
_LIVES: Final = 9
"""Times that a sub-agent of one id may be taken up again with a share of its own."""
LATEST: Final = 32
"""Responses that are looked at: each call is an event, so that those before them were charged already."""
EARLIER_MS: Final = 60_000
"""How long before the first event of a session a response of it may have come."""


def answer(
    session: Session,
    event: Mapping[str, Any] | Event,
    *,
    client: Client = CLAUDE,
    envelopes: bool = False,
    asks: bool = False,
) -> Answer:
    """
    The answer of a hook to *event*, as *client* writes both; `{}`: no opinion.

    *session* is that of the event's `session_id`. With *envelopes* every text that a tool of an MCP server returns
    reads as an envelope. Without, results are changed only if they are too long. With *asks* a person is asked in
    the client's own way about calls that wait for one. If the client can be stopped, a run whose model goes on calling at a
    limit is ended, with the session's digest. A store that fails raises nothing: the policy's `on_error` says what runs.
    """
    read = event if isinstance(event, Event) else client.read(event) if isinstance(event, Mapping) else None
    if read is None:
        return {}
    try:
        own = share_of(session, read.agent)
    except Exception as error:  # whatever a store raises: the conversation goes on
        log.error("store failed: %s", error, extra={"session": session.id})
        own = session
    try:
        if read.kind == "before":
            return _before(own, read, client, asks=asks)
        if read.kind in ("after", "failed"):
            envelope = _completed(session, own, read, client)
            return {} if envelope is None else client.result(read, envelope, envelopes=envelopes)
        return _aside(session, own, read)
    except Exception as error:
        log.error("store failed: %s", error, extra={"session": session.id})
        return {}


def _aside(session: Session, own: Session, event: Event) -> Answer:
    """
    The answer to an event that is no call's.
    """
    match event.kind:
        case "choice" if own.exhausted:
            return specific(event.name, toolConfig={"mode": "NONE"})
        case "denied" if event.call_id is not None:
            with suppress(SessionError):
                own.calls.release(event.call_id)
        case "prompt" if event.agent is None:
            if not session.ledger.go_on() and (session.exhausted or "").startswith("budget."):
                # Its policy may have raised the limit since.
                session.extend()
        case "agent_stopped":
            end_shares(session, event.agent)
        case "stopped":
            if not event.payload.get("background_tasks"):
                end_shares(session)
            if not event.answer.strip() and session.exhausted:
                # For a person whose model has ended without a word.
                return {"systemMessage": session.digest()}
    return {}


# Calls


def _before(own: Session, event: Event, client: Client, *, asks: bool) -> Answer:
    decision = _decided(own, event)
    if decision.envelope is None:
        return {}
    reason = reason_of(decision.envelope)
    if asks and decision.pending:
        return client.ask(reason)
    refusal = client.refuse(reason)
    with suppress(Exception):  # whatever a store raises: it is refused
        if client.stops and _goes_on(own):
            return refusal | {"continue": False, "stopReason": own.digest()}
    return refusal


def _decided(own: Session, event: Event) -> Decision:
    decision = own.decide(event.tool, event.arguments, id=event.call_id, claim=True)
    if decision.code == "call.in_flight" and event.call_id is not None:
        # The same hook asked twice is no second executor.
        again = own.decide(event.tool, event.arguments, id=event.call_id)
        return again if again.repeated else decision
    return decision


def _goes_on(own: Session) -> bool:
    """
    Returns whether the model has read that the session is over, and calls tools in a later turn. Where nobody tells of turns, nobody knows.
    """
    code = own.exhausted
    if code is None:
        return False
    limits = [guard.max_turns_in_a_row or 0 for guard in own.ledger.chain.guards if isinstance(guard, Denials)]
    # The turns that ended it were refused before it could read so.
    read = 1 + (sum(limits) if code.startswith("denials.") else 0)
    return own.ledger.read(lambda state, _: state.present.number > 0 and refused_turns(state) > read)


def _completed(session: Session, own: Session, event: Event, client: Client) -> Envelope | None:
    """
    Returns the answer to the end of a call. Returns None if nobody decided it.
    """
    outcome = client.outcome(event)
    for one in dict.fromkeys((own, session)):
        call_id = event.call_id or _id_of(one, event)
        if call_id is None:
            continue
        if event.tool in client.hiding:
            end_shares(session, call_id)
        # Other hooks may have changed the arguments.
        for arguments in (event.arguments, None):
            with suppress(SessionError):
                envelope = one.complete(call_id, outcome, arguments=arguments)
                if envelope.code != "approve.pending":
                    return envelope
                # A person has let it run, in the client's own way.
                one.approve(call_id, by="client")
                return one.complete(one.decide(event.tool, event.arguments, id=call_id, claim=True), outcome)
    return None


def _id_of(own: Session, event: Event) -> str | None:
    """
    Returns the id of the call whose end is told without one: the oldest open call that is the same. Else it is the only
    call of its tool, whose arguments other hooks have changed.
    """
    same = own.calls.open_calls(event.tool, event.arguments)
    others = [one for one in open_calls(own) if one.tool == event.tool]
    return same[0].id if same else others[0].id if len(others) == 1 else None


def open_calls(own: Session) -> list[Pending]:
    """
    The calls that run, oldest first.
    """
    return own.ledger.read(lambda state, _: [one for one in state.pending.values() if one.question is None])


# Sub-agents


def share_of(session: Session, agent: str | None) -> Session:
    """
    The session of *agent*: *session* itself, or the share of the sub-agent, which has a context of its own. A sub-agent
    for which nothing is left uses the share of its parent.
    """
    name = session_name(f"{AGENT}{agent}")
    for n in range(1, _LIVES + 1 if agent else 1):
        # A name is used up once its sub-agent has stopped.
        with suppress(SessionError):
            return session.child(name if n == 1 else f"{name}~{n}", share=SHARE, again=True)
    return session


def end_shares(session: Session, agent: str | None = None) -> None:
    """
    Give back what sub-agents hold and did not use: *agent*, or all that nobody ended.
    """
    ended = None if agent is None else session_name(f"{AGENT}{agent}")
    for child in session.ledger.read(lambda state, _: list(state.reserved)):
        name = child.removeprefix(f"{session.id}/")
        if name.startswith(AGENT) and ended in (None, name, name.rpartition("~")[0]):
            session.child(name, again=True).close()


# What a client does not tell


def hidden_agent(session: Session, event: Event, client: Client) -> str | None:
    """
    The sub-agent whose event this is, of a client that does not say so: that of the latest call that runs one.
    """
    if event.tool in client.hiding or event.kind not in ("before", "after", "choice", "model"):
        return event.agent
    return next((one.id for one in reversed(open_calls(session)) if one.tool in client.hiding), event.agent)


def charge(own: Session, event: Event, client: Client) -> None:
    """
    Charge the responses of the model that were not charged yet, each once.
    """
    responses = client.used(tail(client.transcript(event), client.marks), event)[-LATEST:]

    def look(state: SessionState, _: int) -> list[Any]:
        since = state.started_ms if state.started_ms >= 0 else own.ledger.time()
        # A copy of another session's file has its responses too.
        fresh = [one for one in responses if one.at_ms is None or one.at_ms >= since - EARLIER_MS]
        return [one for one in fresh if not state.keys.get(key_hash(one.key))]

    for one in own.ledger.read(look) if responses else ():
        with suppress(SessionError):  # what it says cannot be
            own.charge(model=one.model, usage=one.usage, key=one.key)


def close_lost(own: Session, event: Event) -> None:
    """
    End the calls that are over, though nobody will tell how: a person said no, they were interrupted, or the client tells no failures. They
    would be refused for running if they are made again.
    """
    if event.kind in ("prompt", "stopped", "agent_stopped", "started"):
        own.ledger.lose(*open_calls(own))
    elif event.kind == "before":
        turn = own.ledger.read(lambda state, _: state.present.number)
        # A response came after these. What they brought is like no other: it is no evidence, and no work that goes on.
        for one in [one for one in open_calls(own) if one.turn < turn]:
            if one.once:
                own.ledger.lose(one)
                continue
            with suppress(SessionError):
                own.complete(one.id, f"Its end was not told ({one.n}).")
