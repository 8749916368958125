"""
Claude Code: its events, and what it reads.
"""

import os

from collections.abc import Iterable, Mapping
from typing import Any, Final

from guardrails.core.tools.tool import Tool
from guardrails.hooks.results import read_response, rewritten
from guardrails.hooks.told import Answer, Event, Kind, Said, Told, Used, failed, optional, text_of
from guardrails.hooks.tools import CLAUDE

from .lines import at_ms, mapping, parsed


NAME: Final = "claude"
BEFORE: Final = "PreToolUse"
STOPS: Final = True
HIDING: Final[frozenset[str]] = frozenset()
_KINDS: Final[Mapping[str, Kind]] = {
    "PreToolUse": "before",
    "PostToolUse": "after",
    "PostToolUseFailure": "failed",
    "PermissionDenied": "denied",
    "UserPromptSubmit": "prompt",
    "SubagentStart": "agent_started",
    "SubagentStop": "agent_stopped",
    "Stop": "stopped",
}
_FURTHER: Final[Mapping[str, Kind]] = {"SessionStart": "started", "PostToolBatch": "turn"}
EVENTS: Final = ("SessionStart", *_KINDS)
_CALLS: Final = frozenset({"before", "after", "failed", "denied"})
_AGENTS: Final = frozenset({"Agent", "Task"})
_SYNTHETIC: Final = "<synthetic>"
"""What stands for the model of what Claude Code itself has written."""


def read(event: Event) -> Told | None:
    """
    See `Client.read`.
    """
    name = event.get("hook_event_name")
    kind = _KINDS.get(name) or _FURTHER.get(name) if isinstance(name, str) else None
    if kind is None or not isinstance(name, str):
        return None
    told = common(event, kind, name)
    if kind in _CALLS:
        told.call_id = optional(event, "tool_use_id") or None
        if kind in ("before", "after"):
            told.tool = text_of(event, "tool_name")
        told.arguments = event.get("tool_input")
        if kind == "before" and told.arguments is None:
            told.arguments = {}
    if kind == "after":
        told.response = event.get("tool_response")
        told.outcome = _report(told.response) if told.tool in _AGENTS else read_response(told.response)
    elif kind == "failed":
        told.outcome = failed(event.get("error"), interrupted=bool(event.get("is_interrupt")))
    elif kind in ("stopped", "agent_stopped"):
        told.answer, told.background = optional(event, "last_assistant_message"), bool(event.get("background_tasks"))
    return told


def _report(response: Any) -> Any:
    """
    Returns the words of a sub-agent, without the figures of its run.
    """
    content = mapping(response).get("content")
    if not isinstance(content, list):
        return response
    return "\n".join(
        str(block["text"]) for block in content if isinstance(block, dict) and isinstance(block.get("text"), str)
    )


def common(event: Event, kind: Kind, name: str) -> Told:
    """
    Returns the fields that every event has.
    """
    agent = optional(event, "agent_id") or None
    transcript = optional(event, "transcript_path")
    if agent is not None:
        transcript = optional(event, "agent_transcript_path") or _of_agent(transcript, agent)
    return Told(
        kind=kind,
        event=name,
        session=optional(event, "session_id"),
        agent=agent,
        cwd=optional(event, "cwd"),
        transcript=transcript,
    )


def _of_agent(transcript: str, agent: str) -> str:
    """
    Returns the file in which Claude Code keeps the work of a sub-agent.
    """
    folder = transcript.removesuffix(".jsonl")
    plain = agent.replace("-", "").replace("_", "").isalnum()
    return f"{folder}/subagents/agent-{agent}.jsonl" if plain and folder != transcript else ""


def write(told: Told, said: Said) -> Answer:
    """
    See `Client.write`.
    """
    if said.notice is not None:
        return {"systemMessage": said.notice}
    envelope = said.envelope
    if envelope is None:
        return {}
    if told.kind == "before":
        output = deny(envelope.to_json(), "ask" if said.asks else "deny")
        return output if said.digest is None else output | {"continue": False, "stopReason": said.digest}
    if told.kind == "failed":
        return specific("PostToolUseFailure", additionalContext=envelope.to_json())
    output, text = rewritten(told.response, envelope, envelopes=said.envelopes)
    changed: dict[str, Any] = {} if output is None else {"updatedToolOutput": output}
    if text is not None:
        changed["additionalContext"] = text
    return specific("PostToolUse", **changed) if changed else {}


def tool_of(name: str) -> Tool | None:
    """
    See `Client.tool_of`.
    """
    return CLAUDE.get(name)


def deny(reason: str, kind: str = "deny") -> Answer:
    """
    See `Client.deny`; *kind* `ask` asks a person.
    """
    return specific("PreToolUse", permissionDecision=kind, permissionDecisionReason=reason)


def specific(event: str, **said: Any) -> Answer:
    """
    Returns the fields that only the answer to *event* has.
    """
    return {"hookSpecificOutput": {"hookEventName": event, **said}}


def used(lines: Iterable[bytes], told: Told) -> list[Used]:
    """
    See `Client.used`. A response is a line for each of its blocks. It is whole once its calls have their results,
    another one came, or the model has answered.
    """
    found: dict[str, Used] = {}
    calls: dict[str, set[str]] = {}
    results: set[str] = set()
    for line in lines:
        if b'"usage"' not in line and b'"tool_result"' not in line:
            continue
        value = parsed(line)
        message = mapping(value.get("message"))
        if value.get("isSidechain") is True and told.agent is None:
            continue
        blocks = [mapping(block) for block in message.get("content") or () if isinstance(message.get("content"), list)]
        if value.get("type") == "user":
            results |= {str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"}
        key, usage, model = message.get("id"), message.get("usage"), message.get("model")
        if value.get("type") != "assistant" or not isinstance(key, str) or not isinstance(usage, dict):
            continue
        if model == _SYNTHETIC or not isinstance(model, str):
            continue
        found[key] = Used(f"claude:{key}", model, usage, at_ms(value.get("timestamp")))
        calls.setdefault(key, set()).update(str(block.get("id")) for block in blocks if block.get("type") == "tool_use")
    last = next(reversed(found), None)
    if (
        last is not None
        and told.kind not in ("stopped", "agent_stopped")
        and not (calls[last] and calls[last] <= results)
    ):
        del found[last]
    return list(found.values())


def ended(line: bytes, call_id: str) -> bool:
    """
    See `Client.ended`.
    """
    if b'"tool_result"' not in line:
        return False
    content = mapping(parsed(line).get("message")).get("content")
    return isinstance(content, list) and any(
        mapping(block).get("type") == "tool_result" and mapping(block).get("tool_use_id") == call_id
        for block in content
    )


def project(lines: Iterable[bytes]) -> str | None:
    """
    See `Client.project`.
    """
    return next((found for line in lines if b'"cwd"' in line and (found := folder(parsed(line)))), None)


def folder(said: Mapping[str, Any]) -> str | None:
    """
    The absolute path that *said* has for `cwd`.
    """
    found = said.get("cwd")
    return found if isinstance(found, str) and os.path.isabs(found) and "\0" not in found else None  # noqa: PTH117
