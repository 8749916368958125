"""
What Claude Code tells its hooks, and what they answer: one event at a time, in any process, without its SDK.

    session = policy.session(session_name(event["session_id"]), store=SqliteStore("sessions.db"))
    print(json.dumps(answer(session, event)))
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from guardrails.core.engine.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.limits.denials import Denials
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import log
from guardrails.core.values.session_id import session_name
from guardrails.core.values.types import ErrorType, Failed
from guardrails.session.growing import SHARE
from guardrails.session.turns.final_answer import FORCED_ASKS

from .results import read_response, rewritten


if TYPE_CHECKING:
    from guardrails.session.session import Session

Event = Mapping[str, Any]
Answer = dict[str, Any]

MOST_UNKNOWN: Final = 5
"""Refusals in a row because the state cannot be read, after which the run is stopped."""
MAX_OPEN: Final = 1_000
"""Calls of a session that run at once, or whose end nobody told."""
_LIVES: Final = 9
"""Times that a sub-agent of one id may be taken up again with a share of its own."""
_AGENT: Final = "agent:"
"""What the names of the shares of sub-agents begin with."""
_NO_DIGEST: Final = "What was done cannot be told: the state of the session could not be read."


@dataclass(slots=True)
class _Known:
    """
    What this process has seen of a session.
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


_KNOWN: "WeakKeyDictionary[Session, _Known]" = WeakKeyDictionary()


def answer(session: "Session", event: Event, *, envelopes: bool = False, asks: bool = False) -> Answer:
    """
    The answer of a hook to *event*, as Claude Code writes both; `{}`: no opinion.

    *session* is that of the event's `session_id`. With *envelopes* every text that a tool of an MCP server returns reads as
    an envelope; without, results are changed only where there is something to say. With *asks* a person is asked in Claude
    Code's own way about calls that wait for one. A store that fails raises nothing: the policy's `on_error` says what runs.
    """
    if not isinstance(event, Mapping):
        return {}
    known = _KNOWN.setdefault(session, _Known())
    known.events += 1
    name = event.get("hook_event_name")
    try:
        if name == "PreToolUse":
            return _before(session, event, asks=asks)
        if name == "PostToolUse":
            return _after(session, event, envelopes=envelopes)
        told = _OTHERS.get(name or "")
        return {} if told is None else told(session, event)
    except Exception as error:  # noqa: BLE001  whatever a store raises: the conversation goes on
        log.error("store failed: %s", error, extra={"session": session.id})
        return {}


def session_of(session: "Session", event: Event) -> "Session":
    """
    The session of the agent that *event* is of: *session* itself, or the share of the sub-agent, which has a context of its
    own. A sub-agent for which nothing is left uses that of who started it.
    """
    agent = event.get("agent_id")
    if not agent:
        return session
    children = _KNOWN.setdefault(session, _Known()).children
    child = children.get(agent)
    if child is None:
        name = session_name(f"{_AGENT}{agent}")
        for n in range(1, _LIVES + 1):
            # A name is used up once its sub-agent has stopped.
            with suppress(SessionError):
                child = children[agent] = session.child(name if n == 1 else f"{name}~{n}", share=SHARE)
                break
    return session if child is None else child


def digest_of(session: "Session") -> str:
    """
    What was called and what came back: the answer where the model gives none.
    """
    try:
        return session.digest()
    except Exception as error:  # noqa: BLE001
        log.error("store failed: %s", error, extra={"session": session.id})
        return _NO_DIGEST


# Calls


def _before(session: "Session", event: Event, *, asks: bool) -> Answer:
    try:
        own = session_of(session, event)
    except Exception as error:  # noqa: BLE001
        log.error("store failed: %s", error, extra={"session": session.id})
        own = session
    decision = _decided(own, event)
    if decision.envelope is None:
        running = _KNOWN.setdefault(own, _Known()).open
        running[decision.call.id] = decision
        if len(running) > MAX_OPEN:
            running.popitem(last=False)
        return {}
    kind = "ask" if asks and decision.pending else "deny"
    said = {"permissionDecision": kind, "permissionDecisionReason": decision.envelope.to_json()}
    output = _specific("PreToolUse", **said)
    over = False
    with suppress(Exception):
        over = _is_over(own, decision, alone=_KNOWN[session].events <= 1)
    if over:
        output |= {"continue": False, "stopReason": digest_of(own)}
    return output


def _decided(own: "Session", event: Event) -> Decision:
    tool, arguments, call_id = event["tool_name"], event.get("tool_input") or {}, event.get("tool_use_id") or None
    decision = own.decide(tool, arguments, id=call_id, claim=True)
    if decision.code == "duplicates.in_flight" and call_id is not None:
        # The same hook asked twice is no second executor.
        again = own.decide(tool, arguments, id=call_id)
        return again if again.repeated else decision
    return decision


def _is_over(own: "Session", decision: Decision, *, alone: bool) -> bool:
    """
    Whether the model was told often enough that no more calls run: the run is stopped. *alone*: this process has seen nothing
    else of the session, so that what was told before is known by the state alone.
    """
    known = _KNOWN.setdefault(own, _Known())
    if not decision.n:
        known.unknown += 1
        return known.unknown >= MOST_UNKNOWN
    known.unknown = 0
    code = own.exhausted_by
    if code is None:
        known.told = None
        return False
    refused = own.refused_turns
    if known.told is None:
        known.told = min(refused - 1, _refused_by_then(own, code)) if alone else refused - 1
    return refused - known.told >= FORCED_ASKS


def _refused_by_then(own: "Session", code: str) -> int:
    if not code.startswith("denials."):
        return 0
    limits = (guard.max_turns_in_a_row for guard in own._chain.guards if isinstance(guard, Denials))  # noqa: SLF001
    return 1 + next((limit for limit in limits if limit is not None), 0)


def _after(session: "Session", event: Event, *, envelopes: bool) -> Answer:
    given = event.get("tool_response")
    envelope = _completed(session, event, read_response(given))
    if envelope is None:
        return {}
    output, said = rewritten(given, envelope, envelopes=envelopes)
    changed = {} if output is None else {"updatedToolOutput": output}
    beside = {} if said is None else {"additionalContext": said}
    return _specific("PostToolUse", **changed, **beside) if changed or beside else {}


def _failed(session: "Session", event: Event) -> Answer:
    kind: ErrorType | None = "cancelled" if event.get("is_interrupt") else None
    envelope = _completed(session, event, Failed(str(event.get("error") or "it failed"), error_type=kind))
    return {} if envelope is None else _specific("PostToolUseFailure", additionalContext=envelope.to_json())


def _completed(session: "Session", event: Event, outcome: object) -> Envelope | None:
    """
    What is to be said of a call that was run. Returns None if nobody decided it.
    """
    own, call_id = session_of(session, event), event["tool_use_id"]
    known = _KNOWN.get(own)
    decision = None if known is None else known.open.pop(call_id, None)
    if decision is not None:
        return own.complete(decision, outcome)
    for one in (own,) if own is session else (own, session):
        # Other hooks may have changed the arguments.
        for arguments in (event.get("tool_input"), None):
            with suppress(SessionError):
                envelope = one.complete(call_id, outcome, arguments=arguments)
                if envelope.code != "approve.pending":
                    return envelope
                # A person has let it run, in Claude Code's own way.
                one.approve(call_id, by="claude")
                return one.complete(_decided(one, event), outcome)
    return None


def _released(session: "Session", event: Event) -> Answer:
    own = session_of(session, event)
    for one in (own,) if own is session else (own, session):
        with suppress(SessionError):
            _KNOWN.setdefault(one, _Known()).open.pop(event["tool_use_id"], None)
            one.release(event["tool_use_id"])
            break
    return {}


# The rest of a run


def _prompted(session: "Session", event: Event) -> Answer:
    session.go_on()
    return {}


def _started(session: "Session", event: Event) -> Answer:
    session_of(session, event)
    return {}


def _stopped(session: "Session", event: Event) -> Answer:
    if not event.get("background_tasks"):
        _KNOWN[session].children.clear()
        # Those that nobody ended, of other processes too.
        for child in session._read(lambda state, _: list(state.reserved)):  # noqa: SLF001
            name = child.removeprefix(f"{session.id}/")
            if name.startswith(_AGENT):
                session.child(name).close()
    return _silent(session, event)


def _agent_stopped(session: "Session", event: Event) -> Answer:
    own = session_of(session, event)
    output = {} if own is session else _silent(own, event)
    _close(session, event.get("agent_id"))
    return output


def _silent(own: "Session", event: Event) -> Answer:
    """
    What a person reads where the model has ended without a word because a limit is used up.
    """
    said = event.get("last_assistant_message")
    if (isinstance(said, str) and said.strip()) or not own.exhausted:
        return {}
    return {"systemMessage": digest_of(own)}


def _close(session: "Session", agent: Any) -> None:
    child = _KNOWN[session].children.pop(agent, None)
    if child is not None:
        child.close()


def _specific(event: str, **said: Any) -> Answer:
    return {"hookSpecificOutput": {"hookEventName": event, **said}}


_OTHERS: Final[Mapping[str, Callable[["Session", Event], Answer]]] = {
    "PostToolUseFailure": _failed,
    "PermissionDenied": _released,
    "UserPromptSubmit": _prompted,
    "SubagentStart": _started,
    "SubagentStop": _agent_stopped,
    "Stop": _stopped,
}
EVENTS: Final = ("PreToolUse", "PostToolUse", *_OTHERS)
"""The events that are answered."""
