"""
A state as bytes: a byte of its version, and its fields as JSON. States of 0.2.0 are read (`packing_6`).

What is as in a new state is left out. The window is written by columns: one of equal values as that value,
and one with nothing in it not at all.
"""

import json
import struct

from binascii import a2b_base64, b2a_base64
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

import orjson

from guardrails.core.values.errors import StateUnreadable

from .state import Entry, Pending, Question, SessionState, Turn, Uncertain, latest_of


VERSION: Final = 8
_WINDOW: Final = tuple(each.name for each in fields(Entry))
_MADE: Final = sum(each.init for each in fields(Entry))
"""So many of them an entry is made of; the others come later."""
_PENDING: Final = tuple(each.name for each in fields(Pending) if each.name not in ("entry", "question"))
_OPENED: Final = _PENDING.index("hints")
_row, _call = attrgetter(*_WINDOW), attrgetter(*_PENDING)
_turn, _question = (attrgetter(*(each.name for each in fields(cls))) for cls in (Turn, Question))
_BLANK: Final = _row(Entry(0, "", None, 0, changes=False))
_OTHERS: Final = ("present", "keys", "window", "latest", "pending", "uncertain", "family")
"""Fields of a state that have a form of their own, follow from others, or are of one step."""
_NEW: Final = {
    each.name: getattr(SessionState(), each.name) for each in fields(SessionState) if each.name not in _OTHERS
}
_COUNTS: Final = tuple(name for name, new in _NEW.items() if type(new) is int)


def pack(state: SessionState) -> bytes:
    """
    Returns *state* as bytes.
    """
    said: dict[str, Any] = {name: value for name, new in _NEW.items() if (value := getattr(state, name)) != new}
    said["present"] = _turn(state.present)
    columns = zip(*map(_row, state.window), strict=True)
    said["window"] = {name: _column(each) for name, each in zip(_WINDOW, columns, strict=False) if any(each)}
    if state.pending:
        said["pending"] = [_packed(state, one) for one in state.pending.values()]
    if state.uncertain:
        said["uncertain"] = [[sig, *one] for sig, one in state.uncertain.items()]
    if state.keys:
        said["keys"] = b2a_base64(state.keys, newline=False).decode()
    try:
        text = orjson.dumps(said)
    except TypeError:  # numbers of more than 64 bits, or half a surrogate in a name
        text = b" " + json.dumps(said, separators=(",", ":")).encode()
    return bytes((VERSION,)) + text


def _column(values: tuple[Any, ...]) -> Any:
    return values if len(set(values)) > 1 or len(values) == 1 else values[0]


def _packed(state: SessionState, one: Pending) -> list[Any]:
    entry, question = one.entry, one.question
    # Of a call that the window does not have any more, what it is.
    there = bool(state.window) and entry.seq >= state.window[0].seq
    return [entry.seq if there else _row(entry), _call(one), None if question is None else _question(question)]


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
            raise StateUnreadable(
                f"is of version {version}, and this version of the library reads {VERSION}: use the one that wrote it; "
                "`forget` it only to start it afresh"
            )
        return _checked(packing_6.state_of(packed))
    except (struct.error, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise StateUnreadable(
            f"cannot be read ({error}): put a copy of it back; `forget` it only to start it afresh"
        ) from None


def _state(said: dict[str, Any]) -> SessionState:
    """
    Returns the state of the fields that are *said*. Raises ValueError or TypeError if they are none of a state.
    """
    columns, calls, uncertain = said.pop("window"), said.pop("pending", ()), said.pop("uncertain", ())
    present, keys = Turn(*said.pop("present")), a2b_base64(said.pop("keys", ""))
    if columns.keys() - set(_WINDOW):
        raise ValueError("a window of other calls")
    size = len(columns.get("seq", ()))
    each = (columns.get(name, blank) for name, blank in zip(_WINDOW, _BLANK, strict=True))
    rows = zip(*(one if isinstance(one, list) else (one,) * size for one in each), strict=True)
    state = SessionState(**said, present=present, keys=keys, window=[_entry(row) for row in rows])
    if state.exhausted is not None:
        code, message, hint = state.exhausted
        state.exhausted = code, message, hint
    state.uncertain = {sig: Uncertain(*one) for sig, *one in uncertain}
    by_seq = {entry.seq: entry for entry in state.window}
    for entry, call, question in calls:
        one = Pending(by_seq[entry] if isinstance(entry, int) else _entry(entry), *call[:_OPENED])
        one.hints, limit = tuple((code, hint) for code, hint in call[_OPENED]), call[_OPENED + 1]
        one.limit = None if limit is None else (limit[0], limit[1], limit[2])
        one.question = None if question is None else Question(*question)
        state.pending[one.seq] = one
    return state


def _checked(state: SessionState) -> SessionState:
    """
    Returns *state* with what follows from its window. Raises ValueError if what counts is no whole number: it is never read as something else.
    """
    counts = [getattr(state, name) for name in _COUNTS]
    counts += [*state.limits.values(), *_turn(state.present)[:-1]]
    if not {int}.issuperset(map(type, counts)):
        raise ValueError("what counts is no whole number")
    state.latest = latest_of(state.window)
    return state


def _entry(row: Any) -> Entry:
    made = Entry(*row[:_MADE])
    for name, value in zip(_WINDOW[_MADE:], row[_MADE:], strict=True):
        if value:
            setattr(made, name, value)
    return made
