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
        session, message = file, mapping(None)
        for _, value in values:
            line = mapping(value)
            session = text(line.get("sessionId")) or session
            set_ = mapping(line.get("$set")).get("messages")
            for each in (line, *objects(line.get("messages")), *objects(set_)):
                if "toolCalls" not in each and each.get("type") != "gemini":
                    continue
                if each.get("id") != message.get("id"):
                    yield from _made(message, session)
                message = each
        yield from _made(message, session)


def _made(message: Mapping[str, Any], session: str) -> Iterator[Event]:
    tokens = mapping(message.get("tokens"))
    response = id(message)
    yield Used(session, response, count(tokens.get("input")), total(tokens.get("output"), tokens.get("thoughts")))
    for wire in objects(message.get("toolCalls")):
        tool = text(wire.get("name"))
        if tool is None:
            continue
        call = RecordedCall("", session, 0, tool, arguments_of(wire.get("args")), id=text(wire.get("id")))
        call.model, call.ts_ms = text(message.get("model")), time_ms(message.get("timestamp"))
        _settle(call.declared(of_gemini(tool)), wire)
        yield Made(call, response=response)


def _settle(call: RecordedCall, wire: Mapping[str, Any]) -> None:
    status = wire.get("status")
    responses = [mapping(each.get("functionResponse")).get("response") for each in objects(wire.get("result"))]
    # Its status stands behind the result; a file that is cut off may end between them.
    if status is None or (not listed(wire.get("result")) and not is_one_of(status, _ENDED)):
        call.has_result = False
        return
    content = [_content(response) for response in responses if response is not None]
    told = "\n".join(content) if content else wire.get("result")
    settle(call, told, failed=status != "success" or any(shell_failed(call.tool, text) for text in content))
    if content:
        call.shows("\n".join(plain_text(call.tool, text) for text in content))
    if status == "cancelled":
        call.error_type = "cancelled"
    end_ms = time_ms(wire.get("timestamp"))
    if call.ts_ms is not None and end_ms is not None and end_ms > call.ts_ms:
        call.duration_ms = end_ms - call.ts_ms


def _content(response: Any) -> str:
    told = mapping(response)
    return text_of(next((told[key] for key in ("output", "error") if key in told), response))
