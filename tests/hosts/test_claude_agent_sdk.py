"""
Claude Agent SDK behind the guards: its real control protocol, with Claude Code played by a scripted `Transport`.
"""

import asyncio
import functools
import inspect
import json
import uuid

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest


pytest.importorskip("claude_agent_sdk")

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    ResultMessage,
    SdkMcpTool,
    StreamEvent,
    create_sdk_mcp_server,
    query,
)
from pydantic import create_model

from guardrails.integrations.claude_agent_sdk import GuardrailsHooks

from .claude_cli import Agent, ClaudeCode, Conversation
from .contract import Contract
from .driver import Helper, Ran, Script, cancelled


class Driver:
    """
    `query`, with every result as an envelope.
    """

    name = "claude_agent_sdk"
    cannot: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self.kept: dict[str, Conversation] = {}

    def adapter(self, guarded: Any, **options: Any) -> GuardrailsHooks:
        return GuardrailsHooks(guarded, envelopes=True, **options)

    def run(
        self,
        adapter: Any,
        tools: Sequence[Callable[..., Any]],
        script: Script,
        *,
        prompt: str = "go",
        thread: str | None = None,
        stream: bool = False,
        sync: bool = False,
        choice: str | None = None,
        output: Any = None,
        helper: Helper | None = None,
        pausing: Sequence[str] = (),
        resume: bool | None = None,
        cancel: Any = None,
        **more: Any,
    ) -> Ran:
        ran, agent = Ran(), Agent(script, "tools")
        ran.asked = agent.seen
        kept = Conversation() if thread is None else self.kept.setdefault(thread, Conversation())
        name = thread or str(uuid.uuid4())
        code = ClaudeCode(agent, ran, session_id=name, kept=kept, helper=helper, stream=stream, **more)
        given = ClaudeAgentOptions(
            mcp_servers={"tools": served("tools", tools), "helper": served("helper", helper.tools if helper else ())},
            hooks={"PreToolUse": [HookMatcher(hooks=[deferring(pausing)])]} if pausing and not resume else None,
            include_partial_messages=stream,
        )
        if adapter is not None:
            adapter.declare(*(sdk_tool(one) for one in (*tools, *(helper.tools if helper else ()))))
        work = self._work(adapter, prompt, given, code, ran)
        try:
            asyncio.run(work if cancel is None else cancelled(work, cancel))
        except BaseException as error:
            ran.error = error
        if ran.paused:
            ran.unanswered = []
        return ran

    @staticmethod
    async def _work(adapter: Any, prompt: str, given: Any, code: ClaudeCode, ran: Ran) -> None:
        options = given if adapter is None else adapter.options(given)
        messages = query(prompt=prompt, options=options, transport=code)
        async for message in messages if adapter is None else adapter.charging(messages):
            if isinstance(message, StreamEvent):
                ran.streamed.append(message.event["delta"]["text"])
            if isinstance(message, ResultMessage):
                ran.answer, ran.output = message.result, message.structured_output


def served(name: str, tools: Sequence[Callable[..., Any]]) -> Any:
    """
    An in-process server of the SDK with *tools*.
    """
    return create_sdk_mcp_server(name, tools=[sdk_tool(one) for one in tools])


def sdk_tool(function: Callable[..., Any]) -> SdkMcpTool[Any]:
    fields: dict[str, Any] = {
        each.name: (each.annotation, ... if each.default is each.empty else each.default)
        for each in inspect.signature(function).parameters.values()
    }
    schema = create_model(function.__name__, **fields).model_json_schema()

    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        if inspect.iscoroutinefunction(function):
            value = await function(**arguments)
        else:
            value = await asyncio.to_thread(functools.partial(function, **arguments))
        return {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]}

    return SdkMcpTool(function.__name__, inspect.getdoc(function) or "", {"properties": {}, **schema}, run)


def deferring(names: Sequence[str]) -> Any:
    """
    A hook of the user's that lets calls of *names* wait for a person.
    """

    async def hook(event: Any, tool_use_id: Any, context: Any) -> Any:
        if event["tool_name"] not in names:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "defer"}}

    return hook


class TestClaudeAgentSdk(Contract):
    driver = Driver
