"""
The clients: how each tells its events, and how it is answered.
"""

import json
import os
import re

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Final, Literal, NamedTuple

from guardrails.core.envelope import Envelope
from guardrails.core.tool import Tool
from guardrails.core.values.types import Failed

from .results import Line, at_ms, blocks_of, cut, mapping, notes_of, read_response, shortened


Answer = dict[str, Any]
Kind = Literal[
    "before", "after", "failed", "denied", "choice", "model", "prompt", "agent_stopped", "stopped", "started"
]
"""
A call is to be made; it was made, with a result or without one; a person, or the client, refused it. The model is to be asked,
and may have tools; a response of it came; the user has written; a sub-agent, and the model, has answered; the program has started.
"""
MISSING: Final = {"request": "no client tells of its model requests", "run": "the client runs its tools itself"}
"""What guards may need and hooks have not, with the words for it."""
_WRAPPED: Final = r"(?s)\A<untrusted_context>\n(.*?)\n?</untrusted_context>\s*\Z"
"""Of Gemini CLI alone: compiled where it is used, since each event is a process."""
_VOLATILE: Final = r"(?m)^(?:Process Group PGID|Background PIDs): (?:\(none\)|[\d, ()]{0,400})\n?"
_EXIT: Final = r"""(?mx)^(?:Exit\ Code:\ (?!0$)-?\d{1,10}|Signal:\ (?!0$)\w{1,20})$
    (?=(?:\n(?:Exit\ Code|Signal|Background\ PIDs|Process\ Group\ PGID):[^\n]*){0,4}\s*+(?:</untrusted_context>\s*+)?\Z)"""
"""What stands behind the output of a command that failed; in versions of 2025 a 0 there tells that it worked."""
_SHELL: Final = "run_shell_command"


@cache
def _declared(client: "Client") -> Mapping[str, Mapping[str, Any]]:
    """
    Declarations of the tools that a *client* brings along: those that only look and that the policy `default` does not know by name, and those
    that take paths and commands. A policy's `tools:` rules stand above them, key by key. A tool that is not here changes something. Labels are
    arguments that only tell a person the purpose of a call, in other words each time. The tools of Codex are named as its rollouts call them, too.
    A sub-agent, and above it a command, may run for a day before nobody expects that their end is told.
    """
    with open(os.path.join(os.path.dirname(__file__), "declared.json"), encoding="utf-8") as file:
        declared = json.load(file)[client.name]
    read = {names: _of_json(settings) for names, settings in declared.items()}
    return {name: settings for names, settings in read.items() for name in names.split()}


def _of_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}


class Event:
    """
    One event of a client. A field that it does not say is None, or empty.
    """

    def __init__(self, kind: Kind, payload: Mapping[str, Any]) -> None:
        self.kind, self.payload = kind, payload
        self.name, self.session = self.text("hook_event_name"), self.text("session_id")
        self.agent = self.text("agent_id") or None
        """The sub-agent whose event it is; None: the session's own, or nobody says."""
        self.tool, self.call_id = self.text("tool_name"), self.text("tool_use_id") or None
        self.arguments: Any = payload.get("tool_input") or {}
        self.response: Any = payload.get("tool_response")
        """What the tool gave back, in the client's form."""
        self.answer = self.text("last_assistant_message") or self.text("prompt_response")
        """What the model said last."""
        self.cwd = self.text("cwd")

    def text(self, name: str) -> str:
        """
        The text that it has for *name*; empty if there is none.
        """
        value = self.payload.get(name)
        return value if isinstance(value, str) else ""


class Used(NamedTuple):
    """
    The usage of one response of a model.
    """

    key: str
    """What tells it from all others of its session."""
    model: str
    usage: Mapping[str, Any]
    at_ms: int | None = None


class Client:
    """
    A coding CLI: its events, and the answers to it as it reads them; `{}`: no opinion. This is Claude Code, whose form the others have in part.
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
    """The events that are answered."""
    name: ClassVar[str] = "claude"
    marks: ClassVar[tuple[bytes, ...]] = (b'"usage"', b'"tool_result"')
    """Of the lines of its transcript that tell what responses used."""
    stops: ClassVar[bool] = True
    """A run may be ended before a call; its person reads the digest."""
    hiding: ClassVar[frozenset[str]] = frozenset()
    """Tools that run a sub-agent whose events do not say that they are its."""

    def read(self, payload: Mapping[str, Any]) -> Event | None:
        """
        Returns the event of a *payload*; None if it is none that is answered. Raises ValueError if it names no tool.
        """
        name = payload.get("hook_event_name")
        kind = self.kinds.get(name) if isinstance(name, str) else None
        event = None if kind is None else Event(kind, payload)
        if event is not None and kind in ("before", "after") and not event.tool:
            raise ValueError("a call names no tool")
        return event

    def tool_of(self, name: str) -> Tool | None:
        """
        Returns the declaration of one of its tools; None if nothing is known of it.
        """
        settings = _declared(self).get(name)
        return None if settings is None else Tool(name=name, **settings)

    def outcome(self, event: Event) -> Any:
        """
        Returns the outcome of a call that was made: a value, or `Failed`.
        """
        if event.kind == "failed":
            interrupted, told = bool(event.payload.get("is_interrupt")), str(event.payload.get("error") or "it failed")
            # As it tells that a server went away, or gave no answer in time.
            unknown = interrupted or told.startswith(("MCP error -32000:", "MCP error -32001:"))
            return Failed(told, error_type="cancelled" if interrupted else None, unknown=unknown)
        content = mapping(event.response).get("content")
        if event.tool in ("Agent", "Task") and isinstance(content, list):
            # The words of a sub-agent, without the figures of its run.
            return "\n".join(str(mapping(block).get("text", "")) for block in content)
        return read_response(event.response)

    def refuse(self, reason: str) -> Answer:
        """
        Returns the answer before a call that refuses it.
        """
        return specific("PreToolUse", permissionDecision="deny", permissionDecisionReason=reason)

    def ask(self, reason: str) -> Answer:
        """
        Returns the answer before a call that a person may let run. A client that cannot ask refuses it.
        """
        return specific("PreToolUse", permissionDecision="ask", permissionDecisionReason=reason)

    def result(self, event: Event, envelope: Envelope, *, envelopes: bool = False) -> Answer:
        """
        Returns the answer after a call: what the model reads beside its result, or in place of one that was cut, in the shape of its tool.
        With *envelopes* the texts of a server's result read as an envelope.
        """
        blocks = blocks_of(event.response)
        if envelopes and blocks and all(block.get("type") == "text" for block in blocks):
            made = [{"type": "text", "text": envelope.to_json("nested")}]
            whole = {"content": made} if isinstance(event.response, dict) else made
            return specific(event.name, updatedToolOutput=whole)
        if not envelope.cut or envelope.rendered is None:
            return context(event, envelope)
        return context(event, envelope, updatedToolOutput=cut(event.response, len(envelope.rendered.payload)))

    def transcript(self, event: Event) -> str:
        """
        Returns the path of the file of who tells *event*. The file of the agent above a sub-agent has responses that are not its own.
        """
        path, agent = event.text("agent_transcript_path") or event.text("transcript_path"), event.agent or ""
        if not agent or event.text("agent_transcript_path"):
            return path
        plain = agent.replace("-", "").replace("_", "").isalnum() and path.endswith(".jsonl")
        return f"{path.removesuffix('.jsonl')}/subagents/agent-{agent}.jsonl" if plain else ""

    def used(self, lines: Iterable[Line], event: Event) -> list[Used]:
        """
        Returns the responses of the model that *event*, or the *lines* of its transcript, tell, oldest first: those that are whole.
        """
        responses: dict[str, Used] = {}
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
            responses[key] = Used(f"claude:{key}", model, usage, at_ms(line.get("timestamp")))
            calls.setdefault(key, set()).update(str(one.get("id")) for one in pieces if one.get("type") == "tool_use")
        last = next(reversed(responses), None)
        # The latest is whole once all of its calls have ended.
        if last is not None and event.kind not in ("stopped", "agent_stopped") and not calls[last] <= results:
            del responses[last]
        return list(responses.values())


class Codex(Client):
    """
    Codex CLI. Nobody is asked before a call, and nothing stops a run: both make the call run.
    """

    kinds: ClassVar[Mapping[str, Kind]] = {
        name: kind for name, kind in Client.kinds.items() if kind not in ("denied", "failed")
    }
    name = "codex"
    marks = (b"token_count", b'"turn_context"')
    stops = False

    def read(self, payload: Mapping[str, Any]) -> Event | None:
        event = super().read(payload)
        if event is not None and event.tool == "Bash" and isinstance(event.arguments, dict) and event.cwd:
            # Where a command runs is said by the event alone; elsewhere it is another call.
            event.arguments = {"workdir": event.cwd, **event.arguments}
        return event

    def ask(self, reason: str) -> Answer:
        return self.refuse(reason)

    def result(self, event: Event, envelope: Envelope, *, envelopes: bool = False) -> Answer:
        text = shortened(event.response, envelope)
        return {"decision": "block", "reason": text} if text else context(event, envelope)

    def transcript(self, event: Event) -> str:
        return event.text("agent_transcript_path") or event.text("transcript_path")

    def used(self, lines: Iterable[Line], event: Event) -> list[Used]:
        # The same count is written again when something else has changed: its sum tells it.
        responses: dict[int, Used] = {}
        model = event.payload.get("model")
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
                responses.setdefault(at, Used(f"codex:{at}", str(model or ""), usage, at_ms(line.get("timestamp"))))
        return list(responses.values())


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
    name = "gemini"
    marks = ()
    stops = False
    hiding = frozenset({"invoke_agent"})

    def tool_of(self, name: str) -> Tool:
        known = super().tool_of(name) or Tool(name=name)
        # It adds to the arguments of every tool when it is to run.
        return replace(known, labels=(*known.labels, "wait_for_previous"))

    def outcome(self, event: Event) -> Any:
        response = mapping(event.response)
        content = _text(response.get("llmContent"))
        text = plain_text(event.tool, content) if isinstance(content, str) else ""
        if response.get("error"):
            return Failed(text or str(mapping(response["error"]).get("message") or "it failed"))
        if shell_failed(event.tool, text):
            return Failed(text)
        return read_response(text or content if "llmContent" in response else event.response)

    def refuse(self, reason: str) -> Answer:
        return {"decision": "deny", "reason": reason}

    def ask(self, reason: str) -> Answer:
        return {"decision": "ask", "reason": reason, "systemMessage": reason}

    def result(self, event: Event, envelope: Envelope, *, envelopes: bool = False) -> Answer:
        text = shortened(mapping(event.response).get("llmContent"), envelope)
        return self.refuse(text) if text else context(event, envelope)

    def used(self, lines: Iterable[Line], event: Event) -> list[Used]:
        # The last piece of a response tells what it used.
        response = mapping(event.payload.get("llm_response"))
        usage, candidates = mapping(response.get("usageMetadata")), response.get("candidates")
        pieces = candidates if isinstance(candidates, list) else []
        if not usage or not any(mapping(one).get("finishReason") for one in pieces):
            return []
        model, time = mapping(event.payload.get("llm_request")).get("model"), event.payload.get("timestamp")
        return [Used(f"gemini:{time}:{usage.get('totalTokenCount')}", str(model or ""), usage)]


CLIENTS: Final[Mapping[str, Client]] = {"claude": Client(), "codex": Codex(), "gemini": Gemini()}


def client_of(payload: Mapping[str, Any]) -> Client:
    """
    The client of a *payload*, as far as it says so.
    """
    if "timestamp" in payload and "turn_id" not in payload:
        return CLIENTS["gemini"]
    codex = "turn_id" in payload or ("model" in payload and "permission_mode" in payload and "prompt_id" not in payload)
    return CLIENTS["codex" if codex else "claude"]


def specific(event: str, **fields: Any) -> Answer:
    """
    Returns the answer to the *event* of that name.
    """
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def context(event: Event, envelope: Envelope, **fields: Any) -> Answer:
    """
    Returns the answer to the end of a call with the notes of *envelope*.
    """
    note = notes_of(envelope)
    more = fields if note is None else {"additionalContext": note, **fields}
    return specific(event.name, **more) if more else {}


def plain_text(tool: str, text: str) -> str:
    """
    The *text* of a result without the ids of processes, which are others in each run.
    """
    wrapped = re.match(_WRAPPED, text)
    inner = wrapped[1] if wrapped is not None else text
    return re.sub(_VOLATILE, "", inner).rstrip("\n") if tool == _SHELL else inner


def shell_failed(tool: str, text: str) -> bool:
    """
    Returns whether *text* is what a command has written that failed.
    """
    return tool == _SHELL and re.search(_EXIT, text) is not None


def _text(content: Any) -> Any:
    """
    Parts of Gemini that are text and nothing else, as one text.
    """
    parts = [content] if isinstance(content, dict) else content if isinstance(content, list) else []
    if parts and all(isinstance(part, dict) and part.keys() == {"text"} for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    return content
