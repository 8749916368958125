"""
Gemini CLI: its events, and what it reads. Its calls have no ids, and the events of a sub-agent do not say whose they are.
"""

import re

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import Failed
from guardrails.hooks.results import read_response, shortened
from guardrails.hooks.tools import of_gemini
from guardrails.hooks.transcripts import Line, mapping

from .client import Answer, Client, Event, Kind, Used


_WRAPPED: Final = re.compile(r"\A<untrusted_context>\n(.*?)\n?</untrusted_context>\s*\Z", re.DOTALL)
_VOLATILE: Final = re.compile(r"^(?:Process Group PGID|Background PIDs): (?:\(none\)|[\d, ()]{0,400})\n?", re.MULTILINE)
_EXIT: Final = re.compile(
    r"""^(?:Exit\ Code:\ (?!0$)-?\d{1,10}|Signal:\ (?!0$)\w{1,20})$
    (?=(?:\n(?:Exit\ Code|Signal|Background\ PIDs|Process\ Group\ PGID):[^\n]*){0,4}\s*+(?:</untrusted_context>\s*+)?\Z)""",
    re.MULTILINE | re.VERBOSE,
)
"""What stands behind the output of a command that failed; in versions of 2025 a 0 there tells that it worked."""
_SHELL: Final = "run_shell_command"


class Gemini(Client):
    """
    Gemini CLI. A result is replaced by a text, which reads as an error.
    """

    kinds: ClassVar[Mapping[str, Kind]] = {
        "SessionStart": "started",
        "BeforeAgent": "prompt",
        "BeforeToolSelection": "choice",
        "AfterModel": "model",
        "BeforeTool": "before",
        "AfterTool": "after",
        "AfterAgent": "stopped",
    }
    hiding = frozenset({"invoke_agent"})

    def tool_of(self, name: str) -> Tool:
        return of_gemini(name)

    def outcome(self, event: Event) -> Any:
        said = mapping(event.response)
        content = _text(said.get("llmContent"))
        text = plain_text(event.tool, content) if isinstance(content, str) else ""
        if said.get("error"):
            return Failed(text or str(mapping(said["error"]).get("message") or "it failed"))
        if shell_failed(event.tool, text):
            return Failed(text)
        return read_response(text or content if "llmContent" in said else event.response)

    def refuse(self, reason: str) -> Answer:
        return {"decision": "deny", "reason": reason}

    def ask(self, reason: str) -> Answer:
        return {"decision": "ask", "reason": reason, "systemMessage": reason}

    def result(self, event: Event, envelope: Envelope, *, envelopes: bool = False) -> Answer:
        text = shortened(mapping(event.response).get("llmContent"), envelope)
        return self.refuse(text) if text else super().result(event, envelope)

    def used(self, lines: Iterable[Line], event: Event) -> list[Used]:
        """
        See `Client.used`. The last piece of a response tells what it used.
        """
        response = mapping(event.said.get("llm_response"))
        usage, candidates = mapping(response.get("usageMetadata")), response.get("candidates")
        if (
            not usage
            or not isinstance(candidates, list)
            or not any(mapping(one).get("finishReason") for one in candidates)
        ):
            return []
        model = mapping(event.said.get("llm_request")).get("model")
        return [Used(f"gemini:{event.said.get('timestamp')}:{usage.get('totalTokenCount')}", str(model or ""), usage)]


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


def _text(content: Any) -> Any:
    """
    Parts of Gemini that are text and nothing else, as one text.
    """
    parts = [content] if isinstance(content, dict) else content if isinstance(content, list) else []
    if parts and all(isinstance(part, dict) and part.keys() == {"text"} for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    return content
