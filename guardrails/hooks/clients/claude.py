"""
Claude Code: its events, and what it reads.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.hooks.results import beside, blocks_of, cut
from guardrails.hooks.tools import CLAUDE
from guardrails.hooks.transcripts import Line, at_ms, mapping

from .client import Answer, Client, Event, Kind, Used, specific


class Claude(Client):
    """
    Claude Code. A result is replaced in the shape of its tool.
    """

    kinds: ClassVar[Mapping[str, Kind]] = {
        "SessionStart": "started",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "before",
        "PermissionDenied": "denied",
        "PostToolUse": "after",
        "PostToolUseFailure": "failed",
        "SubagentStop": "agent_stopped",
        "Stop": "stopped",
    }
    tools: ClassVar[Mapping[str, Tool]] = CLAUDE
    marks = (b'"usage"', b'"tool_result"')
    stops = True

    def read(self, said: Mapping[str, Any]) -> Event | None:
        event = super().read(said)
        if event is not None and event.agent is not None and not said.get("agent_transcript_path"):
            # Where it keeps the work of a sub-agent. The file of the agent above has responses that are not its own.
            plain = event.agent.replace("-", "").replace("_", "").isalnum() and event.transcript.endswith(".jsonl")
            folder = event.transcript.removesuffix(".jsonl")
            event.transcript = f"{folder}/subagents/agent-{event.agent}.jsonl" if plain else ""
        return event

    def outcome(self, event: Event) -> Any:
        content = mapping(event.response).get("content")
        if event.tool in ("Agent", "Task") and isinstance(content, list):
            # The words of a sub-agent, without the figures of its run.
            return "\n".join(str(mapping(block).get("text", "")) for block in content)
        return super().outcome(event)

    def ask(self, reason: str) -> Answer:
        return specific("PreToolUse", permissionDecision="ask", permissionDecisionReason=reason)

    def result(self, event: Event, envelope: Envelope, *, envelopes: bool = False) -> Answer:
        blocks, note, rendered = blocks_of(event.response), beside(envelope), envelope.rendered
        more: dict[str, Any] = {} if note is None else {"additionalContext": note}
        if envelopes and blocks and all(block.get("type") == "text" for block in blocks):
            made = [{"type": "text", "text": envelope.to_json("nested")}]
            more = {"updatedToolOutput": {"content": made} if isinstance(event.response, dict) else made}
        elif envelope.cut is not None and rendered is not None:
            more["updatedToolOutput"] = cut(event.response, rendered.size)
        return specific(event.name, **more) if more else {}

    def used(self, lines: Iterable[Line], event: Event) -> list[Used]:
        found: dict[str, Used] = {}
        calls: dict[str, set[Any]] = {}
        results: set[Any] = set()
        for line in lines:
            message = mapping(line.get("message"))
            blocks = message.get("content")
            pieces = [mapping(block) for block in blocks] if isinstance(blocks, list) else []
            results |= {str(one.get("tool_use_id")) for one in pieces if one.get("type") == "tool_result"}
            key, usage, model = message.get("id"), message.get("usage"), message.get("model")
            if not isinstance(key, str) or not isinstance(usage, dict) or not isinstance(model, str):
                continue
            # Of itself, and of sub-agents in the file of the agent above.
            if model == "<synthetic>" or (line.get("isSidechain") is True and event.agent is None):
                continue
            found[key] = Used(f"claude:{key}", model, usage, at_ms(line.get("timestamp")))
            calls.setdefault(key, set()).update(str(one.get("id")) for one in pieces if one.get("type") == "tool_use")
        last = next(reversed(found), None)
        # The latest is whole once all of its calls have ended.
        if last is not None and event.kind not in ("stopped", "agent_stopped") and not calls[last] <= results:
            del found[last]
        return list(found.values())
