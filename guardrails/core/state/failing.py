"""
The values that failing tools were tried with, and those that results have shown since. An agent that goes on with a new
value is in no loop.

A value is a word, a number, or a run of them (a path, an address). A few bits of a hash stand for each value, so that
the memory is bounded. While no tool fails, no value is kept and no result is looked at.
"""

import re

from base64 import b85decode, b85encode
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from string import ascii_letters, digits
from typing import Any, Final, NamedTuple

from xxhash import xxh3_64_intdigest

from guardrails.core.text.signature import canonical
from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.types import ToolCall


BITS: Final = 4096
"""Of a set of values, two for each; of one of a thousand values 4 in 10 are set: in doubt a value counts as there."""
MOST_TOOLS: Final = 3
"""Tools of a session whose failures are followed."""
SPARED_AFTER: Final = 4
"""Refusals in a row after which a call with arguments of its own is let through."""
ARGUMENTS: Final = 1 << 13
"""Bytes of canonical arguments that are looked at."""
RESULT: Final = 1 << 14
"""The same of a result; many times as many values would fill a set."""
SIBLINGS: Final = "loops.sibling_errors"
ALIKE: Final = frozenset({"loops.same_error", SIBLINGS, "loops.unknown_tool"})
"""Codes of refusals of calls that would fail like those before."""

_ESCAPED: Final = ((b"\\\\", b"\\"), *((mark, b" ") for mark in (b'\\"', b"\\n", b"\\r", b"\\t")))
"""Characters that JSON writes with a backslash, with two if JSON is in JSON."""
_JOINS: Final = b"./@-"
_IN_WORDS: Final = (ascii_letters + digits + "_").encode() + bytes(range(128, 256))
_TO_WORDS: Final = bytes(code if code in _IN_WORDS else ord(" ") for code in range(256))
_TO_RUNS: Final = bytes(code if code in _IN_WORDS + _JOINS else ord(" ") for code in range(256))
_MARKS: Final = pattern(r"[^\w\x00-\x7f]+")
"""Quotes, dashes and arrows of other alphabets."""
_UNSPACED: Final = pattern(r"[\u0e00-\u10ff\u3040-\uffff]{2,}")
"""Scripts that put no space between words (Thai, CJK, Hangul): of them each two characters are a value too."""
_EMPTY: Final = frozenset({b""})
_ONE: Final = ord("1")
_CODED: Final = pattern(rb"(?:\\{1,4}u[0-9a-fA-F]{4})+")
"""Letters that JSON writes by their numbers, as it does for all but ASCII unless it is told otherwise."""
_SINGLE: Final = pattern(rb'(?<=[:\[,])"?(\w)"?(?=[,}\]])')
"""An argument of one character."""


class Told(NamedTuple):
    """
    The values of a call that is over, each set as the bits of `values`.
    """

    tried: int = 0
    """Of its arguments."""
    shown: int = 0
    """Of its result, without those of its arguments."""


@dataclass(slots=True)
class Failing:
    """
    A tool whose latest call failed, since its first failure.
    """

    seq: int
    """`seq` of the latest failure."""
    tried: int = field(default=0, compare=False)
    """This and the next as in `Told`. Not every record has them, and `ToolCall.news` is recorded in their place."""
    shown: int = field(default=0, compare=False)
    refused: list[int | None] = field(default_factory=list)
    """Signatures of the calls that were refused since one was admitted, of this tool or those that fail alike; the latest
    `SPARED_AFTER`."""


def told(call: ToolCall, result: bytes, *, failed: bool) -> Told:
    """
    Returns the values of *call* and of its *result*, JSON or text; of a long result those of its head. The arguments of
    a call that worked are no failed try, and are left out.
    """
    tried = _values(_written(call))
    return Told(_set_of(tried) if failed else 0, _set_of(_values(result[:RESULT]) - tried))


def brings_new(call: ToolCall, followed: Collection[Failing]) -> bool:
    """
    Returns whether an argument of *call* has a new value. A result has shown it since the tools *followed* began to
    fail, and none of them was tried with it. The answer is noted in the call.
    """
    if call.news is None:
        shown = tried = 0
        for one in followed:
            shown |= one.shown
            tried |= one.tried
        news = shown != 0 and any(
            bits & shown == bits and bits & tried != bits for bits in map(_bits, _asked(_written(call)))
        )
        return call.note_news(news=news)
    return call.news


def spared(call: ToolCall, followed: Iterable[Failing]) -> bool:
    """
    Returns whether *call* is to be let through since so many of the tools *followed* were refused, none with these very
    arguments.
    """
    return any(len(one.refused) >= SPARED_AFTER and call.sig not in one.refused for one in followed)


def note_refused(failing: dict[str, Failing], call: ToolCall, code: str, seq: int) -> None:
    """
    Count a refusal of *call* by *code* while its tool fails; *seq* is that of the latest executed call.
    """
    if code in ALIKE:
        one = failing.get(call.tool) or Failing(seq)
        # Tools that fail alike are refused as one: else several in turn would never come to four.
        row = (
            max((other.refused for other in failing.values()), key=len, default=[]) if code == SIBLINGS else one.refused
        )
        one.refused = [*row, call.sig][-SPARED_AFTER:]
        _follow(failing, call.tool, one)


def note_ended(failing: dict[str, Failing], tool: str, seq: int, *, failed: bool, what: Told, oldest: int) -> None:
    """
    Enter a call of *tool* that is over: a success ends its failures. Failures that began before *oldest* are forgotten.
    """
    for name in [name for name, one in failing.items() if one.seq < oldest]:
        del failing[name]
    if failed:
        one = failing.get(tool) or Failing(seq)
        one.seq, one.tried = max(seq, one.seq), one.tried | what.tried
        for other in (one, *failing.values()):
            other.refused = []
        _follow(failing, tool, one)
    else:
        failing.pop(tool, None)
    for one in failing.values():
        one.shown |= what.shown


def packed_failing(failing: dict[str, Failing]) -> list[list[Any]]:
    """
    Returns the same as JSON has it.
    """
    return [[tool, one.seq, _packed(one.tried), _packed(one.shown), one.refused] for tool, one in failing.items()]


def unpacked_failing(packed: Iterable[list[Any]]) -> dict[str, Failing]:
    """
    Returns the failures that `packed_failing` packed.
    """
    return {
        tool: Failing(seq, _unpacked(tried), _unpacked(shown), refused) for tool, seq, tried, shown, refused in packed
    }


def _packed(bits: int) -> str | list[int]:
    """
    Returns the places of *bits* while they take less room than all of them.
    """
    if bits.bit_count() >= BITS // 32:
        return b85encode(bits.to_bytes(BITS // 8, "little")).decode()
    places = []
    while bits:
        places.append(bits.bit_length() - 1)
        bits ^= 1 << places[-1]
    return places


def _unpacked(packed: str | list[int]) -> int:
    if isinstance(packed, str):
        return int.from_bytes(b85decode(packed), "little")
    return sum(1 << place for place in packed)


def _follow(failing: dict[str, Failing], tool: str, one: Failing) -> None:
    failing.pop(tool, None)
    failing[tool] = one
    while len(failing) > MOST_TOOLS:
        del failing[next(iter(failing))]


def _written(call: ToolCall) -> bytes:
    written = call.canonical
    if written is None and call.arguments is not None:
        written = canonical(call.arguments)
    return b"" if written is None else written[:ARGUMENTS]


def _values(text: bytes) -> set[bytes]:
    if b"\\" in text:
        if b"\\u" in text:
            text = _CODED.sub(_decoded, text)
        for mark, instead in _ESCAPED:
            text = text.replace(mark, instead)
    pairs: set[bytes] = set()
    if not text.isascii():
        said = _MARKS.sub(" ", text.decode("utf-8", "ignore"))
        pairs = {run[at : at + 2].encode() for run in _UNSPACED.findall(said) for at in range(len(run) - 1)}
        text = said.encode()
    words = pairs.union(text.translate(_TO_WORDS).split())
    runs = set(text.translate(_TO_RUNS).split()) - words
    return words.union([run.rstrip(_JOINS).lstrip(b".@-") for run in runs]) - _EMPTY


def _decoded(found: re.Match[bytes]) -> bytes:
    units = bytes.fromhex(found[0].replace(b"\\", b"").replace(b"u", b"").decode())
    return units.decode("utf-16-be", "ignore").encode()


def _asked(written: bytes) -> set[bytes]:
    """
    Returns the values of arguments that can be told from chance. A single character counts if the argument is no more
    than it.
    """
    return {value for value in _values(written) if len(value) > 1} | set(_SINGLE.findall(written))


def _set_of(found: Collection[bytes]) -> int:
    # Written as a binary number, the highest bit last: half the time of setting bits of bytes.
    made = bytearray(b"0" * BITS)
    for digest in map(xxh3_64_intdigest, found):
        made[digest & 0xFFF] = made[digest >> 12 & 0xFFF] = _ONE
    made.reverse()
    return int(made, 2)


def _bits(value: bytes) -> int:
    digest = xxh3_64_intdigest(value)
    return 1 << (digest & 0xFFF) | 1 << (digest >> 12 & 0xFFF)
