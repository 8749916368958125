"""
The states of 0.2.0, read once: amounts that were used, open calls, and what people said stay. What was counted for a minute or a few turns
(rates, growth, streaks, refusals in a row, retry budgets, turns of one tool) begins anew, model requests that were under way hold nothing, and
no result from before is evidence any more.
"""

import json
import struct

from binascii import a2b_base64
from typing import Any, Final

from guardrails.core.values.types import ERROR_TYPES

from .guards.budget import ToolBudget
from .refusals import finish
from .scopes import hold
from .state import Entry, EntryStatus, Pending, Question, SessionState, Turn


VERSION: Final = 6
_HEAD: Final = struct.Struct("<BBHI")
_ROW: Final = struct.Struct("<IqqqiBBBBB")
_LOOKED_AT: Final = 128
"""A row that has its sketch and its news after it."""
_CAME: Final = (0, 8, 2, 4, 16)
_STATUSES: Final[tuple[EntryStatus, ...]] = ("running", "ok", "error", "expired")
_TOTALS: Final = ("started_ms", "now_ms", "n", "seq", "calls", "turns", "cost", "tokens")
_TURN: Final = {"number": 12, "expects": 13, "decided": 14, "admitted": 15, "implied": 26, "since_ms": 28}
"""Places of numbers, after which others begin that nobody reads: of the session its unpriced calls, and by how much its clock is behind."""
_UNPRICED, _BEHIND, _SHARED = 9, 21, 22
_USED: Final = ("max_calls", "max_cost", "max_tokens")
"""Limits of tools, each with what was used of it."""


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
    totals = rest["t"]
    present = Turn(**{name: totals[place] for name, place in _TURN.items()})
    state = SessionState(**dict(zip(_TOTALS, totals, strict=False)), present=present, window=window)
    state.behind_ms, state.shared, state.stood_ms = totals[_BEHIND], totals[_SHARED], rest.get("d", 0)
    state.run, state.limits, state.reserved = rest.get("i", ""), rest.get("l", {}), rest.get("r", {})
    state.closed, keys = rest.get("c", False), a2b_base64(rest.get("e", ""))
    # The lowest bit of each said that it was charged.
    each = [keys[at : at + 6] for at in range(0, len(keys), 6)]
    state.keys = {(one[:-1] + bytes((one[-1] & 0xFE,))).hex(): one[-1] & 1 == 1 for one in each}
    if "x" in rest:
        code, message = rest["x"]
        state.exhausted = code, message, finish(code)
    counts = rest.get("m", {})
    own = {
        "approve": rest.get("a"),
        "budget": {"unpriced": totals[_UNPRICED]} if totals[_UNPRICED] else None,
        ToolBudget.name: {name: used for name, used in counts.items() if name.partition(":")[0] in _USED},
        "evidence": [state.seq, [], 0],
    }
    state.own = {guard: mine for guard, mine in own.items() if mine}
    by_seq = {entry.seq: entry for entry in window}
    for one in rest.get("o", ()):
        pending = _admission(one, by_seq)
        if pending.n:
            state.pending[pending.seq] = pending
        else:
            # A scope has amounts, and no calls.
            hold(state, pending.cost, pending.tokens)
    return state


def _entry(tool: str, *row: int) -> Entry:
    seq, sig, digest, at_ms, wait, status, error, rest, turn, overlaps = row
    made = Entry(seq, tool, sig if rest & 1 else None, at_ms, rest & 2 == 2, turn)
    made.status, made.result_hash, made.overlaps = _STATUSES[status & 3], digest, overlaps
    made.came = next((came for came, bit in enumerate(_CAME) if status >> 2 & bit), 0)
    made.lasting = status >> 2 & 32 == 32
    if kind := error % _LOOKED_AT:
        made.error_type, made.retries_left = ERROR_TYPES[kind - 1], rest >> 2
        made.retry_at_ms = at_ms + wait if wait >= 0 else 0
    return made


def _admission(packed: list[Any], by_seq: dict[int, Entry]) -> Pending:
    seq, n, call_id, expires_ms, cost, tokens, turn, claimed, hints, limit, own, *waits = packed
    entry = by_seq[seq] if own is None else Entry(seq, *own)
    one = Pending(entry, call_id, n, expires_ms, cost, tokens, turn, "running" if claimed else "open")
    one.hints = tuple((code, hint) for code, hint in hints)
    one.limit = None if limit is None else (limit[0], limit[1], finish(limit[0]))
    for *question, approved, begun in waits:
        one.question = Question(*question)
        one.stage = "suspended" if begun else "approved" if approved else "parked"
    return one
