"""
Claude Code sessions: JSON lines as the program keeps them, or as `--output-format stream-json` prints them.

The calls of a sub-agent are a session of their own, `session/agent`: by `agentId` or `parent_tool_use_id`. The sidechains of
older versions are one, `session/sidechain`. The `progress` of a sub-agent in a parent's file is not read: the sub-agent has its own file.
"""

from collections.abc import Iterator
from typing import Any, Final

from guardrails.hooks.tools import CLAUDE

from .calls import Came, Event, Format, Made, RecordedCall, Used, Values
from .fields import mapping, objects, text


_IDS: Final = frozenset(
    ["uuid", "parentUuid", "leafUuid", "sessionId", "isSidechain", "parent_tool_use_id", "subtype", "snapshot"]
)
"""Of which a line has one."""
_SPEAKERS: Final = ("assistant", "user")


def _fits(value: Any) -> bool:
    line = mapping(value)
    speaks = line.get("type") in _SPEAKERS and "content" in mapping(line.get("message"))
    return bool(text(line.get("type"))) and (speaks or not _IDS.isdisjoint(line))


def _events(values: Values, file: str) -> Iterator[Event]:
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
                yield Made(call.declared(CLAUDE.get(tool)), text(call.id) or number, response, time)
            elif block.get("type") == "tool_result":
                ms, failed = took.get("durationMs", took.get("totalDurationMs")), block.get("is_error") is True
                yield Came(session, text(block.get("tool_use_id")), block.get("content") or "", failed, time, ms)


CLAUDE_CODE: Final = Format("claude code session", _fits, _events)
