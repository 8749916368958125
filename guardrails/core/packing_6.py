"""
The states of 0.2.0, read once into what the guards of this version remember.
"""

from binascii import a2b_base64
from collections.abc import Iterable, Iterator
from typing import Any, Final

from guardrails.core.values.types import ERROR_TYPES

from .guards.budget import PURSE
from .guards.evidence import FAMILY
from .packing import filled, whole
from .state import Entry, Pending, Question, SessionState, Stage
from .words import finish


TOTALS: Final = (
    *("started_ms", "now_ms", "n", "seq", "calls", "turns", "cost", "tokens", "requests", "unpriced", "held_cost"),
    *("held_tokens", "turn", "turn_expects", "turn_decided", "turn_admitted", "turn_strikes", "denied_turns", "streak"),
    *("streak_failures", "changed_seq", "behind_ms", "shared", "dull_seq", "refused_turns", "turn_refused", "implied"),
    *("turn_n", "turn_ms", "call_ms"),
)
_GROWTH: Final = ("growth.calls", "growth.requests", "growth.tokens")
_RATES: Final = ("max_calls_per_second", "max_calls_per_minute")
_TURN_BITS: Final = 32


def state_of(window: list[Entry], names: list[str], rest: dict[str, Any]) -> SessionState:
    """
    Returns the state of *window* and *rest*, as 0.2.0 wrote them.
    """
    totals = dict(zip(TOTALS, whole(rest["t"]), strict=True))
    known = SessionState.__dataclass_fields__
    state = SessionState(**{name: total for name, total in totals.items() if name in known}, window=window)
    state.run, state.limits, state.reserved = rest.get("i", ""), rest.get("l", {}), rest.get("r", {})
    state.closed, state.stood_ms = rest.get("c", False), rest.get("d", 0)
    whole([*state.limits.values(), state.stood_ms])
    if totals["turn_refused"]:
        state.refused = rest.get("p", [])[-totals["turn_refused"] :]
    if "x" in rest:
        code, message = rest["x"]
        state.exhausted = code, message, finish(code)
    state.keys = a2b_base64(rest["e"]) if "e" in rest else b""
    by_seq = {entry.seq: entry for entry in window}
    for packed in rest.get("o", ()):
        one = _admission(packed, by_seq)
        state.pending[one.key] = one
    own = {**_session(totals, rest), **_meters({key: int(value) for key, value in rest.get("m", {}).items()})}
    trail = list(_trail(rest.get("h", ()), by_seq, names))
    if trail:
        own["retryable"] = {**own.get("retryable", {}), "trail": trail}
    state.own = own
    return filled(state)


def _session(totals: dict[str, int], rest: dict[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = {}
    if rest["s"]:
        own["streak"] = [rest["s"], totals["streak"], totals["streak_failures"]]
    strikes = [totals[name] for name in ("refused_turns", "denied_turns", "turn_strikes", "turn_refused")]
    if any(strikes) or rest.get("p"):
        own["denials"] = [*strikes, rest.get("p", [])]
    if rest.get("a"):
        own["approve"] = rest["a"]
    budget: dict[str, Any] = {"unpriced": totals["unpriced"]} if totals["unpriced"] else {}
    if rest.get("u"):
        budget["used"] = rest["u"]
    if rest.get("k"):
        budget["holds"] = rest["k"]
    if budget:
        own["budget"] = budget
    if totals["changed_seq"] or rest.get("v"):
        own["evidence"] = [totals["changed_seq"], rest.get("v", []), rest.get("w", 0)]
    if rest.get("w") or rest.get("b"):
        own[FAMILY] = {"n": rest.get("w", 0), "who": rest.get("b", {})}
    return own


def _meters(meters: dict[str, int]) -> dict[str, Any]:
    """
    Returns what guards counted by name.
    """
    own: dict[str, Any] = {}
    if any(name in meters for name in _GROWTH):
        own["growth"] = [meters.get(name, 0) for name in _GROWTH]
    for name, value in meters.items():
        kind, _, tool = name.partition(":")
        if kind in _RATES:
            own.setdefault("tools.rate" if tool else "rate", {})[name] = value
        elif kind.endswith((".unpriced", ".untold")):
            own.setdefault(PURSE, {})["by"] = [tool, kind.endswith(".untold")]
        elif name in ("budget.turn", "budget.children", "budget.max_children"):
            own.setdefault(PURSE, {})[name.partition(".")[2]] = value
        elif kind == "retry_budget":
            own.setdefault("retry_budget", {})[tool] = value
        elif name.startswith("due."):
            own.setdefault("retryable", {}).setdefault("due", {})[name.partition(".")[2]] = value
        elif kind == "max_turns":
            turn = value & ((1 << _TURN_BITS) - 1)
            own.setdefault("tools.budget", {})[name] = [value >> _TURN_BITS, turn - 1]
        elif tool and kind.startswith("max_"):
            own.setdefault("tools.budget", {})[name] = value
    return own


def _admission(packed: list[Any], by_seq: dict[int, Entry]) -> Pending:
    seq, n, call_id, expires_ms, cost, tokens, turn, claimed, hints, limit, own, *waits = packed
    whole([seq, n, expires_ms, cost, tokens, turn])
    entry = by_seq[seq] if own is None else Entry(seq, *own)
    one = Pending(entry, call_id, n, expires_ms, cost, tokens, turn, "running" if claimed else "open")
    one.hints = tuple((code, hint) for code, hint in hints)
    one.limit = None if limit is None else (limit[0], limit[1], finish(limit[0]))
    for *question, approved, begun in waits:
        one.question = Question(*question)
        stage: Stage = "suspended" if begun else "approved" if approved else "parked"
        one.stage = stage
    return one


def _trail(packed: Iterable[Any], by_seq: dict[int, Entry], names: list[str]) -> Iterator[list[Any]]:
    numbers = iter(packed)
    for seq in numbers:
        if seq >= 0:
            entry, took = by_seq[seq], next(numbers)
            yield [entry.tool, entry.sig, entry.error_type, None if took is None else entry.at_ms + took]
        else:
            tool, sig, error, ended_ms = (next(numbers) for _ in range(4))
            yield [names[tool], sig, ERROR_TYPES[error - 1] if error else None, ended_ms]
