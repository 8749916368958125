"""
Claude Agent SDK behind the guards: its real control protocol, with Claude Code played by a scripted `Transport`.
"""

import asyncio
import inspect
import json
import math
import uuid

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import pytest


pytest.importorskip("claude_agent_sdk")

import claude_agent_sdk

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    SdkMcpTool,
    StreamEvent,
    create_sdk_mcp_server,
    query,
)
from pydantic import create_model

from guardrails import Approve, Budget, Policy
from guardrails.integrations.claude_agent_sdk import GuardrailsHooks
from tests.tables import table

from .behaviours import PAY, Bank, Contract, Pages, envelope, in_turn, search, searching
from .claude_cli import MAX_REQUESTS, Agent, ClaudeCode, Conversation
from .driver import Asked, Call, Driver, Ran, Say, Script, Way, waited


NO_OFF = (
    "tools stay on to the end of a run: no answer of a hook turns them off (types.py:815, SyncHookJSONOutput). So this "
    "model, which answers only then, is stopped, and the digest is the answer"
)
NO_REPLACEMENT = (
    "what a failed call reads stays, with the envelope beside it: PostToolUseFailureHookSpecificOutput (types.py:579) has "
    "`additionalContext` alone"
)
NO_OBJECT = (
    "a tool gives back blocks of content (__init__.py:267, SdkMcpTool): an object is a text there, and text stays text"
)
NO_STATE = (
    "a hook is told of a result by the id of its call (types.py:397, PostToolUseHookInput), which a store that is gone does not "
    "know: the result stays as the tool gave it. The conversation goes on"
)
NO_TIMEOUT = "a hook ends no tool that runs (types.py:551, PreToolUseHookSpecificOutput): the timeout is Claude Code's"


class ClaudeAgentSdk(Driver):
    """
    `query`, with every result as an envelope.
    """

    name = "claude_agent_sdk"
    kind = partial(GuardrailsHooks, envelopes=True)
    limits: Mapping[str, Any] = {"most": MAX_REQUESTS}
    cannot: ClassVar[Mapping[str, str]] = {
        "test_a_stuck_model_comes_to_a_final_answer": NO_OFF,
        "test_a_model_at_the_cap_comes_to_a_final_answer": NO_OFF,
        "test_text_is_streamed_in_pieces_and_the_guards_are_the_same": NO_OFF,
        "test_a_model_that_calls_with_tools_off_is_asked_once_more_and_the_digest_is_the_answer": NO_OFF,
        "test_a_structured_output_is_valid_at_the_end_too": NO_OFF,
        "test_a_second_run_of_a_thread_goes_on_with_its_budget_and_more_can_be_given": NO_OFF,
        "test_a_sub_agent_uses_the_budget_of_the_agent_that_asks_it": NO_OFF,
        "test_a_stuck_model_before_a_store_that_is_gone_comes_to_an_end": NO_OFF,
        "test_an_exception_in_a_tool_is_data_and_the_run_goes_on": NO_REPLACEMENT,
        "test_an_object_that_a_tool_returns_reads_as_one": NO_OBJECT,
        "test_a_store_that_fails_does_not_lose_the_conversation": NO_STATE,
        "test_a_tool_that_takes_too_long_is_given_up": NO_TIMEOUT,
        "test_a_forced_tool_choice_holds_for_the_first_request_only": "ClaudeAgentOptions (types.py:2430) has no tool choice",
        "test_a_pause_of_one_call_runs_the_others_of_its_turn_once": "Claude Code defers the only call of a turn, and no other: "
        "ResultMessage has one `deferred_tool_use` (types.py:1782)",
    }

    def __init__(self) -> None:
        self.kept: dict[str, Conversation] = {}

    def go(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, way: Way, ran: Ran) -> None:
        kept = Conversation() if way.thread is None else self.kept.setdefault(way.thread, Conversation())
        held = way.pausing and not way.resume
        options = ClaudeAgentOptions(
            hooks={"PreToolUse": [HookMatcher(hooks=[deferring(way.pausing)])]} if held else None,
            include_partial_messages=way.stream,
        )
        if adapter is not None:
            adapter.declare(*map(sdk_tool, (*tools, *(way.helper.tools if way.helper else ()))))
        asks = {"session_id": way.thread or str(uuid.uuid4()), "kept": kept, "most": math.inf, **self.limits}
        try:
            play(adapter, tools, script, ran, options, way, **asks)
        finally:
            ran.unanswered = [] if ran.paused else ran.unanswered

    @contextmanager
    def page(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        real = claude_agent_sdk.query

        def model(asked: Asked) -> Say:
            over = asked.results and "limit_reached" in asked.results[-1]
            return Say("I found nothing.") if over else Say(calls=(Call("mcp__web__search", {"query": "x"}),))

        def scripted(**given: Any) -> Any:
            return real(**given, transport=ClaudeCode(Agent(model, "web"), Ran(), session_id="t1", prefixed=True))

        # The model is Anthropic's, behind Claude Code: only its place is taken.
        monkeypatch.setattr(claude_agent_sdk, "query", scripted)
        yield


def play(
    guard: Any,
    tools: Sequence[Callable[..., Any]],
    script: Script,
    ran: Ran,
    options: ClaudeAgentOptions,
    way: Way,
    **more: Any,
) -> ClaudeCode:
    """
    A run of *script* behind *guard* with the user's own *options*.
    """
    code = ClaudeCode(Agent(script, "tools", seen=ran.asked), ran, helper=way.helper, stream=way.stream, **more)
    helping = way.helper.tools if way.helper else ()
    given = replace(options, mcp_servers={"tools": served("tools", tools), "helper": served("helper", helping)})

    async def work() -> None:
        messages = query(prompt=way.prompt, options=guard.options(given) if guard else given, transport=code)
        async for message in guard.charging(messages) if guard else messages:
            if isinstance(message, StreamEvent):
                ran.streamed.append(message.event["delta"]["text"])
            if isinstance(message, ResultMessage):
                ran.answer, ran.output = message.result, message.structured_output

    waited(work(), way)
    return code


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
            value = await asyncio.to_thread(partial(function, **arguments))
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


class TestClaudeAgentSdk(Contract, Pages):
    driver = ClaudeAgentSdk


# What is the SDK's own


def go(
    guard: Any, tools: Sequence[Callable[..., Any]], script: Script, options: Any = None, **more: Any
) -> tuple[Ran, ClaudeCode]:
    ran = Ran()
    return ran, play(guard, tools, script, ran, options or ClaudeAgentOptions(), Way(), session_id="t", **more)


def obedient(asked: Asked) -> Say:
    """
    A model that stops where it reads that it should.
    """
    over = asked.results and "final answer" in asked.results[-1]
    return Say("I know nothing of it.") if over else Say(calls=(search(f"q{asked.n}"),))


class Person:
    """
    A user who answers, and what was asked.
    """

    def __init__(self, answer: Any) -> None:
        self.answer, self.asked = answer, list[str]()

    async def can_use_tool(self, tool: str, arguments: Any, context: Any) -> Any:
        self.asked.append(tool)
        return self.answer


def test_a_model_that_reads_of_the_limit_answers_and_is_not_stopped() -> None:
    ran: list[str] = []
    done, code = go(GuardrailsHooks(Policy([Budget(max_calls=2)])), [searching(ran)], obedient)
    assert ran == ["q0", "q1"]
    assert done.answer == "I know nothing of it."
    assert not any("continue" in output for _, output in code.outputs)


def test_a_model_that_does_not_is_stopped_and_the_digest_is_the_result() -> None:
    ran: list[str] = []
    guard = GuardrailsHooks(Policy([Budget(max_calls=2)]))
    done, code = go(guard, [searching(ran)], lambda asked: Say("Once more.", calls=(search(f"q{asked.n}"),)))
    assert ran == ["q0", "q1"]
    assert len(done.asked) == 4
    assert done.answer == guard.session("t").digest()
    assert [output["stopReason"] for _, output in code.outputs if "continue" in output] == [done.answer]


def test_what_the_user_has_of_options_and_hooks_is_kept() -> None:
    async def own(event: Any, tool_use_id: Any, context: Any) -> Any:
        return {}

    theirs = HookMatcher(matcher="search", hooks=[own], timeout=5)
    given = ClaudeAgentOptions(max_turns=7, hooks={"PreToolUse": [theirs], "Notification": [HookMatcher()]})
    made = GuardrailsHooks(Policy([Budget(max_calls=5)])).options(given)
    assert (made.max_turns, made.hooks["PreToolUse"][0], len(made.hooks["PreToolUse"])) == (7, theirs, 2)
    assert made.hooks["Notification"] == given.hooks["Notification"]
    assert given.hooks["PreToolUse"] == [theirs]


@table(
    ("answer", "paid", "read"),
    [(PermissionResultAllow(), [5], "paid"), (PermissionResultDeny(message="too much"), [], "too much")],
)
def test_a_call_that_waits_for_a_person_is_asked_about_once_in_the_sdks_own_way(
    answer: Any, paid: list[int], read: str
) -> None:
    bank, asks = Bank(), Person(answer)
    guard = GuardrailsHooks(Policy([Approve(tools=("pay",)), Budget(max_calls=5)]))
    script = in_turn(PAY, *([] if paid else [PAY]))
    done, _ = go(guard, [bank.pay], script, ClaudeAgentOptions(can_use_tool=asks.can_use_tool))
    assert (bank.paid, asks.asked, done.results[0]) == (paid, ["pay"], read)
    assert all(read in envelope(again)["message"] for again in done.results[1:])
    session = guard.session("t")
    pending = session.ledger.read(lambda state, _: dict(state.pending))
    assert (session.ledger.progress["calls_used"], session.pending(), pending) == (len(paid), [], {})


def test_what_a_client_has_cost_in_all_is_charged_run_by_run() -> None:
    guard = GuardrailsHooks(Policy([Budget(max_cost_usd=1)]))
    code = ClaudeCode(Agent(lambda asked: Say("Done."), "tools"), Ran(), session_id="t", cost_usd=0.25)
    spent: list[float] = []

    async def work() -> None:
        options = ClaudeAgentOptions(mcp_servers={"tools": served("tools", [])})
        async with ClaudeSDKClient(guard.options(options), transport=code) as client:
            for total in (0.25, 0.35):
                code.cost_usd = total
                await client.query("go")
                async for _ in guard.charging(client.receive_response()):
                    pass
                spent.append(guard.session("t").ledger.cost_usd)

    asyncio.run(work())
    assert spent == [pytest.approx(0.25), pytest.approx(0.35)]


def test_the_arguments_of_a_servers_tool_are_checked_by_the_name_that_claude_code_gives_it() -> None:
    ran: list[str] = []
    guard = GuardrailsHooks(Policy.load("default"))
    guard.declare(sdk_tool(searching(ran)), server="tools")
    script = in_turn(Call("mcp__tools__search", {"question": "x"}))
    done, _ = go(guard, [searching(ran)], script, prefixed=True)
    assert ran == []
    assert envelope(done.results[0])["status"] == "validation_error"
