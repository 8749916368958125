"""
Conversations as the APIs of models and their clients keep them: messages (OpenAI, Anthropic, Cline, Roo) and items (OpenAI Responses).

A file holds a conversation (an object with a list of messages or items, or the bare list), a list of conversations, or these values or
single messages and items as JSON lines. A call is a member of `tool_calls`, a block `tool_use`, or an item. Its result is a message of its
own, a block, an item, or, as Cline writes it, a text `[TOOL for ...] Result:`.

A session is named by the conversation's id, or by the file and its line or place. A history of items that is sent again is read once; the
ids of messages may be used again. The only result in a user's message is that of the only call without one, by whatever name.
"""

import re

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .calls import Came, Event, Format, Made, RecordedCall, Used, Values
from .fields import ITEM_CALLS, ITEM_OUTPUTS, NOTHING, at, item_call, mapping, objects, text, text_of, time_ms


_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_ITEMS: Final = (*ITEM_CALLS, *ITEM_OUTPUTS, "reasoning", "mcp_call")
_SAID: Final = frozenset({"content", "tool_calls", "function_call"})
_LISTS: Final = ("messages", "input", "items", "data", "output")
"""Where an object may hold messages or items, in their order."""
_IDS: Final = ("session_id", "sessionId", "conversation_id", "thread_id", "chat_id")
_TIMES: Final = ("timestamp", "completed_at", "created_at", "created", "ts")
_ANSWER: Final = re.compile(r"^\[(\w{1,60})(?: for (?s:.{1,2000}?))?\] Result:\s?", re.MULTILINE)
_TAG: Final = re.compile(r"<(\w{1,60})>")
_ASIDE: Final = "<environment_details>"
_DENIED: Final = "The user denied this operation"
_WORDS: Final = ("The tool execution failed", _DENIED)
"""Of Cline and Roo, where a call failed."""

Part = Mapping[str, Any]
"""A message or an item."""
Conversation = tuple[str, Part, Sequence[Part]]
"""Its name, the object that holds it, and its messages or items."""


def _fits(value: Any) -> bool:
    parts = [_is_part(part) for *_, found in _conversations(value, "", "") for part in found]
    return any(parts) and 2 * sum(parts) >= len(parts)


def _events(values: Values, file: str) -> Iterator[Event]:
    sessions = dict[str, _Session]()
    for number, value in values:
        for name, held, parts in _conversations(value, file if number == 1 else f"{file}:{number}", file):
            session = sessions.setdefault(name, _Session(name))
            session.step += not _is_part(held)
            for part in parts:
                yield from session.events(part, held)


def _conversations(value: Any, unnamed: str, file: str) -> Iterator[Conversation]:
    """
    Yields each conversation. One without an id is *unnamed*; messages and items that come one by one are of the *file*.
    """
    if type(value) is list and value and not _is_part(value[0]):
        for place, one in enumerate(objects(value)):
            yield from _conversations(one, f"{unnamed}/{place}", file)
    elif type(value) is list:
        yield unnamed, NOTHING, list(objects(value))
    else:
        held = mapping(value)
        own = held.get("id") if "messages" in held else None
        ids = (at(held, "conversation", "id"), held.get("conversation"), *map(held.get, _IDS), own)
        name = next((str(id_) for id_ in ids if type(id_) in (str, int)), unnamed if "messages" in held else file)
        yield name, held, [held] if _is_part(held) else [part for of in _LISTS for part in objects(held.get(of))]


def _is_item(part: Any) -> bool:
    return at(part, "type") in _ITEMS


def _is_part(value: Any) -> bool:
    """
    Whether *value* is an item, or a message whose calls would be seen: the SDK of Vercel has calls in `parts`, or in blocks of its own.
    """
    part = mapping(value)
    foreign = any(str(block.get("type")).startswith("tool-") for block in objects(part.get("content")))
    return _is_item(part) or (part.get("role") in _ROLES and not _SAID.isdisjoint(part) and not foreign)


class _Session:
    """
    A conversation as it goes on.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.step = 0
        """Items of one step are of one response; a message with calls is a step."""
        self.open: list[tuple[Any, RecordedCall]] = []
        """The calls that have no result yet, with their keys: of the latest message, or of all items."""
        self.before: Part = NOTHING
        """The latest message or item."""

    def events(self, part: Part, held: Part) -> Iterator[Event]:
        """
        Yields what a message or an item says that *held* holds. A result is known by the id of its call or, without one, by its tool.
        """
        before, self.before = self.before, part
        if calls := list(_calls_in(part)):
            yield from self._made(part, calls, held)
            return
        results = list(_results_in(part))
        self.step += bool(results) or part.get("role") in ("system", "developer", "user")
        said = text_of(before.get("content"))
        for of, content, failed in results:
            values, said = _tagged(said, of)
            if values is not None and not any(of in (call.id, call.tool) for _, call in self.open):
                yield from self._made(before, [(None, of, values)], held)
            only = self.open if part.get("role") == "user" and len(self.open) == len(results) == 1 else []
            if found := [each for each in self.open if of in (each[1].id, each[1].tool)] or only:
                key, denied = found[0][0], text_of(content).startswith(_DENIED)
                self.open.remove(found[0])
                yield Came(self.name, key, content, failed, _time(part), kind="cancelled" if denied else "other")

    def _made(self, part: Part, calls: list[tuple[Any, str, Any]], held: Part) -> Iterator[Event]:
        item = _is_item(part)
        if not item:
            self.step, self.open = self.step + 1, []
        metrics, info = mapping(part.get("metrics")), mapping(part.get("modelInfo"))
        own = {f"{side}_tokens": at(metrics, "tokens", side) for side in ("prompt", "completion")}
        usage = part.get("usage") or held.get("usage") or own
        yield Used(self.name, self.step, usage, part.get("cost", metrics.get("cost")))
        model = part.get("model") or info.get("id", info.get("modelId")) or held.get("model")
        for id_, tool, arguments in calls:
            call = RecordedCall(self.name, tool, arguments, id=text(id_), model=model)
            key = (call.id if item else None) or id(call)
            self.open.append((key, call))
            yield Made(call, key, self.step, _time(part) or (_time(held) if item else None))


def _tagged(said: str, tool: Any) -> tuple[dict[str, str] | None, str]:
    """
    Returns the arguments of the first call of *tool* that stands as tags in what was *said*, as Cline and Roo wrote it until 2025, and what
    was said after it. Returns None and *said* if there is none.
    """
    inner, closed, rest = said.partition(f"<{tool}>")[2].partition(f"</{tool}>")
    if not closed:
        return None, said
    values, start = {}, 0
    while (tag := _TAG.search(inner, start)) and (end := inner.find(f"</{tag[1]}>", tag.end())) >= 0:
        values[tag[1]], start = inner[tag.end() : end].strip("\n"), end
    return values, rest


def _time(part: Part) -> int | None:
    return next((at_ms for name in _TIMES if (at_ms := time_ms(part.get(name))) is not None), None)


def _calls_in(part: Part) -> Iterator[tuple[Any, str, Any]]:
    """
    Yields id, tool and arguments of the calls that a message or an item makes.
    """
    if part.get("type") in ITEM_CALLS:
        (tool, said), namespace = item_call(part), text(part.get("namespace"))
        yield text(part.get("call_id")) or part.get("id"), f"{namespace}/{tool}" if namespace else tool, said
    elif part.get("role") == "assistant":
        wires = (*objects(part.get("tool_calls")), {"function": part.get("function_call")})
        made = [(wire.get("id"), mapping(wire.get("function")) or mapping(wire.get("custom"))) for wire in wires]
        if not any(said for _, said in made):
            # LangChain writes both.
            blocks = objects(part.get("content"))
            made = [(block.get("id"), block) for block in blocks if block.get("type") == "tool_use"]
        for id_, said in made:
            if name := text(said.get("name")):
                yield id_, name, said.get("arguments", said.get("input"))


def _results_in(part: Part) -> Iterator[tuple[Any, Any, bool | None]]:
    """
    Yields of each result in a message or an item the id, or else the tool, of its call, its content, and whether it failed
    (None: it says nothing of that).
    """
    role, content = part.get("role"), part.get("content")
    if part.get("type") in ITEM_OUTPUTS:
        ends = [at(end, "outcome", "exit_code") for end in objects(part.get("output"))]
        failed = True if part.get("status") in ("failed", "incomplete") or any(ends) else None
        if failed or "output" in part:
            yield text(part.get("call_id")) or part.get("id"), part.get("output"), failed
    elif role in ("tool", "function"):
        # Without content there is no result yet.
        if "content" in part:
            yield text(part.get("tool_call_id")) or part.get("name"), content or "", None
    elif role == "user":
        for block in objects(content):
            if block.get("type") == "tool_result":
                told, failed = block.get("content") or "", block.get("is_error")
                failed = failed if type(failed) is bool else _has_failed(text_of(told))
                yield text(block.get("tool_use_id")) or block.get("name"), told, failed
        said = _ANSWER.split(text_of(content))
        for tool, answer in zip(said[1::2], said[2::2], strict=True):
            told = answer.partition(_ASIDE)[0].strip()
            yield tool, told, _has_failed(told)


def _has_failed(said: str) -> bool | None:
    """
    Returns True if Cline or Roo says in a result that its call failed; None: it does not say.
    """
    first = said.partition("\n")[0]
    return said.startswith(_WORDS) or (first.startswith("Command") and "was not successful" in first) or None


CHAT: Final = Format("chat", _fits, _events)
