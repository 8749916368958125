"""
Codex CLI: its events, and what it reads. One key that it does not know in an answer, and the call runs.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.hooks.results import shortened
from guardrails.hooks.tools import CODEX
from guardrails.hooks.transcripts import Line, at_ms, mapping

from .client import Answer, Client, Event, Kind, Used


class Codex(Client):
    """
    Codex CLI. Nobody is asked before a call, and nothing stops a run: both make the call run.
    """

    kinds: ClassVar[Mapping[str, Kind]] = {
        "SessionStart": "started",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "before",
        "PostToolUse": "after",
        "SubagentStop": "agent_stopped",
        "Stop": "stopped",
    }
    tools: ClassVar[Mapping[str, Tool]] = CODEX
    marks = (b"token_count", b'"turn_context"')

    def read(self, said: Mapping[str, Any]) -> Event | None:
        event = super().read(said)
        if event is not None and event.tool == "Bash" and isinstance(event.arguments, dict) and event.cwd:
            # Where a command runs is said by the event alone; elsewhere it is another call.
            event.arguments = {"workdir": event.cwd, **event.arguments}
        return event

    def result(self, event: Event, envelope: Envelope, *, envelopes: bool = False) -> Answer:
        text = shortened(event.response, envelope)
        return {"decision": "block", "reason": text} if text else super().result(event, envelope)

    def used(self, lines: Iterable[Line], event: Event) -> list[Used]:
        # The same count is written again when something else has changed: its sum tells it.
        found: dict[int, Used] = {}
        model = event.said.get("model")
        for line in lines:
            payload = mapping(line.get("payload"))
            model = payload.get("model", model) if line.get("type") == "turn_context" else model
            info = mapping(payload.get("info"))
            last, total = mapping(info.get("last_token_usage")), mapping(info.get("total_token_usage"))
            at = total.get("total_tokens")
            if payload.get("type") == "token_count" and last and isinstance(at, int) and at > 0:
                usage = {
                    "input_tokens": last.get("input_tokens"),
                    "output_tokens": last.get("output_tokens"),
                    "input_tokens_details": {"cached_tokens": last.get("cached_input_tokens")},
                    "output_tokens_details": {"reasoning_tokens": last.get("reasoning_output_tokens")},
                }
                found.setdefault(at, Used(f"codex:{at}", str(model or ""), usage, at_ms(line.get("timestamp"))))
        return list(found.values())
