"""
OpenCode sessions: what `opencode export` writes, or the JSON lines of `opencode run --format json`.

A response is a step. A command that ended with another exit code than 0 has failed, though its state says that it completed. The sessions
of sub-agents are named `above/below`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from .calls import RecordedCall, Report
from .events import Came, Event, Made, Used, Values
from .fields import NOTHING, amount, mapping, objects, text, time_ms, usage_of


class OpenCode:
    """
    Sessions of OpenCode.
    """

    name = "opencode session"

    def fits(self, value: Any) -> bool:
        held = mapping(value)
        if type(held.get("sessionID")) is str and "timestamp" in held and type(held.get("type")) is str:
            return True
        return bool(mapping(held.get("info"))) and all(
            "parts" in each for each in objects(held.get("messages") or [{}])
        )

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        steps: dict[str, int] = {}
        for _, value in values:
            line = mapping(value)
            info = mapping(line.get("info"))
            above, named = text(info.get("parentID")), text(info.get("id")) or text(line.get("sessionID")) or file
            session = named if above is None else f"{above}/{named}"
            for message in objects(line.get("messages")):
                steps[session] = steps.get(session, 0) + 1
                for part in objects(message.get("parts")):
                    yield from _events(part, session, mapping(message.get("info")), steps)
            yield from _events(mapping(line.get("part")), session, NOTHING, steps)


def _events(
    part: Mapping[str, Any], session: str, message: Mapping[str, Any], steps: dict[str, int]
) -> Iterator[Event]:
    kind, tool, state = part.get("type"), text(part.get("tool")), mapping(part.get("state"))
    if kind == "step-start":
        steps[session] = steps.get(session, 0) + 1
    elif kind == "step-finish":
        tokens = mapping(part.get("tokens"))
        cached = {f"cache_{name}_input_tokens": count for name, count in mapping(tokens.get("cache")).items()}
        cached["cache_creation_input_tokens"] = cached.get("cache_write_input_tokens")
        yield Used(session, steps.get(session), *usage_of({**tokens, **cached}), amount(part.get("cost")))
    elif kind == "tool" and tool is not None:
        times, status = mapping(state.get("time")), state.get("status")
        call = RecordedCall(session, tool, state.get("input") or {}, id=text(part.get("callID")))
        call.model, call.ts_ms = text(message.get("modelID")), time_ms(times.get("start"))
        key = call.id or text(part.get("id")) or tool
        yield Made(call, key, steps.get(session))
        if status in ("completed", "error"):
            code = mapping(state.get("metadata")).get("exit")
            failed = status == "error" or (type(code) is int and code != 0)
            content, at_ms = state.get("error" if status == "error" else "output"), time_ms(times.get("end"))
            yield Came(session, key, content, failed, at_ms, kind="exec_nonzero" if code else None)
