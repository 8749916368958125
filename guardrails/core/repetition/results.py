"""
The news that a result brings, told from its text: nothing at all, or the same as another but for clocks and ids.
"""

import re

from functools import lru_cache
from string import ascii_lowercase, digits
from typing import Any, Final, Literal

import orjson

from xxhash import xxh3_64_intdigest

from guardrails.core.text.signature import result_hash
from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.types import ErrorType, ToolCall

from .answers import carried, given_by, said_by
from .idle import edits, says_idle
from .sketch import question_of
from .volatile import ASIDE, beside, parted


Emptiness = Literal[0, 1, 2, 3, 4, 5]
"""
0: it says something. 1: it is silent, as of a command that prints nothing. 2: it says that nothing was found. 3: it says that
what is waited for is not there yet. 4, told only where somebody looks closer: a flag or a few values, or a line. 5: a zero, or that
an edit changed nothing.
"""
NOTHING: Final = 2
UNFINISHED: Final = 3
LITTLE: Final = 4
ZERO: Final = 5

MAX_STEADY: Final = 4096
"""Bytes of a result of which the steady part is compared; longer ones are compared as they are, so that no news is lost."""
MAX_EMPTY: Final = 400
"""Bytes of a result that may say that nothing was found, or little."""
MAX_SAID: Final = 200
"""Bytes of those that say so in words."""
HEAD: Final = 512
"""Bytes of a failure that tell its family."""

_CLOCKS: Final = pattern(
    rb"\d(?:"
    rb"\d\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|\d:\d\d:\d\d(?:[.,]\d+)?"
    rb"|(?<=0)x[0-9a-f]{6,16}"
    rb"|(?<!\w\d)\d*+(?:\.\d++)? ?(?:ms|ns|us|s|sec|secs|seconds|milliseconds)\b"
    rb"|(?<=1)(?<!\w1)[4-9]\d{8}(?:\.\d+|\d{3})?\b"
    rb")"
)
"""
Clocks, addresses, durations; no other digit, for in a success a digit is news.

All begin with the digit that is asked for first: `re` then goes from one to the next at a seventh of the cost.
"""
_MARKS: Final = pattern(
    rb"\d(?:\d\d\d-\d\d-\d\d[T ]|\d:\d\d:\d\d|\d{9}|x[0-9a-f]{6}"
    rb"| ?(?:ms|ns|us|s|sec|secs|seconds|milliseconds)\b)"
)
"""A part that each of them has, found in half the time if digits are many and none is one of these."""
_IDS: Final = pattern(rb"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_MIDDLE: Final = pattern(rb"-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-")
"""A part that each of these ids has, and hardly any other text."""
_TEMPORARY: Final = pattern(rb"/tmp/[\w.-]+")
_PROMPTS: Final = pattern(rb"\b(?:In|Out) ?\[\d+\]")
"""Counters of an interactive interpreter."""
_PROCESSES: Final = pattern(rb"\bpid[ =:]{1,2}\d+")

_QUOTED: Final = pattern(r'"[^"\n]{1,200}"|\'[^\'\n]{1,200}\'|`[^`\n]{1,200}`')
_TAGS: Final = pattern(r"#\w+")
_PATHS: Final = pattern(r"/(?:[\w.~-]{0,80}+/){0,19}+[\w.*-]{0,80}+")
_NUMBERS: Final = pattern(r"\d\w*+")
"""From its first slash, or digit, on; what of it comes before is cut off from the text before."""
_IN_WORDS: Final = ascii_lowercase + digits + "_"
_IN_PATHS: Final = _IN_WORDS + ".~-"
_ECHOED: Final = pattern(_QUOTED.pattern + r"|#\w+|(?:[\w.~-]{0,80}+/){1,20}+[\w.*-]{0,80}+|(?<!\w)[^\W\d]*+\d\w*")
"""Parts of the arguments that a failure repeats: quoted text, paths, ids, numbers. All of these at once, in any alphabet."""
_STRINGS: Final = pattern(
    r'"((?:[^"\\]|\\.)*+)(?:"|\Z)|(?<=[{:,\[ ])\'((?:[^\'\\]|\\.)*+)(?:\'(?=\s*[:,}\]])|\Z)', re.DOTALL
)
"""Those of JSON, and of a Python object's text, cut off or not."""
_SILENT: Final = frozenset({b"", b"null", b'""', b"true", b'"ok"', b'"OK"', b'"Done"', b'"done"', b"ok", b"OK"})
_MAY_BE_NOTHING: Final = pattern(rb'[\[{]\s*[\]}]|"text"|[:\[]\s*(?:0\s*[,}\]]|null|"")')
"""Something with nothing in it, a zero, the blocks of MCP."""
_SAYS: Final = pattern(rb"\w")
_WORD: Final = (1 << 64) - 1
_BITS: Final = (1 << 63) - 1
"""Those of a hash that a recorded result has."""
_OPENINGS: Final = frozenset({b"{", b"["})
_DATA: Final = _OPENINGS | {b"\\", b"`"}
"""With which a text begins that may be data."""
_BLANK: Final = frozenset({b"", b'""'})
_SEEKS: Final = pattern(
    r"(?:^|[_./:-])(?:[Ss]earch|[Ff]ind|[Gg]rep|[Ll]ookup|[Bb]rowse)(?!\w*(?:[Rr]eplace|_and_|And[A-Z]))(?:$|[_A-Z-])"
)
"""Names of tools that look for something."""
_ACKNOWLEDGED: Final = frozenset(
    result_hash(form % word) & _BITS
    for form in (b"%b", b'"%b"', b'{"%b":true}', b'{"%b": true}', b'{"status":"%b"}', b'{"status": "%b"}')
    for word in (b"ok", b"OK", b"done", b"Done", b"success", b"saved", b"sent", b"logged", b"created", b"accepted")
) | {result_hash(said) & _BITS for said in _SILENT}
"""The answer of a tool that has done something, of any kind."""
_YET: Final = (
    rb"(?:pending|queued|running|in[ _-]?progress|processing|waiting|not (?:yet )?(?:ready|finished|done|complete[d]?)"
    rb"|still (?:pending|queued|running|in progress|processing|waiting))"
)
_UNFINISHED_FIELD: Final = pattern(
    rb'"\w{0,20}(?:status|state|phase|stage)"\s{0,4}:\s{0,4}"' + _YET + rb'"', re.IGNORECASE
)
_UNFINISHED: Final = pattern(
    rb"\W{0,3}(?:(?:status|state|[\w-]{1,20} is)\W{1,2})?" + _YET + rb"\W{0,4}\Z", re.IGNORECASE
)
_NOTHING: Final = pattern(
    rb"\W{0,3}(?:(?:sorry|error|ok)\W{1,2})?(?:there (?:are|were|is|was) )?(?:no|zero|0) (?:\w+ ){0,3}?"
    rb"(?:results?|match(?:es)?|files?|records?|rows?|items?|hits?|entries|documents?|data|articles?|pages?)\b"
    rb"(?: (?:were |was )?(?:found|returned|available|match\w*)| for\b| in\b|\W{0,3}$)"
    rb"|\W{0,3}(?:nothing|none|no one) (?:was )?found",
    re.IGNORECASE,
)


@lru_cache(maxsize=1024)
def seeks(tool: str) -> bool:
    """
    Returns whether *tool*, by its name, looks for something.
    """
    return _SEEKS.search(tool) is not None


def acknowledges(result: int) -> bool:
    """
    Returns whether the hash of a *result* is of one that only says that something was done.
    """
    return result & _BITS in _ACKNOWLEDGED


def emptiness(payload: bytes, call: ToolCall | None = None) -> Emptiness:
    """
    Returns whether a success of *call*, its JSON *payload*, brought anything; if a guard looked closer, whether it
    brought little.
    """
    if len(payload) > MAX_EMPTY:
        return 0
    bare = payload.strip()
    if bare in _SILENT:
        # No text at all is a search without a hit; of any other tool it may be a file, or a command that is done.
        return NOTHING if call is not None and bare in _BLANK and seeks(call.tool) else 1
    if call is not None and edits(call.tool) and says_idle(bare, call):
        return ZERO
    first = bare[:1]
    if bare[1:2] in _DATA if first == b'"' else first in _OPENINGS and _MAY_BE_NOTHING.search(bare) is not None:
        value = carried(bare)
        if type(value) is str:
            text = value.encode("utf-8", "ignore")
            if len(text) < len(bare):
                return emptiness(text, call)
        else:
            said = said_by(value)
            if said.nothing and (said.hollow or said.zero):
                return NOTHING if said.hollow else ZERO
    told = _told(bare)
    return told or (LITTLE if call is not None and call.sketch is not None and said_by(carried(bare)).few else 0)


def _told(bare: bytes) -> Emptiness:
    """Returns the part that is said in words."""
    if len(bare) > MAX_SAID:
        return 0
    if b"no output" in bare or b"No Output" in bare:
        return 1
    if _UNFINISHED_FIELD.search(bare) is not None or _UNFINISHED.match(bare) is not None:
        return UNFINISHED
    return NOTHING if _NOTHING.match(bare) else 0


def steady_hash(payload: bytes, call: ToolCall | None = None) -> int:
    """
    Returns 32 bits of the steady part of a success of *call*, those of its `result_hash` if no part is volatile.
    Returns 0 if it is too long to be looked at.
    """
    if len(payload) > MAX_STEADY:
        return 0
    value = carried(payload) if payload[:1] in (b"{", b"[", b'"') else None
    if type(value) is not dict and type(value) is not list:
        # Nothing but a clock, or what a tool is named for, is the answer.
        asked = call is not None and not beside(call.tool) >= {"clock", "measure"}
        text = value.encode("utf-8", "ignore") if type(value) is str else payload
        masked = text if asked else _steady(text)
        same = masked == text or _SAYS.search(masked) is None
        return (result_hash(payload) if same else xxh3_64_intdigest(masked)) & 0xFFFFFFFF or 1
    rest, seed = (value, 0) if call is None or call.sig is None else _without_volatile(value, call)
    masked = _masked(rest)
    same = masked == value
    return (result_hash(payload) if same else xxh3_64_intdigest(orjson.dumps(masked), seed)) & 0xFFFFFFFF or 1


def _without_volatile(value: Any, call: ToolCall) -> tuple[Any, int]:
    """
    Returns (what is not volatile, what it is an answer to); 0: to any question.
    """
    kinds, given = beside(call.tool), given_by(call)
    for some in (kinds, kinds & ASIDE):
        rest, found = parted(value, some)
        if not found:
            break
        said = said_by(rest, given)
        if rest and (said.values or said.full or said.hollow or (said.flags and found <= ASIDE)):
            # How long something takes is an answer to another question, but for a search that shows all the same again.
            any_other = said.full and found <= ({"request", "time"} if seeks(call.tool) else {"request"})
            return rest, 0 if any_other else question_of(call) & _WORD
    return value, 0


def _masked(value: Any) -> Any:
    """
    Returns *value* with what is volatile in the sentences that it holds left out; a clock or an id that stands alone is
    news.
    """
    kind = type(value)
    if kind is dict:
        return {name: _masked(member) for name, member in value.items()}
    if kind is list:
        return [_masked(member) for member in value]
    if kind is str and len(value.split(None, 2)) > 2:
        return _steady(value.encode("utf-8", "replace")).decode("utf-8", "replace")
    return value


def _steady(payload: bytes) -> bytes:
    if b"/tmp/" in payload:
        payload = _TEMPORARY.sub(b"~", payload)
    if b"pid" in payload:
        payload = _PROCESSES.sub(b"~", payload)
    if b"Out[" in payload or b"In [" in payload:
        payload = _PROMPTS.sub(b"~", payload)
    if payload.count(b"-") > 3 and _MIDDLE.search(payload) is not None:
        payload = _IDS.sub(b"~", payload)
    return payload if _MARKS.search(payload) is None else _CLOCKS.sub(b"~", payload)


@lru_cache(maxsize=256)
def family_hash(kind: ErrorType, text: str) -> int:
    """
    Returns 32 bits of the words of a failure, without those that it repeats of the arguments.
    """
    text = text[:HEAD].lower()
    if text[:1] in ("[", '"') or '{"' in text or "{'" in text:
        # A message in JSON is quoted as well, and no echo for that; a word alone may be one.
        text = _STRINGS.sub(_sentence, _STRINGS.sub(_sentence, text))
    said = " ".join(_unechoed(text).split())
    return xxh3_64_intdigest(f"{kind}: {said}".encode(errors="replace")) & 0xFFFFFFFF or 1


def _unechoed(text: str) -> str:
    if not text.isascii():
        return _ECHOED.sub(" ", text)
    text = _QUOTED.sub(" ", text)
    if "#" in text:
        text = _TAGS.sub(" ", text)
    if "/" in text:
        text = _without(_PATHS, text, _IN_PATHS)
    return _without(_NUMBERS, text, _IN_WORDS)


def _sentence(found: re.Match[str]) -> str:
    said = found[1] or found[2] or ""
    return said.replace('\\"', '"') if " " in said.strip() else " "


def _without(found: re.Pattern[str], text: str, before: str) -> str:
    """
    Returns *text* with a space for each that is *found*, and for the characters that stand *before* it.
    """
    *parts, last = found.split(text)
    return " ".join([*[part.rstrip(before) for part in parts], last])
