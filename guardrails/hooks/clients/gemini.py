"""
Gemini CLI: its events, and what it reads. Its calls have no ids, and the events of a sub-agent do not say whose they are.
"""

import re

from collections.abc import Iterable, Mapping
from typing import Any, Final

from guardrails.core.tools.tool import Tool
from guardrails.hooks.results import beside, read_response, shortened
from guardrails.hooks.told import Answer, Event, Kind, Said, Told, Used, failed, optional, text_of
from guardrails.hooks.tools import of_gemini

from . import claude
from .lines import at_ms, mapping, parsed


NAME: Final = "gemini"
BEFORE: Final = "BeforeTool"
STOPS: Final = False
HIDING: Final = frozenset({"invoke_agent"})
_KINDS: Final[Mapping[str, Kind]] = {
    "BeforeTool": "before",
    "AfterTool": "after",
    "BeforeToolSelection": "choice",
    "AfterModel": "model",
    "BeforeAgent": "prompt",
    "AfterAgent": "stopped",
    "SessionStart": "started",
}
EVENTS: Final = tuple(_KINDS)
_WRAPPED: Final = re.compile(r"\A<untrusted_context>\n(.*?)\n?</untrusted_context>\s*\Z", re.DOTALL)
_VOLATILE: Final = re.compile(r"^(?:Process Group PGID|Background PIDs): (?:\(none\)|[\d, ()]{0,400})\n?", re.MULTILINE)
_EXIT: Final = re.compile(
    r"""^(?:Exit\ Code:\ (?!0$)-?\d{1,10}|Signal:\ (?!0$)\w{1,20})$
    (?=(?:\n(?:Exit\ Code|Signal|Background\ PIDs|Process\ Group\ PGID):[^\n]*){0,4}\s*+(?:</untrusted_context>\s*+)?\Z)""",
    re.MULTILINE | re.VERBOSE,
)
"""What stands behind the output of a command that failed; in versions of 2025 a 0 there tells that it worked."""
_SHELL: Final = "run_shell_command"


def read(event: Event) -> Told | None:
    """
    See `Client.read`.
    """
    name = event.get("hook_event_name")
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None or not isinstance(name, str):
        return None
    told = Told(
        kind=kind,
        event=name,
        session=optional(event, "session_id"),
        cwd=optional(event, "cwd"),
        transcript=optional(event, "transcript_path"),
    )
    if kind in ("before", "after"):
        told.tool = text_of(event, "tool_name")
        told.arguments = event.get("tool_input") or {}
    if kind == "after":
        told.response = event.get("tool_response")
        told.outcome = outcome_of(told.tool, told.response)
    elif kind == "stopped":
        told.answer = optional(event, "prompt_response")
    elif kind == "model":
        told.used = _used(event)
    return told


def outcome_of(tool: str, response: Any) -> Any:
    """
    Returns the outcome of a call of *tool*: its text without the parts of this run alone, or its failure.
    """
    said = mapping(response)
    content = said.get("llmContent")
    if isinstance(content, str):
        content = plain_text(tool, content)
    error = mapping(said.get("error")).get("message") if said.get("error") else None
    if error is not None:
        return failed(content if isinstance(content, str) and content else error)
    if isinstance(content, str) and shell_failed(tool, content):
        return failed(content)
    return read_response(_blocks(content)) if "llmContent" in said else read_response(response)


def plain_text(tool: str, text: str) -> str:
    """
    The *text* of a result without the ids of processes, which are others in each run.
    """
    wrapped = _WRAPPED.match(text)
    inner = wrapped[1] if wrapped is not None else text
    return _VOLATILE.sub("", inner).rstrip("\n") if tool == _SHELL else inner


def shell_failed(tool: str, text: str) -> bool:
    """
    Returns whether *text* is what a command has written that failed.
    """
    return tool == _SHELL and _EXIT.search(text) is not None


def _blocks(content: Any) -> Any:
    """
    Parts of Gemini as blocks: those that are text and nothing else.
    """
    if isinstance(content, dict) and content.keys() == {"text"}:
        return content["text"]
    if isinstance(content, list) and all(isinstance(part, dict) and part.keys() == {"text"} for part in content):
        return "\n".join(str(part["text"]) for part in content)
    return content


def _used(event: Event) -> Used | None:
    """
    Returns the usage of a response, as its last piece tells it.
    """
    response, request = mapping(event.get("llm_response")), mapping(event.get("llm_request"))
    usage = mapping(response.get("usageMetadata"))
    candidates = response.get("candidates")
    over = isinstance(candidates, list) and any(mapping(one).get("finishReason") for one in candidates)
    if not over or not usage:
        return None
    at = optional(event, "timestamp")
    return Used(f"gemini:{at}:{usage.get('totalTokenCount')}", str(request.get("model") or ""), usage)


def write(told: Told, said: Said) -> Answer:
    """
    See `Client.write`.
    """
    if said.notice is not None:
        return {"systemMessage": said.notice}
    if said.final:
        return claude.specific(told.event, toolConfig={"mode": "NONE"})
    envelope = said.envelope
    if envelope is None:
        return {}
    if told.kind == "before":
        if said.asks:
            return {"decision": "ask", "reason": envelope.to_json(), "systemMessage": envelope.to_json()}
        return deny(envelope.to_json())
    if told.kind != "after":
        return {}
    text = shortened(mapping(told.response).get("llmContent"), envelope)
    if text is not None:
        return {"decision": "deny", "reason": text}
    context = beside(envelope)
    return {} if context is None else claude.specific(told.event, additionalContext=context)


def tool_of(name: str) -> Tool:
    """
    See `Client.tool_of`.
    """
    return of_gemini(name)


def deny(reason: str) -> Answer:
    """
    See `Client.deny`.
    """
    return {"decision": "deny", "reason": reason}


def used(lines: Iterable[bytes], told: Told) -> list[Used]:
    """
    See `Client.used`. A message is written again when it changes, with its tokens once they are known.
    """
    found: dict[str, Used] = {}
    for line in lines:
        if b'"tokens"' not in line:
            continue
        value = parsed(line)
        tokens, key = mapping(value.get("tokens")), value.get("id")
        if value.get("type") == "gemini" and tokens and isinstance(key, str):
            model = value.get("model")
            found[key] = Used(
                f"gemini:{key}", model if isinstance(model, str) else "", _usage(tokens), at_ms(value.get("timestamp"))
            )
    return list(found.values())


def _usage(tokens: Mapping[str, Any]) -> dict[str, Any]:
    """
    Usage in the form of Google.
    """
    return {
        "promptTokenCount": tokens.get("input"),
        "candidatesTokenCount": tokens.get("output"),
        "cachedContentTokenCount": tokens.get("cached"),
        "thoughtsTokenCount": tokens.get("thoughts"),
        "toolUsePromptTokenCount": tokens.get("tool"),
        "totalTokenCount": tokens.get("total"),
    }


def ended(line: bytes, call_id: str) -> bool:
    """
    See `Client.ended`. Calls have no ids of the client.
    """
    return False


def project(lines: Iterable[bytes]) -> str | None:
    """
    See `Client.project`. Its own folder stays where it began.
    """
    return None
