"""
Gemini CLI sessions: one JSON object with `messages`, or the JSON lines of later versions.

In the lines a message is written again when it changes, and a rewind takes messages back; a call that was made stays
made, once.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from guardrails.hooks.clients.gemini import plain_text, shell_failed
from guardrails.hooks.tools import of_gemini

from .calls import RecordedCall, Report
from .events import Event, Made, Used, Values
from .fields import arguments_of, count, is_one_of, listed, mapping, objects, text, text_of, time_ms, total
from .results import settle


_ENDED: Final = frozenset({"success", "error", "cancelled"})


class GeminiCLI:
    """
    Sessions of Gemini CLI.
    """

    name = "gemini cli session"

    def fits(self, value: Any) -> bool:
        line = mapping(value)
        return {"sessionId", "projectHash"} <= line.keys() or "$set" in line or line.get("type") in ("user", "gemini")

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        session, messages = file, dict[tuple[str, Any], Mapping[str, Any]]()
        for number, line in values:
            session = text(line.get("sessionId")) or session
            several = (line.get("messages"), mapping(line.get("$set")).get("messages"))
            for place, message in enumerate([line, *objects(several[0]), *objects(several[1])]):
                key = session, text(message.get("id")) or (number, place)
                if message.get("toolCalls") or (message.get("type") == "gemini" and key not in messages):
                    messages[key] = message
        for (session_id, _), message in messages.items():
            yield from _made(message, session_id)


def _made(message: Mapping[str, Any], session: str) -> Iterator[Event]:
    tokens = mapping(message.get("tokens"))
    yield Used(session, id(message), count(tokens.get("input")), total(tokens.get("output"), tokens.get("thoughts")))
    for wire in objects(message.get("toolCalls")):
        if (tool := text(wire.get("name"))) is not None:
            call = RecordedCall(session, tool, arguments_of(wire.get("args")), id=text(wire.get("id")))
            call.model, call.ts_ms = text(message.get("model")), time_ms(message.get("timestamp"))
            _settle(call.declared(of_gemini(tool)), wire)
            yield Made(call, response=id(message))


def _settle(call: RecordedCall, wire: Mapping[str, Any]) -> None:
    status, result = wire.get("status"), wire.get("result")
    # Its status stands behind the result; a file that is cut off may end between them.
    call.has_result = status is not None and (bool(listed(result)) or is_one_of(status, _ENDED))
    if not call.has_result:
        return
    responses = (mapping(each.get("functionResponse")).get("response") for each in objects(result))
    content = [_content(response) for response in responses if response is not None]
    failed = status != "success" or any(shell_failed(call.tool, text) for text in content)
    settle(call, "\n".join(content) if content else result, failed=failed)
    if content:
        call.shows("\n".join(plain_text(call.tool, text) for text in content))
    if status == "cancelled":
        call.error_type = "cancelled"
    call.ended(time_ms(wire.get("timestamp")))
    call.duration_ms = call.duration_ms or None


def _content(response: Any) -> str:
    said = mapping(response)
    return text_of(said.get("output", said.get("error", response)))
