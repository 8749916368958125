"""
OpenAI chat messages. A file is a JSON object with `messages` or `traj`, a bare list of messages, or a list of such
objects. It may also hold these values as JSON lines, or a message a line.

A session is one conversation. It is named by the object's own id (and the `trial` of its task), or by the file and its
line or place. Messages that are lines are named by their `session_id` or a like field, or by the file. Results are
matched by `tool_call_id` up to the next message that makes calls, since servers use an id again.
A task that is tried again is a session again: `7`, `7:2`.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.text.fields import (
    amount,
    arguments_of,
    count,
    is_one_of,
    listed,
    mapping,
    objects,
    text,
    time_ms,
)
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import parsed_values
from guardrails.offline.readers.text.result_text import settle

from .openai_responses import is_item, item_calls


_IDS: Final = ("session_id", "conversation_id", "thread_id", "chat_id")
"""What goes on under one of them, in another object or message, is the same session."""
_IDS_OF_RUNS: Final = ("id", "task_id")
"""An object's own; a message's own `id` is another in each line."""
_SAID: Final = frozenset({"content", "tool_calls", "function_call"})
MAX_RESULTS: Final = 10_000
"""Results of one response that are kept; the calls of those beyond have none."""
_RESULTS: Final = frozenset({"tool", "function"})
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


class OpenAIChat:
    """
    Chat completions, as their clients keep them.
    """

    name = "openai chat"
    whole = True

    def recognises(self, head: str) -> bool:
        return any(_is_chat(value) or _is_line(value) for value in leading_values(head)[:3])

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        told, names = _Lines(source), Counter[str]()
        other = False
        for number, value in parsed_values(lines, report, file):
            if _is_line(value):
                other = other or _calls_otherwise(value)
                yield from told.add(value, file)
                continue
            if not _is_chat(value):
                report.broke(file, number)
                continue

            unnamed = file if number == 1 else f"{file}:{number}"
            chats = {unnamed: value}
            if _is_list(value):
                chats = {f"{unnamed}/{place}": chat for place, chat in enumerate(objects(value))}
            for named, chat in chats.items():
                other = other or any(map(_calls_otherwise, _messages_of(chat)))
                yield from _chat(chat, source, named, names)
        yield from told.rest()
        if other:
            report.note(file, "calls that are blocks of a message's content (`tool_use`) are not read")
            report.gave_none(file, "chat messages whose calls are `tool_use` blocks, which are not read")


def _chat(value: Any, source: str, unnamed: str, names: Counter[str]) -> Iterator[RecordedCall]:
    """
    Returns the calls of one conversation, *unnamed* if it has no id of its own; *names* are those of runs before.
    """
    chat = mapping(value)
    messages = _messages_of(value)
    key = next((key for key in _IDS + _IDS_OF_RUNS if type(chat.get(key)) in (str, int)), None)
    session_id = unnamed if key is None else str(chat[key])
    if key is not None and type(chat.get("trial")) is int:
        session_id = f"{session_id}/{chat['trial']}"
    if key in _IDS_OF_RUNS:
        names[session_id] += 1
        session_id = session_id if names[session_id] == 1 else f"{session_id}:{names[session_id]}"
    if any(is_item(message) for message in messages):
        yield from item_calls(messages, source, session_id)
    else:
        yield from chat_calls(messages, source, session_id, text(chat.get("model")))


def _messages_of(value: Any) -> list[Any]:
    chat = mapping(value)
    return listed(chat.get("messages", chat.get("traj"))) if chat else listed(value)


def _calls_otherwise(message: Any) -> bool:
    """
    Whether a message makes calls in the form of another API.
    """
    said = mapping(message)
    blocks = objects(said.get("content")) if said.get("role") == "assistant" else ()
    return any(block.get("type") == "tool_use" for block in blocks) and not any(_made(said))


def _is_chat(value: Any) -> bool:
    if type(value) is dict:
        messages = value.get("messages", value.get("traj"))
        return type(messages) is list and all(map(_is_message, messages[:20]))

    if type(value) is not list or not value:
        return False
    return all(map(_is_message, value[:20])) or _is_list(value)


def _is_list(value: Any) -> bool:
    """
    Whether *value* is a list of conversations. The last one of a head that is cut off may have no messages yet.
    """
    if type(value) is not list or not value or not _is_chat(value[0] if type(value[0]) is dict else None):
        return False
    return all(type(each) is dict for each in value[:20])


def _is_line(value: Any) -> bool:
    return type(value) is dict and is_one_of(value.get("role"), _ROLES) and not _SAID.isdisjoint(value)


def _is_message(value: Any) -> bool:
    if type(value) is not dict:
        return False

    # Nothing is left of a message that is cut off, and an item of the Responses API may have no role.
    return not value or is_one_of(value.get("role"), _ROLES) or is_item(value)


class _Lines:
    """
    Messages as they come, of any number of conversations: kept of each is the latest message that makes calls, with
    what came back so far.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._open: dict[str, list[Any]] = {}
        self._counts: dict[str, tuple[int, int]] = {}

    def add(self, message: Mapping[str, Any], file: str) -> Iterator[RecordedCall]:
        """
        Add a message. Returns the calls that are complete by it.
        """
        session_id = next((str(message[key]) for key in _IDS if type(message.get(key)) in (str, int)), file)
        if any(_made(message)):
            yield from self._ended(session_id)
            self._open[session_id] = [message]
        elif is_one_of(message.get("role"), _RESULTS):
            kept = self._open.get(session_id, [])
            if 0 < len(kept) < MAX_RESULTS:
                kept.append(message)

    def rest(self) -> Iterator[RecordedCall]:
        for session_id in list(self._open):
            yield from self._ended(session_id)

    def _ended(self, session_id: str) -> Iterator[RecordedCall]:
        index, turn = self._counts.get(session_id, (0, 0))
        messages = self._open.pop(session_id, [])
        for call in chat_calls(messages, self._source, session_id, index=index, turn=turn):
            index += 1
            yield call
        self._counts[session_id] = index, turn + bool(messages)


def chat_calls(
    messages: list[Any], source: str, session_id: str, model: str | None = None, index: int = 0, turn: int = 0
) -> Iterator[RecordedCall]:
    """
    Returns the calls of one conversation, or of a part of it with *index* calls in *turn* responses before.
    """
    for at, message in enumerate(map(mapping, messages)):
        made = list(_made(message))
        if not made:
            continue

        turn += 1
        results = _results(messages, at + 1)
        usage = mapping(message.get("usage"))
        for place, (call_id, tool, arguments) in enumerate(made):
            call = RecordedCall(source, session_id, index, tool, arguments, turn=turn, id=call_id, has_result=False)
            call.model = text(message.get("model")) or model
            call.ts_ms = _time_of(message)
            if place == 0:
                call.tokens_in = count(usage.get("prompt_tokens", usage.get("input_tokens")))
                call.tokens_out = count(usage.get("completion_tokens", usage.get("output_tokens")))
                call.cost_usd = amount(message.get("cost"))
            answers = results.get(call_id or tool)
            if answers:
                result = answers.popleft()
                # A file that is cut off may end before what came back.
                if "content" in result:
                    settle(call, result["content"])
                    _measure(call, _time_of(result))
            index += 1
            yield call


def _made(message: Mapping[str, Any]) -> Iterator[tuple[str | None, str, Any]]:
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


def _results(messages: list[Any], start: int) -> dict[str, deque[Mapping[str, Any]]]:
    """
    The results up to the next message that makes calls, by the id of their call, or by their tool if they have no id.
    """
    found: dict[str, deque[Mapping[str, Any]]] = {}
    for at in range(start, len(messages)):
        message = mapping(messages[at])
        if is_one_of(message.get("role"), _RESULTS):
            name = text(message.get("tool_call_id")) or text(message.get("name")) or ""
            found.setdefault(name, deque()).append(message)
        elif any(_made(message)):
            break
    return found


def _time_of(message: Mapping[str, Any]) -> int | None:
    return time_ms(message.get("timestamp", message.get("created_at", message.get("created"))))


def _measure(call: RecordedCall, end_ms: int | None) -> None:
    if call.ts_ms is not None and end_ms is not None and end_ms >= call.ts_ms:
        call.duration_ms = end_ms - call.ts_ms
