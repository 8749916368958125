"""
The content of a result, without its carriers, and what it says: that the work goes on, that it was done, nothing, or news.

Objects, JSON text, fenced JSON, the blocks of MCP, `structuredContent` and a library's result types carry the same content. A text of one
short line is read like the value of a `status`, by the same words; of a longer text no word is read.
"""

import re

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import orjson

from guardrails.core.text.jsonable import plain
from guardrails.core.text.short_keys import cached_if_short
from guardrails.core.values.tool_name import TOKEN
from guardrails.core.values.types import Failed


LINE: Final = 60
"""Characters of a text that is read like a status."""
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
Words of a status, or of a short line. waits: its last word, the work goes on; ready: it does so behind a `not`; things: behind a `no` nothing was
found; done: it was done, as with any word in `-ed`, unless one of undone stands there.
"""
_WORDS: Final = {name: frozenset(words) for name, *words in map(str.split, _TABLE.strip().split("\n"))}
_PART: Final = r"(?:(?:progress|status|completed?|done)\W{1,3})?\d{1,2}(?:\.\d+)? ?(?:%|percent)(?: \w+)?\W*"
_ASIDE: Final = r"""(?x)(?:(?:time_)?(?:took|elapsed|taken|duration|latency)(?:_time)?|(?:response|query|execution|exec|processing|search|request)_(?:time|duration))
(?:_(?:in_)?(?:ms|millis|milliseconds|us|ns|s|secs?|seconds?))?|now|timestamp|ts|as_of|(?:server|current)_time|progress|usage|attempts?|retries|rate_limit
|(?:generated|fetched|retrieved|queried|checked|requested|responded|served|searched|asked|evaluated|computed)(?:_(?:at|on|time))?|traceparent|total_matches
|(?:x_)?(?:amzn?_)?(?:request|req|trace|span|correlation)(?:_?id)?|_?meta|(?:calls|requests|searches|queries|credits|tokens|quota|budget)_(?:used|left|remaining|made|so_far|count)
|(?:remaining|used|total|num)_(?:calls|requests|searches|queries|credits)|(?:search_)?(?:query|terms?)|q|search|keywords?|pattern|filters?|page|limit|offset|per_page
|page_size|size|start|query_summary|next_action_hint|is_complete"""
"""Names of what a result says of itself, or repeats of the request: times, durations, ids of the request, counts of progress, the query."""
_FAULTS: Final = r"(?i)error|warning|issue|problem|failure|violation|conflict|finding|diagnostic"
_CLOCK: Final = r"\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|^\d{10}(?:\d{3})?(?:\.\d+)?$"
STATES: Final = ("status", "state", "phase", "stage", "progress", "percent", "percentage")
REMARKS: Final = ("message", "msg", "note", "detail", "description", "text", "result", "output", "content", "response")
"""Names of a text that is all there is, or a remark beside what there is."""
ROWS: Final = ("results", "items", "data", "rows", "matches", "hits", "entries", "records")
_MCP: Final = frozenset(("content", "isError", "is_error", "_meta", "structuredContent", "resultType"))
_CARRIES: Final = frozenset(("type", "content", "isError", "is_error", "structuredContent", "structured_content"))
"""An object without any of them is no result of MCP."""
_BASIC: Final = (str, int, float, bool, type(None))


class Carried(NamedTuple):
    """
    The content of a carrier, whether it said `isError`, and its text, if it is one: that of a result of MCP, or all of it.
    """

    value: Any
    failed: bool = False
    text: str | None = None


def at(owner: Any, path: str) -> Any:
    """
    Returns the member of a mapping, the item of a list, or the attribute, at a dotted *path*; None if it is absent or fails.
    """
    for name in filter(None, path.split(".")):
        try:
            if isinstance(owner, list):
                owner = owner[int(name)]
            else:
                owner = owner.get(name) if isinstance(owner, Mapping) else getattr(owner, name, None)
        except Exception:  # noqa: BLE001
            return None
    return owner


def first(view: Any, paths: str, make: Callable[[Any], Any]) -> Any:
    """
    Returns what the first of some dotted *paths*, parted by spaces, makes.
    """
    return next((made for path in paths.split() if (made := make(at(view, path))) is not None), None)


def http_error(value: Any) -> int | None:
    """
    Returns an HTTP status of 400 to 599, also one that is written as text.
    """
    return int(value) if isinstance(value, int | str) and re.fullmatch(r"[45]\d\d", str(value)) else None


def mcp_of(value: Any) -> Carried | None:
    """
    Returns *value* as a result of MCP: an SDK's object, a mapping of the wire, its blocks or one of them; None if it is none.
    """
    if at(value, "type") == "text" and isinstance(at(value, "text"), str):
        value = [value]
    value = {"content": value or None} if isinstance(value, list | tuple) else value
    blocks, flags = at(value, "content"), (at(value, "isError"), at(value, "is_error"))
    structured = first(value, "structuredContent structured_content", lambda said: said)
    known, bare = isinstance(value, Mapping) and value.keys() <= _MCP, blocks is None and structured is None
    flagged = bool in map(type, flags)
    if (bare and not (known and flagged)) or (isinstance(value, Mapping) and not known and not flagged):
        return None
    if isinstance(blocks, str) and not known and not flagged:
        # An object of somebody's own that has a text of this name.
        return None
    blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else [] if blocks is None else blocks
    if not isinstance(blocks, list | tuple) or not all(isinstance(at(block, "type"), str) for block in blocks[:1]):
        return None
    texts = [text for block in blocks if at(block, "type") == "text" and isinstance(text := at(block, "text"), str)]
    told: Any = texts[0] if len(texts) == 1 else texts
    if structured is not None:
        # How SDKs wrap what is no object; the schema that says so is the server's.
        told = structured["result"] if isinstance(structured, Mapping) and [*structured] == ["result"] else structured
    elif not texts or len(texts) < len(blocks):
        told = [block_of(block) for block in blocks] or None
    return Carried(told, True in flags, "\n".join(texts) if texts else None)


def read_mcp(result: Any) -> Any:
    """
    Returns the value that a tool call gave back. A result that says `isError` is a `Failed`, with its text as the message and the rest as
    the value. Anything that has no content stays as it is.
    """
    found = mcp_of(result)
    if found is None or not found.failed:
        return result if found is None else found.value
    text = found.text or ""
    return Failed(text, value=None if found.value in (text, text.split("\n")) else found.value)


def block_of(block: Any) -> Any:
    """
    Returns *block* as it is on the wire.
    """
    dump = getattr(block, "model_dump", None)
    return block if dump is None else dump(by_alias=True, exclude_none=True, mode="json")


def content_of(value: Any) -> Carried:
    """
    Returns *value* without its carriers: an object, a list, a scalar, or a text that is no data.
    """
    failed, whole = False, value if isinstance(value, str) else None
    for _ in range(5):
        kind, inner = type(value), value
        bare = kind in _BASIC or (kind is dict and _CARRIES.isdisjoint(value))
        found = None if bare else mcp_of(value)
        if found is not None:
            failed, inner, whole = failed or found.failed, found.value, found.text
            if type(inner) is list and found.text and type(inner[0]) is str:
                data = [text for text in inner if data_in(text) is not text]
                inner = data[0] if len(data) == 1 else found.text
        elif kind is str:
            inner = data_in(value)
        elif kind is dict and len(value) == 1:
            [(name, only)] = value.items()
            inner = only if type(only) is str and name in REMARKS else value
        elif kind not in (*_BASIC, dict, list):
            inner = plain(value, PARSED)
        if inner is value:
            break
        value = inner
    return Carried(value, failed, value if whole is None and type(value) is str else whole)


def data_in(text: str) -> Any:
    """
    Returns the value that *text*, or the fenced block that it is, is the JSON of; *text* itself if it is none.
    """
    head = text[:64].lstrip()[:3]
    if head != "```" and (head[:1] not in ("{", "[", '"') or len(text) > PARSED):
        return text
    try:
        return orjson.loads(text.strip().partition("\n")[2].rstrip().removesuffix("```") if head == "```" else text)
    except ValueError:
        return text


@cached_if_short(2048, LINE)
def _state(line: str) -> str | None:
    # What stands in brackets at the end is an aside: `running (3/10)`.
    line = re.sub(r"(?<=\w) ?\([^()]*\)$", "", line)
    words = re.findall(r"\w+", line) if len(line) <= LINE and "\n" not in line else []
    words = words[words[:1] == ["sorry"] :]
    if not words:
        return None
    none, denied, last = words[0] in ("no", "zero", "0"), words[0] in ("no", "not"), words[-1].rpartition("_")[2]
    goes_on = last in _WORDS["waits"] or line.endswith(("...", "\u2026"))
    if "still" in words or (not _WORDS["ready"].isdisjoint(words) if denied else goes_on) or re.fullmatch(_PART, line):
        return "waiting"
    nothing = words[0] in ("nothing", "empty") or words == ["none"]
    if nothing or (none and not _WORDS["things"].isdisjoint(words[1:5]) and not re.search(_FAULTS, line)):
        return "nothing"
    done = any(word in _WORDS["done"] or (word.endswith("ed") and len(word) > 3) for word in words)
    return "done" if words == ["not", "found"] or (done and _WORDS["undone"].isdisjoint(words)) else None


def state_of(said: Any) -> str | None:
    """
    Returns what a status, or a text of one short line, says: `waiting`, `nothing`, `done`, or None.
    """
    return _state(said.strip().lower()) if type(said) is str and len(said) <= LINE + 20 else None


def news_in(value: Any, given: frozenset[str] = frozenset(), name: str = "", depth: int = 5) -> int:
    """
    Returns 2 if there is news in *value*, 1 if there is only something with nothing in it, 0 if there is neither, 3 if the work goes on. What repeats an argument, an id, a remark, a flag, a clock, a count of 0 and what a result says
    of itself are none. By a status or a percentage at the top or one level below, or by a short line, the work goes on.
    """
    kind, state, word = type(value), state_of(value), flat(name).rpartition("_")[2]
    if kind is dict and value and depth:
        return max(news_in(member, given, str(key), depth - 1) for key, member in value.items())
    if kind is list and len(value) == 1 and depth:
        return news_in(value[0], given, name, depth - 1)
    ready = value is False and word in ("ready", "finished", "done", "completed")
    part = kind is int and word in STATES[4:] and 1 < value < 100
    if depth > 2 and (ready or part or (state == "waiting" and (not word or word in STATES))):
        return 3
    aside = name and (value is None or is_aside(name) or re.search(_FAULTS, name) or word in ("id", "uuid", "number"))
    text = str(value) if kind in (int, float, str) else ""
    remarks = kind is str and 0 < len(text) <= LINE and state is None and word in STATES + REMARKS
    too_little = (
        value == 0 or text == "0" or (text and text in given) or (len(text) <= LINE and re.search(_CLOCK, text))
    )
    if value is None or kind is bool or state == "done" or aside or remarks or too_little:
        return 0
    return 1 if not value or state == "nothing" else 2


@cached_if_short(2048, 64)
def flat(name: str) -> str:
    return "_".join(TOKEN.findall(name)).lower()


@cached_if_short(2048, 64)
def is_aside(name: str) -> bool:
    """
    Returns whether a member of this *name* says something of the request, or of the result itself.
    """
    return len(name) <= 40 and re.fullmatch(_ASIDE, flat(name)) is not None


def given_by(arguments: Any) -> frozenset[str]:
    """
    Returns the values of the *arguments* that an answer may repeat.
    """
    values = arguments.values() if isinstance(arguments, Mapping) else ()
    return frozenset(str(one) for one in values if type(one) in (str, int, float))
