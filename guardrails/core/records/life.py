"""
One life of a session, lived again from its records.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

from guardrails.core.engine.chain import Chain
from guardrails.core.engine.complete import Settle
from guardrails.core.engine.decide import Ask
from guardrails.core.engine.decision import Decision
from guardrails.core.engine.engine import Engine, Event, Happened
from guardrails.core.engine.events import Charge, Drop, Expire, Note, Request, Turn, Unpark
from guardrails.core.engine.plan import Plan
from guardrails.core.engine.prepare import Prepared
from guardrails.core.engine.sharing import Close, Extend, Open, Release, Reserve
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.limits.amounts import settings_of
from guardrails.core.repetition.sketch import NO_SKETCH
from guardrails.core.retries.serving import Advised
from guardrails.core.state.admissions import ADMISSION_MS
from guardrails.core.state.holds import NOTHING
from guardrails.core.state.parking import parked
from guardrails.core.state.state import SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import Outcome, Problem, ToolCall

from .record import newer_told, newer_version


T = TypeVar("T")
Record = Mapping[str, Any]

MAX_WAYS: Final = 1_024
_UNKNOWN: Final = object()


class Replayed(NamedTuple):
    """
    One recorded call, decided again.
    """

    record: Record
    decision: Decision

    @property
    def same(self) -> bool:
        """
        The decision is the recorded one, with all that guards had to say.
        """
        denials = [denial.code for denial in self.decision.denials]
        return (
            self.record["seq"] == self.decision.seq
            and denials == [code for code, *_ in self.record["denials"]]
            and (self.record["decision"] == "pending") == self.decision.pending
            and self.record["nudges"] == [code for code, _ in self.decision.nudges]
            and self.record["observed"] == [denial.code for denial in self.decision.observed]
        )


class Beside(NamedTuple):
    """
    What an event concerns beside its own session.
    """

    scopes: tuple[tuple[str, str, Chain], ...] = ()
    """(name, id, chain)"""
    states: tuple[SessionState, ...] = ()
    """Those of the scopes."""
    clocks: tuple[int, ...] = ()
    """What the clock of each scope says: a record has each by itself."""
    root: SessionState | None = None
    """That of its family's root."""


ALONE: Final = Beside()


class Life:
    """
    A life of the session *session_id*; *state* is where it is, and changes with each event.
    """

    def __init__(self, session_id: str, chain: Chain, state: SessionState) -> None:
        self.state = state
        self._id = session_id
        self._chain = chain
        self._ways = _Ways(chain)
        self._decisions: dict[int, tuple[Decision, _Way]] = {}

    def live(self, record: Record, beside: Beside = ALONE) -> Replayed | None:
        """
        Let the event of *record* happen again, the next of this session, in what is *beside* it too; a call as it is decided
        now.

        Raises SessionError where a number is missing: what happened there is not known.
        """
        version = newer_version(record)
        if version is not None:
            raise SessionError(f"a record of `{self._id}` is of {newer_told(version)}")
        name, n, now = record["event"], record["n"], record["ts_ms"]
        if name == "expire":
            self._apply(Expire(now, record["seq"]), self._chain, beside)
            return None
        if n > self.state.n + 1 + len(_overdue(self.state, now)):
            raise SessionError(f"the records of `{self._id}` have a gap before event {n}")
        if name == "open" and "limits" in record:
            self._chain = self._chain.with_budget(**settings_of(dict(record["limits"])))
            self._ways = _Ways(self._chain)
        if name == "call":
            way = self._ways.of(record)
            guess = tuple(record["guess"]) if "guess" in record else NOTHING
            ask = Ask(now, _call(record), way.plan, record["claimed"], guess)
            decision = self._apply(ask, way.chain, beside)
            self._decisions[n] = decision, way
            return Replayed(record, decision)
        if name == "settle":
            self._settle(record, now, beside)
        elif name == "claim":
            decision, way = self._decisions[record["call_n"]]
            call = replace(decision.call, id=record.get("id", decision.call.id))
            claimed = self._apply(Ask(now, call, way.plan, record.get("claimed", True)), way.chain, beside)
            self._decisions[record["call_n"]] = claimed, way
        elif name == "park":
            # Its call has brought it about already, unless the policy asks nobody now.
            if n > self.state.n:
                self._apply(Note(now), self._chain, beside)
        elif name == "unpark" and parked(self.state, record["seq"]) is None:
            self._apply(Note(now), self._chain, beside)
        else:
            # Code may list the tools, and a replay does not have it.
            self._apply(_event(name, record, now), self._chain.with_least(record.get("least", 0)), beside)
        return None

    def _apply(self, event: Event[T], chain: Chain, beside: Beside) -> T:
        engine = Engine(chain, self._id, scopes=beside.scopes, child=beside.root is not None)
        if beside is ALONE:
            return engine.apply(event, (self.state,))
        states = (self.state, *beside.states, *(() if beside.root is None else (beside.root,)))
        return engine.apply(event, states, beside.clocks)

    def _settle(self, record: Record, now: int, beside: Beside) -> None:
        settled = self._decisions.get(record["call_n"])
        if settled is not None:
            decision, way = settled
            event = Settle(now, decision, _prepared(record), way.plan, _advised(record))
            self._apply(event, way.chain, beside)
        elif record["late"]:
            # Of another life: its number is all that it has here.
            self._apply(Note(now), self._chain, beside)
        else:
            raise SessionError(f"event {record['n']} settles a call that is not in the records")


def _event(name: str, record: Record, now: int) -> Event[Happened]:
    """
    The event *name* of *record*, which is no call.
    """
    match name:
        case "turn":
            return Turn(now, record["calls"], record.get("uncharged", False))
        case "charge":
            untold = record.get("untold", False)
            charged = now, record["cost"], record["tokens"], record.get("model") or ""
            return Charge(*charged, untold, record.get("request"))
        case "request":
            # Records of before requests held anything say nothing of it.
            said, lasts_ms = record.get("estimate"), record.get("lasts_ms", ADMISSION_MS)
            return Request(now, None if said is None else tuple(said), lasts_ms, tuple(record.get("guess", NOTHING)))
        case "release" if "request" in record:
            return Drop(now, record["request"])
        case "unpark":
            return Unpark(now, record["seq"], record["approved"], record["reason"])
        case "extend":
            return Extend(now, dict(record["amounts"]), "scope" in record, record.get("asked", False))
        case "reserve":
            return Reserve(
                now, record["child"], dict(record["amounts"]), record.get("more", False), record.get("share", 1)
            )
        case "release":
            return Release(now, record["child"], dict(record["used"]))
        case "open":
            return Open(now)
        case "close":
            return Close(now)
        case other:
            raise SessionError(f"unknown event `{other}` in the records")


class _Way(NamedTuple):
    """
    What applied to a tool when it was called.
    """

    chain: Chain
    plan: Plan


class _Ways:
    """
    The settings of a chain, with what records say that a tool was declared to be: code declares tools, and may do so
    between two calls.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._made: dict[tuple[Any, ...], _Way] = {}

    def of(self, record: Record) -> _Way:
        """
        What applied to the call of *record*.
        """
        key = tuple(record.get(name, _UNKNOWN) for name in _DECLARED)
        admitted = record["decision"] != "deny"
        way = self._made.get((admitted, *key))
        if way is None:
            if len(self._made) >= MAX_WAYS:
                self._made.clear()
            way = self._made[admitted, *key] = self._way(record)
        return way

    def _way(self, record: Record) -> _Way:
        chain = _knowing(self._chain, record["tool"], record.get("known"))
        plan = chain.plan(record["tool"])
        tool = plan.tool
        said = {
            name: record.get(name, getattr(tool, name)) for name in ("stable", "idempotent", "polling", "read_only")
        }
        # Records of before there were estimates say one only of what was admitted.
        cost = record.get("estimate", plan.cost if record["decision"] == "deny" else record["cost"])
        tool = replace(tool, retryable=record.get("retryable_declared", tool.retryable), **said)
        own = {"cost": cost, "tokens": record.get("estimate_tokens", 0), "timeout_ms": record["timeout_ms"]}
        return _Way(chain, replace(plan, tool=tool, changes=record["mutates"], **own))


_DECLARED: Final = (
    *("tool", "known", "stable", "idempotent", "polling", "read_only", "retryable_declared"),
    *("estimate", "estimate_tokens", "cost", "timeout_ms", "mutates"),
)


def _knowing(chain: Chain, tool: str, known: bool | None) -> Chain:  # noqa: FBT001
    """
    *chain* where the tools that a session named hold *tool*, or do not; None: none were named.
    """
    if known and (chain.known is None or tool not in chain.known):
        return chain.with_tools([Tool(name=tool)])
    if known is False and chain.known is None:
        return chain.with_tools([Tool(name=f"not {tool}")])
    return chain


def _overdue(state: SessionState, now_ms: int) -> list[object]:
    return [pending for pending in state.pending.values() if pending.expires_ms <= now_ms]


def _call(record: Record) -> ToolCall:
    problems = tuple(Problem(*problem) for problem in record["problems"])
    places, sketch = record.get("places"), record.get("sketch")
    if sketch is None and any(str(path).startswith("arguments") for path in record.get("erased") or ()):
        sketch = NO_SKETCH
    return ToolCall(
        record["tool"],
        record.get("arguments"),
        record["id"],
        None,
        record["sig"],
        problems,
        places=None if places is None else {guard: tuple(answers) for guard, answers in places.items()},
        sketch=sketch,
        news=record.get("news"),
    )


def _prepared(record: Record) -> Prepared:
    outcome = Outcome(
        None,
        record["error_type"],
        record["error_message"] or "",
        record["http_status"],
        record["retry_after_ms"],
        cost=record["cost"],
        tokens=record["tokens"],
    )
    own = None
    if record["claims"] is not None:
        retryable, wait_ms, retries = record["claims"]
        own = Envelope(
            "success" if outcome.error_type is None else "error",
            retryable=retryable,
            retry_after_ms=wait_ms,
            max_retries_remaining=retries,
        )
    evidence = record["result_hash" if outcome.error_type is None else "result_hash_masked"]
    return Prepared(outcome, None, evidence, own, record.get("steady", 0), record.get("empty", 0))


def _advised(record: Record) -> Advised | None:
    said = record["retryable"], record["wait_ms"], record["max_retries_remaining"]
    return None if record.get("model_version") is None else Advised(bool(said[0]), said[1], said[2] or 0)
