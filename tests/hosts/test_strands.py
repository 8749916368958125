"""
The agents of Strands behind the guards.
"""

import asyncio
import functools
import inspect
import json
import re
import shutil
import sys
import tempfile
import uuid
import weakref

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest


pytest.importorskip("strands")

import strands.models

from mcp import StdioServerParameters, stdio_client
from strands import Agent, ToolContext, tool
from strands.hooks import AfterInvocationEvent, AfterToolCallEvent, AgentInitializedEvent, BeforeToolCallEvent
from strands.middleware import ExecuteToolContext, ExecuteToolStage, InvokeModelStage
from strands.models import BedrockModel, Model
from strands.multiagent import GraphBuilder, Swarm
from strands.session.file_session_manager import FileSessionManager
from strands.tools.executors import SequentialToolExecutor
from strands.tools.mcp import MCPClient
from strands.types.exceptions import EventLoopException, StructuredOutputException

from guardrails import Budget, Duplicates, MemorySink, Policy, SqliteStore
from guardrails.integrations.strands import GuardrailsHooks

from .behaviours.base import in_turn, roaming, searching, stuck
from .behaviours.base import search as call_of
from .behaviours.ends import Stay
from .behaviours.pauses import Bank, once
from .contract import Contract
from .driver import HELPER, MODEL, Asked, Call, Helper, Ran, Say, Script, cancelled


class ScriptedModel(Model):
    """
    Says what a script says.
    """

    def __init__(self, script: Script, seen: list[Asked], outputs: frozenset[str] = frozenset()) -> None:
        self.script, self.seen, self.outputs = script, seen, outputs

    def update_config(self, **_: Any) -> None:
        """It has none."""

    def get_config(self) -> dict[str, Any]:
        return {"model_id": MODEL}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, *, tool_choice: Any = None, **_: Any
    ) -> AsyncIterator[Any]:
        specs = [spec for spec in tool_specs or () if spec["name"] not in self.outputs]
        asked = Asked(
            n=len(self.seen),
            tools=tuple(spec["name"] for spec in specs),
            choice=_choice(tool_choice),
            results=tuple(_results(messages, self.outputs).values()),
            schemas={spec["name"]: spec for spec in specs},
        )
        self.seen.append(asked)
        said = self.script(asked)
        yield {"messageStart": {"role": "assistant"}}
        if said.text:
            yield {"contentBlockStart": {"start": {}}}
            words = said.text.split(" ")
            for n, word in enumerate(words):
                yield {"contentBlockDelta": {"delta": {"text": word if n == len(words) - 1 else f"{word} "}}}
            yield {"contentBlockStop": {}}
        calls = list(said.calls)
        if said.output is not None:
            calls.append(Call(next(iter(self.outputs)), said.output))
        for call in calls:
            arguments = call.arguments
            if call.tool == HELPER and isinstance(arguments, Mapping):
                # An agent that is a tool calls what it takes `input`.
                arguments = {"input": arguments["task"]}
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            use = {"toolUseId": call.id or f"c-{uuid.uuid4()}", "name": call.tool}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            for half in (text[:3], text[3:]):
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": half}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}
        if said.usage is not None:
            into, out = said.usage
            usage = {"inputTokens": into, "outputTokens": out, "totalTokens": into + out}
            yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


def _choice(choice: Any) -> str | None:
    if not choice:
        return None
    kind = next(iter(choice))
    return str(choice["tool"]["name"]) if kind == "tool" else {"any": "required"}.get(kind, kind)


def _calls(messages: Any) -> dict[str, str]:
    uses = [block["toolUse"] for message in messages for block in message["content"] if "toolUse" in block]
    return {use["toolUseId"]: use["name"] for use in uses}


def _results(messages: Any, outputs: frozenset[str] = frozenset()) -> dict[str, str]:
    names = _calls(messages)
    results = [block["toolResult"] for message in messages for block in message["content"] if "toolResult" in block]
    return {
        result["toolUseId"]: "\n".join(block["text"] for block in result["content"] if "text" in block)
        for result in results
        if names.get(result["toolUseId"]) not in outputs
    }


class Driver:
    """
    `Agent`.
    """

    name = "strands"
    cannot: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._interrupts: dict[str | None, Any] = {}

    def adapter(self, guarded: Any, **options: Any) -> GuardrailsHooks:
        return GuardrailsHooks(guarded, **options)

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
    ) -> Ran:
        ran, hooks = Ran(), [] if adapter is None else [adapter]
        outputs = frozenset() if output is None else frozenset({output.__name__})
        made: list[Any] = [_pausing(one) if one.__name__ in pausing else tool(one) for one in tools]
        if helper is not None:
            inner = Agent(
                ScriptedModel(helper.script, []),
                tools=[tool(one) for one in helper.tools],
                hooks=hooks,
                callback_handler=None,
            )
            made.append(inner.as_tool(name=HELPER, description="Ask a sub-agent."))
        agent = Agent(
            ScriptedModel(script, ran.asked, outputs),
            tools=made,
            hooks=hooks,
            callback_handler=None,
            session_manager=None if thread is None else FileSessionManager(thread, storage_dir=self._folder),
        )
        if choice is not None:
            forced = {"tool": {"name": choice}}
            agent.add_middleware(InvokeModelStage.Input, lambda context: context.replace(tool_choice=forced))
        given: Any = prompt
        if resume is not None:
            asked = self._interrupts[thread]
            given = [{"interruptResponse": {"interruptId": one.id, "response": resume}} for one in asked]
        result: Any = None
        try:
            if sync and not stream:
                result = agent(given, structured_output_model=output)
            else:
                work = self._async(agent, given, output, ran, stream=stream)
                result = asyncio.run(work if cancel is None else cancelled(work, cancel))
        except BaseException as error:
            ran.error = error
        ran.results = list(_results(agent.messages, outputs).values())
        if result is None:
            return ran
        if result.stop_reason == "interrupt":
            self._interrupts[thread] = result.interrupts
            ran.paused = [one.name for one in result.interrupts]
        else:
            answered = _results(agent.messages)
            ran.unanswered = [made for made in _calls(agent.messages) if made not in answered]
            ran.answer = "".join(block.get("text", "") for block in agent.messages[-1]["content"])
        ran.output = result.structured_output
        return ran

    @staticmethod
    async def _async(agent: Any, given: Any, output: Any, ran: Ran, *, stream: bool) -> Any:
        if not stream:
            return await agent.invoke_async(given, structured_output_model=output)
        result: Any = None
        async for event in agent.stream_async(given, structured_output_model=output):
            if "data" in event:
                ran.streamed.append(event["data"])
            result = event.get("result", result)
        return result


def _pausing(function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def asked(tool_context: ToolContext, **arguments: Any) -> Any:
        return function(**arguments) if tool_context.interrupt(function.__name__) else "the user said no"

    plain = inspect.signature(function)
    context = inspect.Parameter("tool_context", inspect.Parameter.KEYWORD_ONLY, annotation=ToolContext)
    asked.__signature__ = plain.replace(parameters=[*plain.parameters.values(), context])  # type: ignore[attr-defined]
    asked.__annotations__ = {**function.__annotations__, "tool_context": ToolContext}
    return tool(context=True)(asked)


class TestStrands(Contract):
    driver = Driver


# What is the host's own


PAGE = Path(__file__).parents[2] / "docs/hosts/strands.md"


def agent_of(script: Script, tools: Sequence[Any], *hooks: Any, seen: Any = None, **more: Any) -> Agent:
    model = ScriptedModel(script, [] if seen is None else seen, more.pop("outputs", frozenset()))
    return Agent(model, tools=list(tools), hooks=list(hooks), callback_handler=None, **more)


def results(agent: Any) -> list[Any]:
    return [block["toolResult"] for message in agent.messages for block in message["content"] if "toolResult" in block]


def texts(agent: Any) -> list[Any]:
    return [json.loads(result["content"][0]["text"]) for result in results(agent)]


def answers(result: Any, response: Any = True) -> Any:
    return [{"interruptResponse": {"interruptId": one.id, "response": response}} for one in result.interrupts]


def one_call(name: str, **arguments: Any) -> Script:
    return in_turn(Say(calls=(Call(name, arguments),)))


def test_the_program_of_the_page_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program, printed = re.findall(r"```(?:python|text)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[:2]
    script: Script = lambda asked: Say("I found nothing.") if asked.off else Say(calls=(call_of("x"),))  # noqa: E731
    monkeypatch.setattr(strands.models, "BedrockModel", lambda *_, **__: ScriptedModel(script, []))
    exec(compile(program, str(PAGE), "exec"), {})  # noqa: S102  the page's own program, as a reader runs it
    assert capsys.readouterr().out == printed


def test_what_a_bedrock_model_is_sent_at_the_end_lists_a_tool_that_does_nothing() -> None:
    sent: list[Any] = []

    class Bedrock(BedrockModel):
        inner = ScriptedModel(roaming, [])

        async def stream(self, messages: Any, tool_specs: Any = None, *_: Any, **__: Any) -> AsyncIterator[Any]:
            sent.append((tool_specs, self.format_request(messages, tool_specs)))
            async for event in self.inner.stream(messages, tool_specs):
                yield event

    agent = Agent(
        Bedrock(region_name="us-east-1"),
        tools=[tool(searching([]))],
        hooks=[GuardrailsHooks(Policy([Budget(max_calls=1)]))],
        callback_handler=None,
    )
    assert str(agent("go")).strip() == "I know nothing of it."
    specs, request = sent[-1]
    assert not specs
    assert [one["toolSpec"]["name"] for one in request["toolConfig"]["tools"] if "toolSpec" in one] == ["noop"]


@pytest.fixture
def shallow() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(600)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.usefixtures("shallow")
def test_the_figures_of_the_page_hold() -> None:
    bare: list[str] = []
    with pytest.raises(EventLoopException, match="recursion"):
        agent_of(stuck, [tool(searching(bare))])("go")
    ran: list[str] = []
    seen: list[Asked] = []
    agent_of(stuck, [tool(searching(ran))], GuardrailsHooks(Policy.load("default")), seen=seen)("go")
    assert len(bare) > 100
    assert (len(ran), len(seen)) == (2, 7)


def test_hooks_that_are_added_to_an_agent_that_is_there_guard_it_too() -> None:
    ran: list[str] = []
    agent = agent_of(stuck, [tool(searching(ran))])
    agent.hooks.add_hook(GuardrailsHooks(Policy.load("default")))
    assert str(agent("go")).strip() == "I know nothing of it."
    assert 1 <= len(ran) <= 3


def test_two_guards_of_one_agent_do_not_meet() -> None:
    ran: list[str] = []
    wide, narrow = Policy([Budget(max_calls=9)]), Policy([Budget(max_calls=2)])
    agent = agent_of(roaming, [tool(searching(ran))], GuardrailsHooks(wide), GuardrailsHooks(narrow))
    agent("go", invocation_state={"session_id": "t"})
    assert len(ran) == 2
    assert [policy.session("t").progress["calls_used"] for policy in (wide, narrow)] == [2, 2]


@pytest.mark.parametrize("made", ["c1", None])
def test_ids_that_a_model_repeats_change_nothing(made: str | None) -> None:
    ran: list[str] = []
    script: Script = lambda asked: Say("Done.") if asked.off else Say(calls=(call_of("x", made),))  # noqa: E731
    agent = agent_of(script, [tool(searching(ran))], GuardrailsHooks(Policy.load("default")))
    assert str(agent("go")).strip() == "Done."
    assert 1 <= len(ran) <= 3


def test_a_checkpoint_goes_on_with_the_same_budget() -> None:
    ran: list[str] = []
    agent = agent_of(
        roaming, [tool(searching(ran))], GuardrailsHooks(Policy([Budget(max_calls=2)])), checkpointing=True
    )
    done = agent("go")
    for _ in range(20):
        if done.stop_reason != "checkpoint":
            break
        done = agent({"checkpointResume": {"checkpoint": done.checkpoint.to_dict()}})
    assert str(done).strip() == "I know nothing of it."
    assert len(ran) == 2


@pytest.mark.usefixtures("shallow")
def test_a_run_that_gets_deep_comes_to_a_final_answer_before_python_ends_it() -> None:
    ran: list[str] = []
    agent = agent_of(roaming, [tool(searching(ran))], GuardrailsHooks(Policy([Budget(max_calls=1_000)])))
    assert str(agent("go")).strip() == "I know nothing of it."
    assert 100 < len(ran) < 200


def test_an_agent_that_a_hook_makes_go_on_has_no_more_than_its_budget() -> None:
    ran: list[str] = []
    passes: list[str] = []

    def more(event: AfterInvocationEvent) -> None:
        passes.append(event.result.stop_reason if event.result else "")
        event.resume = "go on" if len(passes) < 4 else None

    sink = MemorySink()
    agent = agent_of(roaming, [tool(searching(ran))], GuardrailsHooks(Policy([Budget(max_calls=2)]), records=sink))
    agent.add_hook(more)
    assert str(agent("go")).strip() == "I know nothing of it."
    assert (len(passes), ran) == (4, ["q0", "q1"])
    assert len({one["session_id"] for one in sink.records}) == 1


@pytest.mark.parametrize("waits", [True, False])
def test_tools_in_the_background_have_the_budget_of_who_calls_them(waits: bool) -> None:
    ran: list[str] = []

    def script(asked: Asked) -> Say:
        return Say("Done.") if asked.off or asked.n > 6 else Say(calls=(call_of(f"q{asked.n}"),))

    guard = GuardrailsHooks(Policy([Budget(max_calls=3)]))
    background: Any = {"always": ["search"], "wait_for_completion": waits}
    agent = agent_of(script, [tool(searching(ran))], guard, background_tasks=background)
    # What runs on when the invocation is over finds its session by the name.
    agent("go", invocation_state={} if waits else {"session_id": "t"})
    agent.shutdown()
    assert len(ran) <= 3


def test_a_person_whom_a_hook_asks_is_asked_before_the_call_is_decided() -> None:
    def ask(event: BeforeToolCallEvent) -> None:
        if not event.interrupt("ok?"):
            event.cancel_tool = "the user said no"

    bank, sink = Bank(), MemorySink()
    guard = GuardrailsHooks(Policy([Budget(max_calls=2)]), records=sink)
    agent = agent_of(once, [tool(bank.pay)], guard)
    agent.add_hook(ask)
    held = agent("go")
    assert (held.stop_reason, bank.paid) == ("interrupt", [])
    assert str(agent(answers(held))).strip() == "Done."
    assert bank.paid == [5]
    # Without a session manager it is the agent that goes on with its session.
    assert len({one["session_id"] for one in sink.records}) == 1
    assert [one["event"] for one in sink.records if one["event"] in ("call", "settle")] == ["call", "settle"]


@pytest.mark.parametrize("within", [True, False])
def test_an_interrupt_of_a_middleware_is_charged_once(within: bool) -> None:
    async def ask(context: ExecuteToolContext, proceed: Any) -> AsyncIterator[Any]:
        assert context.interrupt("ok?").response
        async for event in proceed(context):
            yield event

    bank, policy = Bank(), Policy([Budget(max_calls=2)])
    agent = agent_of(once, [tool(bank.pay)], GuardrailsHooks(policy)) if within else agent_of(once, [tool(bank.pay)])
    agent.add_middleware(ExecuteToolStage, ask)
    if not within:
        GuardrailsHooks(policy)._put(AgentInitializedEvent(agent=agent))
    state = {"session_id": "t"}
    held = agent("go", invocation_state=state)
    assert bank.paid == []
    assert str(agent(answers(held), invocation_state=state)).strip() == "Done."
    assert (bank.paid, policy.session("t").progress["calls_used"]) == ([5], 1)


def test_a_tool_that_asks_twice_is_charged_once() -> None:
    said: list[Any] = []

    @tool(context=True)
    def pay(amount: int, tool_context: ToolContext) -> str:
        """Pay an amount."""
        said.append((tool_context.interrupt("this much?"), tool_context.interrupt("to whom?")))
        return "paid"

    policy, state = Policy([Budget(max_calls=3)]), {"session_id": "t"}
    agent = agent_of(once, [pay], GuardrailsHooks(policy))
    first = agent("go", invocation_state=state)
    second = agent(answers(first, "yes"), invocation_state=state)
    agent(answers(second, "Ann"), invocation_state=state)
    assert said == [("yes", "Ann")]
    assert policy.session("t").progress["calls_used"] == 1


def test_a_look_of_the_agent_does_not_refuse_that_of_an_agent_it_asks() -> None:
    ran: list[str] = []
    guard = GuardrailsHooks(policy := Policy.load("default"))
    inner = agent_of(
        in_turn(Say(calls=(call_of("x"),)), Say("It has it.")), [tool(searching(ran))], guard, name="inner"
    )
    asks = in_turn(Say(calls=(call_of("x"),)), Say(calls=(Call("inner", {"input": "look"}),)))
    outer = agent_of(asks, [tool(searching(ran)), inner.as_tool()], guard)
    assert str(outer("go", invocation_state={"session_id": "t"})).strip() == "Done."
    assert ran == ["x", "x"]
    assert policy.session("t").progress["calls_used"] == 3


def test_an_agent_that_a_tool_of_ones_own_asks_twice_has_a_share_each_time() -> None:
    ran: list[str] = []
    guard = GuardrailsHooks(policy := Policy([Budget(max_calls=9)]))

    @tool
    def ask(task: str) -> str:
        """Ask a sub-agent."""
        made = [agent_of(one_call("search", query="x"), [tool(searching(ran))], guard) for _ in range(2)]
        return " ".join(str(agent(task)).strip() for agent in made)

    outer = agent_of(one_call("ask", task="look"), [ask], guard)
    outer("go", invocation_state={"session_id": "t"})
    assert texts(outer)[0]["result"] == "Done. Done."
    assert ran == ["x", "x"]
    assert policy.session("t").progress == {"calls_used": 3, "calls_left": 6}


def test_an_agent_that_takes_over_answers_in_its_own_words() -> None:
    guard = GuardrailsHooks(Policy.load("default"))
    inner = agent_of(in_turn(Say("The very answer.")), [], guard, name="inner")
    outer = agent_of(one_call("inner", input="look"), [inner.as_tool(delegate=True)], guard)
    assert str(outer("go")).strip() == "The very answer."


@pytest.mark.parametrize("restart", [False, True])
def test_an_agent_that_is_asked_may_ask_a_person_and_goes_on_with_its_share(restart: bool, tmp_path: Path) -> None:
    bank, policy = Bank(), Policy([Budget(max_calls=9)])

    def made() -> Agent:
        guard = GuardrailsHooks(policy)
        inner = agent_of(once, [_pausing(bank.pay)], guard, name="inner")
        manager = FileSessionManager("t", storage_dir=str(tmp_path))
        script: Script = lambda asked: Say("Done.") if asked.results else Say(calls=(Call("inner", {"input": "pay"}),))  # noqa: E731
        return agent_of(script, [inner.as_tool()], guard, session_manager=manager)

    agent = made()
    held = agent("go")
    assert (held.stop_reason, bank.paid) == ("interrupt", [])
    agent = made() if restart else agent
    assert str(agent(answers(held))).strip() == "Done."
    assert bank.paid == [5]
    assert policy.session("t").progress == {"calls_used": 2, "calls_left": 7}


def test_the_agents_of_a_swarm_have_shares_of_one_budget() -> None:
    ran: list[str] = []
    policy = Policy([Budget(max_calls=9)])
    guard = GuardrailsHooks(policy)
    over = Say(calls=(Call("handoff_to_agent", {"agent_name": "two", "message": "go on"}),))
    one = agent_of(in_turn(Say(calls=(call_of("x"),)), over), [tool(searching(ran))], guard, name="one")
    two = agent_of(in_turn(Say(calls=(call_of("x"),))), [tool(searching(ran))], guard, name="two")
    done = Swarm([one, two], hooks=[guard])("go", invocation_state={"session_id": "t"})
    assert [node.node_id for node in done.node_history] == ["one", "two"]
    assert ran == ["x", "x"]
    assert policy.session("t").progress == {"calls_used": 3, "calls_left": 6}


def test_the_agents_of_a_graph_that_run_at_once_have_shares_of_one_budget() -> None:
    ran: list[str] = []
    policy = Policy([Budget(max_calls=4)])
    guard = GuardrailsHooks(policy)
    builder = GraphBuilder()
    for name in ("one", "two"):
        builder.add_node(agent_of(roaming, [tool(searching(ran))], guard, name=name), name)
    builder.set_hook_providers([guard])
    builder.set_execution_timeout(60)
    done = builder.build()("go", invocation_state={"session_id": "t"})
    assert {str(node.result).strip() for node in done.results.values()} == {"I know nothing of it."}
    assert len(ran) <= 4
    assert policy.session("t").progress["calls_used"] == len(ran)


def test_a_swarm_within_a_graph_has_the_session_of_the_graph() -> None:
    ran: list[str] = []
    heard: set[str] = set()
    guard = GuardrailsHooks(Policy([Budget(max_calls=9)]), on_decision=lambda made: heard.add(made.session))

    def made(name: str) -> Agent:
        return agent_of(one_call("search", query=name), [tool(searching(ran))], guard, name=name)

    builder = GraphBuilder()
    builder.add_node(made("first"), "first")
    builder.add_node(Swarm([made("within")], hooks=[guard]), "group")
    builder.add_node(made("last"), "last")
    builder.add_edge("first", "group")
    builder.add_edge("group", "last")
    builder.set_hook_providers([guard])
    builder.set_execution_timeout(60)
    builder.build()("go")
    assert ran == ["first", "within", "last"]
    assert len({name.partition("/")[0] for name in heard}) == 1


def test_what_a_tool_streams_arrives_before_its_result() -> None:
    @tool
    async def look(query: str) -> AsyncIterator[str]:
        """Look."""
        yield "half"
        yield "whole"

    async def heard(agent: Agent) -> list[Any]:
        return [
            event["tool_stream_event"]["data"]
            async for event in agent.stream_async("go")
            if "tool_stream_event" in event
        ]

    agent = agent_of(one_call("look", query="x"), [look], GuardrailsHooks(Policy.load("default")))
    assert asyncio.run(heard(agent)) == ["half", "whole"]
    assert texts(agent)[0]["result"] == "whole"


@pytest.mark.parametrize(
    ("returns", "given", "read"),
    [
        (str, '{"n": 1}', '{"n": 1}'),
        (str | None, '{"n": 1}', '{"n": 1}'),
        (str | None, "12", "12"),
        (list[int], [1], [1]),
        ("dict[str, int]", {"n": 1}, {"n": 1}),
        (int, 12, 12),
        (None, None, None),
        (Stay, Stay(city="Kyoto", nights=2), {"city": "Kyoto", "nights": 2}),
    ],
)
def test_a_result_is_read_as_what_the_tool_returns(returns: Any, given: Any, read: Any) -> None:
    def look() -> Any:
        """Look."""
        return given

    look.__annotations__["return"] = returns
    agent = agent_of(one_call("look"), [tool(look)], GuardrailsHooks(Policy.load("default")))
    agent("go")
    envelope = texts(agent)[0]
    assert envelope.get("result", envelope.get("results")) == read


def test_a_stream_that_nobody_reads_to_its_end_settles_its_call() -> None:
    hangs = asyncio.Event()

    @tool
    async def look() -> AsyncIterator[str]:
        """Look."""
        yield "half"
        await hangs.wait()

    async def left(agent: Agent) -> None:
        stream: Any = agent.stream_async("go", invocation_state={"session_id": "t"})
        async with aclosing(stream):
            async for event in stream:
                if "tool_stream_event" in event:
                    return

    policy = Policy([Budget(max_calls=3)])
    agent = agent_of(one_call("look"), [look], GuardrailsHooks(policy))
    asyncio.run(left(agent))
    session = policy.session("t")
    assert session._read(lambda state, _: dict(state.pending)) == {}
    assert session.progress["calls_used"] == 1


def test_an_image_keeps_its_form_and_a_failure_does_not() -> None:
    image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}

    @tool
    def draw(fails: bool) -> dict[str, Any]:
        """Draw."""
        return {"status": "error" if fails else "success", "content": [{"text": "here"}, image]}

    calls = (Call("draw", {"fails": False}), Call("draw", {"fails": True}))
    sink = MemorySink()
    guard = GuardrailsHooks(Policy([Budget(max_calls=3)]), records=sink)
    agent = agent_of(in_turn(Say(calls=calls)), [draw], guard)
    agent("go")
    right, wrong = results(agent)
    assert (right["status"], right["content"][:2]) == ("success", [{"text": "here"}, image])
    assert (wrong["status"], json.loads(wrong["content"][0]["text"])["error_message"]) == ("error", "here")
    assert "PNG" not in str(sink.records)


def test_an_output_that_is_never_valid_comes_to_an_end_and_keeps_the_conversation() -> None:
    seen: list[Asked] = []
    wrong: Script = lambda asked: Say(output={"city": 1})  # noqa: E731
    guard = GuardrailsHooks(Policy.load("default"))
    agent = agent_of(wrong, [tool(searching([]))], guard, seen=seen, outputs=frozenset({"Stay"}))
    with pytest.raises(StructuredOutputException):
        agent("go", structured_output_model=Stay)
    assert len(seen) <= 10
    assert agent.messages[-1]["role"] == "assistant"


def test_a_call_beside_an_output_is_not_run_once_tools_are_off() -> None:
    ran: list[str] = []

    def script(asked: Asked) -> Say:
        return Say(calls=(call_of(f"q{asked.n}"),), output={"city": "Kyoto", "nights": 2} if asked.off else None)

    guard = GuardrailsHooks(Policy([Budget(max_calls=1)]))
    agent = agent_of(script, [tool(searching(ran))], guard, outputs=frozenset({"Stay"}))
    assert agent("go", structured_output_model=Stay).structured_output == Stay(city="Kyoto", nights=2)
    assert ran == ["q0"]
    assert len(results(agent)) == 2


def test_calls_of_the_program_are_its_own() -> None:
    ran: list[str] = []
    agent = agent_of(in_turn(), [tool(searching(ran))], GuardrailsHooks(Policy([Budget(max_calls=1)])))
    for _ in range(3):
        agent.tool.search(query="x")
    assert ran == ["x"] * 3


def test_a_call_that_a_hook_wants_again_is_decided_about_again() -> None:
    ran: list[int] = []

    @tool
    def look(query: str) -> str:
        """Look."""
        ran.append(1)
        raise ConnectionError("down")

    def again(event: AfterToolCallEvent) -> None:
        event.retry = event.exception is not None

    agent = agent_of(one_call("look", query="x"), [look], GuardrailsHooks(Policy([Budget(max_calls=4)])))
    agent.add_hook(again)
    agent("go")
    assert len(ran) == 4
    assert texts(agent)[0]["status"] == "limit_reached"


def test_a_cancelled_agent_says_so_and_runs_nothing_more() -> None:
    ran: list[str] = []
    made: list[Agent] = []

    @tool
    def look(query: str) -> str:
        """Look."""
        ran.append(query)
        made[0].cancel()
        return "found"

    script: Script = lambda asked: Say(calls=(Call("look", {"query": f"q{asked.n}"}),))  # noqa: E731
    made.append(agent_of(script, [look], GuardrailsHooks(Policy([Budget(max_calls=4)]))))
    assert made[0]("go").stop_reason == "cancelled"
    assert ran == ["q0"]


def test_the_digest_is_streamed_too_and_all_responses_are_in_the_metrics_of_the_host() -> None:
    async def heard(agent: Agent) -> Any:
        events = [event async for event in agent.stream_async("go")]
        return "".join(event["data"] for event in events if "data" in event), events[-1]["result"]

    script: Script = lambda asked: Say(calls=(call_of(f"q{asked.n}"),))  # noqa: E731
    agent = agent_of(script, [tool(searching([]))], GuardrailsHooks(Policy([Budget(max_calls=1)])))
    said, result = asyncio.run(heard(agent))
    assert said == result.message["content"][0]["text"] != ""
    assert result.metrics.accumulated_usage["totalTokens"] == 45


def test_one_after_the_other_runs_as_well() -> None:
    ran: list[str] = []
    six = Say(calls=tuple(call_of("x") for _ in range(6)))
    guard = GuardrailsHooks(Policy([Duplicates()]))
    agent = agent_of(in_turn(six), [tool(searching(ran))], guard, tool_executor=SequentialToolExecutor())
    agent("go")
    assert (ran, len(results(agent))) == (["x"], 6)


def test_the_hints_and_the_structured_content_of_an_mcp_server_count(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(SERVER)
    sink = MemorySink()
    client = MCPClient(lambda: stdio_client(StdioServerParameters(command=sys.executable, args=[str(server)])))
    with client:
        guard = GuardrailsHooks(Policy.load("default"), records=sink)
        agent = agent_of(one_call("look_up", city="Kyoto"), client.list_tools_sync(), guard)
        agent("go")
    assert texts(agent)[0]["result"] == {"rooms": 2}
    assert results(agent)[0]["structuredContent"] == {"rooms": 2}
    assert [one["read_only"] for one in sink.records if one["event"] == "call"] == [True]


SERVER = '''
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("rooms")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look_up(city: str) -> dict[str, int]:
    """Look up the rooms of a city."""
    return {"rooms": 2}


server.run()
'''


def test_a_store_in_a_file_is_fit_for_an_event_loop(tmp_path: Path) -> None:
    ran: list[str] = []
    store = SqliteStore(tmp_path / "s.db")
    guard = GuardrailsHooks(Policy([Budget(max_calls=3)]), store=store)

    async def all_of_them() -> None:
        agents = [agent_of(roaming, [tool(searching(ran))], guard) for _ in range(3)]
        await asyncio.gather(
            *(agent.invoke_async("go", invocation_state={"session_id": f"t{n}"}) for n, agent in enumerate(agents))
        )

    asyncio.run(all_of_them())
    store.close()
    assert len(ran) == 9


def test_an_agent_without_middleware_is_refused() -> None:
    guard = GuardrailsHooks(Policy.load("default"))
    with pytest.raises(TypeError, match="nothing would guard its tools"):
        guard._put(AgentInitializedEvent(agent=cast("Any", object())))
