"""
Claude Code sessions: JSON lines as the program keeps them, or as `--output-format stream-json` prints them.

The calls of a sub-agent are a session of their own, `session/agent`: by `agentId`, by `parent_tool_use_id`, or by the
first line of a sidechain. The `progress` of a sub-agent in a parent's file is not read: the sub-agent has its own file.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from guardrails.hooks.tools import CLAUDE

from .calls import RecordedCall, Report
from .events import Came, Event, Made, Used, Values
from .fields import arguments_of, count, mapping, objects, text, time_ms, usage_of


_IDS: Final = frozenset({"uuid", "parentUuid", "leafUuid", "sessionId", "isSidechain"})
_STREAM: Final = frozenset({"uuid", "parent_tool_use_id", "subtype"})
_SNAPSHOT: Final = "file-history-snapshot"


class ClaudeCode:
    """
    Sessions of Claude Code.
    """

    name = "claude code session"

    def fits(self, value: Any) -> bool:
        line = mapping(value)
        if type(line.get("type")) is not str:
            return False
        by_stream = "session_id" in line and not _STREAM.isdisjoint(line)
        bare = line["type"] in ("assistant", "user") and "content" in mapping(line.get("message"))
        return by_stream or bare or not _IDS.isdisjoint(line) or line["type"] == _SNAPSHOT

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        roots: dict[str, str] = {}
        for _, line in values:
            kind, message, at_ms = line.get("type"), mapping(line.get("message")), time_ms(line.get("timestamp"))
            if not message or kind not in ("assistant", "user"):
                continue
            session = _session_id(line, file, roots)
            # One response is spread over several lines, each of which tells how much it has written so far.
            response = text(message.get("id")) or text(line.get("requestId")) or text(line.get("uuid")) or ""
            if kind == "assistant":
                yield Used(session, response, *usage_of(message.get("usage")))
            took = mapping(line.get("toolUseResult"))
            for block in objects(message.get("content")):
                what, tool = block.get("type"), text(block.get("name"))
                if kind == "assistant" and what == "tool_use" and tool is not None:
                    call = RecordedCall(session, tool, arguments_of(block.get("input")), id=text(block.get("id")))
                    call.model, call.ts_ms = text(message.get("model")), at_ms
                    yield Made(call.declared(CLAUDE.get(tool)), call.id, response)
                elif kind == "user" and what == "tool_result":
                    id_, failed = text(block.get("tool_use_id")), block.get("is_error") is True
                    ms = count(took.get("durationMs", took.get("totalDurationMs")))
                    yield Came(session, id_, block.get("content"), failed, at_ms, ms)


def _session_id(line: Mapping[str, Any], file: str, roots: dict[str, str]) -> str:
    session_id = text(line.get("sessionId")) or text(line.get("session_id")) or file
    agent = text(line.get("agentId")) or text(line.get("parent_tool_use_id"))
    uuid = text(line.get("uuid"))
    if agent is None and line.get("isSidechain") is True and uuid is not None:
        agent = roots[uuid] = roots.get(text(line.get("parentUuid")) or "", uuid)
    return session_id if agent is None else f"{session_id}/{agent}"
