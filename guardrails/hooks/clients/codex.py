"""
Codex CLI: its events, and what it reads. One key that it does not know in an answer, and the call runs.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from guardrails.core.tools.tool import Tool
from guardrails.hooks.results import beside, shortened
from guardrails.hooks.told import Answer, Event, Said, Told, Used, optional
from guardrails.hooks.tools import CODEX

from . import claude
from .lines import at_ms, mapping, parsed


NAME: Final = "codex"
BEFORE: Final = "PreToolUse"
STOPS: Final = False
HIDING: Final[frozenset[str]] = frozenset()
_SHELL: Final = "Bash"
_PLACE: Final = "workdir"
EVENTS: Final = (
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "SessionStart",
)


def read(event: Event) -> Told | None:
    """
    See `Client.read`.
    """
    if event.get("hook_event_name") not in EVENTS:
        return None
    told = claude.read(event)
    if told is not None and told.agent is not None:
        # A sub-agent's events name its own file.
        told.transcript = optional(event, "agent_transcript_path") or optional(event, "transcript_path")
    if told is None:
        return None
    told.model = optional(event, "model")
    if told.tool == _SHELL and isinstance(told.arguments, dict) and told.cwd:
        # Where a command runs is said by the event alone; elsewhere it is another call.
        told.arguments = {_PLACE: told.cwd, **told.arguments}
    return told


def write(told: Told, said: Said) -> Answer:
    """
    See `Client.write`. Nobody is asked before a call, and nothing stops a run: both make the call run. The model reads
    nothing but the text of an object in the place of a result.
    """
    if said.notice is not None:
        return {"systemMessage": said.notice}
    envelope = said.envelope
    if envelope is None:
        return {}
    if told.kind == "before":
        return deny(envelope.to_json())
    if told.kind != "after":
        return {}
    text = shortened(told.response, envelope)
    if text is not None:
        return {"decision": "block", "reason": text}
    context = beside(envelope)
    return {} if context is None else claude.specific("PostToolUse", additionalContext=context)


def tool_of(name: str) -> Tool | None:
    """
    See `Client.tool_of`.
    """
    return CODEX.get(name)


def deny(reason: str) -> Answer:
    """
    See `Client.deny`. A refusal without a reason would let the call run.
    """
    return claude.deny(reason if reason.strip() else "refused")


def used(lines: Iterable[bytes], told: Told) -> list[Used]:
    """
    See `Client.used`. The same count is written again when something else has changed, so that its sum tells it.
    """
    found: dict[int, Used] = {}
    model = told.model
    for line in lines:
        if b"token_count" not in line and b'"turn_context"' not in line:
            continue
        value = parsed(line)
        payload = mapping(value.get("payload"))
        if value.get("type") == "turn_context" and isinstance(payload.get("model"), str):
            model = payload["model"]
        info = mapping(payload.get("info"))
        last, total = mapping(info.get("last_token_usage")), mapping(info.get("total_token_usage")).get("total_tokens")
        if payload.get("type") == "token_count" and last and isinstance(total, int) and total > 0:
            found.setdefault(total, Used(f"codex:{total}", model, _usage(last), at_ms(value.get("timestamp"))))
    return list(found.values())


def _usage(said: Mapping[str, Any]) -> dict[str, Any]:
    """
    Usage in the form of Responses.
    """
    return {
        "input_tokens": said.get("input_tokens"),
        "output_tokens": said.get("output_tokens"),
        "input_tokens_details": {"cached_tokens": said.get("cached_input_tokens")},
        "output_tokens_details": {"reasoning_tokens": said.get("reasoning_output_tokens")},
    }


def ended(line: bytes, call_id: str) -> bool:
    """
    See `Client.ended`.
    """
    if b"_output" not in line:
        return False
    payload = mapping(parsed(line).get("payload"))
    return payload.get("call_id") == call_id and str(payload.get("type")).endswith("_output")


def project(lines: Iterable[bytes]) -> str | None:
    """
    See `Client.project`.
    """
    return next(
        (
            found
            for line in lines
            if b'"cwd"' in line and (found := claude.folder(mapping(parsed(line).get("payload"))))
        ),
        None,
    )
