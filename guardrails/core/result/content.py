"""
The content of a result, without its carriers, and what it says: that the work goes on, that it was done, nothing, or news.

Objects, JSON text, fenced JSON, the blocks of MCP, `structuredContent` and a library's result types carry the same content. A text of one
short line is read like the value of a `status`, by the same words; of a longer text no word is read.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import orjson

from xxhash import xxh3_64_intdigest

from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.tool_name import TOKEN
from guardrails.core.values.types import Failed


News = Literal[0, 1, 2]
"""0: nothing, or only that something was done; 1: there is something with nothing in it; 2: news."""

LINE: Final = 60
"""Characters of a text that is read like a status."""
PARSED: Final = 262_144
"""Characters of a text that is read as JSON."""
_STATE: Final = pattern(
    r"(?i)\W*(?:(?P<waiting>.*\bstill\b.*|(?:not?)\b.*\b(?:yet|ready|finished|done|completed?)|(?:[a-z]+\W{1,3}){0,3}\d{1,2}(?:\.\d+)? ?(?:%|percent\b).*"
    r"|(?!not? )(?:.*[\W_])?(?:pending|queued|enqueued|scheduled|running|in_?progress|progress(?:ing)?|processing|waiting|(?:re)?starting|initiali[sz]ing"
    r"|building|deploying|provisioning|preparing|(?:up|down)?loading|installing|indexing|working|busy|computing|executing|syncing|retrying|unfinished"
    r"|training|rendering|importing|exporting|validating)|(?!not? )(?:.*\s)?\w+ing\b.*(?:\.\.\.|\u2026))"
    r"|(?P<nothing>none|nothing\b.*|empty\b.*|(?:no|zero|0)[ _](?!\w*(?:error|warning|issue|problem|failure|violation|conflict|finding)).+|.*\bnot[ _]found)"
    r"|(?P<done>(?!.*\b(?:not|no|failed|rejected|denied|expired|refused|cancell?ed|aborted|unchanged|need|needed)\b)(?:(?:\w+ed|ok|okay|done|success\w*|sent|set|true)"
    r"\b.*|.*\b(?:(?:was|were|been|is|successfully) \w+ed\b.*|\w+ed|ok|okay|done|success\w*|sent))))\W*"
)
"""The values of a status, and the short lines, that mean waiting, nothing there, or done; that nothing is wrong is an answer."""
_STATES: Final = frozenset({"status", "state", "phase", "stage"})
_FAULTS: Final = pattern(r"(?i)error|warning|issue|problem|failure|violation|conflict|finding|diagnostic")
_REMARKS: Final = frozenset(
    {
        "message",
        "msg",
        "note",
        "info",
        "detail",
        "details",
        "description",
        "text",
        "result",
        "output",
        "content",
        "response",
    }
)
"""Names of a text that is all there is, or a remark beside what there is."""
_ASIDE: Final = pattern(
    r"(?:(?:time_)?(?:took|elapsed|taken|duration|latency)(?:_time)?|(?:response|query|execution|exec|processing|search|request)_(?:time|duration))"
    r"(?:_(?:in_)?(?:ms|millis|milliseconds|us|ns|s|secs?|seconds?))?|now|timestamp|ts|as_of|(?:server|current)_time|progress|usage|attempts?|retries"
    r"|(?:generated|fetched|retrieved|queried|checked|requested|responded|served|searched|asked|evaluated|computed)(?:_(?:at|on|time))?"
    r"|(?:x_)?(?:amzn?_)?(?:request|req|trace|span|correlation)_?id|traceparent|rate_limit|next_action_hint|is_complete|total_matches"
    r"|(?:calls|requests|searches|queries|credits|tokens|quota|budget)_(?:used|left|remaining|made|so_far|count)"
    r"|(?:remaining|used|total|num)_(?:calls|requests|searches|queries|credits)|(?:search_)?(?:query|terms?)|q|search|keywords?|pattern|filters?|page"
    r"|limit|offset|per_page|page_size|size|start|query_summary"
)
"""Names of what a result says of itself, or repeats of the request: times, durations, ids of the request, counts of progress, the query."""
_ID: Final = pattern(r"(?:.*_)?(?:id|uuid|reference|confirmation|number)")
_CLOCK: Final = pattern(r"\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|^\d{10}(?:\d{3})?(?:\.\d+)?$")
_ROWS: Final = ("results", "items", "data", "rows", "matches", "hits", "entries", "records")


class Mcp(NamedTuple):
    """
    A result of MCP.
    """

    failed: bool
    structured: Any
    blocks: list[Any]
    texts: list[str]

    @property
    def value(self) -> Any:
        """
        The structured content, else the text, else the texts, else all blocks as they are; no block is None.
        """
        if self.structured is not None:
            # How SDKs wrap what is no object; the schema that says so is the server's.
            boxed = isinstance(self.structured, Mapping) and self.structured.keys() == {"result"}
            return self.structured["result"] if boxed else self.structured
        if not self.blocks or len(self.texts) < len(self.blocks):
            return [block_of(block) for block in self.blocks] or None
        return self.texts[0] if len(self.texts) == 1 else self.texts


def at(owner: object, path: str) -> Any:
    """
    Returns the member of a mapping, or the attribute, at a dotted *path*; None if it is absent or fails.
    """
    try:
        for name in path.split("."):
            owner = owner.get(name) if isinstance(owner, Mapping) else getattr(owner, name, None)
    except Exception:  # noqa: BLE001
        return None
    return owner


def mcp_of(value: Any) -> Mcp | None:
    """
    Returns *value* as a result of MCP, an SDK's object or a mapping of the wire; None if it has no content.
    """
    content, flags = at(value, "content"), (at(value, "is_error"), at(value, "isError"))
    structured = next(
        (found for name in ("structured_content", "structuredContent") if (found := at(value, name)) is not None), None
    )
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if content is None and (structured is not None or bool in map(type, flags)):
        blocks = []
    if not isinstance(blocks, list | tuple):
        return None
    texts = [text for block in blocks if at(block, "type") == "text" and isinstance(text := at(block, "text"), str)]
    return Mcp(True in flags, structured, list(blocks), texts)


def read_mcp(result: Any) -> Any:
    """
    Returns the value that a tool call gave back. A result that says `isError` is a `Failed`, with its text as the message and the rest as
    the value. Anything that has no content stays as it is.
    """
    found = mcp_of(result)
    if found is None or not found.failed:
        return result if found is None else found.value
    rest = [block_of(block) for block in found.blocks if at(block, "type") != "text"] or None
    return Failed("\n".join(found.texts), value=rest if found.structured is None else found.structured)


def block_of(block: Any) -> Any:
    """
    Returns *block* as it is on the wire.
    """
    dump = getattr(block, "model_dump", None)
    return block if dump is None else dump(by_alias=True, exclude_none=True, mode="json")


def content_of(value: Any) -> Any:
    """
    Returns *value* without its carriers: an object, a list, a scalar, or a text that is no data.
    """
    for _ in range(5):
        inner = _inner(value)
        if inner is value:
            break
        value = inner
    return value


def _inner(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return data_in(value)
    if kind in (int, float, bool, type(None)):
        return value
    if kind is list:
        return _carried(value, {"content": value}) if value and at(value[0], "type") in ("text", "resource") else value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if not isinstance(value, Mapping):
        return dict(value) if hasattr(kind, "model_fields") else _carried(value, value)
    if len(value) == 1 and type(only := next(iter(value.values()))) is str and next(iter(value)) in _REMARKS:
        return only
    if value.get("type") == "text" and type(value.get("text")) is str:
        return value["text"]
    return (
        _carried(value, value)
        if "isError" in value or "is_error" in value or "structuredContent" in value or value.keys() == {"content"}
        else value
    )


def _carried(value: Any, result: Any) -> Any:
    found = mcp_of(result)
    if found is None or (found.structured is None and len(found.texts) < len(found.blocks)):
        return value
    data = [text for text in found.texts if data_in(text) is not text]
    return (
        found.value
        if found.structured is not None or not found.texts
        else data[0]
        if len(data) == 1
        else "\n".join(found.texts)
    )


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


@lru_cache(maxsize=2048)
def _state(line: str) -> str | None:
    found = _STATE.fullmatch(line)
    return found.lastgroup if found is not None else None


def state_of(said: Any) -> str | None:
    """
    Returns what a status, or a text of one short line, says: `waiting`, `nothing`, `done`, or None.
    """
    line = said.strip() if type(said) is str and len(said) <= LINE + 20 else ""
    return _state(line) if 0 < len(line) <= LINE and "\n" not in line else None


def is_unfinished(content: Any) -> bool:
    """
    Returns whether the work goes on: by a status or a percentage at the top or one level below, or by a short line.
    """
    if type(content) is not dict:
        return state_of(content) == "waiting"
    for place in (content, *(member for member in content.values() if type(member) is dict)):
        for name, said in place.items():
            word = name.lower().rpartition("_")[2] if type(name) is str else ""
            if word in _STATES and type(said) is str and state_of(said) == "waiting":
                return True
            if word in ("progress", "percent", "percentage") and (
                state_of(said) == "waiting" or (type(said) is int and 1 < said < 100)
            ):
                return True
            if said is False and word in ("ready", "finished", "done", "completed"):
                return True
    return False


def news_in(value: Any, given: frozenset[str], name: str = "", depth: int = 5) -> News:
    """
    Returns whether there is news in *value*. What repeats an argument, an id, a remark, a flag, a clock, a count of 0 and what a result says
    of itself are none.
    """
    kind, state = type(value), state_of(value)
    if kind is dict and value and depth:
        return max(news_in(member, given, str(key), depth - 1) for key, member in value.items())
    if kind is list and len(value) == 1:
        return news_in(value[0], given, name, depth - 1) if depth else 2
    if (
        kind is bool
        or state == "done"
        or (name and (value is None or is_aside(name) or _ID.fullmatch(_flat(name)) or _FAULTS.search(name)))
    ):
        return 0
    if kind in (int, float, str):
        remarks = kind is str and len(value) <= LINE and name.lower() in _STATES | _REMARKS
        if (
            value == 0
            or str(value) in given
            or (remarks and state is None)
            or (len(str(value)) <= LINE and _CLOCK.search(str(value)))
        ):
            return 0
    return 1 if not value or state == "nothing" else 2


@lru_cache(maxsize=2048)
def _flat(name: str) -> str:
    return "_".join(TOKEN.findall(name)).lower()


def is_aside(name: str) -> bool:
    """
    Returns whether a member of this *name* says something of the request, or of the result itself.
    """
    return len(name) <= 40 and _ASIDE.fullmatch(_flat(name)) is not None


def given_by(arguments: Any) -> frozenset[str]:
    """
    Returns the values of the *arguments* that an answer may repeat.
    """
    return (
        frozenset(str(one) for one in arguments.values() if type(one) in (str, int, float))
        if isinstance(arguments, Mapping)
        else frozenset()
    )


def news_of(content: Any, given: frozenset[str], depth: int = 4) -> Any:
    """
    Returns what is news in *content*: rows in any order; of an object what neither repeats an argument nor speaks of itself. If it holds
    rows by a usual name they are all of it, but for its states.
    """
    if type(content) is list:
        options = orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS
        return sorted(xxh3_64_intdigest(orjson.dumps(row, default=str, option=options)) for row in content)
    if type(content) is str:
        for said in sorted((one for one in given if len(one) > 2), key=len, reverse=True):
            content = content.replace(said, "~")
    if type(content) is not dict or not depth:
        return content
    rows = any(type(content.get(name)) is list and content[name] for name in _ROWS)
    news: dict[str, Any] = {}
    for key, member in content.items():
        name, held = str(key), type(member) in (dict, list)
        if type(member) is list or not (
            is_aside(name) or str(member) in given or (rows and not held and name.lower() not in _STATES)
        ):
            inside = news_of(member, given, depth - 1)
            news |= {} if inside == {} else {name: inside}
    return news
