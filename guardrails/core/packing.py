"""
A state as bytes: a byte of its version, and its fields as JSON. States of 0.2.0 are read (`packing_6`).

What is as in a new state is left out. The window is written by columns: one of equal values as that value,
and one with nothing in it not at all.
"""

import json
import struct

from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any, Final

import orjson

from guardrails.core.values.errors import StateUnreadable

from .state import Entry, Pending, Question, SessionState, Turn, Uncertain, latest_of


VERSION: Final = 8
_AFRESH: Final = "`forget` it only to start it afresh"
_WINDOW: Final = tuple(each.name for each in fields(Entry))
_row = attrgetter(*_WINDOW)
_BLANK: Final = _row(Entry(0, "", None, 0, changes=False))
_OTHERS: Final = ("present", "window", "latest", "pending", "uncertain", "family")
"""Fields of a state that have a form of their own, follow from others, or are of one step."""
_NEW: Final = {name: new for name, new in asdict(SessionState()).items() if name not in _OTHERS}
_counts = attrgetter(*(name for name, new in _NEW.items() if type(new) is int))
_turn_counts = attrgetter(*(each.name for each in fields(Turn) if each.name != "refused"))


def pack(state: SessionState) -> bytes:
    """
    Returns *state* as bytes.
    """
    packed: dict[str, Any] = {name: value for name, new in _NEW.items() if (value := getattr(state, name)) != new}
    packed["present"] = state.present
    columns = zip(*map(_row, state.window), strict=True)
    packed["window"] = {name: _column(each) for name, each in zip(_WINDOW, columns, strict=False) if any(each)}
    if state.pending:
        packed["pending"] = [*state.pending.values()]
    if state.uncertain:
        packed["uncertain"] = [[sig, *one] for sig, one in state.uncertain.items()]
    try:
        text = orjson.dumps(packed)
    except TypeError:  # numbers of more than 64 bits, or half a surrogate in a name
        text = b" " + json.dumps(packed, default=asdict, separators=(",", ":")).encode()
    return bytes((VERSION,)) + text


def _column(values: tuple[Any, ...]) -> Any:
    return values if len(set(values)) > 1 or len(values) == 1 else values[0]


def unpack(packed: bytes) -> SessionState:
    """
    Returns the state that *packed* is. Raises StateUnreadable if this version of the library cannot read it.
    """
    try:
        version, text = packed[0], packed[1:]
        if version == VERSION:
            return _checked(_state(json.loads(text) if text.startswith(b" ") else orjson.loads(text)))
        from . import packing_6

        if version != packing_6.VERSION:
            known = f"this version of the library reads {VERSION}: use the one that wrote it; {_AFRESH}"
            raise StateUnreadable(f"is of version {version}, and {known}")
        return _checked(packing_6.state_of(packed))
    except (struct.error, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise StateUnreadable(f"cannot be read ({error}): put a copy of it back; {_AFRESH}") from None


def _state(packed: dict[str, Any]) -> SessionState:
    columns, pending, uncertain = packed.pop("window"), packed.pop("pending", ()), packed.pop("uncertain", ())
    if columns.keys() - set(_WINDOW):
        raise ValueError("a window of other calls")
    size = len(columns.get("seq", ()))
    each = (columns.get(name, blank) for name, blank in zip(_WINDOW, _BLANK, strict=True))
    rows = zip(*(one if isinstance(one, list) else (one,) * size for one in each), strict=True)
    packed["present"] = Turn(**packed["present"])
    state = SessionState(**packed, window=[Entry(*row) for row in rows])
    state.exhausted = _tuple(state.exhausted)
    state.uncertain = {sig: Uncertain(*one) for sig, *one in uncertain}
    by_seq = {entry.seq: entry for entry in state.window}
    for call in pending:
        one: Any = Pending(**call)
        entry = Entry(**one.entry)
        one.entry, one.limit = by_seq.get(entry.seq, entry), _tuple(one.limit)
        one.hints, one.question = tuple(map(_tuple, one.hints)), one.question and Question(**one.question)
        state.pending[entry.seq] = one
    return state


def _checked(state: SessionState) -> SessionState:
    """
    Returns *state* with what follows from its window. Raises ValueError if what counts is no whole number: it is never read as something else.
    """
    if not {int}.issuperset(map(type, (*_counts(state), *_turn_counts(state.present), *state.limits.values()))):
        raise ValueError("what counts is no whole number")
    state.latest = latest_of(state.window)
    return state


def _tuple(packed: Any) -> Any:
    return None if packed is None else tuple(packed)
