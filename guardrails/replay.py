"""
Decide again what was recorded: the offline shell around the same two functions.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, Final, NamedTuple

from . import transitions
from .amounts import settings_of
from .chain import Chain, Plan
from .complete import Prepared, complete
from .decide import Decision, decide
from .envelope import Envelope
from .errors import SessionError
from .retries.serving import Advised
from .state import SessionState, number, touch
from .tool import Tool
from .types import Outcome, Problem, ToolCall


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


def replay(
    chain: Chain, records: Iterable[Record], state: SessionState | None = None, *, tools: Iterable[Tool] = ()
) -> Iterator[Replayed]:
    """
    The calls of one session, decided again from its records, in the order of their numbers.

    Each life of its name (`run`) begins with a new state, in the order in which the records first tell of them. A
    child's limits are in its records, and so is what its tools were declared to be; *tools*, those that the session was
    given beside its policy's, are needed for records of before that only. *state* is where to start, and holds the state
    at the end. Raises SessionError where a number is missing: what happened there is not known.
    """
    if state is None:
        state = SessionState()
    given = list(tools)
    whole = chain.with_tools(given) if given else chain
    lives: dict[str, list[Record]] = {}
    for record in records:
        lives.setdefault(record.get("run") or "", []).append(record)
    for index, life in enumerate(lives.values()):
        if index:
            _begin_again(state)
        yield from _replay_life(whole, sorted(life, key=lambda line: int(line["n"])), state)


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


def _begin_again(state: SessionState) -> None:
    fresh = SessionState()
    for field in fields(state):
        setattr(state, field.name, getattr(fresh, field.name))


def _replay_life(chain: Chain, records: Iterable[Record], state: SessionState) -> Iterator[Replayed]:
    decisions: dict[int, tuple[Decision, _Way]] = {}
    ways = _Ways(chain)
    for record in records:
        event, n, now = record["event"], record["n"], record["ts_ms"]
        if event == "expire":
            # Found again by the event that came next.
            continue
        if n > state.n + 1 + len(_overdue(state, now)):
            raise SessionError(f"the records of `{record['session_id']}` have a gap before event {n}")
        if event == "open" and "limits" in record:
            chain = chain.with_budget(**settings_of(dict(record["limits"])))
            ways = _Ways(chain)
        if event == "call":
            way = ways.of(record)
            decision = decide(way.chain, _call(record), state, now, record["claimed"], way.plan)
            decisions[n] = decision, way
            yield Replayed(record, decision)
        elif event == "settle":
            settled = decisions.get(record["call_n"])
            if settled is not None:
                decision, way = settled
                complete(way.chain, decision, _prepared(record), state, now, way.plan, _advised(record))
            elif record["late"]:
                # Of another life: its number is all that it has here.
                touch(state, now)
                number(state)
            else:
                raise SessionError(f"event {n} settles a call that is not in the records")
        else:
            _apply(chain, state, record, decisions)


def _overdue(state: SessionState, now_ms: int) -> list[object]:
    return [pending for pending in state.pending.values() if pending.expires_ms <= now_ms]


def _call(record: Record) -> ToolCall:
    problems = tuple(Problem(*problem) for problem in record["problems"])
    return ToolCall(record["tool"], record.get("arguments"), record["id"], None, record["sig"], problems)


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
    return Prepared(outcome, None, evidence, own)


def _advised(record: Record) -> Advised | None:
    if record.get("model_version") is None:
        return None
    return Advised(bool(record["retryable"]), record["wait_ms"], record["max_retries_remaining"] or 0)


def _apply(chain: Chain, state: SessionState, record: Record, decisions: Mapping[int, tuple[Decision, "_Way"]]) -> None:
    now = record["ts_ms"]
    match record["event"]:
        case "turn":
            transitions.open_turn(chain, state, now, record["calls"])
        case "charge":
            transitions.charge_response(chain, state, now, record["cost"], record["tokens"])
        case "request":
            transitions.start_request(chain, state, now)
        case "claim":
            decision, way = decisions[record["call_n"]]
            decide(way.chain, decision.call, state, now, True, way.plan)  # noqa: FBT003
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
