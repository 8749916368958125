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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .calls import RecordedCall, Report
from .events import Came, Event, Made, Used, Values
from .fields import (
    NOTHING,
    amount,
    arguments_of,
    has_text,
    is_one_of,
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
_LISTS: Final = ("messages", "input", "items", "data", "output")
"""Where an object may hold messages or items, in their order."""
_IDS: Final = ("session_id", "sessionId", "conversation_id", "thread_id", "chat_id")
"""What goes on under one of them, in another object or message, is the same session."""
_IDS_OF_RUNS: Final = ("id", "task_id")
"""A conversation's own; a message's or a response's own `id` is another in each line."""
_TIMES: Final = ("timestamp", "completed_at", "created_at", "created", "ts")
_FAILED: Final = frozenset({"failed", "incomplete"})
_TAG: Final = re.compile(r"<(\w{1,60})>")
_ANSWER: Final = re.compile(r"^\[(\w{1,60})(?: for (?s:.{1,2000}?))?\] Result:\s?", re.MULTILINE)
_ASIDE: Final = "<environment_details>"
_DENIED: Final = "The user denied this operation"
_WORDS: Final = ("The tool execution failed", _DENIED)
"""Of Cline and Roo, where a call failed."""

Part = Mapping[str, Any]
"""A message or an item."""
Call = tuple[str | None, str, Any]
"""Id, tool and arguments."""


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
        items = (item for name in _LISTS[1:] for item in objects(held.get(name)))
        return _is_line(held) or any(map(_is_item, (held, *items)))

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        sessions, runs = defaultdict[str, _Session](_Session), Counter[str]()
        for number, value in values:
            unnamed = file if number == 1 else f"{file}:{number}"
            if _is_line(value):
                name = _id_in(value, _IDS) or file
                yield from _said(value, name, sessions[name], NOTHING)
            elif _is_many(value):
                for place, one in enumerate(objects(value)):
                    yield from _conversation(one, f"{unnamed}/{place}", file, runs, sessions)
            else:
                yield from _conversation(value, unnamed, file, runs, sessions)


def _conversation(
    value: Any, unnamed: str, file: str, runs: Counter[str], sessions: Mapping[str, "_Session"]
) -> Iterator[Event]:
    """
    Yields the events of one conversation, which is *unnamed* if it has no id of its own, and of the *file* if it is one of items.
    """
    held = value if type(value) is dict else {"items" if any(map(_is_item, value)) else "messages": value}
    said, run = held.get("conversation"), _id_in(held, _IDS_OF_RUNS) if "messages" in held else None
    name = text(mapping(said).get("id")) or text(said) or _id_in(held, _IDS)
    if name is None and run is not None:
        runs[run] += 1
        name = run if runs[run] == 1 else f"{run}:{runs[run]}"
    name = name or (unnamed if "messages" in held else file)
    sessions[name].going = False
    for where in _LISTS:
        holder = {"messages": {"model": held.get("model")}, "output": held}.get(where, NOTHING)
        for part in objects(held.get(where)):
            yield from _said(part, name, sessions[name], holder)


def _id_in(held: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((str(held[name]) for name in names if type(held.get(name)) in (str, int)), None)


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


@dataclass(slots=True)
class _Session:
    response: int = 0
    """The number of the latest."""
    going: bool = False
    """Whether it goes on: items of one response come one by one."""
    open: list[tuple[int, str | None, str]] = field(default_factory=list)
    """Number, id and tool of the calls that have no result yet: of the latest message, or of all items."""
    made: int = 0
    before: Part = field(default_factory=lambda: NOTHING)


def _said(part: Part, name: str, session: _Session, holder: Part) -> Iterator[Event]:
    """
    Yields what a message or an item says that *holder* holds. A result is known by the id of its call or, without one, by its tool.
    """
    calls = list(_calls_in(part))
    if calls:
        yield from _made(part, calls, name, session, holder)
    else:
        results, tagged = list(_results_in(part)), list[Call]()
        left, tools = _text_in(session.before), [tool for _, _, tool in session.open]
        for tool, _, _, is_text in results:
            if is_text and tool not in tools and f"<{tool}>" in left:
                inner, _, left = left.partition(f"<{tool}>")[2].partition(f"</{tool}>")
                tagged.append((None, tool, _values_in(inner)))
        if tagged:
            yield from _made(session.before, tagged, name, session, holder)
        item = is_one_of(part.get("type"), _ITEMS)
        if results or not (item or part.get("role") in ("assistant", *_RESULTS)):
            session.going = False
        at_ms = None if item else _time(part, NOTHING)
        for of, content, failed, _ in results:
            call = next((each for each in session.open if of in each[1:]), None)
            if call is not None:
                session.open.remove(call)
                denied = bool(failed) and text_of(content).startswith(_DENIED)
                yield Came(name, call[0], content, failed, at_ms, kind="cancelled" if denied else None)
    session.before = part


def _made(part: Part, calls: list[Call], name: str, session: _Session, holder: Part) -> Iterator[Event]:
    item = is_one_of(part.get("type"), _ITEMS)
    if not (session.going and item):
        session.response += 1
        metrics = mapping(part.get("metrics"))
        usage = part.get("usage") or holder.get("usage") or metrics.get("tokens") or metrics
        yield Used(name, session.response, *usage_of(usage), amount(part.get("cost", metrics.get("cost"))))
    session.going, session.open = item, session.open if item else []
    info = mapping(part.get("modelInfo"))
    model = text(part.get("model")) or text(info.get("id", info.get("modelId"))) or text(holder.get("model"))
    at_ms = _time(part, holder if item else NOTHING)
    for id_, tool, arguments in calls:
        session.made += 1
        session.open.append((session.made, id_, tool))
        call = RecordedCall(name, tool, arguments, id=id_, model=model, ts_ms=at_ms)
        yield Made(call, session.made, session.response, again=not item)


def _time(part: Part, holder: Part) -> int | None:
    times = (time_ms(part.get(name, holder.get(name))) for name in _TIMES)
    return next((at_ms for at_ms in times if at_ms is not None), None)


def _text_in(message: Part) -> str:
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


def _calls_in(part: Part) -> Iterator[Call]:
    """
    Yields the calls that a message or an item makes.
    """
    if is_one_of(kind := part.get("type"), _CALLS):
        tool = text(part.get("name")) or str(kind).removesuffix("_call")
        if namespace := text(part.get("namespace")):
            tool = f"{namespace}/{tool}"
        said = next((part[key] for key in ("arguments", "action", "operation") if key in part), None)
        arguments = part.get("input") if kind == "custom_tool_call" else arguments_of(said)
        yield text(part.get("call_id")) or text(part.get("id")), tool, arguments
    elif part.get("role") == "assistant":
        wires = (*objects(part.get("tool_calls")), {"function": part.get("function_call")})
        made = [(wire.get("id"), mapping(wire.get("function")) or mapping(wire.get("custom"))) for wire in wires]
        if not any(said for _, said in made):
            # LangChain writes both.
            made = [
                (block.get("id"), block) for block in objects(part.get("content")) if block.get("type") == "tool_use"
            ]
        for id_, said in made:
            if name := text(said.get("name")):
                yield text(id_), name, arguments_of(said.get("arguments", said.get("input")))


def _results_in(part: Part) -> Iterator[tuple[str, Any, bool | None, bool]]:
    """
    Of each result in a message or an item the id, or else the tool, of its call, its content, whether it failed (None: it says
    nothing of that), and whether it stands in text, as Cline writes it.
    """
    if is_one_of(part.get("type"), _OUTPUTS):
        failed = _failed(part)
        if failed or "output" in part:
            yield text(part.get("call_id")) or text(part.get("id")) or "", part.get("output"), failed, False
    elif is_one_of(part.get("role"), _RESULTS):
        # Without content there is no result yet.
        if "content" in part:
            yield text(part.get("tool_call_id")) or text(part.get("name")) or "", part["content"], None, False
    else:
        for block in objects(part.get("content")):
            if block.get("type") == "tool_result":
                content, failed = block.get("content"), block.get("is_error")
                failed = failed if type(failed) is bool else text_of(content).startswith(_WORDS) or None
                yield text(block.get("tool_use_id")) or text(block.get("name")) or "", content, failed, False
        said = _ANSWER.split(_text_in(part)) if part.get("role") == "user" else []
        for tool, told in zip(said[1::2], said[2::2], strict=True):
            content = told.partition(_ASIDE)[0].strip()
            yield tool, content, content.startswith(_WORDS) or None, True


def _failed(item: Part) -> bool | None:
    """
    Whether an output says that it failed, by its status or the exit codes of a shell's commands. None: it says nothing.
    """
    ends = [mapping(each.get("outcome")) for each in objects(item.get("output"))]
    codes = [end.get("exit_code") for end in ends if end.get("type") == "exit"]
    if is_one_of(item.get("status"), _FAILED) or any(end.get("type") == "timeout" for end in ends):
        return True
    return any(code != 0 for code in codes) if codes else None
