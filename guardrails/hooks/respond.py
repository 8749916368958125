"""
One event of a coding CLI in, exactly one JSON object out.
"""

import getpass
import json
import os
import re
import time

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.state import SessionState
from guardrails.core.values.errors import GuardrailsError, PolicyError
from guardrails.core.values.logs import log
from guardrails.core.values.names import session_name
from guardrails.integrations.otel import of_process
from guardrails.policy.policy import Policy
from guardrails.sinks.json_lines import JsonLines
from guardrails.stores.places import is_url, store_at

from .clients import CLIENTS, client_of, guessed
from .events import answer
from .noticing import charge, close_lost, hidden_agent
from .options import Options
from .policies import policy_of
from .shares import AGENT, share_of
from .told import Answer, Client, Told
from .transcripts import tail


if TYPE_CHECKING:
    from guardrails.session.session import Session
    from guardrails.stores.persistence import PersistentStore

NOTHING: Final = b"{}"
_EVENT: Final = re.compile(rb'"hook_event_name"\s*:\s*"(\w{1,40})"')
FLUSH_S: Final = 0.5
"""How long an answer waits for its records; a disk that is full, or gone, is no reason to wait."""
REASON_CHARS: Final = 500
KEPT: Final = "30d"
"""How long the state of a session stays that nothing is told of."""
_stores: "dict[str, PersistentStore]" = {}
_sinks: dict[str, JsonLines] = {}


def respond(data: bytes, options: Options, *, trace: str = "", clock: Callable[[], float] = time.time) -> bytes:
    """
    Returns the answer of a hook that reads *data*: one JSON object, without a newline. Never raises. The W3C
    `traceparent` of the span around the event is *trace*. The *clock* tells the seconds since 1970.

    A failure here is answered as the policy's `on_error` says: `{}`, or before a call its refusal. With `observe` every
    failure is answered with `{}`.
    """
    try:
        said = _respond(data, options, trace, clock)
        return NOTHING if options.observe else json.dumps(said).encode()
    except Exception as error:  # noqa: BLE001  a hook that breaks would break its host
        log.error("a hook failed: %r", error)
        return NOTHING


def _respond(data: bytes, options: Options, trace: str, clock: Callable[[], float]) -> Answer:
    client = None if options.client is None else CLIENTS[options.client]
    told = None
    try:
        event = json.loads(data)
        if not isinstance(event, dict):
            raise TypeError("an event is a JSON object")
        client = client or client_of(event)
        told = client.read(event)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        log.error("an event cannot be read: %r", error)
        client = client or guessed(data)
        name = _EVENT.search(data)
        before = name is None or name[1].decode() == client.BEFORE
        return _failed(client, options, "its event cannot be read", before=before)
    if told is None:
        return {}
    try:
        return _answered(client, told, options, trace, clock)
    except PolicyError as error:
        log.error("the policy cannot be used, so nothing is guarded: %s", error)
        return {"systemMessage": f"guardrails: the policy cannot be used, so nothing is guarded: {error}"[:2_000]}
    except Exception as error:  # noqa: BLE001  whatever a store raises
        log.error("a hook failed: %r", error)
        why = str(error)[:REASON_CHARS] if isinstance(error, (GuardrailsError, OSError)) else type(error).__name__
        return _failed(client, options, why, before=told.kind == "before")


def _answered(client: Client, told: Told, options: Options, trace: str, clock: Callable[[], float]) -> Answer:
    policy = policy_of(options, told, client)
    if not told.session:
        raise ValueError("the event does not say of which session it is")
    sink = None if options.records_path is None else _sink(options.records_path)
    telemetry = of_process()
    session = policy.session(
        session_name(told.session),
        store=_store(options.store_path),
        records=sink,
        scopes=_scopes(policy, options),
        clock=clock,
        telemetry=telemetry,
    )
    try:
        with nullcontext() if telemetry is None else telemetry.within({"traceparent": trace}):
            return _said(session, client, told, options)
    finally:
        if sink is not None:
            # Whoever is answered may end this process.
            sink.flush(FLUSH_S)


def _said(session: "Session", client: Client, told: Told, options: Options) -> Answer:
    _declare(session, told, client)
    told.agent = told.agent or _quietly(session, partial(hidden_agent, session, told, client))
    _quietly(session, partial(_notice, session, told, client))
    # A server is shared by many machines: its owner prunes it.
    if told.kind == "started" and told.agent is None and not is_url(options.store_path):
        _quietly(session, partial(_store(options.store_path).prune, KEPT))
    # Without a transcript nobody knows what the model has read.
    stops = told.kind == "before" and client.STOPS and bool(tail(told.transcript))
    said = answer(session, told, client=client, asks=True, stops=stops)
    if told.kind == "after" and told.tool in client.HIDING:
        _quietly(session, partial(_end_hidden, session))
    return said


def _notice(session: "Session", told: Told, client: Client) -> None:
    own = share_of(session, told.agent)
    if own is not session:
        _declare(own, told, client)
    close_lost(own, told, client)
    charge(own, told, client)


def _end_hidden(session: "Session") -> None:
    """
    The sub-agents of calls that are over have stopped.
    """

    def look(state: SessionState, _: int) -> list[str]:
        running = {session_name(f"{AGENT}{one.id}") for one in state.pending.values()}
        names = [child.removeprefix(f"{session.id}/") for child in state.reserved]
        return [name for name in names if name.startswith(AGENT) and name.partition("~")[0] not in running]

    for name in session.ledger.read(look):
        session.child(name, again=True).close()


def _quietly(session: "Session", work: Callable[[], Any]) -> Any:
    """
    Returns the result of *work*. Returns None if it fails: what it notices is no duty.
    """
    try:
        return work()
    except Exception as error:  # noqa: BLE001
        log.error("store failed: %s", error, extra={"session": session.id})
        return None


def _declare(session: "Session", told: Told, client: Client) -> None:
    tool = client.tool_of(told.tool) if told.tool else None
    known = session.ledger.chain.known
    # Where a policy lists the tools there are, a client makes none known.
    if tool is not None and (known is None or tool.name in known):
        session.calls.declare(tool)


def _scopes(policy: Policy, options: Options) -> dict[str, str]:
    """
    Whose session it is, as far as the policy asks: a user who is not named is the one that this process is of.
    """
    said = {"user": options.user, "tenant": options.tenant}
    if "user" in policy.scopes and not options.user:
        said["user"] = getpass.getuser()
    return {name: own for name, own in said.items() if own and name in policy.scopes}


def _store(place: str) -> "PersistentStore":
    found = _stores.get(place)
    if found is None:
        if not is_url(place):
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120  pathlib takes 5 ms
        found = _stores[place] = store_at(place)
    return found


def _sink(path: str) -> JsonLines:
    found = _sinks.get(path)
    if found is None:
        found = _sinks[path] = JsonLines(path)
    return found


def _failed(client: Client, options: Options, why: str, *, before: bool) -> Answer:
    """
    The answer to an event that nobody could judge, and *why*.
    """
    if not before:
        return {}
    try:
        policy = policy_of(options, Told(kind="before", event=client.BEFORE, session=""), client)
    except Exception:  # noqa: BLE001  it was said already
        return {}
    if policy.chain.on_error != "deny":
        return {}
    return client.deny(f"guardrails could not judge this call, so it was not made: {why}. Tell the user.")
