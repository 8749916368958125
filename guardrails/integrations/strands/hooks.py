"""
The hooks: each invocation of an agent has its session, and each tool call and model request passes it.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakSet

from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import give_back, share_of
from guardrails.policy.sessions import SessionOptions, Sessions
from guardrails.session.steps import current_session

from .model_step import End, ModelStep
from .tool_call import called, calling


with needs("strands", "this adapter"):
    from strands.hooks import (
        AfterInvocationEvent,
        AfterMultiAgentInvocationEvent,
        AgentInitializedEvent,
        BeforeInvocationEvent,
        BeforeMultiAgentInvocationEvent,
        HookOrder,
        HookProvider,
        HookRegistry,
    )
    from strands.middleware import ExecuteToolContext, ExecuteToolStage, InvokeModelContext, InvokeModelStage

if TYPE_CHECKING:
    from guardrails.policy.policy import Policy
    from guardrails.session.session import Session

SESSION: Final = "session_id"
"""The key of `invocation_state` that names the session of an agent without a session manager."""
_GROUP: Final = "guardrails_group"
_LATER: Final = frozenset({"interrupt", "checkpoint"})
"""Reasons to stop after which the same work goes on in another invocation."""
_CYCLE: Final = "event_loop_cycle_id"
"""The key by which the host tells a model's calls from those of a program."""


class GuardrailsHooks(HookProvider):
    """
    The tool calls and model requests of agents behind a policy, or behind a session that several agents share.

    The session manager of an agent names its session by its `session_id`, else `invocation_state["session_id"]` does.
    An invocation without either has a session of its own. An agent that a guarded tool asks has a share of the session
    around it. So has a node of a swarm or graph with these hooks. The *options* are those of `Policy.session`.
    """

    def __init__(self, guarded: "Policy | Session", **options: Unpack[SessionOptions]) -> None:
        self._sessions = Sessions(guarded, **options)
        self._guarded: WeakSet[Any] = WeakSet()
        """Agents that have the middleware."""
        self._waiting: WeakKeyDictionary[Any, tuple[Session, End] | None] = WeakKeyDictionary()
        """Of agents, swarms and graphs that go on later: the session, which nobody can name again."""

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        """
        Register what an agent, a swarm and a graph tell of.
        """
        registry.add_callback(AgentInitializedEvent, self._put)
        registry.add_callback(BeforeInvocationEvent, self._begin)
        # The last one knows whether another makes the agent go on.
        registry.add_callback(AfterInvocationEvent, self._end, order=HookOrder.SDK_LAST + 1)
        registry.add_callback(BeforeMultiAgentInvocationEvent, self._begin_group)
        registry.add_callback(AfterMultiAgentInvocationEvent, self._end_group)

    def session(self, name: object) -> "Session":
        """
        The session that a session manager or an `invocation_state` names.
        """
        return self._sessions.of(name)

    def _put(self, event: AgentInitializedEvent | BeforeInvocationEvent) -> None:
        if not hasattr(event.agent, "add_middleware"):
            raise TypeError(f"a {type(event.agent).__name__} has no middleware: nothing would guard its tools")
        self._guarded.add(event.agent)
        event.agent.add_middleware(InvokeModelStage, self._ask)
        event.agent.add_middleware(ExecuteToolStage, self._call)

    # Calls and requests

    async def _ask(
        self, context: InvokeModelContext, proceed: Callable[[Any], AsyncGenerator[Any, None]]
    ) -> AsyncGenerator[Any, None]:
        run = await self._run(context)
        async with aclosing(run.ask(context, proceed)) as events:
            async for event in events:
                yield event

    async def _call(
        self, context: ExecuteToolContext, proceed: Callable[[Any], AsyncGenerator[Any, None]]
    ) -> AsyncGenerator[Any, None]:
        # The program's own calls, `agent.tool.search(...)`, are no model's; and an output is no tool.
        own = _CYCLE not in context.invocation_state or getattr(context.tool, "tool_type", "") == "structured_output"
        passed = proceed(context) if own else called(await self._run(context), context, proceed)
        async with aclosing(passed) as events:
            async for event in events:
                yield event

    # Invocations

    async def _begin(self, event: BeforeInvocationEvent) -> None:
        agent, given, messages = event.agent, event.invocation_state, event.messages
        if agent not in self._guarded:
            # The hooks were added to an agent that was there.
            self._put(event)
        if messages is None:
            # `structured_output`, which is deprecated: it has no middleware, and no end that can be told.
            return
        waits, before = self._waiting.pop(agent, None), given.get(self._key(agent))
        if before is not None and before.goes_on:
            session, end, first = before.session, before.end, False
        else:
            if waits is not None and messages:
                # What it was to go on with is no longer meant.
                await waits[0].ledger.off_loop(waits[1] or _nothing)
                waits = None
            session, end = waits or await self._found(agent, given)
            last = (messages or agent.messages or [{"content": []}])[-1]
            first = last.get("role") == "user" and not any("toolResult" in block for block in last["content"])
        # One dict is that of all agents of a swarm or graph.
        given[self._key(agent)] = ModelStep(session, first=first, end=end)

    async def _run(self, context: Any) -> ModelStep:
        agent, given = context.agent, context.invocation_state
        run = given.get(self._key(agent))
        # A tool in the background may run when its invocation is over.
        return run or ModelStep((await self._found(agent, given))[0], first=False)

    async def _found(self, agent: Any, given: Any) -> "tuple[Session, End]":
        """
        The session of an invocation, and what is to be done at its end.
        """
        around = current_session() or given.get(_GROUP, (None,))[0]
        if around is not None:
            child = await around.ledger.off_loop(_share, around, agent.name)
            return child, None if child is around else partial(give_back, child)
        name = agent.session_id if agent._session_manager is not None else given.get(SESSION)  # noqa: SLF001
        session = self._sessions.of(name)
        return session, partial(self._sessions.end, session) if name is None else None

    async def _end(self, event: AfterInvocationEvent) -> None:
        run = event.invocation_state.get(self._key(event.agent))
        if run is None:
            return
        run.goes_on = _goes_on(event)
        if run.goes_on:
            return
        del event.invocation_state[self._key(event.agent)]
        if run.end is not None and getattr(event.result, "stop_reason", None) in _LATER:
            self._waiting[event.agent] = run.session, run.end
        elif run.end is not None:
            await run.session.ledger.off_loop(run.end)

    def _key(self, agent: Any) -> str:
        return f"guardrails_run_{id(self):x}_{id(agent):x}"

    # Swarms and graphs

    def _begin_group(self, event: BeforeMultiAgentInvocationEvent) -> None:
        given = event.invocation_state
        # A group that is a node of another has its session.
        if given is not None and _GROUP not in given:
            waits = self._waiting.pop(event.source, None)
            session = waits[0] if waits else current_session() or self._sessions.of(given.get(SESSION))
            given[_GROUP] = session, event.source

    async def _end_group(self, event: AfterMultiAgentInvocationEvent) -> None:
        given = event.invocation_state or {}
        session, source = given.get(_GROUP, (None, None))
        if session is None or source is not event.source:
            return
        del given[_GROUP]
        if current_session() is not None or SESSION in given:
            return
        if event.source._interrupt_state.activated:  # noqa: SLF001
            self._waiting[event.source] = session, None
        else:
            await session.ledger.off_loop(self._sessions.end, session)


def _goes_on(event: AfterInvocationEvent) -> bool:
    """
    Returns whether a hook, or a tool in the background, makes the agent go on.
    """
    if event.result is None:
        return False
    told = getattr(event, "_continuation_state", None) is not None
    return event.resume is not None or (told and event.result.stop_reason in ("end_turn", "stop_sequence"))


def _nothing() -> None:
    """
    The session has a name, and goes on.
    """


def _share(session: "Session", agent: str) -> "Session":
    # By the call that asks it an agent goes on in another process too. It may ask twice, and models repeat ids.
    call = calling.get() if current_session() is not None else None
    return share_of(session, f"{agent}-{call or uuid4().hex}") or session
