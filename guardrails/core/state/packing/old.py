"""
States as versions 1 to 4 packed them, made over into version 5, which `packed` reads: a session goes on after any upgrade.

Fields that an old version did not keep are as in a new state. Some versions had several layouts while they were made.
The first layout that can be read whole is the right one, since the part after the calls must begin as JSON.
"""

import json
import struct

from typing import Any, Final, NamedTuple

from guardrails.core.state.entries import low


MADE: Final = 5
"""The version that old states are made over into."""
HEAD: Final = struct.Struct("<BBHI")
"""Version, 1 where the JSON holds what only Python's own module reads, entries, bytes of the name table."""
ENTRY: Final = struct.Struct("<IqqqiBBBBB")
"""seq, sig, result hash, time, milliseconds until a retry, status and six flags, error type + 1 and a flag, retries
left and two flags, turn, calls admitted beside it."""
CLOSER: Final = struct.Struct("<qI")
"""Sketch and steady part of the result; only of calls that were looked at so closely."""
LOOKED_AT: Final = 128
"""The flag at an error type that a `CLOSER` follows."""

_TOTALS: Final = 30
_TURN_N: Final = 27
"""Where `turn_n` stands, which came later than what is before and behind it."""
_LOWERED: Final = 29
"""Totals from which on refused calls are kept by the low half of their signature."""
_BY_PLACE: Final = 23
"""Totals while the calls that are over were told by their place in the window, or by `seq`, and nothing says by which."""
_WRONG: Final = (struct.error, ValueError, LookupError, TypeError, AttributeError)


class _Layout(NamedTuple):
    call: str
    totals: int
    """How many are kept."""
    head: struct.Struct = HEAD
    named: bool = False
    """The tool stands within each call, not before all."""
    signed: bool = False
    """The retries left have one flag: whether the call can be signed."""


_LAYOUTS: Final[dict[int, tuple[_Layout, ...]]] = {
    1: (
        _Layout("<IBqqqiBBB", 21, head=struct.Struct("<BBHH"), named=True, signed=True),
        _Layout("<IHqqqiBBB", 21, named=True, signed=True),
        _Layout("<IHqqqiBBB", 22, named=True),
    ),
    2: (_Layout("<IqqqiBBB", 23),),
    3: (_Layout("<IqqqiBBBB", 25),),
    4: (
        _Layout("<IqqqiBBBBB", _TOTALS),
        _Layout("<IqqqiBBBBB", 29),
        _Layout("<IqqqiBBBBB", 25),
        _Layout("<IqqqiBBBB", 29),
    ),
}
OLD: Final = tuple(_LAYOUTS)
"""The versions that `made_over` reads."""


def made_over(packed: bytes) -> bytes:
    """
    Returns the state *packed* by one of the versions `OLD` as version 5 packs it.

    Raises ValueError if it is damaged.
    """
    for layout in _LAYOUTS[packed[0]]:
        try:
            return _made_over(packed, layout)
        except _WRONG:
            continue
    raise ValueError("no layout of its version fits")


def _made_over(packed: bytes, layout: _Layout) -> bytes:
    if layout.head is HEAD:
        _, _, entries, size = HEAD.unpack_from(packed)
    else:
        _, entries, size, _ = layout.head.unpack_from(packed)
    at = layout.head.size
    names = json.loads(packed[at : at + size])
    at += size
    tools: list[int] = []
    if not layout.named:
        tools += struct.unpack_from(f"<{entries}H", packed, at)
        at += 2 * entries
    window, seqs = [], set()
    for _ in range(entries):
        values = list(struct.unpack_from(layout.call, packed, at))
        seqs.add(values[0])
        at += struct.calcsize(layout.call)
        if layout.named:
            tools.append(values.pop(1))
        if layout.signed:
            # What may have changed something was not kept: any call may have.
            values[7] = min(values[7] >> 1, 63) * 4 + 2 + (values[7] & 1)
        # Neither turns nor what was admitted beside a call.
        window.append(ENTRY.pack(*values, *[0] * (10 - len(values))))
        if values[6] & LOOKED_AT:
            window.append(packed[at : at + CLOSER.size])
            at += CLOSER.size
    rest = _rest(json.loads(packed[at:]), layout, seqs)
    table, totals = (json.dumps(said).encode() for said in (names, rest))
    head = HEAD.pack(MADE, 1, entries, len(table))
    return b"".join((head, table, struct.pack(f"<{entries}H", *tools), *window, totals))


def _rest(rest: dict[str, Any], layout: _Layout, seqs: set[int]) -> dict[str, Any]:
    """
    Returns the part that follows the calls, with all totals; *rest* is changed. *seqs* are those of the calls.
    """
    totals = rest["t"]
    if len(totals) != layout.totals:
        raise ValueError("not so many totals")
    if layout.totals == _LOWERED:
        totals.insert(_TURN_N, 0)
    elif layout.totals < _LOWERED:
        rest["p"] = [low(sig) for sig in rest.get("p", ())]
    rest["t"] = totals + [0] * (_TOTALS - len(totals))
    if layout.head is not HEAD:
        rest["o"] = [_opened(seqs, *one) for one in rest.get("o", ())]
    if layout.totals == _BY_PLACE:
        rest.pop("h", None)
    return rest


def _opened(seqs: set[int], seq: int, n: int, call_id: str, *values: Any) -> list[Any]:
    """
    Returns an open admission of the first layout, which says what its entry in the window says too.
    """
    tool, sig, at_ms, *held = values
    return [seq, n, call_id, *held, None if seq in seqs else [tool, sig, at_ms]]
