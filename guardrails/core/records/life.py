"""
One life of a session, lived again from its records.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from guardrails.core.engine import transitions
from guardrails.core.engine.chain import Chain, Plan
from guardrails.core.engine.complete import Prepared
from guardrails.core.engine.decide import Decision
from guardrails.core.engine.scopes import Scope, apply, complete_shared, decide_shared
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.limits.amounts import settings_of
from guardrails.core.repetition.sketch import NO_SKETCH
from guardrails.core.retries.serving import Advised
from guardrails.core.state.state import SessionState, number, touch
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import Outcome, Problem, ToolCall

from .record import newer_told, newer_version


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
            and self.record["nudges"] == [code for code, _ in self.decision.nudges]
            and self.record["observed"] == [denial.code for denial in self.decision.observed]
        )


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

    def live(self, record: Record, scopes: Sequence[Scope] = ()) -> Replayed | None:
        """
        Let the event of *record* happen again, the next of this session, in *scopes* too; a call as it is decided now.

        Raises SessionError where a number is missing: what happened there is not known.
        """
        version = newer_version(record)
        if version is not None:
            raise SessionError(f"a record of `{self._id}` is of {newer_told(version)}")
        event, n, now, state = record["event"], record["n"], record["ts_ms"], self.state
        if event == "expire":
            # Found again by the event that came next.
            return None
        if n > state.n + 1 + len(_overdue(state, now)):
            raise SessionError(f"the records of `{self._id}` have a gap before event {n}")
        if event == "open" and "limits" in record:
            self._chain = self._chain.with_budget(**settings_of(dict(record["limits"])))
            self._ways = _Ways(self._chain)
        if event == "call":
            way = self._ways.of(record)
            decision = self._decided(way, _call(record), now, record["claimed"], scopes)
            self._decisions[n] = decision, way
            return Replayed(record, decision)
        if event == "settle":
            self._settle(record, now, scopes)
        elif event == "claim":
            decision, way = self._decisions[record["call_n"]]
            self._decided(way, decision.call, now, True, scopes)  # noqa: FBT003
        else:
            self._change(event, record, now, scopes)
        return None

    def _decided(self, way: "_Way", call: ToolCall, now: int, claim: bool, scopes: Sequence[Scope]) -> Decision:  # noqa: FBT001
        return decide_shared(way.chain, call, self.state, now, claim, way.plan, scopes, self._id)

    def _settle(self, record: Record, now: int, scopes: Sequence[Scope]) -> None:
        settled = self._decisions.get(record["call_n"])
        if settled is not None:
            decision, way = settled
            prepared, advised = _prepared(record), _advised(record)
            complete_shared(way.chain, decision, prepared, self.state, now, way.plan, scopes, self._id, advised=advised)
        elif record["late"]:
            # Of another life: its number is all that it has here.
            touch(self.state, now)
            number(self.state)
            apply(scopes, now, lambda _, state, at: transitions.note(state, at))
        else:
            raise SessionError(f"event {record['n']} settles a call that is not in the records")

    def _change(self, event: str, record: Record, now: int, scopes: Sequence[Scope]) -> None:
        chain, state = copy(self._chain), self.state
        # Code may list the tools, and a replay does not have it.
        chain.least = record.get("least", 0)
        match event:
            case "turn":
                transitions.open_turn(chain, state, now, record["calls"])
            case "charge":
                cost, tokens, untold = record["cost"], record["tokens"], record.get("untold", False)
                step = partial(transitions.charge_response, cost=cost, tokens=tokens, untold=untold)
                step = partial(step, model=record.get("model") or "")
                apply(scopes, now, step)
                step(chain, state, now)
            case "request":
                apply(scopes, now, transitions.start_request)
                transitions.start_request(chain, state, now)
            case "extend" if "scope" in record:
                apply(scopes, now, partial(transitions.raise_limits, amounts=dict(record["amounts"])))
                transitions.note(state, now)
            case "extend":
                transitions.raise_limits(chain, state, now, dict(record["amounts"]))
            case "reserve" if record.get("more"):
                transitions.reserve_more(chain, state, now, record["child"], dict(record["amounts"]))
            case "reserve":
                transitions.reserve_for_child(chain, state, now, record["child"], dict(record["amounts"]))
            case "release":
                transitions.release_child(state, now, record["child"], dict(record["used"]))
            case "open":
                transitions.open_child(state, now)
            case "close":
                transitions.close(state, now)
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
        retryable = record.get("retryable_declared", tool.retryable)
        said = {
            name: record.get(name, getattr(tool, name)) for name in ("stable", "idempotent", "polling", "read_only")
        }
        # Records of before there were estimates say one only of what was admitted.
        cost = record.get("estimate", plan.cost if record["decision"] == "deny" else record["cost"])
        tool = replace(tool, retryable=retryable, **said)
        return _Way(
            chain, replace(plan, tool=tool, cost=cost, timeout_ms=record["timeout_ms"], changes=record["mutates"])
        )


_DECLARED: Final = (
    *("tool", "known", "stable", "idempotent", "polling", "read_only", "retryable_declared"),
    *("estimate", "cost", "timeout_ms", "mutates"),
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
        record["cost"],
        record["tokens"],
    )
    own = None
    if record["claims"] is not None:
        own = Envelope("success" if outcome.error_type is None else "error")
        own.retryable, own.retry_after_ms, own.max_retries_remaining = record["claims"]
    evidence = record["result_hash" if outcome.error_type is None else "result_hash_masked"]
    return Prepared(outcome, None, evidence, own, record.get("steady", 0), record.get("empty", 0))


def _advised(record: Record) -> Advised | None:
    if record.get("model_version") is None:
        return None
    return Advised(bool(record["retryable"]), record["wait_ms"], record["max_retries_remaining"] or 0)
