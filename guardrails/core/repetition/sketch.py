"""
The arguments of a call as one small number that tells whether two calls are worded alike.

It is a bottom-k min-hash (Broder 1997; Cohen and Kaplan 2007): 16 bits of each of the three least hashes of its words.
Then follow 12 bits of all words in order, and four for the kind of call. The third hash of a written document is that
of the whole. Volatile words (clocks, ids, temporary paths) and free-text labels are left out first.
"""

import re

from collections.abc import Iterable
from string import ascii_letters, digits
from struct import Struct
from typing import Any, Final

from xxhash import xxh3_64_intdigest

from guardrails.core.text.signature import canonical
from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.types import ToolCall

from .tool_names import edits, writes


NO_SKETCH: Final = 0
"""Of a call that nobody looked at so closely, or whose arguments are not known."""
HEAD: Final = 512
"""Bytes of canonical arguments that are read whole; of longer ones the beginning of each argument is."""
VALUE: Final = 96
"""Characters of each."""
VALUES: Final = 8
DOCUMENT: Final = 80
"""Characters from which on a text is a document, and no name."""
LABELS: Final = frozenset(
    {"description", "explanation", "reason", "reasoning", "thought", "purpose", "_meta"}
    | {"request_id", "requestId", "trace_id", "traceId", "correlation_id", "idempotency_key", "nonce"}
    | {"timestamp", "asked_at", "requested_at"}
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
_NAMES_ONE: Final = pattern(
    r"(?:^|_)(?:id|ids|no|nr|number|code|key|uid|pk|index|user|account|order|ticket|issue|pr|customer|product|item|employee|port"
    r"|row|seat|room|floor|hall|gate|zone|slot|lot|line|day|week|month|quarter|year|season|episode|chapter|version|lat|lon|x|y)$"
    r"|(?:Id|Number|Code|Key)$",
    re.IGNORECASE,
)
"""Names of numbers that each stand for a thing, or a day, of its own."""
_LABELLED: Final = 1
_WORDED: Final = 2
_SIZED: Final = 4
_PLACED: Final = 8
_MARKS_OF_CALLS: Final = 15
"""Bits of a sketch that tell what kind of call it is of: a record may not have the arguments."""
_PLACE: Final = pattern(r"\S*[^\s/\\][/\\]\S+|\S*\w\.[A-Za-z]\w{0,4}")
"""A path, an address, the name of a file."""
_FEW: Final = 6
"""Digits without which nothing in a text is volatile but a temporary path."""
_UNSPACED: Final = "\u0e00"
"""From here on most scripts (Thai, CJK, Hangul) put no space between words, or glue them: pairs of characters tell more."""
_STEM: Final = 5
"""Characters of a word in another alphabet than Latin, whose endings change with its role in the sentence."""


def sketch_of(call: ToolCall) -> int:
    """
    Returns the sketch of *call*, signed 64 bits, noted in it; `NO_SKETCH` if its arguments are not known.

    The work is bounded: `HEAD` bytes, or `VALUES` times `VALUE` characters, and a hash of a document that is written.
    """
    known = call.sketch
    if known is None:
        known = call.note_sketch(_sketch(call))
    return known


def labelled(sketch: int) -> bool:
    """
    Returns whether the call of *sketch* says why or when it is made; then all else is the same in an equal sketch.
    """
    return bool(sketch & _LABELLED)


def placed(sketch: int) -> bool:
    """
    Returns whether the call of *sketch* asks for the contents of a place: a file, a page of the web.
    """
    return bool(sketch & _PLACED)


def worded(sketch: int) -> bool:
    """
    Returns whether the call of *sketch* asks in words of its own, and does not only name things.
    """
    return bool(sketch & _WORDED)


def question_of(call: ToolCall) -> int:
    """
    Returns a number that tells the question of *call* from others, without its reasons and times.
    """
    sketch = sketch_of(call)
    return sketch if call.sig is None or labelled(sketch) else call.sig


def document_of(call: ToolCall) -> int:
    """
    Returns 16 bits of the long texts that *call* writes under a name, the third hash of its sketch. Returns 0 if there
    are none, or if a number says which of many things the text is for.
    """
    arguments = call.arguments
    if type(arguments) is not dict or not writes(call.tool) or edits(call.tool):
        return 0
    texts = [value for value in arguments.values() if type(value) is str and len(value) >= DOCUMENT]
    if not texts or any(type(value) is int for value in arguments.values()):
        return 0
    return xxh3_64_intdigest("\0".join(texts).encode("utf-8", "replace")) & 0xFFFF or 1


def alike(a: int, b: int) -> bool:
    """
    Returns whether two sketches are of calls that share most of their words.
    """
    return bool(likes(a, [b]))


def likes(sketch: int, others: Iterable[int], most: int | None = None) -> int:
    """
    Returns how many of *others* are alike to *sketch*; counting ends at *most*.
    """
    if sketch == NO_SKETCH:
        return 0
    # Two of three least hashes are shared; 0 stands for none.
    parts = _parts(sketch)
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


def resized(sketch: int, others: Iterable[int], most: int | None = None) -> int:
    """
    Returns how many of *others* are like *sketch* but for numbers of how much, or which part, is asked for; at most *most*.
    """
    if not sketch & _SIZED:  # A mark of at most one word beside such numbers: of more, the sketches share most.
        return 0
    like = sum(other & _SIZED != 0 and (other ^ sketch) >> 48 == 0 for other in others)
    return min(like, most or like)


def _parts(sketch: int) -> set[int]:
    return {sketch >> 48 & 0xFFFF, sketch >> 32 & 0xFFFF, sketch >> 16 & 0xFFFF} - {0}


def _sketch(call: ToolCall) -> int:
    words = _words(call)
    if words is None:
        return NO_SKETCH
    least = sorted(map(xxh3_64_intdigest, set(words)))
    if len(least) < len(_NONE):
        least += _NONE
    marks = 0
    arguments = call.arguments
    if type(arguments) is dict:
        marks = _LABELLED * (not LABELS.isdisjoint(arguments)) | _WORDED * any(map(_is_text, arguments.values()))
        asked = {key: value for key, value in arguments.items() if not _is_size(key, value)}
        if len(asked) == len(arguments):
            marks = marks | _PLACED * any(map(_is_place, arguments.values()))
        elif (kept := _word_of(call, asked)) is not None:
            marks = marks | _SIZED
            # The word that is not a size comes first.
            least.sort(key=lambda hashed: hashed not in kept)
            least[:0] = (0,) if not kept else ()
    elif type(arguments) is str:
        marks = _WORDED * _is_text(arguments)
    least[2] = document_of(call) or least[2]
    # What is only read in part is no other call's equal; with labels left out, what else is different makes it another.
    if _is_cut(call) and call.sig is not None:
        whole = call.sig
    else:
        whole = xxh3_64_intdigest((marks & _LABELLED and _text(call)) or b" ".join(words))
    last = whole & 0xFFFF & ~_MARKS_OF_CALLS | marks
    number: int = _ONE(_FOUR(least[0] & 0xFFFF, least[1] & 0xFFFF, least[2] & 0xFFFF, last))[0]
    return number or 16


def _is_text(value: Any) -> bool:
    """
    Returns whether *value* is a text of three words, or in a script that does not space them.
    """
    return type(value) is str and (
        len(value[:HEAD].split(None, 2)) > 2 or (len(value) > _STEM and not value.isascii() and max(value) >= _UNSPACED)
    )


def _is_place(value: Any) -> bool:
    """
    Returns whether *value* is where a file, or a page, is.
    """
    return type(value) is str and len(value) <= HEAD and _PLACE.fullmatch(value) is not None


def _is_size(key: Any, value: Any) -> bool:
    """
    Returns whether *value* is a number that says how much is asked for, or which part.
    """
    return (type(value) is int or type(value) is float) and type(key) is str and _NAMES_ONE.search(key) is None


def _word_of(call: ToolCall, arguments: dict[Any, Any]) -> set[int] | None:
    """
    Returns the hashed word of *arguments* of *call*, or none. Returns None if there are more.
    """
    words = _words(ToolCall(call.tool, arguments, call.id, None, None))
    return None if words is None or len(words) > 1 else {*map(xxh3_64_intdigest, words)}


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
