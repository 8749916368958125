"""
The arguments of a call as one small number that tells whether two calls are worded alike.

A bottom-k min-hash (Broder 1997; Cohen and Kaplan 2007): the three least hashes of its words, 16 bits of each, and
16 bits of all words in order. Volatile words (clocks, ids, temporary paths) and free-text labels are left out first.
"""

from collections.abc import Iterable
from string import ascii_letters, digits
from struct import Struct
from typing import Any, Final

from xxhash import xxh3_64_intdigest

from guardrails.core.text.signature import canonical
from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.types import ToolCall


NO_SKETCH: Final = 0
"""Of a call that nobody looked at so closely, or whose arguments are not known."""
HEAD: Final = 512
"""Bytes of canonical arguments that are read whole; of longer ones the beginning of each argument is."""
VALUE: Final = 96
"""Characters of each."""
VALUES: Final = 8
LABELS: Final = frozenset(
    {
        "description",
        "explanation",
        "reason",
        "reasoning",
        "thought",
        "purpose",
        "request_id",
        "requestId",
        "trace_id",
        "traceId",
        "correlation_id",
        "idempotency_key",
        "nonce",
        "timestamp",
        "_meta",
    }
)
"""Arguments that say why or when a call is made, not what it asks for."""

_WORDS: Final = pattern(r'\w++(?!":)')
"""Words of JSON that are no keys."""
_OF_WORDS: Final = (ascii_letters + digits + "_").encode()
_LOWER: Final = bytes(code if code in _OF_WORDS else ord(" ") for code in range(256)).lower()
_FOUR: Final = Struct(">4H").pack
_ONE: Final = Struct(">q").unpack
_NONE: Final = (0, 0, 0)
_CLOCKS: Final = pattern(
    rb"\d(?:"
    rb"\d\d\d-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:[Zz]|[+-]\d\d:?\d\d)?"
    rb"|\d:\d\d:\d\d(?:\.\d+)?"
    rb"|(?<![0-9a-zA-Z]\d)\d{9}(?:\d{3}){0,3}(?![0-9a-zA-Z])"
    rb"|(?<=0)(?<![0-9a-zA-Z]0)x[0-9a-fA-F]{6,16}(?![0-9a-zA-Z])"
    rb")"
)
"""All begin with the digit that is asked for first: `re` then goes from one to the next at a seventh of the cost."""
_IDS: Final = pattern(rb"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_TEMPORARY: Final = pattern(rb"/tmp/[\w.-]+")
_DIGITS: Final = digits.encode()
_FEW: Final = 6
"""Digits without which nothing in a text is volatile but a temporary path."""
_UNSPACED: Final = "\u0e00"
"""From here on most scripts (Thai, CJK, Hangul) put no space between words, or glue them: pairs of characters tell more."""
_STEM: Final = 5
"""Characters of a word in another alphabet than Latin, whose endings change with its role in the sentence."""


def sketch_of(call: ToolCall) -> int:
    """
    The sketch of *call*, signed 64 bits, noted in it; `NO_SKETCH` where its arguments are not known.

    The work is bounded: `HEAD` bytes, or `VALUES` times `VALUE` characters.
    """
    known = call.sketch
    if known is None:
        known = call.note_sketch(_sketch(call))
    return known


def alike(a: int, b: int) -> bool:
    """
    Whether two sketches are of calls that share most of their words.
    """
    return bool(likes(a, [b]))


def likes(sketch: int, others: Iterable[int], most: int | None = None) -> int:
    """
    How many of *others* are alike to *sketch*; *most* is where counting ends.
    """
    if sketch == NO_SKETCH:
        return 0
    # Two of three least hashes are shared; 0 stands for none.
    parts = {sketch >> 48 & 0xFFFF, sketch >> 32 & 0xFFFF, sketch >> 16 & 0xFFFF} - {0}
    count = 0
    for other in others:
        if other >> 48 & 0xFFFF in parts:
            shared = other >> 32 & 0xFFFF in parts or other >> 16 & 0xFFFF in parts
        else:
            shared = other >> 32 & 0xFFFF in parts and other >> 16 & 0xFFFF in parts
        if shared or other == sketch:
            count += 1
            if count == most:
                break
    return count


def _sketch(call: ToolCall) -> int:
    words = _words(call)
    if words is None:
        return NO_SKETCH
    least = sorted(map(xxh3_64_intdigest, set(words)))
    if len(least) < len(_NONE):
        least += _NONE
    # What is only read in part is no other call's equal.
    whole = call.sig if _is_cut(call) and call.sig is not None else xxh3_64_intdigest(b" ".join(words))
    number: int = _ONE(_FOUR(least[0] & 0xFFFF, least[1] & 0xFFFF, least[2] & 0xFFFF, whole & 0xFFFF))[0]
    return number or 1


def _words(call: ToolCall) -> list[bytes] | None:
    text = _text(call)
    if text is None:
        return None
    if b"/tmp/" in text:
        text = _TEMPORARY.sub(b" ", text)
    if len(text) - len(text.translate(None, _DIGITS)) >= _FEW:
        if text.count(b"-") > 3:
            text = _IDS.sub(b" ", text)
        text = _CLOCKS.sub(b" ", text)
    if text.isascii():
        *parts, last = text.split(b'":')
        if parts:
            last = b" ".join([part.rstrip(_OF_WORDS) for part in parts]) + b" " + last
        return last.translate(_LOWER).split()
    words = _WORDS.findall(text.decode("utf-8", "ignore").lower())
    return [piece.encode() for word in words for piece in _pieces(word)]


def _is_cut(call: ToolCall) -> bool:
    written = call.canonical if call.canonical is not None else canonical(call.arguments)
    return written is None or len(written) > HEAD


def _pieces(word: str) -> list[str]:
    if word.isascii():
        return [word]
    if max(word) < _UNSPACED:
        return [word[:_STEM]]
    return [word[at : at + 2] for at in range(max(1, len(word) - 1))]


def _text(call: ToolCall) -> bytes | None:
    arguments, written = call.arguments, call.canonical
    if type(arguments) is not dict:
        if written is None and arguments is not None:
            written = canonical(arguments[:HEAD] if type(arguments) is str else arguments)
        return None if written is None else written[:HEAD]
    if not LABELS.isdisjoint(arguments):
        arguments = {key: value for key, value in arguments.items() if key not in LABELS} or arguments
        if written is not None and len(written) <= HEAD:
            written = canonical(arguments)
    if written is None:
        written = canonical(arguments)
    if written is not None and len(written) <= HEAD:
        return written
    return b" ".join([_beginning(value) for _, value in sorted(arguments.items(), key=_key)[:VALUES]])


def _key(item: tuple[Any, Any]) -> str:
    return str(item[0])


def _beginning(value: Any) -> bytes:
    if type(value) is str:
        return value[:VALUE].encode("utf-8", "ignore")
    return b"" if (written := canonical(value)) is None else written[:VALUE]
