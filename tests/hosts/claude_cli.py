"""
Claude Code as the tests play it: the other end of the SDK's control protocol, with a scripted model and a loop of calls.

It asks hooks, permissions and the SDK's own servers as Claude Code does, under `CLAUDE_AGENT_SDK_MCP_NO_PREFIX`, by which tools
of such servers keep their names.
"""

import asyncio
import contextlib
import itertools
import json
import math

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio

from claude_agent_sdk import Transport

from .driver import HELPER, MODEL, Asked, Call, Helper, Ran, Say, Script


MAX_REQUESTS: Final = 30
"""So many, unless it is told otherwise: Claude Code itself has no such limit."""
TOOL_TIMEOUT: Final = 3.0
"""Seconds after which it gives up a tool of a server, as `MCP_TOOL_TIMEOUT` says."""
_IDS: Final = itertools.count()


@dataclass
class Conversation:
    """
    What Claude Code keeps of a session.
    """

    results: list[str] = field(default_factory=list)
    deferred: dict[str, Any] | None = None


@dataclass
class Agent:
    """
    An agent, or a sub-agent of the *id*, with the tools of *server*.
    """

    script: Script
    server: str
    id: str | None = None
    seen: list[Asked] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    tools: dict[str, Any] = field(default_factory=dict)
    stopped: bool = False
    text: str = ""
    parent_tool_use_id: str | None = None


@dataclass(eq=False)
class ClaudeCode(Transport):
    """
    One run of it. *prefixed*: tools of servers have the server's name before theirs, as Claude Code has it by default.
    """

    agent: Agent
    ran: Ran
    session_id: str = field(kw_only=True)
    kept: Conversation = field(default_factory=Conversation)
    helper: Helper | None = None
    stream: bool = False
    cost_usd: float | None = None
    prefixed: bool = False
    most: float = MAX_REQUESTS
    outputs: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """What the hooks answered, by event."""

    def __post_init__(self) -> None:
        self._tx, self._rx = anyio.create_memory_object_stream[Any](math.inf)
        self._hooks: dict[str, list[str]] = {}
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._denials: list[Any] = []
        self._usage = {"input_tokens": 0, "output_tokens": 0}
        self._run_task: asyncio.Task[None] | None = None

    # The transport

    async def connect(self) -> None:
        pass

    async def write(self, data: str) -> None:
        message = json.loads(data)
        if message["type"] == "control_request":
            request = message["request"]
            if request["subtype"] == "initialize":
                for event, matchers in (request["hooks"] or {}).items():
                    self._hooks[event] = [one for matcher in matchers for one in matcher["hookCallbackIds"]]
            said = {"hook_on_failure_supported": True, "hooks_applied": True}
            response = {"subtype": "success", "request_id": message["request_id"], "response": said}
            self._send({"type": "control_response", "response": response})
        elif message["type"] == "control_response":
            response = message["response"]
            future = self._waiting.pop(response["request_id"])
            if not future.done() and response["subtype"] == "error":
                future.set_exception(RuntimeError(response["error"]))
            elif not future.done():
                future.set_result(response["response"])
        else:
            self._run_task = asyncio.ensure_future(self._run(message["message"]["content"]))
            self._run_task.add_done_callback(self._over)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        async for message in self._rx:
            if isinstance(message, BaseException):
                raise message
            yield message

    async def close(self) -> None:
        if self._run_task is not None:
            self._run_task.cancel()
        self._tx.close()
        self._rx.close()

    async def end_input(self) -> None:
        self._tx.close()

    def is_ready(self) -> bool:
        return True

    def _over(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception() is not None:
            self._send(task.exception())

    def _send(self, message: Any) -> None:
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._tx.send_nowait(message)

    async def _ask(self, **request: Any) -> Any:
        key = f"r-{next(_IDS)}"
        self._waiting[key] = asyncio.get_running_loop().create_future()
        self._send({"type": "control_request", "request_id": key, "request": request})
        return await self._waiting[key]

    async def hooks(self, agent: Agent, event: str, **said: Any) -> list[dict[str, Any]]:
        """
        What the hooks of *event* answer, all asked at once.
        """
        told = {"hook_event_name": event, "session_id": self.session_id, "transcript_path": "", "cwd": "", **said}
        if agent.id is not None:
            told |= {"agent_id": agent.id, "agent_type": "helper"}
        asked = [
            self._ask(subtype="hook_callback", callback_id=one, input=told, tool_use_id=said.get("tool_use_id"))
            for one in self._hooks.get(event, ())
        ]
        answers = list(await asyncio.gather(*asked))
        self.outputs += [(event, one) for one in answers]
        agent.stopped |= any(one.get("continue") is False for one in answers)
        return answers

    async def _mcp(self, server: str, method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "method": method, "params": params, "id": next(_IDS)}
        said = await self._ask(subtype="mcp_message", server_name=server, message=message)
        return said["mcp_response"]["result"]

    async def _list(self, agent: Agent) -> None:
        about = {"clientInfo": {"name": "claude-code", "version": "2"}, "capabilities": {}}
        await self._mcp(agent.server, "initialize", protocolVersion="2025-06-18", **about)
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self._ask(subtype="mcp_message", server_name=agent.server, message=initialized)
        listed = await self._mcp(agent.server, "tools/list")
        agent.tools = {self._prefix(agent) + tool["name"]: tool for tool in listed["tools"]}

    def _prefix(self, agent: Agent) -> str:
        return f"mcp__{agent.server}__" if self.prefixed else ""

    # The loop

    async def _run(self, prompt: str) -> None:
        agent = self.agent
        agent.results = self.kept.results
        self._send({"type": "system", "subtype": "init", "session_id": self.session_id, "uuid": "i"})
        await self._list(agent)
        deferred, self.kept.deferred = self.kept.deferred, None
        if deferred is not None:
            await self._call(agent, deferred)
        else:
            await self.hooks(agent, "UserPromptSubmit", prompt=prompt)
        said = await self._loop(agent)
        reason = "hook_stopped" if agent.stopped else "tool_deferred" if self.kept.deferred else "completed"
        if reason == "completed":
            more = {"stop_hook_active": False, "last_assistant_message": agent.text, "background_tasks": []}
            await self.hooks(agent, "Stop", **more)
        whole = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": len(agent.seen), "session_id": self.session_id}
        result = {"subtype": "success", "is_error": False, "result": agent.text, "terminal_reason": reason, **whole}
        if len(agent.seen) >= self.most:
            result |= {"subtype": "error_max_turns", "is_error": True, "result": None}
        if said is not None and said.output is not None:
            result["structured_output"] = said.output
        result |= {"usage": self._usage, "total_cost_usd": self.cost_usd, "permission_denials": self._denials}
        self._send({"type": "result", "uuid": f"u-{next(_IDS)}", "deferred_tool_use": self.kept.deferred, **result})

    async def _loop(self, agent: Agent) -> Say | None:
        said = None
        while not agent.stopped and self.kept.deferred is None and len(agent.seen) < self.most:
            names = [*agent.tools, *([HELPER] if self.helper is not None and agent.id is None else [])]
            asked = Asked(len(agent.seen), tuple(names), None, tuple(agent.results), agent.tools)
            agent.seen.append(asked)
            said = agent.script(asked)
            agent.text = said.text
            calls = [self._made(one) for one in said.calls]
            self._tell(agent, said, calls)
            if not calls:
                break
            alone = len(calls) == 1
            for call_id, text in await asyncio.gather(*(self._call(agent, one, alone=alone) for one in calls)):
                block = {"type": "tool_result", "tool_use_id": call_id, "content": text}
                self._message(agent, "user", {"role": "user", "content": [block]})
        return said

    def _made(self, call: Call) -> dict[str, Any]:
        made: Any = {}
        with contextlib.suppress(ValueError):
            made = call.values
        return {"id": call.key, "name": call.tool, "input": made}

    def _tell(self, agent: Agent, said: Say, calls: Sequence[Mapping[str, Any]]) -> None:
        for word in said.words if self.stream and agent.id is None else ():
            delta = {"type": "text_delta", "text": word}
            event = {"type": "content_block_delta", "index": 0, "delta": delta}
            self._send({"type": "stream_event", "uuid": "s", "session_id": self.session_id, "event": event})
        usage = None if said.usage is None else dict(zip(("input_tokens", "output_tokens"), said.usage, strict=True))
        for name, count in (usage or {}).items() if agent.id is None else ():
            self._usage[name] += count
        blocks: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text or not calls else []
        key = f"msg_{next(_IDS)}"
        # As Claude Code does: a message for each block, of one id and one usage.
        for block in [*blocks, *({"type": "tool_use", **call} for call in calls)]:
            whole = {"id": key, "role": "assistant", "model": MODEL, "content": [block]}
            self._message(agent, "assistant", whole | ({} if usage is None else {"usage": usage}))

    def _message(self, agent: Agent, kind: str, message: Mapping[str, Any]) -> None:
        known = {"session_id": self.session_id, "parent_tool_use_id": agent.parent_tool_use_id}
        self._send({"type": kind, "message": message, "uuid": f"u-{next(_IDS)}", **known})

    # One call

    async def _call(self, agent: Agent, call: dict[str, Any], *, alone: bool = True) -> tuple[str, str]:
        told = {"tool_name": call["name"], "tool_input": call["input"], "tool_use_id": call["id"]}
        text = await self._result(agent, call, told, alone=alone)
        if text is None:
            self.ran.unanswered.append(call["id"])
            return call["id"], ""
        agent.results.append(text)
        return call["id"], text

    async def _result(self, agent: Agent, call: dict[str, Any], told: dict[str, Any], *, alone: bool) -> str | None:
        asked = [one.get("hookSpecificOutput", {}) for one in await self.hooks(agent, "PreToolUse", **told)]
        said = {one.get("permissionDecision"): one.get("permissionDecisionReason", "") for one in asked}
        if "deny" in said:
            self._denials.append(told)
            return str(said["deny"])
        if "defer" in said and alone:
            self.kept.deferred = call
            self.ran.paused.append(call["name"])
            return None
        if "ask" in said:
            reason = said["ask"] or ""
            asks = {"subtype": "can_use_tool", "tool_name": call["name"], "input": call["input"], "agent_id": agent.id}
            allowed = await self._ask(**asks, tool_use_id=call["id"], decision_reason=reason, permission_suggestions=[])
            if allowed["behavior"] == "deny":
                self._denials.append(told)
                return str(allowed["message"])
        if call["name"] == HELPER and self.helper is not None:
            output: Any = [{"type": "text", "text": await self._help(call, self.helper)}]
            failed = False
        else:
            name = call["name"].removeprefix(self._prefix(agent))
            try:
                work = self._mcp(agent.server, "tools/call", name=name, arguments=call["input"])
                answered = await asyncio.wait_for(work, TOOL_TIMEOUT)
            except TimeoutError:
                answered = {"content": [{"type": "text", "text": "the tool timed out"}], "isError": True}
            output, failed = answered["content"], answered.get("isError", False)
        about = (
            ("PostToolUseFailure", {"error": _text(output)}) if failed else ("PostToolUse", {"tool_response": output})
        )
        said_by = await self.hooks(agent, about[0], **told, **about[1])
        beside = []
        for one in (answer.get("hookSpecificOutput", {}) for answer in said_by):
            output = one.get("updatedToolOutput", output)
            beside.append(one.get("additionalContext", ""))
        return "\n".join(text for text in (_text(output), *beside) if text)

    async def _help(self, call: Mapping[str, Any], helper: Helper) -> str:
        agent = Agent(helper.script, "helper", id=f"a-{next(_IDS)}", parent_tool_use_id=call["id"])
        await self._list(agent)
        await self.hooks(agent, "SubagentStart")
        await self._loop(agent)
        more = {"stop_hook_active": False, "agent_transcript_path": "", "last_assistant_message": agent.text}
        await self.hooks(agent, "SubagentStop", **more)
        return agent.text


def _text(content: Any) -> str:
    return "\n".join(str(block.get("text", "")) for block in content)
