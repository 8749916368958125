"""
Claude Code sessions: JSON lines as the program keeps them, or as `--output-format stream-json` prints them.

The calls of a sub-agent are a session of their own, `session/agent`: by `agentId`, by `parent_tool_use_id`, or by the
first line of a sidechain. The `progress` of a sub-agent in a parent's file is not read: the sub-agent has its own file.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from guardrails.hooks.tools import CLAUDE
from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.text.fields import (
    arguments_of,
    count,
    is_one_of,
    mapping,
    objects,
    text,
    time_ms,
    total,
)
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import parsed_lines
from guardrails.offline.readers.text.result_text import settle
from guardrails.offline.readers.waiting import Waiting


_MESSAGES: Final = frozenset({"assistant", "user"})
_TYPES: Final = frozenset({"user", "assistant", "system", "summary", "progress", "file-history-snapshot", "result"})


class ClaudeCode:
    """
    Sessions of Claude Code.
    """

    name = "claude code session"
    whole = False

    def recognises(self, head: str) -> bool:
        return any(map(_is_line, leading_values(head)))

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        waiting = Waiting()
        roots: dict[str, str] = {}
        sessions: dict[str, _Session] = {}
        hidden = 0
        for _, line in parsed_lines(lines, report, file):
            kind = line.get("type")
            message = mapping(line.get("message"))
            if kind == "progress":
                data = mapping(line.get("data"))
                inside = mapping(mapping(data.get("message")).get("message"))
                hidden += data.get("type") == "agent_progress" and any(_blocks(inside, "tool_use"))
                continue
            if not message or not is_one_of(kind, _MESSAGES):
                continue

            session_id = _session_id(line, file, roots)
            if kind == "assistant":
                session = sessions.get(session_id)
                if session is None:
                    session = sessions[session_id] = _Session()
                _begin(line, message, source, session_id, session, waiting)
            else:
                for block in _blocks(message, "tool_result"):
                    call = waiting.settle(session_id, text(block.get("tool_use_id")) or "")
                    if call is not None:
                        _settle(call, block, line)
            yield from waiting.ready(session_id)

        yield from waiting.rest()
        if hidden:
            report.note(
                file,
                f"it shows the progress of sub-agents (lines: {hidden:,}); their calls are read from their own files",
            )


@dataclass(slots=True)
class _Session:
    """
    The facts known of the model's responses in a session.
    """

    turns: dict[str, int] = field(default_factory=dict)
    """By response id. One response is spread over several lines."""
    made: set[str] = field(default_factory=set)
    """Ids of calls; lines are written again when a session is resumed."""
    count: int = 0
    first: RecordedCall | None = None
    """The first call of the latest response."""


def _is_line(value: Any) -> bool:
    line = mapping(value)
    if not is_one_of(line.get("type"), _TYPES):
        return False

    return (
        "isSidechain" in line
        or ("sessionId" in line and ("uuid" in line or "parentUuid" in line))
        or ("session_id" in line and ("uuid" in line or "parent_tool_use_id" in line or "subtype" in line))
        or line["type"] == "file-history-snapshot"
        or (line["type"] == "summary" and "leafUuid" in line)
    )


def _session_id(line: Mapping[str, Any], file: str, roots: dict[str, str]) -> str:
    session_id = text(line.get("sessionId")) or text(line.get("session_id")) or file
    agent = text(line.get("agentId")) or text(line.get("parent_tool_use_id"))
    uuid = text(line.get("uuid"))
    if agent is None and line.get("isSidechain") is True and uuid is not None:
        agent = roots.get(text(line.get("parentUuid")) or "", uuid)
        roots[uuid] = agent
    return session_id if agent is None else f"{session_id}/{agent}"


def _blocks(message: Mapping[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    return (block for block in objects(message.get("content")) if block.get("type") == kind)


def _begin(
    line: Mapping[str, Any],
    message: Mapping[str, Any],
    source: str,
    session_id: str,
    session: _Session,
    waiting: Waiting,
) -> None:
    response = text(message.get("id")) or text(line.get("requestId")) or text(line.get("uuid")) or ""
    usage = mapping(message.get("usage"))
    turn = session.turns.get(response)
    tokens_out = count(usage.get("output_tokens"))
    if turn == session.count and session.first is not None:
        # Each line of a response tells how much it has written so far.
        session.first.tokens_out = _larger(session.first.tokens_out, tokens_out)
    for block in _blocks(message, "tool_use"):
        call_id, tool = text(block.get("id")), text(block.get("name"))
        if tool is None or call_id in session.made:
            continue
        if call_id is not None:
            session.made.add(call_id)

        call = RecordedCall(source, session_id, 0, tool, arguments_of(block.get("input")), id=call_id)
        call.declared(CLAUDE.get(tool))
        call.model = text(message.get("model"))
        call.ts_ms = time_ms(line.get("timestamp"))
        if turn is None:
            session.count += 1
            session.turns[response] = turn = session.count
            session.first = call
            call.tokens_in = total(
                *(usage.get(f"{kind}input_tokens") for kind in ("", "cache_creation_", "cache_read_"))
            )
            call.tokens_out = tokens_out
        call.turn = turn
        waiting.add(call, call_id)


def _larger(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _settle(call: RecordedCall, block: Mapping[str, Any], line: Mapping[str, Any]) -> None:
    settle(call, block.get("content"), failed=block.get("is_error") is True)
    result = mapping(line.get("toolUseResult"))
    call.duration_ms = count(result.get("durationMs", result.get("totalDurationMs")))
    call.ended(time_ms(line.get("timestamp")))
