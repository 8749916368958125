"""
Sessions that coding CLIs keep: Claude Code, Gemini CLI and OpenCode.

* Claude Code: JSON lines as the program keeps them, or as `--output-format stream-json` prints them. The calls of a sub-agent are a session
  of their own, `session/agent`: by `agentId` or `parent_tool_use_id`. The sidechains of older versions are one, `session/sidechain`. The
  `progress` of a sub-agent in a parent's file is not read: the sub-agent has its own file.
* Gemini CLI: one JSON object with `messages`, or the JSON lines of later versions. In the lines a message is written again when it changes,
  and a rewind takes messages back; a call that was made stays made, once.
* OpenCode: what `opencode export` writes, or the JSON lines of `opencode run --format json`. A response is a step. A command that ended with
  another exit code than 0 has failed, though its state says that it completed. The sessions of sub-agents are named `above/below`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from guardrails.hooks.clients import CLIENTS, plain_text, shell_failed

from .calls import Came, Event, Format, Made, RecordedCall, Used, Values
from .fields import at, listed, mapping, objects, text, text_of


_CLAUDE_IDS: Final = {"uuid", "leafUuid", "sessionId", "isSidechain", "parent_tool_use_id", "subtype", "snapshot"}
"""Of which a line has one."""
_SPEAKERS: Final = ("assistant", "user")


# Claude Code


def _fits_claude(value: Any) -> bool:
    line = mapping(value)
    speaks = line.get("type") in _SPEAKERS and "content" in mapping(line.get("message"))
    return bool(text(line.get("type"))) and (speaks or not _CLAUDE_IDS.isdisjoint(line))


def _claude(values: Values, file: str) -> Iterator[Event]:
    for number, line in values:
        message, time = mapping(line.get("message")), line.get("timestamp")
        if not message or line["type"] not in _SPEAKERS:
            continue
        session = text(line.get("sessionId")) or text(line.get("session_id")) or file
        agent = text(line.get("agentId")) or text(line.get("parent_tool_use_id"))
        agent = "sidechain" if agent is None and line.get("isSidechain") is True else agent
        session = f"{session}/{agent}" if agent else session
        # One response is spread over several lines, each of which tells how much it has written so far.
        response = text(message.get("id")) or text(line.get("requestId")) or text(line.get("uuid")) or ""
        yield Used(session, response, message.get("usage"))
        took = mapping(line.get("toolUseResult"))
        for block in objects(message.get("content")):
            if block.get("type") == "tool_use" and (tool := text(block.get("name"))):
                call = RecordedCall(session, tool, block.get("input"), id=block.get("id"), model=message.get("model"))
                yield Made(call.declared(CLIENTS["claude"].tool_of(tool)), text(call.id) or number, response, time)
            elif block.get("type") == "tool_result":
                ms, failed = took.get("durationMs", took.get("totalDurationMs")), block.get("is_error") is True
                yield Came(session, text(block.get("tool_use_id")), block.get("content") or "", failed, time, ms)


# Gemini CLI


def _fits_gemini(value: Any) -> bool | None:
    line = mapping(value)
    sure = line.get("type") == "gemini" or not {"projectHash", "$set", "$rewindTo"}.isdisjoint(line)
    # What the user and the program say has no sign of its own.
    return sure or (None if {"id", "type", "content"} <= line.keys() else False)


def _gemini(values: Values, file: str) -> Iterator[Event]:
    session, messages = file, dict[tuple[str, Any], Mapping[str, Any]]()
    for number, line in values:
        session = text(line.get("sessionId")) or session
        for place, message in enumerate((line, *objects(line.get("messages")), *objects(at(line, "$set", "messages")))):
            key = session, text(message.get("id")) or (number, place)
            if message.get("toolCalls") or (message.get("type") == "gemini" and key not in messages):
                messages[key] = message
    for (session_id, key), message in messages.items():
        yield Used(session_id, key, {f"{of}_tokens": at(message, "tokens", of) for of in ("input", "output", "total")})
        for place, wire in enumerate(objects(message.get("toolCalls"))):
            if tool := text(wire.get("name")):
                call = RecordedCall(session_id, tool, wire.get("args"), id=wire.get("id"), model=message.get("model"))
                yield Made(
                    call.declared(CLIENTS["gemini"].tool_of(tool)),
                    text(call.id) or (key, place),
                    key,
                    message.get("timestamp"),
                )
                yield from _gemini_results(wire, call, text(call.id) or (key, place), message.get("timestamp"))


def _gemini_results(wire: Mapping[str, Any], call: RecordedCall, key: Any, start: Any) -> Iterator[Event]:
    status, result, time = wire.get("status"), wire.get("result"), wire.get("timestamp")
    # Its status stands behind the result; a file that is cut off may end between them.
    if status in ("success", "error", "cancelled") or (status is not None and listed(result)):
        responses = [at(each, "functionResponse", "response") for each in objects(result)]
        outputs = [
            mapping(each).get("output", mapping(each).get("error", each)) for each in responses if each is not None
        ]
        content = list(map(text_of, outputs))
        failed = status != "success" or any(shell_failed(call.tool, each) for each in content)
        shown = "\n".join(plain_text(call.tool, each) for each in content) if content else None
        call.error_type = "cancelled" if status == "cancelled" else None
        output = "\n".join(content) if content else result or ""
        yield Came(call.session_id, key, output, failed, None if time == start else time, shown=shown)


# OpenCode


def _fits_opencode(value: Any) -> bool:
    held = mapping(value)
    is_line = text(held.get("sessionID")) and text(held.get("type")) and "timestamp" in held
    messages = objects(held.get("messages") or [{}])
    return bool(is_line or (mapping(held.get("info")) and all("parts" in each for each in messages)))


def _opencode(values: Values, file: str) -> Iterator[Event]:
    steps = Counter[str]()
    for _, line in values:
        above, session = text(at(line, "info", "parentID")), text(at(line, "info", "id")) or text(line.get("sessionID"))
        session = f"{above}/{session}" if above else session or file
        for message in objects(line.get("messages")):
            steps[session] += 1
            for part in objects(message.get("parts")):
                yield from _opencode_part(part, session, at(message, "info", "modelID"), steps)
        yield from _opencode_part(mapping(line.get("part")), session, None, steps)


def _opencode_part(part: Mapping[str, Any], session: str, model: Any, steps: Counter[str]) -> Iterator[Event]:
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


CLAUDE_CODE: Final = Format("claude code session", _fits_claude, _claude)
GEMINI_CLI: Final = Format("gemini cli session", _fits_gemini, _gemini)
OPENCODE: Final = Format("opencode session", _fits_opencode, _opencode)
