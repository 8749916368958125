"""
What a result brings, told from its text: nothing at all, or the same as another but for clocks and ids.
"""

import re

from typing import Final, Literal

from xxhash import xxh3_64_intdigest

from ..types import ErrorType


Emptiness = Literal[0, 1, 2]
"""0: it says something. 1: it is silent, as of a command that prints nothing. 2: it says that nothing was found."""

MAX_STEADY: Final = 4096
"""Bytes of a result of which the steady part is compared; longer ones are compared as they are, so that no news is lost."""
MAX_EMPTY: Final = 200
"""Bytes of a result that may say that nothing was found."""
HEAD: Final = 512
"""Bytes of a failure that tell its family."""

_UNSTEADY: Final = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|\d\d:\d\d:\d\d(?:[.,]\d+)?"
    rb"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    rb"|0x[0-9a-f]{6,16}"
    rb"|\b\d+(?:\.\d+)? ?(?:ms|ns|us|s|sec|secs|seconds|milliseconds)\b"
    rb"|\b1[4-9]\d{8}(?:\.\d+|\d{3})?\b"
    rb"|/tmp/[\w.-]+"
    rb"|\bpid[ =:]{1,2}\d+"
)
"""Clocks, durations, ids, addresses and temporary paths; no other digit, for in a success a digit is news."""
_NUMBERS: Final = re.compile(
    rb"\d(?:\d\d\d-\d\d-\d\d[T ]|\d:\d\d:\d\d|\d{9}|x[0-9a-f]{6}"
    rb"| ?(?:ms|ns|us|s|sec|secs|seconds|milliseconds)\b)"
)
"""What all of them but three have in them; it is found seven times as fast, for it begins with a digit."""
_MIDDLE: Final = re.compile(rb"-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-")
_ECHOED: Final = re.compile(
    r'"[^"\n]{1,200}"|\'[^\'\n]{1,200}\'|`[^`\n]{1,200}`|#\w+|(?:[\w.~-]{0,80}/){1,20}[\w.*-]{0,80}|\w*\d\w*|\s+'
)
"""What a failure repeats of the arguments: quoted text, paths, ids, numbers."""
_SILENT: Final = frozenset({b"", b"null", b'""', b"true", b'"ok"', b'"OK"', b'"Done"', b'"done"', b"ok", b"OK"})
_STRUCTURE: Final = re.compile(rb'(?:\s|[\[\]{},:]|""|null|false|true|0|"[\w ]{1,40}"\s{0,4}:)*')
"""JSON in which nothing is but names, zeros and flags."""
_HOLLOW: Final = re.compile(rb"[\[{]\s*[\]}]|null|\"\"|:\s*0\s*[,}]")
_NOTHING: Final = re.compile(
    rb"\W{0,3}(?:(?:sorry|error|ok)\W{1,2})?(?:there (?:are|were|is|was) )?(?:no|zero|0) (?:\w+ ){0,3}?"
    rb"(?:results?|match(?:es)?|files?|records?|rows?|items?|hits?|entries|documents?|data|articles?|pages?)\b"
    rb"(?: (?:were |was )?(?:found|returned|available|match\w*)| for\b| in\b|\W{0,3}$)"
    rb"|\W{0,3}(?:nothing|none|no one) (?:was )?found",
    re.IGNORECASE,
)


def emptiness(payload: bytes) -> Emptiness:
    """
    Whether a success of JSON *payload* brought anything.
    """
    if len(payload) > MAX_EMPTY:
        return 0
    bare = payload.strip()
    if bare in _SILENT:
        return 1
    if bare[:1] in (b"{", b"[") and _STRUCTURE.fullmatch(bare):
        return 2 if _HOLLOW.search(bare) else 0
    if b"no output" in bare or b"No Output" in bare:
        return 1
    return 2 if _NOTHING.match(bare) else 0


def steady_hash(payload: bytes) -> int:
    """
    32 bits of what in a success is not volatile; 0 where it is too long to be looked at.
    """
    if len(payload) > MAX_STEADY:
        return 0
    steady = _UNSTEADY.sub(b"~", payload) if _may_be_unsteady(payload) else payload
    return xxh3_64_intdigest(steady) & 0xFFFFFFFF or 1


def _may_be_unsteady(payload: bytes) -> bool:
    """
    False only where nothing of *payload* is volatile: most results, found out at a seventh of the cost.
    """
    return (
        _NUMBERS.search(payload) is not None
        or b"/tmp/" in payload
        or b"pid" in payload
        or (payload.count(b"-") > 3 and _MIDDLE.search(payload) is not None)
    )


def family_hash(kind: ErrorType, text: str) -> int:
    """
    32 bits of what a failure says, without what it repeats of the arguments.
    """
    said = _ECHOED.sub(" ", text[:HEAD].lower())
    return xxh3_64_intdigest(f"{kind}: {said}".encode(errors="replace")) & 0xFFFFFFFF or 1
