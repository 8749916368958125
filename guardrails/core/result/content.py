"""
The content of a result, without its carriers, and what it says: that the work goes on, that it was done, nothing, or news.

Objects, JSON text, fenced JSON, the blocks of MCP, `structuredContent` and a library's result types carry the same content. A text of one
short line is read like the value of a `status`, by the same words; of a longer text no word is read.
"""

import re

from collections.abc import Callable, Mapping, Set
from typing import Any, Final, NamedTuple

import orjson

from guardrails.core.text.plain_json import Copy
from guardrails.core.text.short_keys import cached_if_short
from guardrails.core.values.types import Failed

from .names import CARRIERS, FAULTS, NAMELESS, OVER, REMARKS, STATES, About, Form, form_of


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
_PART: Final = re.compile(
    r"(?:(?:progress|status|completed?|done)\W{1,3})?\d{1,2}(?:\.\d+)? ?(?:%|percent)(?: \w+)?\W*"
)
_BRACKETS: Final = re.compile(r"(?<=\w) ?\([^()]*\)$")
"""What stands in them at the end of a line is an aside: `running (3/10)`."""
_WORD: Final = re.compile(r"\w+")
_CLOCK: Final = re.compile(r"\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|^\d{10}(?:\d{3})?(?:\.\d+)?$")
_HTTP_ERROR: Final = re.compile("[45][0-9][0-9]")
_SHARES: Final = ("progress", "percent", "percentage")
_MCP: Final = frozenset(("content", "isError", "is_error", "_meta", "structuredContent", "resultType"))
_SAID: Final = frozenset((str, int, float))
_LISTS: Final = (list, dict, tuple)
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
    for name in _names(path):
        try:
            if isinstance(owner, list):
                owner = owner[int(name)]
            elif isinstance(owner, BaseException) or not isinstance(owner, Mapping):
                owner = getattr(owner, name, None)
            else:
                owner = owner.get(name)
        except Exception:  # noqa: BLE001
            return None
    return owner


@cached_if_short(512)
def _names(path: str) -> list[str]:
    return [*filter(None, path.split("."))]


def first(view: Any, paths: str, make: Callable[[Any], Any]) -> Any:
    """
    Returns what the first of some dotted *paths*, parted by spaces, makes.
    """
    for path in paths.split():
        found = at(view, path)
        if found is not None and (made := make(found)) is not None:
            return made
    return None


def http_error(value: Any) -> int | None:
    """
    Returns an HTTP status of 400 to 599, also one that is written as text.
    """
    if type(value) is int:
        return value if 400 <= value < 600 else None
    return int(value) if isinstance(value, int | str) and _HTTP_ERROR.fullmatch(str(value)) else None


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


def may_carry(value: Any) -> bool:
    """
    Returns whether *value* may be a result of MCP, by a glance at it.
    """
    kind = type(value)
    if kind is list and value:
        first = type(value[0])
        return "type" in value[0] if first is dict else first is not list and first not in _BASIC
    return kind not in _BASIC and (kind is not list and (kind is not dict or not CARRIERS.isdisjoint(value)))


def content_of(value: Any) -> Carried:
    """
    Returns *value* without its carriers: an object, a list, a scalar, or a text that is no data.
    """
    failed, whole = False, value if isinstance(value, str) else None
    for _ in range(5):
        kind, inner = type(value), value
        found = mcp_of(value) if may_carry(value) else None
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
            inner = Copy(PARSED, consumes=True).of(value)
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
    line = _BRACKETS.sub("", line)
    words = _WORD.findall(line) if len(line) <= LINE and "\n" not in line else []
    words = words[words[:1] == ["sorry"] :]
    if not words:
        return None
    none, denied, last = words[0] in ("no", "zero", "0"), words[0] in ("no", "not"), words[-1].rpartition("_")[2]
    goes_on = last in _WORDS["waits"] or line.endswith(("...", "\u2026"))
    if "still" in words or (not _WORDS["ready"].isdisjoint(words) if denied else goes_on) or _PART.fullmatch(line):
        return "waiting"
    nothing = words[0] in ("nothing", "empty") or words == ["none"]
    if nothing or (none and not _WORDS["things"].isdisjoint(words[1:5]) and not FAULTS.search(line)):
        return "nothing"
    done = any(word in _WORDS["done"] or (word.endswith("ed") and len(word) > 3) for word in words)
    return "done" if words == ["not", "found"] or (done and _WORDS["undone"].isdisjoint(words)) else None


def state_of(said: Any) -> str | None:
    """
    Returns what a status, or a text of one short line, says: `waiting`, `nothing`, `done`, or None.
    """
    return _state(said.strip().lower()) if type(said) is str and len(said) <= LINE + 20 else None


def news_in(value: Any, given: Set[str], its: About = NAMELESS, depth: int = 5, form: Form | None = None) -> int:
    """
    Returns 2 if there is news in *value*, 1 if there is only something with nothing in it, 0 if there is neither, 3 if the work goes on.

    What repeats an argument, an id, a remark, a flag, a clock, a count of 0 and what a result says of itself are none. By a status or a
    percentage at the top or one level below, or by a short line, the work goes on.
    """
    kind, news = type(value), 0
    if kind is dict and value and depth:
        form = form or form_of(value)
        for key, says in form.states if depth > 3 else ():
            if _goes_on(value[key], says.word):
                return 3
        for key, says in form.lists:
            if len(value[key]) != 1:
                news = max(news, 0 if says.dull else 2 if value[key] else 1)
            elif news < 2 or depth > 3:
                news = max(news, news_in(value[key], given, says, depth - 1))
        for key, says in form.objects:
            # Beside news only that the work goes on is worth a look.
            if news < 2 or depth > 3:
                news = max(news, news_in(value[key], given, says, depth - 1))
        for key, says in form.news if news < 2 else ():
            if news < 2:
                news = max(news, _news_of(value[key], given, says.word))
        return news
    if kind is list and len(value) == 1 and depth:
        return news_in(value[0], given, its, depth - 1)
    if depth > 2 and its.state and _goes_on(value, its.word):
        return 3
    return 0 if value is None or kind is bool or its.dull else _news_of(value, given, its.word)


def _news_of(value: Any, given: Set[str], word: str) -> int:
    kind = type(value)
    if kind is int or kind is float:
        clock = value >= 1e9 and _CLOCK.search(str(value))
        return 0 if value == 0 or str(value) in given or clock else 2
    if kind is not str:
        return 2 if kind not in _LISTS or value else 1
    state = state_of(value)
    if state == "done" or value == "0" or (value and value in given):
        return 0
    if len(value) <= LINE:
        clock = (":" in value or value[:1].isdecimal()) and _CLOCK.search(value)
        if clock or (value and state is None and (word in STATES or word in REMARKS)):
            return 0
    return 1 if not value or state == "nothing" else 2


def _goes_on(value: Any, word: str) -> bool:
    """
    Returns whether a state of this *word*, or what has no name, says that the work goes on.
    """
    if type(value) is str:
        return word not in OVER and state_of(value) == "waiting"
    return value is False if word in OVER else type(value) is int and word in _SHARES and 1 < value < 100


def given_by(arguments: Any) -> Set[str]:
    """
    Returns the values of the *arguments* that an answer may repeat.
    """
    given = set()
    for one in arguments.values() if type(arguments) is dict or isinstance(arguments, Mapping) else ():
        if type(one) in _SAID:
            given.add(str(one))
    return given
