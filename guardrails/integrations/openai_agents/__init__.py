"""
openai-agents: a `Runner` whose runs go through a session, with all tools of all agents that they reach.

    runner = GuardedRunner(Policy.load("default"))
    result = await runner.run(agent, "go", session=SQLiteSession("thread-1"))

Needs the extra `openai-agents`.
"""

from collections.abc import Callable, Mapping
from contextvars import Token
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Unpack

from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import awaited, missing, opened
from guardrails.policy.sessions import SessionOptions, Sessions

from .model import GuardedModel, GuardedProvider
from .run import Run, running
from .tools import Server, guard


with needs("openai-agents", "`GuardedRunner`"):
    from agents import Agent, Handoff, Model, RunConfig, Runner, RunState


if TYPE_CHECKING:
    from agents import RunResult, RunResultStreaming

    from guardrails.policy.policy import Policy
    from guardrails.session.session import Session

__all__ = ["GuardedRunner"]

MAX_TURNS_CODE: Final = "loop.max_turns"


class GuardedRunner:
    """
    `Runner`, with its `run`, `run_sync` and `run_streamed`, behind *guarded*: a policy, or the one session of all its
    runs. *options* are those of `Policy.session`.

    The run's `conversation_id`, the id of its `session`, or the `group_id` of its configuration names the session of a
    policy, in this order. A run without any of them has a session of its own, forgotten when it ends. In a tool of a
    guarded run, it has a share of what the outer session has left.

    The agents that a run reaches are fitted with the guard where they stand; a plain `Runner.run` runs them as before.
    """

    def __init__(self, guarded: "Policy | Session", **options: Unpack[SessionOptions]) -> None:
        self._sessions = Sessions(guarded, **options)

    def session(self, name: object) -> "Session":
        """
        The session of the runs of that name.
        """
        return self._sessions.of(name)

    async def run(self, starting_agent: Agent[Any], input: Any, **options: Any) -> "RunResult":
        """
        As `Runner.run`.
        """
        run, end, options, token = self._begin(starting_agent, input, options)
        try:
            return await Runner.run(starting_agent, input, **options)
        finally:
            running.reset(token)
            await run.session.ledger.off_loop(end)

    def run_sync(self, starting_agent: Agent[Any], input: Any, **options: Any) -> "RunResult":
        """
        As `Runner.run_sync`.
        """
        _, end, options, token = self._begin(starting_agent, input, options)
        try:
            return Runner.run_sync(starting_agent, input, **options)
        finally:
            running.reset(token)
            end()

    def run_streamed(self, starting_agent: Agent[Any], input: Any, **options: Any) -> "RunResultStreaming":
        """
        As `Runner.run_streamed`.
        """
        _, end, options, token = self._begin(starting_agent, input, options)
        try:
            result = Runner.run_streamed(starting_agent, input, **options)
        finally:
            running.reset(token)
        if result.run_loop_task is not None:
            result.run_loop_task.add_done_callback(lambda _: end())
        return result

    def _begin(
        self, agent: Agent[Any], input: Any, options: Mapping[str, Any]
    ) -> tuple[Run, Callable[[], None], dict[str, Any], "Token[Run | None]"]:
        given = options.get("run_config") or RunConfig()
        config: RunConfig = RunConfig(**given) if isinstance(given, Mapping) else given
        name = options.get("conversation_id") or getattr(options.get("session"), "session_id", None) or config.group_id
        outer = running.get()
        around = outer.session if outer is not None and outer.sessions is self._sessions and not name else None
        session, end = opened(self._sessions, name, around)
        fit(agent, set())
        run = Run(session, self._sessions, user=not isinstance(input, RunState))
        config = _configured(run, config)
        handlers = {"max_turns": _last_word(run, config), **(options.get("error_handlers") or {})}
        return run, end, {**options, "run_config": config, "error_handlers": handlers}, running.set(run)


def _configured(run: Run, config: RunConfig) -> RunConfig:
    formatter = config.tool_error_formatter

    async def told(asked: Any) -> str | None:
        if asked.kind == "tool_not_found":
            envelope = await run.session.acall(asked.tool_name, {}, missing, id=asked.call_id)
            return envelope.to_json()
        return None if formatter is None else await awaited(formatter(asked))

    return replace(
        config,
        model=GuardedModel.of(config.model) if isinstance(config.model, Model) else config.model,
        model_provider=GuardedProvider(config.model_provider),
        tool_not_found_behavior="return_error_to_model",
        tool_error_formatter=told,
    )


def _last_word(run: Run, config: RunConfig) -> Any:
    """
    The answer in place of `MaxTurnsExceeded`: the last agent, asked once more with its tools off.
    """

    async def answer(data: Any) -> Any:
        run.asking.final.force(MAX_TURNS_CODE)
        # Its guardrails are on the whole run, and see the answer as that of the run.
        agent = data.run_data.last_agent.clone(input_guardrails=[], output_guardrails=[])
        more = {"context": data.context.context, "max_turns": 1, "run_config": config}
        result = await Runner.run(agent, data.run_data.history, **more)
        data.context.usage.add(result.context_wrapper.usage)
        return result.final_output

    return answer


def fit(agent: Any, seen: set[int]) -> None:
    """
    Fit the guard to *agent* and to those that it hands over to or has as tools, unless they have it.
    """
    if not isinstance(agent, Agent) or id(agent) in seen:
        return
    seen.add(id(agent))
    agent.mcp_servers = [server if type(server) is Server else Server(server) for server in agent.mcp_servers]
    if isinstance(agent.model, Model):
        agent.model = GuardedModel.of(agent.model)
    for tool in agent.tools:
        guard(tool)
        fit(getattr(tool, "_agent_instance", None), seen)
    for handoff in agent.handoffs:
        known = handoff._agent_ref if isinstance(handoff, Handoff) else None  # noqa: SLF001  the host keeps it there alone
        fit(handoff if known is None else known(), seen)
