"""
Decide again what was recorded: the offline shell around the same two functions.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from . import transitions
from .amounts import settings_of
from .chain import Chain
from .complete import Prepared, complete
from .decide import Decision, decide
from .envelope import Envelope
from .errors import SessionError
from .state import SessionState, number, touch
from .tool import Tool
from .types import Outcome, Problem, ToolCall


Record = Mapping[str, Any]


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
    child's limits are in its records; *tools* are those that the session was given beside its policy's, for what a
    record says of a tool is not all that guards may ask of it. *state* is where to start, and holds the state at the
    end. Raises SessionError where a number is missing: what happened there is not known.
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


def _begin_again(state: SessionState) -> None:
    fresh = SessionState()
    for field in fields(state):
        setattr(state, field.name, getattr(fresh, field.name))


def _replay_life(chain: Chain, records: Iterable[Record], state: SessionState) -> Iterator[Replayed]:
    decisions: dict[int, Decision] = {}
    for record in records:
        event, n, now = record["event"], record["n"], record["ts_ms"]
        if event == "expire":
            # Found again by the event that came next.
            continue
        if n > state.n + 1 + len(_overdue(state, now)):
            raise SessionError(f"the records of `{record['session_id']}` have a gap before event {n}")
        if event == "open" and "limits" in record:
            chain = chain.with_budget(**settings_of(dict(record["limits"])))
        if event == "call":
            decision = decide(chain, _call(record), state, now, claim=record["claimed"])
            decisions[n] = decision
            yield Replayed(record, decision)
        elif event == "settle":
            settled = decisions.get(record["call_n"])
            if settled is not None:
                complete(chain, settled, _prepared(record), state, now)
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


def _apply(chain: Chain, state: SessionState, record: Record, decisions: Mapping[int, Decision]) -> None:
    now = record["ts_ms"]
    match record["event"]:
        case "turn":
            transitions.open_turn(chain, state, now, record["calls"])
        case "charge":
            transitions.charge_response(chain, state, now, record["cost"], record["tokens"])
        case "request":
            transitions.start_request(chain, state, now)
        case "claim":
            decide(chain, decisions[record["call_n"]].call, state, now, claim=True)
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
