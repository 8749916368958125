"""
crewai: agents and crews whose tools and model requests go through a session.

    agent = Guardrails(Policy.load("default")).agent(Agent(...))
"""

import asyncio
import inspect
import json
import threading

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any, Final, TypeVar

from pydantic import PrivateAttr

from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.session.final_answer import SILENT_CODE
from guardrails.session.ledger import SHARE

from . import hosting as kit
from .hosting import HostLoop


with needs("crewai", "`Guardrails`"):
    from anyio.from_thread import BlockingPortal, start_blocking_portal
    from crewai.agents.parser import AgentAction, OutputParserError, parse
    from crewai.tools.tool_failure import ToolFailure, ToolFailureReason
    from crewai.utilities import agent_utils, i18n, string_utils

A = TypeVar("A", bound=Any)
REPEATED: Final = 4
"""So often the host itself has answered the same call; once more, and it ends the run by an exception."""


class Guardrails(kit.Adapter):
    """
    Puts agents and crews behind the sessions of *guarded*: a policy, or one session that all of them share. The
    *options* are those of `Policy.session`.

        guard = Guardrails(Policy.load("default"))
        agent = guard.agent(Agent(...))
        crew = guard.crew(Crew(...))

    They are copies; what was given stays as it was.
    """

    def agent(self, agent: A, thread: object = None) -> A:
        """
        *agent* with its tools and its model behind a session: that of *thread*, or, without one, a new one each run.
        """
        changes = {"tools": _tools(agent.tools), "llm": _guarded(_Model, agent.llm), "agent_executor": None}
        return _guarded(_Agent, agent, (self._sessions, thread), **changes)

    def crew(self, crew: A, thread: object = None) -> A:
        """
        *crew* with all its agents behind one session. A task has a share of it, and contexts of its own: an eighth of what is
        left if it runs beside others, else all.
        """
        members = [*crew.agents, crew.manager_agent, *(task.agent for task in crew.tasks)]
        agents = {id(one): one if isinstance(one, _Agent) else self.agent(one) for one in members if one is not None}
        tasks = {id(task): task.model_copy(update={"agent": agents.get(id(task.agent))}) for task in crew.tasks}
        for task in tasks.values():
            if isinstance(task.context, list):
                task.context = [tasks.get(id(one), one) for one in task.context]
        guarded, manager = [agents[id(one)] for one in crew.agents], agents.get(id(crew.manager_agent))
        changes = {"agents": guarded, "manager_agent": manager, "tasks": [*tasks.values()]}
        return _guarded(_Crew, crew, (self._sessions, thread), **changes)


class _Run:
    """
    A run of *owner*, which its tools and its model find by the context that they are called in. What it opens, *stack* ends.
    """

    def __init__(self, owner: object, loop: HostLoop, stack: ExitStack) -> None:
        self.owner, self.loop = owner, loop
        self.same: Counter[Any] = Counter()
        """How often each result was there, and each call that the host answers itself."""
        self.odd: dict[str, str] = {}
        """Of such calls, by their ids, what the model is to read."""
        self._stack, self._lock = stack, threading.Lock()
        self._portal: BlockingPortal | None = None

    def wait(self, function: Callable[..., Any], *args: Any) -> Any:
        """
        Returns the result of *function* in this run's loop, which its asynchronous tools share; the host makes one for each
        call. Raises CancelledError once the run is over.
        """
        with self._lock:
            if self._portal is None:
                self._portal = self._stack.enter_context(start_blocking_portal())
                self._stack.callback(self._portal.call, self._portal.stop, True)
        try:
            return self._portal.call(function, *args)
        except CancelledError:
            raise asyncio.CancelledError from None


_running: Final[ContextVar[_Run | None]] = ContextVar("guardrails_crewai_run", default=None)
"""The run that the host is in; None inside of a tool, and within a request."""


# Methods that are put before the classes of the host's objects


@cache
def _kind(mixin: type, host: Any) -> Any:
    own = {"__module__": __name__, "_guard": PrivateAttr(default=None)}
    return host if issubclass(host, mixin) else type(host)(f"Guarded{host.__name__}", (mixin, host), own)


def _guarded(mixin: type, one: A, guard: Any = None, **changes: Any) -> A:
    """
    A copy of *one* of the host's objects, with *changes*: of its own class, with *mixin* before it, and *guard* its `_guard`.
    """
    made: Any = one.model_copy(update=changes)
    made.__class__ = _kind(mixin, made.__class__)
    made._guard = guard  # noqa: SLF001
    return made


@contextmanager
def _run(owner: Any, *, parallel: bool = False) -> Iterator[None]:
    """
    A run of *owner*, in its thread or within what asks it. *parallel*: others run at the same time.
    """
    (sessions, thread), outer = owner._guard, _running.get()  # noqa: SLF001
    with ExitStack() as stack:
        # The host makes a run once more after an error.
        if outer is None or outer.owner is not owner:
            around = sessions.around
            if outer is not None and outer.loop.session.ledger.policy is sessions.policy:
                around = outer.loop.session
            # Of what a tool asks, another call of the same response may ask more.
            share = SHARE if parallel or outer is None else 1
            session, end = kit.open_share(around, share=share) if around else kit.open_run(sessions, thread)
            stack.callback(end)
            stack.callback(_running.reset, _running.set(_Run(owner, HostLoop(session, first=True), stack)))
        yield


class _Agent:
    def copy(self: Any) -> Any:
        return _guarded(_Agent, super().copy(), self._guard)  # type: ignore[misc]

    def kickoff(self: Any, *args: Any, **options: Any) -> Any:
        if agent_utils.is_inside_event_loop():
            return self.kickoff_async(*args, **options)
        with _run(self):
            return super().kickoff(*args, **options)  # type: ignore[misc]

    async def kickoff_async(self: Any, *args: Any, **options: Any) -> Any:
        with _run(self):
            return await super().kickoff_async(*args, **options)  # type: ignore[misc]

    def execute_task(self: Any, task: Any, *args: Any, **options: Any) -> Any:
        with _run(self, parallel=task.async_execution):
            return super().execute_task(task, *args, **options)  # type: ignore[misc]

    async def aexecute_task(self: Any, task: Any, *args: Any, **options: Any) -> Any:
        with _run(self, parallel=task.async_execution):
            return await super().aexecute_task(task, *args, **options)  # type: ignore[misc]

    def create_agent_executor(self: Any, tools: Any = None, task: Any = None) -> Any:
        # The tools of a crew are made for each task: those for delegation, for memory, of MCP servers.
        return super().create_agent_executor(_tools(tools), task)  # type: ignore[misc]

    def get_mcp_tools(self: Any, mcps: Any) -> Any:
        return _tools(super().get_mcp_tools(mcps))  # type: ignore[misc]

    def get_platform_tools(self: Any, apps: Any) -> Any:
        return _tools(super().get_platform_tools(apps))  # type: ignore[misc]


class _Crew:
    def copy(self: Any) -> Any:
        return _guarded(_Crew, super().copy(), self._guard)  # type: ignore[misc]

    # One that streams comes back here for the run.
    def kickoff(self: Any, *args: Any, **options: Any) -> Any:
        with nullcontext() if self.stream else _run(self):
            return super().kickoff(*args, **options)  # type: ignore[misc]

    async def akickoff(self: Any, *args: Any, **options: Any) -> Any:
        with nullcontext() if self.stream else _run(self):
            return await super().akickoff(*args, **options)  # type: ignore[misc]


class _Model:
    def call(self: Any, *args: Any, **options: Any) -> Any:
        return kit.sync_result(_asked(self, super().call, True, *args, **options))  # type: ignore[misc]

    async def acall(self: Any, *args: Any, **options: Any) -> Any:
        return await _asked(self, super().acall, False, *args, **options)  # type: ignore[misc]


class _Tool:
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        """
        The call of a model with native function calling.
        """
        way = super().arun if inspect.iscoroutinefunction(getattr(self, "func", None)) else super().run  # type: ignore[misc]
        return _called(self, way, args, kwargs)

    def _run(self: Any, *args: Any, **kwargs: Any) -> Any:
        """
        The call of a model that calls by text.
        """
        return _called(self, super()._run, args, kwargs)  # type: ignore[misc]


# Model requests


async def _asked(
    model: Any, ask: Callable[..., Any], blocking: bool, messages: Any, tools: Any = None, *args: Any, **options: Any
) -> Any:
    """
    Ask the *model* as its run lets it.
    """
    run, before = _running.get(), model.get_token_usage_summary()
    if run is None:
        return await kit.maybe_await(ask(messages, tools, *args, **options))
    loop, calls = run.loop, list[Any]()
    loop.blocking = blocking
    # A model without native function calling reads of its tools in the prompt, and calls by text.
    by_text = tools is None and options.get("from_agent") is not None
    listed = messages if isinstance(messages, list) else []
    for message in reversed(listed):
        if message.get("tool_call_id") in run.odd:
            message["content"] = run.odd.pop(message["tool_call_id"])

    async def send(_: Any) -> Any:
        last = [{"role": "user", "content": i18n.I18N_DEFAULT.errors("force_final_answer")}] if listed else []
        # The host's own list unless there is more to say: a request may be shortened in place.
        whole = [*listed, *last] if loop.off and last else messages
        token = _running.set(None)
        try:
            return await kit.maybe_await(ask(whole, None if loop.off else tools, *args, **options))
        finally:
            _running.reset(token)

    def read(answer: Any) -> tuple[str, int, dict[str, Any]]:
        nonlocal before, calls
        text, calls = _read(answer, by_text=by_text)
        if calls and not by_text and not tools:
            loop.final.force(SILENT_CODE)
        now = model.get_token_usage_summary()
        used, before = now.delta_since(before), now
        return text, len(calls), {"model": model.model, "usage": used if used.total_tokens else None}

    answer, digest = await loop.respond(None, send, read)
    if digest is None and not loop.off:
        await loop.off_loop(_note, run, calls, tools)
        return answer
    last, mark = answer if digest is None else digest, "Final Answer:"
    return f"{mark} {last}" if by_text and isinstance(last, str) and mark not in last else last


def _read(answer: Any, *, by_text: bool) -> tuple[str, list[Any]]:
    """
    The text of an *answer*, and its calls: id, name, and arguments as JSON, or what was to be JSON.
    """
    if isinstance(answer, list) and agent_utils.is_tool_call_list(answer):
        made = filter(None, map(agent_utils.extract_tool_call_info, answer))
        return "", [(key, name, given if isinstance(given, str) else json.dumps(given)) for key, name, given in made]
    text = str(answer or "")
    with suppress(OutputParserError):  # the host tells the model so, and asks again
        if by_text and isinstance(action := parse(text), AgentAction):
            return "", [("", action.tool, action.tool_input)]
    return text, []


def _note(run: _Run, calls: list[Any], tools: Any) -> None:
    """
    Tell of calls that the host answers itself, and ask for the final answer before the host gives the run up. It does so if a
    tool does not exist, or the arguments are no JSON, and to a text that it had before.
    """
    for key, name, arguments in calls:
        with suppress(ValueError):
            if any(tool["function"]["name"] == name for tool in tools or ()):
                json.loads(arguments)
                continue
        if key:
            run.odd[key] = run.loop.session.call(name, arguments, kit.missing).to_json()
        run.same[name, arguments] += 1
        if run.same[name, arguments] >= REPEATED:
            run.loop.final.force(SILENT_CODE)


# Tools


class _Refusal(str):
    """
    The envelope of a call that did not succeed, as text: no cache keeps it.
    """

    __slots__ = ()


def _tools(tools: Any) -> Any:
    return None if tools is None else [tool if isinstance(tool, _Tool) else _guarded_tool(tool) for tool in tools]


def _guarded_tool(tool: Any) -> Any:
    known, own = kit.host_tool(string_utils.sanitize_tool_name(tool.name), tool.args_schema), tool.cache_function
    caches = lambda arguments, result: not isinstance(result, (_Refusal, ToolFailure)) and own(arguments, result)  # noqa: E731
    return _guarded(_Tool, tool, known, cache_function=caches)


def _called(tool: Any, plain: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """
    Run a call by its *plain* way if the session lets it; what the model reads of it.
    """
    run, known = _running.get(), tool._guard  # noqa: SLF001
    if run is None:
        return plain(*args, **kwargs)
    session = kit.call_session(run.loop.session, known)
    arguments = {**dict(zip(tool.args_schema.model_fields, args, strict=False)), **kwargs}

    def execute(_: str, given: Any) -> Any:
        apart = copy_context()
        apart.run(_running.set, None)
        return _outcome(apart.run(plain, **given))

    async def later(_: str, given: Any) -> Any:
        _running.set(None)
        return _outcome(await plain(**given))

    if inspect.iscoroutinefunction(plain):
        envelope = run.wait(session.acall, known.name, arguments, later)
    else:
        envelope = session.call(known.name, arguments, execute)
    if envelope.ok and tool.result_as_answer and not envelope.cut:
        # It is the user who reads it.
        return envelope.value
    # The host ends a run by an exception at the fifth result that equals those before (`utilities/agent_utils.py:1922`).
    # Each text is therefore made different by space at its end.
    body = envelope.to_json()
    text = body + " " * run.same[body]
    run.same[body] += 1
    if envelope.ok or not (tool.result_as_answer or envelope.status == "error"):
        return text if envelope.ok else _Refusal(text)
    return ToolFailure(message=text, reason=ToolFailureReason.EXCEPTION, details={"error_type": envelope.error_type})


def _outcome(result: Any) -> Any:
    return Failed(result.message) if isinstance(result, ToolFailure) else result
