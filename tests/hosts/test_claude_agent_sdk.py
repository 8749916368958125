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


NO_OFF = (
    "tools stay on to the end of a run: no answer of a hook turns them off (types.py:815, SyncHookJSONOutput), so that this "
    "model, which answers only then, is stopped, and the digest is the answer"
)
NO_REPLACEMENT = (
    "what a failed call reads stays, with the envelope beside it: PostToolUseFailureHookSpecificOutput (types.py:579) has "
    "`additionalContext` alone"
)
NO_TIMEOUT = "a hook ends no tool that runs (types.py:551, PreToolUseHookSpecificOutput): the timeout is Claude Code's"


class Driver:
    """
    `query`, with every result as an envelope.
    """

    name = "claude_agent_sdk"
    cannot: ClassVar[Mapping[str, str]] = {
        "test_a_stuck_model_comes_to_a_final_answer": NO_OFF,
        "test_a_model_at_the_cap_comes_to_a_final_answer": NO_OFF,
        "test_a_synchronous_run_comes_to_a_final_answer_too": NO_OFF,
        "test_text_is_streamed_in_pieces_and_the_guards_are_the_same": NO_OFF,
        "test_a_model_that_calls_with_tools_off_is_asked_once_more_and_the_digest_is_the_answer": NO_OFF,
        "test_a_structured_output_is_valid_at_the_end_too": NO_OFF,
        "test_a_second_run_of_a_thread_goes_on_with_its_budget_and_more_can_be_given": NO_OFF,
        "test_a_sub_agent_uses_the_budget_of_who_asks_it": NO_OFF,
        "test_a_model_is_stopped_by_a_limit_of_turns": NO_OFF,
        "test_a_stuck_model_before_a_store_that_is_gone_comes_to_an_end": NO_OFF,
        "test_an_exception_in_a_tool_is_data_and_the_run_goes_on": NO_REPLACEMENT,
        "test_a_tool_that_takes_too_long_is_given_up": NO_TIMEOUT,
        "test_a_synchronous_tool_that_takes_too_long_is_given_up": NO_TIMEOUT,
        "test_a_forced_tool_choice_holds_for_the_first_request_only": "ClaudeAgentOptions (types.py:2430) has no tool choice",
        "test_a_pause_of_one_call_runs_the_others_of_its_turn_once": "Claude Code defers the only call of a turn, and no other: "
        "ResultMessage has one `deferred_tool_use` (types.py:1782)",
    }

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
