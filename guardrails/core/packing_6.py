"""
The states of 0.2.0, read once: amounts that were used, open calls, and what people said stay. What was counted for a minute or a few turns
(rates, growth, streaks, refusals in a row, retry budgets) begins anew, and no result from before is evidence any more.
"""

import json
import struct

from binascii import a2b_base64
from dataclasses import fields
from typing import Any, Final

from guardrails.core.values.types import ERROR_TYPES

from .guards.budget import PURSE, RESPONSES, ToolBudget
from .refusals import finish
from .scopes import OPEN
from .state import Entry, EntryStatus, Pending, Question, SessionState, Stage, Turn


VERSION: Final = 6
_HEAD: Final = struct.Struct("<BBHI")
_ROW: Final = struct.Struct("<IqqqiBBBBB")
_LOOKED_AT: Final = 128
"""A row that has its sketch and its news after it."""
_CAME: Final = (0, 8, 2, 4, 16)
_STATUSES: Final[tuple[EntryStatus, ...]] = ("running", "ok", "error", "expired")
TOTALS: Final = (
    *("started_ms", "now_ms", "n", "seq", "calls", "turns", "cost", "tokens", "requests", "unpriced", "held_cost"),
    *("held_tokens", "number", "expects", "decided", "admitted", "turn_strikes", "denied_turns", "streak"),
    *("streak_failures", "changed_seq", "behind_ms", "shared", "dull_seq", "refused_turns", "turn_refused", "implied"),
    *("turn_n", "since_ms", "call_ms"),
)
_TURN_BITS: Final = 32


def state_of(packed: bytes) -> SessionState:
    """
    Returns the state that 0.2.0 *packed*. Raises ValueError and its like if it did not.
    """
    _, _, rows, size = _HEAD.unpack_from(packed)
    at = _HEAD.size + size
    names = json.loads(packed[_HEAD.size : at])
    tools = struct.unpack_from(f"<{rows}H", packed, at)
    at += 2 * rows
    window = []
    for tool in tools:
        window.append(_entry(names[tool], *_ROW.unpack_from(packed, at)))
        at += _ROW.size + 12 * (packed[at + _ROW.size - 4] >= _LOOKED_AT)
    rest = json.loads(packed[at:])
    totals = dict(zip(TOTALS, rest["t"], strict=True))
    state = SessionState(**_those(SessionState, totals), present=Turn(**_those(Turn, totals)), window=window)
    state.own = _own(totals, rest)
    state.run, state.limits, state.reserved = rest.get("i", ""), rest.get("l", {}), rest.get("r", {})
    state.closed, state.stood_ms = rest.get("c", False), rest.get("d", 0)
    if "x" in rest:
        code, message = rest["x"]
        state.exhausted = code, message, finish(code)
    state.keys = a2b_base64(rest["e"]) if "e" in rest else b""
    by_seq = {entry.seq: entry for entry in window}
    for one in (_admission(each, by_seq) for each in rest.get("o", ())):
        if one.n:
            state.pending[one.seq] = one
        else:
            # A scope has amounts, and no calls.
            held = state.reserved.setdefault(OPEN, {"max_cost": 0, "max_tokens": 0})
            held["max_cost"] += one.cost
            held["max_tokens"] += one.tokens
    return state


def _entry(tool: str, *row: int) -> Entry:
    seq, sig, digest, at_ms, wait, status, error, rest, turn, beside = row
    made = Entry(seq, tool, sig if rest & 1 else None, at_ms, rest & 2 == 2, turn)
    made.status, made.result_hash, made.beside = _STATUSES[status & 3], digest, beside
    made.came = next((came for came, bit in enumerate(_CAME) if status >> 2 & bit), 0)
    made.lasting = status >> 2 & 32 == 32
    if kind := error % _LOOKED_AT:
        made.error_type, made.retries_left = ERROR_TYPES[kind - 1], rest >> 2
        made.retry_at_ms = at_ms + wait if wait >= 0 else 0
    return made


def _those(cls: type[Any], totals: dict[str, int]) -> dict[str, Any]:
    return {each.name: totals[each.name] for each in fields(cls) if each.name in totals}


def _own(totals: dict[str, int], rest: dict[str, Any]) -> dict[str, Any]:
    purse: list[str] = []
    tools: dict[str, Any] = {}
    for name, value in rest.get("m", {}).items():
        kind, _, tool = name.partition(":")
        if kind.endswith((".unpriced", ".untold")):
            purse = [tool]
        elif tool and kind.startswith("max_") and "_per_" not in kind:
            turn = (value & ((1 << _TURN_BITS) - 1)) - 1
            tools[name] = [value >> _TURN_BITS, turn] if kind == "max_turns" else value
    # What was guessed of open calls is not kept any more.
    holds = {key: one for key, one in (rest.get("k") or {}).items() if not key.rpartition("#")[2].startswith("c")}
    used = (rest.get("u") or {}).get("") or ()
    budget = {"unpriced": totals["unpriced"], **dict(zip(RESPONSES, used, strict=False)), "holds": holds}
    own = {
        "approve": rest.get("a"),
        "budget": {name: value for name, value in budget.items() if value},
        PURSE: purse,
        ToolBudget.name: tools,
        "evidence": [totals["seq"], [], 0],
    }
    return {name: value for name, value in own.items() if value}


def _admission(packed: list[Any], by_seq: dict[int, Entry]) -> Pending:
    seq, n, call_id, expires_ms, cost, tokens, turn, claimed, hints, limit, own, *waits = packed
    entry = by_seq[seq] if own is None else Entry(seq, *own)
    one = Pending(entry, call_id, n, expires_ms, cost, tokens, turn, "running" if claimed else "open")
    one.hints = tuple((code, hint) for code, hint in hints)
    one.limit = None if limit is None else (limit[0], limit[1], finish(limit[0]))
    for *question, approved, begun in waits:
        one.question = Question(*question)
        stage: Stage = "suspended" if begun else "approved" if approved else "parked"
        one.stage = stage
    return one
