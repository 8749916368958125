"""
Gemini CLI sessions: one JSON object with `messages`, or the JSON lines of later versions.

In the lines a message is written again when it changes, and a rewind takes messages back; a call that was made stays
made, once.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from guardrails.hooks.clients import plain_text, shell_failed
from guardrails.hooks.tools import of_gemini

from .calls import Came, Event, Format, Made, RecordedCall, Used, Values
from .fields import at, listed, mapping, objects, text, text_of


def _fits(value: Any) -> bool:
    line = mapping(value)
    changes = "$set" in line or "$rewindTo" in line
    return changes or {"sessionId", "projectHash"} <= line.keys() or line.get("type") in ("user", "gemini")


def _events(values: Values, file: str) -> Iterator[Event]:
    session, messages = file, dict[tuple[str, Any], Mapping[str, Any]]()
    for number, line in values:
        session = text(line.get("sessionId")) or session
        several = (*objects(line.get("messages")), *objects(at(line, "$set", "messages")))
        for place, message in enumerate((line, *several)):
            key = session, text(message.get("id")) or (number, place)
            if message.get("toolCalls") or (message.get("type") == "gemini" and key not in messages):
                messages[key] = message
    for (session_id, key), message in messages.items():
        yield Used(session_id, key, {f"{of}_tokens": at(message, "tokens", of) for of in ("input", "output", "total")})
        for place, wire in enumerate(objects(message.get("toolCalls"))):
            if tool := text(wire.get("name")):
                call = RecordedCall(session_id, tool, wire.get("args"), id=wire.get("id"), model=message.get("model"))
                yield Made(call.declared(of_gemini(tool)), text(call.id) or (key, place), key, message.get("timestamp"))
                yield from _results(wire, call, text(call.id) or (key, place), message.get("timestamp"))


def _results(wire: Mapping[str, Any], call: RecordedCall, key: Any, start: Any) -> Iterator[Event]:
    status, result, time = wire.get("status"), wire.get("result"), wire.get("timestamp")
    # Its status stands behind the result; a file that is cut off may end between them.
    if status in ("success", "error", "cancelled") or (status is not None and listed(result)):
        responses = [at(each, "functionResponse", "response") for each in objects(result)]
        said = [mapping(each).get("output", mapping(each).get("error", each)) for each in responses if each is not None]
        content = list(map(text_of, said))
        failed = status != "success" or any(shell_failed(call.tool, each) for each in content)
        shown = "\n".join(plain_text(call.tool, each) for each in content) if content else None
        call.error_type = "cancelled" if status == "cancelled" else None
        told = "\n".join(content) if content else result or ""
        yield Came(call.session_id, key, told, failed, None if time == start else time, shown=shown)


GEMINI_CLI: Final = Format("gemini cli session", _fits, _events)
