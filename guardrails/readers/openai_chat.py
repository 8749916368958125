"""
OpenAI chat messages: a JSON object with `messages`, a bare list of messages, or such values as JSON lines.

A session is one conversation: it is named by the object's own id, or by the file (and line). Results are matched by
`tool_call_id` up to the next message that makes calls, since servers use an id again.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from .base import RecordedCall, Report
from .fields import amount, arguments_of, count, is_one_of, listed, mapping, objects, text, time_ms
from .leading import leading_values
from .openai_responses import is_item, item_calls
from .parsing import parsed_values
from .result_text import settle


_IDS: Final = ("session_id", "conversation_id", "thread_id", "chat_id", "id", "task_id")
_RESULTS: Final = frozenset({"tool", "function"})
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


class OpenAIChat:
    """
    Chat completions, as their clients keep them.
    """

    name = "openai chat"
    whole = True

    def recognises(self, head: str) -> bool:
        return any(_is_chat(value) for value in leading_values(head)[:3])

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        for number, value in parsed_values(lines, report, file):
            if not _is_chat(value):
                report.broke(file, number)
                continue

            chat = mapping(value)
            messages = listed(chat["messages"] if chat else value)
            session_id = next((str(chat[key]) for key in _IDS if type(chat.get(key)) in (str, int)), None)
            if session_id is None:
                session_id = file if number == 1 else f"{file}:{number}"
            if any(is_item(message) for message in messages):
                yield from item_calls(messages, source, session_id)
            else:
                yield from chat_calls(messages, source, session_id, text(chat.get("model")))


def _is_chat(value: Any) -> bool:
    messages = value.get("messages") if type(value) is dict else value
    return type(messages) is list and all(map(_is_message, messages[:20])) and (bool(messages) or type(value) is dict)


def _is_message(value: Any) -> bool:
    if type(value) is not dict:
        return False

    # Nothing is left of a message that is cut off, and an item of the Responses API may have no role.
    return not value or is_one_of(value.get("role"), _ROLES) or is_item(value)


def chat_calls(messages: list[Any], source: str, session_id: str, model: str | None = None) -> Iterator[RecordedCall]:
    """
    The calls of one conversation.
    """
    index = turn = 0
    for at, message in enumerate(map(mapping, messages)):
        made = list(_made(message))
        if not made:
            continue

        turn += 1
        results = _results(messages, at + 1)
        usage = mapping(message.get("usage"))
        for place, (call_id, tool, arguments) in enumerate(made):
            call = RecordedCall(source, session_id, index, tool, arguments, turn, call_id, has_result=False)
            call.model = text(message.get("model")) or model
            call.ts_ms = _time_of(message)
            if place == 0:
                call.tokens_in = count(usage.get("prompt_tokens", usage.get("input_tokens")))
                call.tokens_out = count(usage.get("completion_tokens", usage.get("output_tokens")))
                call.cost_usd = amount(message.get("cost"))
            answers = results.get(call_id or tool)
            if answers:
                result = answers.popleft()
                settle(call, result.get("content"))
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
    The results up to the next message that makes calls, by the id of their call, or by their tool where they have none.
    """
    found: dict[str, deque[Mapping[str, Any]]] = {}
    for message in map(mapping, islice(messages, start, None)):
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
