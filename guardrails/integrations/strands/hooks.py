"""
The hooks: each invocation of an agent has its session, and each tool call and model request passes it.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, Unpack
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakSet

from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import opened
from guardrails.policy.sessions import SessionOptions, Sessions
from guardrails.session.steps import current_session

from .requests import Invocation
from .tool_call import called, calling_id


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
        self._waiting: WeakKeyDictionary[Any, tuple[Invocation, bool]] = WeakKeyDictionary()
        """Of agents that go on later, the invocation; and whether they do so by themselves."""

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
        run, by_itself = self._waiting.pop(agent, (None, False))
        if run is not None and messages and not by_itself:
            # What it was to go on with is no longer meant.
            await run.session.ledger.off_loop(run.end)
            run = None
        last = (messages or agent.messages or [{"content": []}])[-1]
        first = last.get("role") == "user" and not any("toolResult" in block for block in last["content"])
        session, end = (run.session, run.end) if run is not None else await self._found(agent, given)
        # One dict is that of all agents of a swarm or graph.
        given[self._key(agent)] = Invocation(session, end, first=first and not by_itself)

    async def _run(self, context: Any) -> Invocation:
        agent, given = context.agent, context.invocation_state
        run = given.get(self._key(agent))
        # A tool in the background may run when its invocation is over.
        return run or Invocation(*await self._found(agent, given))

    async def _found(self, agent: Any, given: Any) -> "tuple[Session, Callable[[], None]]":
        """
        The session of an invocation, and what is to be done at its end.
        """
        called_by = current_session()
        around = called_by or given.get(_GROUP, (None,))[0]
        name = agent.session_id if agent._session_manager is not None else given.get(SESSION)  # noqa: SLF001
        if around is None:
            return opened(self._sessions, name)
        # By the call that asks it an agent goes on in another process too. It may ask twice, and models repeat ids.
        call = calling_id.get() if called_by is not None else None
        own = f"{agent.name}-{call or uuid4().hex}"
        return await around.ledger.off_loop(opened, self._sessions, own, around)

    async def _end(self, event: AfterInvocationEvent) -> None:
        run = event.invocation_state.pop(self._key(event.agent), None)
        if run is None:
            return
        by_itself, reason = event.resume is not None, getattr(event.result, "stop_reason", None)
        if getattr(event, "_continuation_state", None) is not None:
            # A tool in the background makes it go on.
            by_itself = by_itself or reason in ("end_turn", "stop_sequence")
        if by_itself or reason in _LATER:
            self._waiting[event.agent] = run, by_itself
        else:
            await run.session.ledger.off_loop(run.end)

    def _key(self, agent: Any) -> str:
        return f"guardrails_run_{id(self):x}_{id(agent):x}"

    # Swarms and graphs

    def _begin_group(self, event: BeforeMultiAgentInvocationEvent) -> None:
        given = event.invocation_state
        # A group that is a node of another has its session.
        if given is not None and _GROUP not in given:
            around, name = current_session(), given.get(SESSION)
            given[_GROUP] = around or self._sessions.of(name), event.source, around is None and name is None

    async def _end_group(self, event: AfterMultiAgentInvocationEvent) -> None:
        session, source, own = (event.invocation_state or {}).get(_GROUP, (None, None, False))
        if session is None or source is not event.source:
            return
        del event.invocation_state[_GROUP]
        if own:
            await session.ledger.off_loop(self._sessions.end, session)
