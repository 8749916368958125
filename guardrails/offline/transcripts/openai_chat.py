"""
OpenAI chat messages. A file is a JSON object with `messages` or `traj`, a bare list of messages, or a list of such
objects. It may also hold these values as JSON lines, or a message a line.

A session is one conversation. It is named by the object's own id (and the `trial` of its task), or by the file and its
line or place. Messages that are lines are named by their `session_id` or a like field, or by the file. Results are
matched by `tool_call_id` up to the next message that makes calls, since servers use an id again.
A task that is tried again is a session again: `7`, `7:2`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from .calls import RecordedCall, Report
from .events import Came, Event, Made, Used, Values
from .fields import amount, arguments_of, count, is_one_of, listed, mapping, objects, text, time_ms
from .openai_responses import Items, is_item


_IDS: Final = ("session_id", "conversation_id", "thread_id", "chat_id")
"""What goes on under one of them, in another object or message, is the same session."""
_IDS_OF_RUNS: Final = ("id", "task_id")
"""An object's own; a message's own `id` is another in each line."""
_SAID: Final = frozenset({"content", "tool_calls", "function_call"})
_RESULTS: Final = frozenset({"tool", "function"})
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


class OpenAIChat:
    """
    Chat completions, as their clients keep them.
    """

    name = "openai chat"

    def fits(self, value: Any) -> bool:
        return _is_chat(value) or _is_line(value)

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        names, lines, other = Counter[str](), _Messages(), False
        for number, value in values:
            if _is_line(value):
                session_id = next((str(value[key]) for key in _IDS if type(value.get(key)) in (str, int)), file)
                other = other or _is_anthropic(value)
                yield from lines.add(value, session_id, None)
                continue
            if not _is_chat(value):
                report.broke(file, number)
                continue
            unnamed = file if number == 1 else f"{file}:{number}"
            chats = enumerate(objects(value)) if _is_list(value) else [(None, value)]
            for place, chat in chats:
                other = other or any(map(_is_anthropic, _messages_of(chat)))
                yield from _chat(chat, unnamed if place is None else f"{unnamed}/{place}", names)
        if other:
            report.note(file, "calls that are blocks of a message's content (`tool_use`) are not read")
            report.gave_none(file, "chat messages whose calls are `tool_use` blocks, which are not read")


def _chat(value: Any, unnamed: str, names: Counter[str]) -> Iterator[Event]:
    """
    Yields the events of one conversation, *unnamed* if it has no id of its own; *names* are those of runs before.
    """
    chat = mapping(value)
    key = next((key for key in _IDS + _IDS_OF_RUNS if type(chat.get(key)) in (str, int)), None)
    session_id = unnamed if key is None else str(chat[key])
    if key is not None and type(chat.get("trial")) is int:
        session_id = f"{session_id}/{chat['trial']}"
    if key in _IDS_OF_RUNS:
        names[session_id] += 1
        session_id = session_id if names[session_id] == 1 else f"{session_id}:{names[session_id]}"
    messages = _messages_of(value)
    if any(map(is_item, messages)):
        yield from Items().all_of(messages, session_id)
        return
    told = _Messages()
    for message in messages:
        yield from told.add(mapping(message), session_id, text(chat.get("model")))


def _messages_of(value: Any) -> list[Any]:
    chat = mapping(value)
    return listed(chat.get("messages", chat.get("traj"))) if chat else listed(value)


def _is_anthropic(message: Any) -> bool:
    """
    Whether a message makes calls in the form of another API.
    """
    said = mapping(message)
    blocks = objects(said.get("content")) if said.get("role") == "assistant" else ()
    return any(block.get("type") == "tool_use" for block in blocks) and not any(_calls_in(said))


def _is_chat(value: Any) -> bool:
    if type(value) is dict:
        messages = value.get("messages", value.get("traj"))
        return type(messages) is list and all(map(_is_message, messages[:20]))
    return type(value) is list and bool(value) and (all(map(_is_message, value[:20])) or _is_list(value))


def _is_list(value: Any) -> bool:
    """
    Whether *value* is a list of conversations. The last one of a file that is cut off may have no messages yet.
    """
    if type(value) is not list or not value or type(value[0]) is not dict or not _is_chat(value[0]):
        return False
    return all(type(each) is dict for each in value[:20])


def _is_line(value: Any) -> bool:
    return type(value) is dict and is_one_of(value.get("role"), _ROLES) and not _SAID.isdisjoint(value)


def _is_message(value: Any) -> bool:
    # Nothing is left of a message that is cut off, and an item of the Responses API may have no role.
    return type(value) is dict and (not value or is_one_of(value.get("role"), _ROLES) or is_item(value))


class _Messages:
    """
    Messages as they come, of any number of conversations.
    """

    def __init__(self) -> None:
        self._responses = Counter[str]()
        self._ends = Counter[tuple[str, int, str]]()
        """How many results of a response have come by the id, or the tool, of their call."""

    def add(self, message: Mapping[str, Any], session: str, model: str | None) -> Iterator[Event]:
        """
        Yields what a message says. Where calls have no ids, the n-th result of a tool is that of its n-th call.
        """
        made = list(_calls_in(message))
        at_ms = time_ms(message.get("timestamp", message.get("created_at", message.get("created"))))
        if made:
            self._responses[session] += 1
            response, usage = self._responses[session], mapping(message.get("usage"))
            tokens_in = count(usage.get("prompt_tokens", usage.get("input_tokens")))
            tokens_out = count(usage.get("completion_tokens", usage.get("output_tokens")))
            yield Used(session, response, tokens_in, tokens_out, amount(message.get("cost")))
            begun = Counter[str]()
            for call_id, tool, arguments in made:
                call = RecordedCall("", session, 0, tool, arguments, id=call_id, ts_ms=at_ms)
                call.model = text(message.get("model")) or model
                begun[call_id or tool] += 1
                yield Made(call, (response, call_id or tool, begun[call_id or tool]), response, again=True)
        elif is_one_of(message.get("role"), _RESULTS):
            name = text(message.get("tool_call_id")) or text(message.get("name")) or ""
            of = session, self._responses[session], name
            self._ends[of] += 1
            # A file that is cut off may end before what came back.
            if "content" in message:
                yield Came(session, (of[1], name, self._ends[of]), message["content"], at_ms=at_ms)


def _calls_in(message: Mapping[str, Any]) -> Iterator[tuple[str | None, str, Any]]:
    """
    Id, tool and arguments of each call that a message makes.
    """
    if message.get("role") != "assistant":
        return
    for wire in objects(message.get("tool_calls")):
        said = mapping(wire.get("function")) or mapping(wire.get("custom"))
        tool = text(said.get("name"))
        if tool is not None:
            yield text(wire.get("id")), tool, arguments_of(said.get("arguments", said.get("input")))
    legacy = mapping(message.get("function_call"))
    if tool := text(legacy.get("name")):
        yield None, tool, arguments_of(legacy.get("arguments"))
