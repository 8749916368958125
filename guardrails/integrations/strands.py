"""
Strands Agents: hooks of an `Agent`, which put middleware around its tool calls and its model requests.

    Agent(model, tools=tools, hooks=[GuardrailsHooks(Policy.load("default"))])
"""

import asyncio

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from functools import partial
from typing import Any, Final, NamedTuple, Unpack
from weakref import WeakKeyDictionary, WeakSet

from guardrails.core.result.content import at
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.hooks.results import mark_of
from guardrails.policy.policy import Policy
from guardrails.policy.sessions import SessionOptions
from guardrails.session.session import Session

from . import hosting as kit
from .hosting import HostLoop, Last


with needs("strands", "this adapter"):
    from strands import hooks, middleware
    from strands.interrupt import InterruptException

SESSION: Final = "session_id"
"""The key of `invocation_state` that names the session of an agent without a session manager."""
_GROUP: Final = "guardrails_group"
_CYCLE: Final = "event_loop_cycle_id"
"""The key by which the host tells a model's calls from those of a program."""
_LATER: Final = ("interrupt", "checkpoint")
"""Reasons to stop after which the same work goes on in another invocation."""
_ENDS: Final = ("end_turn", "stop_sequence", "tool_use")
"""Reasons to stop that are the model's own; others, such as a cancellation, the host deals with."""
_UNSAID: Final = {"text", "toolUse", "reasoningContent", "cachePoint"}
"""Kinds of content that answer nothing, or whose text is looked at."""
_Events = AsyncGenerator[Any, None]
_Proceed = Callable[[Any], _Events]


class _Run(NamedTuple):
    """
    One invocation of an agent. At its end *end* is called.
    """

    loop: HostLoop
    end: Callable[[], None]
    texts: dict[str, Any]
    """Of calls, by their ids, the arguments as the model wrote them; of what is no JSON the host makes an empty object."""


class GuardrailsHooks(kit.Adapter, hooks.HookProvider):
    """
    The tool calls and model requests of agents behind a policy, or behind a session that several agents share.

    The session manager of an agent names its session by its `session_id`, else `invocation_state["session_id"]` does.
    An invocation without either has a session of its own. An agent that a guarded tool asks has a share of the session
    around it. So has a node of a swarm or graph with these hooks. The *options* are those of `Policy.session`.
    """

    def __init__(self, guarded: "Policy | Session", **options: Unpack[SessionOptions]) -> None:
        super().__init__(guarded, **options)
        self._guarded: WeakSet[Any] = WeakSet()
        """Agents that have the middleware."""
        self._waiting: WeakKeyDictionary[Any, _Run] = WeakKeyDictionary()
        """Invocations that go on in another."""

    def register_hooks(self, registry: hooks.HookRegistry, **_: Any) -> None:
        """
        Register what an agent, a swarm and a graph tell of.
        """
        registry.add_callback(hooks.AgentInitializedEvent, self._put)
        registry.add_callback(hooks.BeforeInvocationEvent, self._begin)
        # The last one knows whether another makes the agent go on.
        registry.add_callback(hooks.AfterInvocationEvent, self._end, order=hooks.HookOrder.SDK_LAST + 1)
        registry.add_callback(hooks.BeforeMultiAgentInvocationEvent, self._begin_group)
        registry.add_callback(hooks.AfterMultiAgentInvocationEvent, self._end_group)

    def _put(self, event: hooks.AgentInitializedEvent | hooks.BeforeInvocationEvent) -> None:
        if not hasattr(event.agent, "add_middleware"):
            raise TypeError(f"a {type(event.agent).__name__} has no middleware: nothing would guard its tools")
        self._guarded.add(event.agent)
        event.agent.add_middleware(middleware.InvokeModelStage, self._ask)
        event.agent.add_middleware(middleware.ExecuteToolStage, self._call)

    # Invocations

    async def _begin(self, event: hooks.BeforeInvocationEvent) -> None:
        agent, state, key = event.agent, event.invocation_state, self._key(event.agent)
        if agent not in self._guarded:
            # The hooks were added to an agent that was there.
            self._put(event)
        if event.messages is None:
            # `structured_output`, which is deprecated: it has no middleware, and no end that can be seen.
            return
        before = state.get(key) or self._waiting.pop(agent, None)
        state[key] = await self._run(agent, state, before, first=before is None and bool(event.messages))

    async def _run(self, agent: Any, state: Any, before: _Run | None = None, *, first: bool = False) -> _Run:
        if before is not None:
            session, end = before.loop.session, before.end
        elif (around := self._sessions.around or state.get(_GROUP, (None,))[0]) is not None:
            session, end = await around.ledger.off_loop(kit.open_share, around)
        else:
            managed = agent._session_manager is not None  # noqa: SLF001
            session, end = kit.open_run(self._sessions, agent.session_id if managed else state.get(SESSION))
        return _Run(HostLoop(session, first=first), end, {})

    async def _end(self, event: hooks.AfterInvocationEvent) -> None:
        run = event.invocation_state.get(self._key(event.agent))
        # A hook, or a tool in the background, makes the agent go on.
        if run is None or event.resume is not None or getattr(event, "_continuation_state", None) is not None:
            return
        del event.invocation_state[self._key(event.agent)]
        if getattr(event.result, "stop_reason", None) in _LATER:
            self._waiting[event.agent] = run
        else:
            await run.loop.off_loop(run.end)

    def _key(self, agent: Any) -> str:
        # One dict is that of all agents of a swarm or graph.
        return f"guardrails_run_{id(self):x}_{id(agent):x}"

    def _begin_group(self, event: hooks.BeforeMultiAgentInvocationEvent) -> None:
        state = event.invocation_state
        # A group that is a node of another has its session.
        if state is not None and _GROUP not in state:
            around = self._sessions.around
            session, end = (around, kit.nothing) if around else kit.open_run(self._sessions, state.get(SESSION))
            state[_GROUP] = session, end, event.source

    async def _end_group(self, event: hooks.AfterMultiAgentInvocationEvent) -> None:
        session, end, source = (event.invocation_state or {}).get(_GROUP, (None, kit.nothing, None))
        if session is not None and source is event.source:
            del event.invocation_state[_GROUP]
            await session.ledger.off_loop(end)

    # Model requests

    async def _ask(self, context: middleware.InvokeModelContext, proceed: _Proceed) -> _Events:
        agent, state = context.agent, context.invocation_state
        run: _Run = state.get(self._key(agent)) or await self._run(agent, state)
        tools, loop = agent.tool_registry.dynamic_tools, run.loop
        outputs = [name for name, tool in tools.items() if tool.tool_type == "structured_output"]
        # Once the output is due it is the host that forces it.
        forces = context.structured_output_model is None and bool({"any", "tool"} & {*(context.tool_choice or ())})

        async def send(choice: Any) -> _Events:
            sent = context
            if loop.off:
                # The output is all that can be called.
                ends = [spec for spec in context.tool_specs if spec["name"] in outputs]
                forced = {"tool": {"name": ends[0]["name"]}} if ends else None
                sent = context.replace(tool_specs=ends, tool_choice=forced)
            elif forces and choice is None:
                sent = context.replace(tool_choice=None)
            async with aclosing(proceed(sent)) as events:
                async for event in events:
                    if use := event.get("current_tool_use"):
                        run.texts[use["toolUseId"]] = use["input"]
                    yield Last(event) if isinstance(event, middleware.ModelStopReason) else event

        def read(stop: Any) -> tuple[str, int, dict[str, Any]]:
            usage = stop.usage if any(stop.usage.values()) else None
            charge = {"model": str(at(context.model.get_config(), "model_id") or ""), "usage": usage}
            return *_read(stop, outputs), charge

        async with aclosing(loop.stream("required" if forces else None, send, read, _last_events)) as events:
            async for event in events:
                yield event

    # Tool calls

    async def _call(self, context: middleware.ExecuteToolContext, proceed: _Proceed) -> _Events:
        agent, state = context.agent, context.invocation_state
        # The program's own calls, `agent.tool.search(...)`, are no model's; and an output is no tool.
        own = _CYCLE not in state or getattr(context.tool, "tool_type", "") == "structured_output"
        # A tool in the background may run when its invocation is over.
        run = None if own else state.get(self._key(agent)) or await self._run(agent, state)
        async with aclosing(proceed(context) if run is None else _called(run, context, proceed)) as events:
            async for event in events:
                yield event


def _last_events(stop: Any, digest: str | None) -> list[Any]:
    if digest is None:
        return [stop]
    message: Any = {"role": "assistant", "content": [{"text": digest}]}
    text = middleware.TypedEvent({"data": digest, "delta": {"text": digest}})
    return [text, middleware.ModelStopReason("end_turn", message, stop.usage, stop.metrics)]


async def _called(run: _Run, context: middleware.ExecuteToolContext, proceed: _Proceed) -> _Events:
    """
    Run a call if the chain lets it; its events pass on meanwhile, and its result is the text that the model reads.
    """
    use, tool = context.tool_use, context.tool
    queue: asyncio.Queue[Any] = asyncio.Queue()

    async def invoke(arguments: Any) -> Any:
        result: Any = None
        # Its open resources are to be closed in the task, and the context, that opened them.
        async with aclosing(proceed(context.replace(tool_use={**use, "input": arguments}))) as events:
            async for event in events:
                if isinstance(event, middleware.ToolResultEvent):
                    result = event
                elif "tool_interrupt_event" in event:
                    raise kit.Parked(event)
                else:
                    queue.put_nowait(event)
        return result

    known = None
    if tool is not None:
        spec, schema = tool.tool_spec, tool.tool_spec["inputSchema"]
        known = kit.host_tool(use["name"], schema.get("json", schema), spec.get("description"), spec.get("annotations"))
    arguments = use["input"] or run.texts.get(use["toolUseId"]) or {}
    options: dict[str, Any] = {"id": use["toolUseId"] or None, "passes": (InterruptException,)}
    call = kit.guarded_call(run.loop, use["name"], known, arguments, invoke, partial(_outcome, tool), **options)
    work = asyncio.ensure_future(call)
    work.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        envelope, native = work.result()
    finally:
        if not work.done():
            work.cancel()
            await asyncio.wait({work})
    if envelope is None:
        yield native
        return
    result = {} if native is None else native.tool_result
    blocks = result.get("content", [])
    # The result of a delegated call is the user's to read.
    if not (envelope.ok and not envelope.cut and getattr(tool, "delegate", False)):
        texts = kit.content(
            blocks, envelope, lambda text: {"text": text}, lambda block: "text" in block or "json" in block
        )
        blocks = texts or [{"text": envelope.to_json()}]
    status = "success" if envelope.ok else "error"
    whole = {"toolUseId": use["toolUseId"], **result, "status": status, "content": blocks}
    yield middleware.ToolResultEvent(whole, exception=None if native is None else native.exception)


def _outcome(tool: Any, event: Any) -> Any:
    """
    The outcome of a call of *tool*, by the *event* of its result. Raises the exception that ended it.
    """
    if event is None:
        return Failed("the tool gave no result")
    if event.exception is not None:
        raise event.exception
    result = event.tool_result
    blocks, structured = result["content"], result.get("structuredContent")
    values = [_value(block, tool) for block in blocks]
    if result["status"] == "error":
        rest = structured or [value for value in values if not isinstance(value, str)] or None
        return Failed("\n".join(block["text"] for block in blocks if "text" in block), value=rest)
    if structured is not None:
        return structured["result"] if structured.keys() == {"result"} else structured
    return values[0] if len(values) == 1 else values or None


def _value(block: Any, tool: Any) -> Any:
    if "text" in block:
        return kit.value_of(block["text"], tool)
    return block["json"] if "json" in block else mark_of(next(iter(block), None), block)


def _read(stop: middleware.ModelStopReason, outputs: Collection[str]) -> tuple[str, int]:
    """
    The text of a response, and the number of its calls. An output answers, and so does other content, such as an image.
    """
    blocks = stop.message["content"]
    used = [block["toolUse"]["name"] for block in blocks if "toolUse" in block]
    calls = [name for name in used if name not in outputs]
    answers = len(calls) < len(used) or stop.stop_reason not in _ENDS or any(block.keys() - _UNSAID for block in blocks)
    text = "".join(block.get("text", "") for block in blocks).strip()
    return text or ("-" if answers else ""), len(calls) if stop.stop_reason == "tool_use" else 0
