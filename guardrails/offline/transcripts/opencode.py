"""
OpenCode sessions: what `opencode export` writes, or the JSON lines of `opencode run --format json`.

A response is a step. A command that ended with another exit code than 0 has failed, though its state says that it completed. The sessions
of sub-agents are named `above/below`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from .calls import Came, Event, Format, Made, RecordedCall, Used, Values
from .fields import at, mapping, objects, text


def _fits(value: Any) -> bool:
    held = mapping(value)
    is_line = text(held.get("sessionID")) and text(held.get("type")) and "timestamp" in held
    messages = objects(held.get("messages") or [{}])
    return bool(is_line or (mapping(held.get("info")) and all("parts" in each for each in messages)))


def _events(values: Values, file: str) -> Iterator[Event]:
    steps = Counter[str]()
    for _, line in values:
        above, session = text(at(line, "info", "parentID")), text(at(line, "info", "id")) or text(line.get("sessionID"))
        session = f"{above}/{session}" if above else session or file
        for message in objects(line.get("messages")):
            steps[session] += 1
            for part in objects(message.get("parts")):
                yield from _events_of(part, session, at(message, "info", "modelID"), steps)
        yield from _events_of(mapping(line.get("part")), session, None, steps)


def _events_of(part: Mapping[str, Any], session: str, model: Any, steps: Counter[str]) -> Iterator[Event]:
    kind, tool, state = part.get("type"), text(part.get("tool")), mapping(part.get("state"))
    if kind == "step-start":
        steps[session] += 1
    elif kind == "step-finish":
        tokens = mapping(part.get("tokens"))
        usage = {f"cache_{name}_input_tokens": at(tokens, "cache", name) for name in ("read", "write")}
        # Counted beside the output, as Google counts its thoughts.
        usage["thoughts_token_count"] = tokens.get("reasoning")
        usage |= {f"{name}_tokens": tokens.get(name) for name in ("input", "output")}
        yield Used(session, steps[session], usage, part.get("cost"))
    elif kind == "tool" and tool is not None:
        call = RecordedCall(session, tool, state.get("input"), id=part.get("callID"), model=model)
        key = text(call.id) or text(part.get("id")) or tool
        yield Made(call, key, steps[session], at(state, "time", "start"))
        if (status := state.get("status")) in ("completed", "error"):
            code, end = at(state, "metadata", "exit"), at(state, "time", "end")
            content = state.get("error" if status == "error" else "output")
            failed = status == "error" or (type(code) is int and code != 0)
            yield Came(session, key, content, failed, end, kind="exec_nonzero" if code else "other")


OPENCODE: Final = Format("opencode session", _fits, _events)
