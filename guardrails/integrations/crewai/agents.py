"""
Agents and crews of crewai whose runs are sessions.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import opened
from guardrails.policy.sessions import SessionOptions, Sessions
from guardrails.session.ledger import SHARE
from guardrails.session.steps import current_session

from .models import guard_model
from .running import Run, guarded, running
from .tools import guard_tool


with needs("crewai", "`Guardrails`"):
    from crewai.utilities.agent_utils import is_inside_event_loop

if TYPE_CHECKING:
    from guardrails.policy.policy import Policy
    from guardrails.session.session import Session

A = TypeVar("A")


class Guardrails:
    """
    Puts agents and crews behind the sessions of *guarded*: a policy, or one session that all of them share. The
    *options* are those of `Policy.session`.

        guard = Guardrails(Policy.load("default"))
        agent = guard.agent(Agent(...))
        crew = guard.crew(Crew(...))

    They are copies; what was given stays as it was.
    """

    def __init__(self, guarded: "Policy | Session", **options: Unpack[SessionOptions]) -> None:
        from guardrails.session.session import Session

        self._sessions = Sessions(guarded, **options)
        self._policy = guarded.ledger.policy if isinstance(guarded, Session) else guarded

    def session(self, thread: object) -> "Session":
        """
        The session of *thread*.
        """
        return self._sessions.of(thread)

    def agent(self, agent: A, thread: object = None) -> A:
        """
        *agent* with its tools and its model behind a session: that of *thread*, or, without one, a new one each run.
        """
        given: Any = agent
        changes = {"tools": _tools(given.tools), "llm": guard_model(given.llm), "agent_executor": None}
        return guarded(GuardedAgent, agent, (self, thread), **changes)

    def crew(self, crew: A, thread: object = None) -> A:
        """
        *crew* with all its agents behind one session. A task has a share of it, and contexts of its own: an eighth of what is
        left if it runs beside others, else all.
        """
        given: Any = crew
        agents: dict[int, Any] = {}

        def agent(one: Any) -> Any:
            if one is None or isinstance(one, GuardedAgent):
                return one
            if id(one) not in agents:
                agents[id(one)] = self.agent(one)
            return agents[id(one)]

        tasks: dict[int, Any] = {}
        for task in given.tasks:
            changes: dict[str, Any] = {"agent": agent(task.agent), "tools": _tools(task.tools)}
            if isinstance(task.context, list):
                changes["context"] = [tasks.get(id(one), one) for one in task.context]
            tasks[id(task)] = task.model_copy(update=changes)
        changed = {
            "agents": [agent(one) for one in given.agents],
            "tasks": list(tasks.values()),
            "manager_agent": agent(given.manager_agent),
        }
        return guarded(GuardedCrew, crew, (self, thread), **changed)

    @contextmanager
    def run(self, owner: object, thread: object, *, beside: bool = False) -> Iterator[Run]:
        """
        A run of *owner* in *thread*, or within what asks it. *beside*: others run at the same time.
        """
        outer, asker = running.get(), current_session()
        with ExitStack() as stack:
            if outer is not None and outer.owner is owner:
                # The host makes the run once more after an error.
                run = Run(owner, outer.session, first=False)
            else:
                around = outer.session if outer is not None else asker
                if around is not None and around.ledger.policy is not self._policy:
                    around = None
                # Of what a tool asks, another call of the same response may ask more.
                share = SHARE if beside or outer is None else 1
                session, end = opened(self._sessions, None if around else thread, around, share=share)
                stack.callback(end)
                run = Run(owner, session)
            stack.callback(run.close)
            token = running.set(run)
            stack.callback(running.reset, token)
            yield run


class _Owner:
    """
    An object that has runs.
    """

    def _run(self: Any, **how: Any) -> Any:
        guard, thread = self._guard
        return guard.run(self, thread, **how)


class GuardedAgent(_Owner):
    """
    The guarding methods that are put before the class of an agent.
    """

    def kickoff(self: Any, *args: Any, **options: Any) -> Any:
        if is_inside_event_loop():
            return self.kickoff_async(*args, **options)
        with self._run():
            return super().kickoff(*args, **options)  # type: ignore[misc]

    async def kickoff_async(self: Any, *args: Any, **options: Any) -> Any:
        with self._run():
            return await super().kickoff_async(*args, **options)  # type: ignore[misc]

    def execute_task(self: Any, task: Any, *args: Any, **options: Any) -> Any:
        with self._run(beside=bool(task.async_execution)):
            return super().execute_task(task, *args, **options)  # type: ignore[misc]

    async def aexecute_task(self: Any, task: Any, *args: Any, **options: Any) -> Any:
        with self._run(beside=bool(task.async_execution)):
            return await super().aexecute_task(task, *args, **options)  # type: ignore[misc]

    def create_agent_executor(self: Any, tools: Any = None, task: Any = None) -> Any:
        """
        The tools of a crew are made for each task: those for delegation, for memory, of MCP servers.
        """
        return super().create_agent_executor(_tools(tools), task)  # type: ignore[misc]

    def get_mcp_tools(self: Any, mcps: Any) -> Any:
        return _tools(super().get_mcp_tools(mcps))  # type: ignore[misc]

    def get_platform_tools(self: Any, apps: Any) -> Any:
        return _tools(super().get_platform_tools(apps))  # type: ignore[misc]

    def copy(self: Any) -> Any:
        made = super().copy()  # type: ignore[misc]
        made._guard = self._guard  # noqa: SLF001
        return made


class GuardedCrew(_Owner):
    """
    The guarding methods that are put before the class of a crew.
    """

    def kickoff(self: Any, *args: Any, **options: Any) -> Any:
        if self.stream:
            # It comes back here for the run.
            return super().kickoff(*args, **options)  # type: ignore[misc]
        with self._run():
            return super().kickoff(*args, **options)  # type: ignore[misc]

    async def akickoff(self: Any, *args: Any, **options: Any) -> Any:
        if self.stream:
            return await super().akickoff(*args, **options)  # type: ignore[misc]
        with self._run():
            return await super().akickoff(*args, **options)  # type: ignore[misc]

    def copy(self: Any) -> Any:
        guard, thread = self._guard
        return guard.crew(super().copy(), thread)  # type: ignore[misc]


def _tools(tools: Any) -> Any:
    return None if tools is None else [guard_tool(tool) for tool in tools]
