"""
The content of a result, without its carriers, and what it says: that the work goes on, that it was done, nothing, or news.

Objects, JSON text, fenced JSON, the blocks of MCP, `structuredContent` and a library's result types carry the same content. A text of one
short line is read like the value of a `status`, by the same words; of a longer text no word is read.
"""

import re

from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from typing import Any, Final, NamedTuple

import orjson

from guardrails.core.text.plain_json import Copy
from guardrails.core.text.truncation import render
from guardrails.core.values.caches import cached_if_short, pattern
from guardrails.core.values.types import Failed

from .names import CARRIERS, FAULTS, NAMELESS, OVER, REMARKS, STATES, About, Form, form_of


LINE: Final = 60
"""Characters of a text that is read like a status."""
LONG: Final = 80
"""Characters above which no text is read like one: what stands in brackets behind a line is not counted."""
PARSED: Final = 262_144
"""Characters of a text that is read as JSON."""
_TABLE: Final = """
waits pending queued enqueued scheduled running progress progressing processing waiting starting restarting initializing initialising building deploying provisioning preparing loading uploading downloading installing indexing working busy computing executing syncing retrying unfinished rendering importing exporting
ready yet ready finished done complete completed
things result results match matches hit hits record records row rows item items entry entries document documents data article articles page pages file files found returned available
undone no not none cannot failed rejected denied expired refused cancelled canceled aborted unchanged need needed
done ok okay done success successful successfully sent set true
"""
"""
Words of a status, or of a short line. waits: its last word, the work goes on, as by a `waiting` at its beginning; ready: it does so behind a `not`; things: behind a `no` nothing was
found; done: it was done, as with any word in `-ed`, unless one of undone stands there.
"""
_WORDS: Final = {name: frozenset(words) for name, *words in map(str.split, _TABLE.strip().split("\n"))}
_PART: Final = pattern(r"(?:(?:progress|status|completed?)\W{1,3})?\d{1,2}(?:\.\d+)? ?(?:%|percent)(?: \w+)?\W*")
_CLOCK: Final = pattern(r"\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|^\d{10}(?:\d{3})?(?:\.\d+)?$")
_SHARES: Final = ("progress", "percent", "percentage")
_BASIC: Final = (str, int, float, bool, type(None))


class Carried(NamedTuple):
    """
    The content of a carrier, whether it said `isError`, and its text, if it is one: that of a result of MCP, or all of it.
    """

    value: Any
    failed: bool = False
    text: str | None = None


def at(owner: Any, path: str | None) -> Any:
    """
    Returns the member of a mapping, the item of a list, or the attribute, at a dotted *path*; None if it is absent or fails.
    """
    try:
        for name in path.split(".") if path else ():
            if isinstance(owner, Mapping):
                owner = owner.get(name)
            elif isinstance(owner, list):
                owner = owner[int(name)]
            else:
                # A text or a number has no members: what Python has on it is none.
                owner = None if type(owner) in _BASIC else getattr(owner, name, None)
    except Exception:
        return None
    return owner


def first(view: Any, paths: str | tuple[str, ...], make: Callable[[Any], Any]) -> Any:
    """
    Returns what the first of some dotted *paths*, also in one text, makes; what fails makes None.
    """
    for path in paths.split() if isinstance(paths, str) else paths:
        with suppress(Exception):
            if (value := at(view, path)) is not None and (made := make(value)) is not None:
                return made
    return None


def http_error(value: Any) -> int | None:
    """
    Returns an HTTP status of 400 to 599, also one that is written as text.
    """
    return int(text) if re.fullmatch("[45][0-9][0-9]", text := str(value)) else None


def mcp_of(value: Any) -> Carried | None:
    """
    Returns *value* as a result of MCP: an SDK's object, a mapping of the wire, its blocks or one of them; None if it is none.
    """
    blocks: Any = [value] if at(value, "type") == "text" and isinstance(at(value, "text"), str) else value
    fields: Any = {"content": blocks or None} if isinstance(blocks, list | tuple) else value
    fields = fields if isinstance(fields, Mapping) else getattr(fields, "__dict__", {})
    blocks, structured = fields.get("content"), fields.get("structuredContent", fields.get("structured_content"))
    flags = [fields[name] for name in ("isError", "is_error") if type(fields.get(name)) is bool]
    wire = fields.keys() <= CARRIERS
    if isinstance(blocks, str) and (wire or flags):
        blocks = [{"type": "text", "text": blocks}]
    elif blocks is None and (structured is not None or (wire and flags)):
        blocks = []
    named = isinstance(blocks, list | tuple) and all(isinstance(at(block, "type"), str) for block in blocks[:1])
    if not named or (fields is value and not wire and not flags):
        # A mapping of somebody's own may have a member of this name.
        return None
    texts = [text for block in blocks if at(block, "type") == "text" and isinstance(text := at(block, "text"), str)]
    content: Any = texts[0] if len(texts) == 1 else texts
    if structured is not None:
        content = wrapped_value(structured)
    elif not texts or len(texts) < len(blocks):
        content = [block_of(block) for block in blocks] or None
    return Carried(content, True in flags, "\n".join(texts) if texts else None)


def wrapped_value(structured: Any) -> Any:
    """
    Returns the value that SDKs wrapped in *structured* content because it is no object; the schema that says so is the
    server's.
    """
    return structured["result"] if isinstance(structured, dict) and structured.keys() == {"result"} else structured


def read_mcp(result: Any) -> Any:
    """
    Returns the value that a tool call gave back. A result that says `isError` is a `Failed`, with its text as the message and the rest as
    the value. Anything that has no content stays as it is.
    """
    carrier = mcp_of(result)
    if carrier is None or not carrier.failed:
        return result if carrier is None else carrier.value
    text = carrier.text or ""
    return Failed(text, value=None if carrier.value in (text, text.split("\n")) else carrier.value)


def block_of(block: Any) -> Any:
    """
    Returns *block* as it is on the wire.
    """
    dump = getattr(block, "model_dump", None)
    return block if dump is None else dump(by_alias=True, exclude_none=True, mode="json")


def may_carry(value: Any) -> bool:
    """
    Returns whether *value* may be a result of MCP, by a glance at it.
    """
    kind = type(value)
    if kind is list and value:
        return "type" in value[0] if type(value[0]) is dict else type(value[0]) not in (list, *_BASIC)
    return not CARRIERS.isdisjoint(value) if kind is dict else kind is not list and kind not in _BASIC


def content_of(value: Any) -> Carried:
    """
    Returns *value* without its carriers: an object, a list, a scalar, or a text that is no data.
    """
    failed, text = False, value if isinstance(value, str) else None
    for _ in range(5):
        kind, inner = type(value), value
        if may_carry(value) and (carrier := mcp_of(value)) is not None:
            inner, failed, text = carrier.value, failed or carrier.failed, carrier.text
            if type(inner) is list and carrier.text and type(inner[0]) is str:
                # Beside one text that is data the others are remarks.
                data = [one for one in inner if data_in(one) is not one]
                inner = data[0] if len(data) == 1 else carrier.text
        elif kind is str:
            inner = data_in(value)
        elif kind is dict and len(there := [name for name in value if value[name] is not None]) == 1:
            only = value[there[0]]
            inner = only if type(only) is str and there[0] in REMARKS else value
        elif kind is not dict and kind is not list and kind not in _BASIC:
            inner = Copy(PARSED, consumes=True).of(value)
        if inner is value:
            break
        value = inner
    return Carried(value, failed, value if text is None and type(value) is str else text)


def data_in(text: str) -> Any:
    """
    Returns the value that *text*, or the fenced block that it is, is the JSON of; *text* itself if it is none.
    """
    head = text[:64].lstrip()[:3]
    if head != "```" and (head[:1] not in ("{", "[", '"') or len(text) > PARSED):
        return text
    with suppress(ValueError):
        return orjson.loads(text.strip().partition("\n")[2].removesuffix("```") if head == "```" else text)
    return text


@cached_if_short(2048, LONG)
def state_of(line: str) -> str | None:
    """
    Returns what a status, or a text of one short line, says: `waiting`, `nothing`, `done`, or None.
    """
    # What stands in brackets at the end is an aside: `running (3/10)`.
    line = re.sub(r"(?<=\w) ?\([^()]*\)$", "", line.strip().lower())
    words = re.findall(r"\w+", line) if len(line) <= LINE and "\n" not in line else []
    if not words:
        return None
    none, last = words[0] in ("no", "zero", "0"), words[-1].rpartition("_")[2]
    waits = last in _WORDS["waits"] or line.endswith(("...", "\u2026"))
    if words[0] in ("no", "not"):
        waits = not _WORDS["ready"].isdisjoint(words)
    if waits or words.count("still") or words[0] == "waiting" or _PART.fullmatch(line):
        return "waiting"
    none = none and not _WORDS["things"].isdisjoint(words) and not FAULTS.search(line)
    if none or words[0] in ("nothing", "empty") or words == ["none"]:
        return "nothing"
    done = any(word in _WORDS["done"] or (word.endswith("ed") and len(word) > 3) for word in words)
    return "done" if words == ["not", "found"] or (done and _WORDS["undone"].isdisjoint(words)) else None


def news_in(value: Any, given: Set[str], its: About = NAMELESS, depth: int = 5, form: Form | None = None) -> int:
    """
    Returns 2 if there is news in *value*, 1 if there is only something with nothing in it, 0 if there is neither, 3 if the work goes on.

    What repeats an argument, an id, a remark, a flag, a clock, a count of 0 and what a result says of itself are none. By a status or a
    percentage at the top or one level below, or by a short line, the work goes on.
    """
    kind = type(value)
    if kind is list and depth:
        return news_in(value[0], given, its, depth - 1) if len(value) == 1 else 0 if its.dull else 2 if value else 1
    if kind is not dict or not value or not depth:
        return _news_of(value, given, its, waits=depth > 2)
    form, news = form or form_of(value), 0
    for key, says in form.holders:
        news = max(news, news_in(value[key], given, says, depth - 1))
    for key, says in form.scalars:
        # Beside news only that the work goes on is worth a look.
        if news > 1 and not (says.state and depth > 3):
            break
        news = max(news, _news_of(value[key], given, says, waits=depth > 3))
    return news


def _news_of(value: Any, given: Set[str], its: About, *, waits: bool) -> int:
    kind, word = type(value), its.word
    if kind is str:
        state = state_of(value) if len(value) <= LONG else None
        if state == "waiting" and waits and its.state and word not in OVER:
            return 3
        if its.dull or state == "done" or value == "0" or value in given:
            return 0
        named = value and state is None and (word in STATES or word in REMARKS)
        if len(value) <= LINE and (named or ((":" in value or value[:1].isdecimal()) and _CLOCK.search(value))):
            return 0
        return 1 if not value or state == "nothing" else 2
    if waits and (value is False if word in OVER else kind is int and word in _SHARES and 1 < value < 100):
        return 3
    if its.dull or value is None or kind is bool:
        return 0
    if kind is int or kind is float:
        return 0 if value == 0 or is_given(value, given) else 2
    return 2 if (kind is not list and kind is not dict) or value else 1


def given_by(arguments: Any) -> Set[str]:
    """
    Returns the values of the *arguments* that an answer may repeat.
    """
    try:
        return (
            {str(one) for one in arguments.values() if type(one) in _BASIC} if hasattr(arguments, "values") else set()
        )
    except ValueError:  # Python writes no number of more than 4,300 digits
        return set()


def is_given(value: Any, given: Set[str]) -> bool:
    """
    Returns whether *value*, a scalar, repeats one that was *given*; a number of more than 4,300 digits does not.
    """
    try:
        return str(value) in given
    except ValueError:
        return False


def brings(value: Any, depth: int = 4) -> bool:
    """
    Returns whether *value* holds more than null, false, zeros and empty texts, lists and objects.
    """
    if isinstance(value, Mapping | list | tuple) and depth:
        return any(brings(member, depth - 1) for member in (value.values() if isinstance(value, Mapping) else value))
    return bool(value.strip()) if isinstance(value, str) else bool(value)


def number_of(value: Any) -> float | None:
    """
    Returns a number, also one that is written as text; None for anything else, booleans too.
    """
    if type(value) is int and abs(value) < 10**18:
        return value
    text = str(value) if type(value) in (float, str) else ""
    return float(text) if re.fullmatch(r"-?\d{1,18}(?:\.\d{1,18})?(?:e-?\d\d)?", text) else None


def short(value: object) -> str:
    """
    Returns a text as it is, and a bounded picture of anything else.
    """
    return value if isinstance(value, str) else render(value, 512).payload.decode()
