"""
Conversations as the APIs of models and their clients keep them: messages (OpenAI, Anthropic, Cline, Roo) and items (OpenAI Responses).

A file holds a conversation (an object with a list of messages or items, or the bare list), a list of conversations, or these values or
single messages and items as JSON lines. A call is a member of `tool_calls`, a block `tool_use`, an item, or, as Cline wrote it until 2025,
a tag in the text of a message, which the next one answers by `[TOOL for ...] Result:`.

A session is named by the conversation's id, or by the file and its line or place. A task that is tried again is a session again: `7`, `7:2`.
A history of items that is sent again is read once; the ids of messages may be used again.
"""

import re

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from guardrails.core.values.types import ErrorType

from .calls import RecordedCall, Report
from .events import Came, Event, Made, Used, Values
from .fields import (
    NOTHING,
    amount,
    arguments_of,
    has_text,
    is_one_of,
    listed,
    mapping,
    objects,
    text,
    text_of,
    time_ms,
    usage_of,
)


_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_RESULTS: Final = frozenset({"tool", "function"})
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call"})
_OUTPUTS: Final = frozenset(f"{kind}_output" for kind in _CALLS)
_ITEMS: Final = _CALLS | _OUTPUTS | {"reasoning", "mcp_call"}
_SAID: Final = frozenset({"content", "tool_calls", "function_call"})
_LISTS: Final = ("input", "items", "data", "output")
"""Where an object may hold items, in their order."""
_IDS: Final = ("session_id", "sessionId", "conversation_id", "thread_id", "chat_id")
"""What goes on under one of them, in another object or message, is the same session."""
_IDS_OF_RUNS: Final = ("id", "task_id")
"""An object's own; a message's own `id` is another in each line."""
_FAILED: Final = frozenset({"failed", "incomplete"})
_TAG: Final = re.compile(r"<(\w{1,60})>")
_ANSWER: Final = re.compile(r"^\[(\w{1,60})(?: for (?s:.{1,2000}?))?\] Result:\s?", re.MULTILINE)
_ASIDE: Final = "<environment_details>"
_DENIED: Final = "The user denied this operation"
_WORDS: Final = ("The tool execution failed", _DENIED)
"""Of Cline and Roo, where a call failed."""


class Chat:
    """
    Messages and items.
    """

    name = "chat"

    def fits(self, value: Any) -> bool:
        if type(value) is list:
            return bool(value) and (all(map(_is_part, value[:20])) or any(map(_is_item, value)) or _is_many(value))
        held = mapping(value)
        messages = held.get("messages")
        if type(messages) is list and all(map(_is_part, messages[:20])):
            return True
        return _is_line(held) or held.get("object") == "response" or any(map(_is_item, _items_of(held)))

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        stream, runs = _Stream(), Counter[str]()
        for number, value in values:
            unnamed = file if number == 1 else f"{file}:{number}"
            if _is_line(value):
                named = next((str(value[name]) for name in _IDS if type(value.get(name)) in (str, int)), file)
                yield from stream.add(value, named, NOTHING)
            elif _is_many(value):
                for place, one in enumerate(objects(value)):
                    yield from _conversation(stream, one, f"{unnamed}/{place}", file, runs)
            else:
                yield from _conversation(stream, value, unnamed, file, runs)


def _conversation(stream: "_Stream", value: Any, unnamed: str, file: str, runs: Counter[str]) -> Iterator[Event]:
    """
    Yields the events of one conversation, which is *unnamed* if it has no id of its own, and of the *file* if it is one of items.
    """
    held = mapping(value)
    messages = listed(held["messages"]) if "messages" in held else None if held else listed(value)
    names = _IDS if messages is None else _IDS + _IDS_OF_RUNS
    key = next((name for name in names if type(held.get(name)) in (str, int)), None)
    named = held.get("conversation")
    session = text(mapping(named).get("id")) or text(named) or (None if key is None else str(held[key]))
    if session is None:
        session = file if messages is None or (not held and any(map(_is_item, messages))) else unnamed
    if key in _IDS_OF_RUNS:
        runs[session] += 1
        session = session if runs[session] == 1 else f"{session}:{runs[session]}"
    stream.over(session)
    for each in _untagged(messages or ()):
        yield from stream.add(each, session, {"model": held.get("model")})
    for name in _LISTS:
        for each in objects(held.get(name)):
            yield from stream.add(each, session, held if name == "output" else NOTHING)
    stream.over(session)


def _items_of(held: Mapping[str, Any]) -> Iterator[Any]:
    return (item for name in _LISTS for item in listed(held.get(name)))


def _is_item(value: Any) -> bool:
    """
    Whether *value* is an item that only the Responses API has, or a response of it.
    """
    return type(value) is dict and (is_one_of(value.get("type"), _ITEMS) or value.get("object") == "response")


def _is_part(value: Any) -> bool:
    return type(value) is dict and (is_one_of(value.get("role"), _ROLES) or _is_item(value))


def _is_line(value: Any) -> bool:
    said = mapping(value)
    return is_one_of(said.get("type"), _ITEMS) or (is_one_of(said.get("role"), _ROLES) and not _SAID.isdisjoint(said))


def _is_many(value: Any) -> bool:
    """
    Whether *value* is a list of conversations.
    """
    first = value[0] if type(value) is list and value else None
    return type(first) is dict and not _is_line(first) and "role" not in first and Chat().fits(first)


class _Stream:
    """
    Messages and items as they come, of any number of sessions.
    """

    def __init__(self) -> None:
        self._responses = Counter[str]()
        self._open = defaultdict[str, bool](bool)
        """Whether the response goes on: items of one come one by one."""
        self._ends = Counter[tuple[str, int, str]]()
        """How many results of a response have come by the id, or the tool, of their call."""

    def over(self, session: str) -> None:
        """
        End the response of *session*.
        """
        self._open[session] = False

    def add(self, part: Mapping[str, Any], session: str, holder: Mapping[str, Any]) -> Iterator[Event]:
        """
        Yields what a message or an item says that *holder* holds. Where calls have no ids, the n-th result of a tool is that of its n-th call.
        """
        item = is_one_of(part.get("type"), _ITEMS)
        times = (
            part.get(name, holder.get(name) if item else None)
            for name in ("timestamp", "completed_at", "created_at", "created", "ts")
        )
        at_ms = next((at for time in times if (at := time_ms(time)) is not None), None)
        begun = Counter[str]()
        for id_, tool, arguments in _calls_in(part):
            if not (self._open[session] if item else begun):
                self._responses[session] += 1
                metrics = mapping(part.get("metrics"))
                usage = part.get("usage") or holder.get("usage") or metrics.get("tokens") or metrics
                cost = amount(part.get("cost", metrics.get("cost")))
                yield Used(session, self._responses[session], *usage_of(usage), cost)
            self._open[session] = item
            response = self._responses[session]
            begun[id_ or tool] += 1
            model = mapping(part.get("modelInfo"))
            call = RecordedCall("", session, 0, tool, arguments, id=id_, ts_ms=at_ms)
            call.model = (
                text(part.get("model")) or text(model.get("id", model.get("modelId"))) or text(holder.get("model"))
            )
            yield Made(call, id_ if item else (response, id_ or tool, begun[id_ or tool]), response, again=not item)
        if begun:
            return
        for name, content, failed in _results_in(part):
            self.over(session)
            of = session, self._responses[session], name
            self._ends[of] += 1
            kind: ErrorType | None = "cancelled" if failed and text_of(content).startswith(_DENIED) else None
            key = name if item else (of[1], name, self._ends[of])
            yield Came(session, key, content, failed, None if item else at_ms, kind=kind)
        if not item and part.get("role") not in ("assistant", *_RESULTS):
            self.over(session)


def _untagged(messages: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """
    Yields *messages* in which results that are text, as Cline writes them, and calls that are tags in a text, are blocks.
    """
    before: Mapping[str, Any] = NOTHING
    for message in map(mapping, messages):
        said = _ANSWER.split(_text_in(message)) if message.get("role") == "user" else []
        left, results = _text_in(before) if len(said) > 1 else "", []
        calls = [block for block in objects(before.get("content")) if block.get("type") == "tool_use"]
        open_ = list(calls)
        for tool, content in zip(said[1::2], said[2::2], strict=True):
            _, tag, rest = left.partition(f"<{tool}>")
            call = next((block for block in open_ if block.get("name") == tool), open_[0] if open_ else None)
            if call is not None:
                open_.remove(call)
            elif tag:
                inner, _, left = rest.partition(f"</{tool}>")
                call = {"type": "tool_use", "name": tool, "input": _values_in(inner)}
                calls.append(call)
            else:
                continue
            told = content.partition(_ASIDE)[0].strip()
            results.append({"type": "tool_result", "tool_use_id": call.get("id"), "name": tool, "content": told})
        yield {**before, "content": calls} if results else before
        before = {**message, "content": results} if results else message
    yield before


def _text_in(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return "\n".join(map(text_of, filter(has_text, content))) if type(content) is list else text(content) or ""


def _values_in(text: str) -> dict[str, str]:
    """
    The values in a *text* of tags, by the tags' names.
    """
    values, at = {}, 0
    while (tag := _TAG.search(text, at)) and (end := text.find(f"</{tag[1]}>", tag.end())) >= 0:
        values[tag[1]], at = text[tag.end() : end].strip("\n"), end
    return values


def _calls_in(part: Mapping[str, Any]) -> Iterator[tuple[str | None, str, Any]]:
    """
    Id, tool and arguments of each call that a message or an item makes.
    """
    if is_one_of(kind := part.get("type"), _CALLS):
        name = text(part.get("name")) or str(kind).removesuffix("_call")
        if namespace := text(part.get("namespace")):
            name = f"{namespace}/{name}"
        said = next((part[key] for key in ("arguments", "action", "operation") if key in part), None)
        arguments = part.get("input") if kind == "custom_tool_call" else arguments_of(said)
        yield text(part.get("call_id")) or text(part.get("id")), name, arguments
    elif part.get("role") == "assistant":
        functions = [
            (wire.get("id"), mapping(wire.get("function")) or mapping(wire.get("custom")))
            for wire in objects(part.get("tool_calls"))
        ]
        functions.append((None, mapping(part.get("function_call"))))
        # LangChain writes both.
        blocks = () if any(said for _, said in functions) else objects(part.get("content"))
        functions += [(block.get("id"), block) for block in blocks if block.get("type") == "tool_use"]
        for id_, said in functions:
            if tool := text(said.get("name")):
                yield text(id_), tool, arguments_of(said.get("arguments", said.get("input")))


def _results_in(part: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool | None]]:
    """
    Of each result in a message or an item the id, or else the tool, of its call, its content, and whether it failed; None: it says
    nothing of that.
    """
    if is_one_of(part.get("type"), _OUTPUTS):
        failed = _failed(part)
        if failed or "output" in part:
            yield text(part.get("call_id")) or text(part.get("id")) or "", part.get("output"), failed
    elif is_one_of(part.get("role"), _RESULTS):
        # Without content there is no result yet.
        if "content" in part:
            yield text(part.get("tool_call_id")) or text(part.get("name")) or "", part["content"], None
    else:
        for block in objects(part.get("content")):
            if block.get("type") == "tool_result":
                content, failed = block.get("content"), block.get("is_error")
                failed = failed if type(failed) is bool else text_of(content).startswith(_WORDS) or None
                yield text(block.get("tool_use_id")) or text(block.get("name")) or "", content, failed


def _failed(item: Mapping[str, Any]) -> bool | None:
    """
    Whether an output says that it failed, by its status or the exit codes of a shell's commands. None: it says nothing.
    """
    if is_one_of(item.get("status"), _FAILED):
        return True
    ends = [mapping(each.get("outcome")) for each in objects(item.get("output"))]
    codes = [end.get("exit_code") for end in ends if end.get("type") == "exit"]
    if any(end.get("type") == "timeout" for end in ends):
        return True
    return any(code != 0 for code in codes) if codes else None
