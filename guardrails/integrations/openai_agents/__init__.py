"""
openai-agents: a `Runner` whose runs go through a session, with all tools of all agents that they reach.

    runner = GuardedRunner(Policy.load("default"))
    result = await runner.run(agent, "go", session=SQLiteSession("thread-1"))

Needs the extra `openai-agents`.
"""

import json

from collections.abc import Mapping, Sequence
from contextvars import Token
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Unpack

from xxhash import xxh3_64_hexdigest

from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import give_back, share_of
from guardrails.policy.sessions import SessionOptions, Sessions

from .fitting import fit
from .model import GuardedProvider, guarded_model
from .running import Running, awaited, running


with needs("openai-agents", "`GuardedRunner`"):
    from agents import Agent, Model, RunConfig, Runner, RunState


if TYPE_CHECKING:
    from agents import RunResult, RunResultStreaming

    from guardrails.policy.policy import Policy
    from guardrails.session.session import Session

__all__ = ["GuardedRunner"]

MAX_TURNS_CODE: Final = "loop.max_turns"
MAX_PARKED: Final = 1_000
"""Calls of runs without a name that wait for a person, whose sessions are kept."""


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
        self._parked: dict[tuple[str, str], Running] = {}

    def session(self, name: object) -> "Session":
        """
        The session of the runs of that name.
        """
        return self._sessions.of(name)

    async def run(self, starting_agent: Agent[Any], input: Any, **options: Any) -> "RunResult":
        """
        As `Runner.run`.
        """
        run, options, token = self._begin(starting_agent, input, options)
        result = None
        try:
            result = await Runner.run(starting_agent, input, **options)
        finally:
            running.reset(token)
            await run.session.ledger.off_loop(self._end, run, result)
        return result

    def run_sync(self, starting_agent: Agent[Any], input: Any, **options: Any) -> "RunResult":
        """
        As `Runner.run_sync`.
        """
        run, options, token = self._begin(starting_agent, input, options)
        result = None
        try:
            result = Runner.run_sync(starting_agent, input, **options)
        finally:
            running.reset(token)
            self._end(run, result)
        return result

    def run_streamed(self, starting_agent: Agent[Any], input: Any, **options: Any) -> "RunResultStreaming":
        """
        As `Runner.run_streamed`.
        """
        run, options, token = self._begin(starting_agent, input, options)
        try:
            result = Runner.run_streamed(starting_agent, input, **options)
        finally:
            running.reset(token)
        if result.run_loop_task is not None:
            result.run_loop_task.add_done_callback(lambda _: self._end(run, result))
        return result

    def _begin(
        self, agent: Agent[Any], input: Any, options: Mapping[str, Any]
    ) -> tuple[Running, dict[str, Any], "Token[Running | None]"]:
        given = options.get("run_config") or RunConfig()
        config: RunConfig = RunConfig(**given) if isinstance(given, Mapping) else given
        name = options.get("conversation_id") or getattr(options.get("session"), "session_id", None) or config.group_id
        waiting = _waiting(input, input._original_input, input._model_responses) if isinstance(input, RunState) else ()  # noqa: SLF001
        parked = [self._parked[call] for call in waiting if call in self._parked]
        outer, shared, held = running.get(), False, bool(name)
        if parked and not name:
            session, shared = parked[0].session, parked[0].shared
        elif outer is not None and outer.owner is self and not name:
            # An agent that is asked in a tool: others of the same response are to have some.
            child = share_of(outer.session)
            session, shared, held = child or outer.session, child is not None, child is None
        else:
            session = self._sessions.of(name)
        fit(agent)
        user = not isinstance(input, RunState)
        run = Running(session, named=held, shared=shared, owner=self, user=user)
        config = _configured(run, config)
        handlers = {"max_turns": _last_word(run, config), **(options.get("error_handlers") or {})}
        return run, {**options, "run_config": config, "error_handlers": handlers}, running.set(run)

    def _end(self, run: Running, result: Any) -> None:
        if run.named:
            return
        self._parked = {call: held for call, held in self._parked.items() if held.session is not run.session}
        waiting = () if result is None else _waiting(result, result.input, result.raw_responses)
        self._parked = dict([*self._parked.items(), *((call, run) for call in waiting)][-MAX_PARKED:])
        if waiting:
            return
        if run.shared:
            give_back(run.session, forget=True)
        else:
            self._sessions.end(run.session)


def _waiting(held: Any, asked: Any, responses: Sequence[Any]) -> list[tuple[str, str]]:
    """
    The calls of a result, or of its state, that wait for a person. Models number calls alike in runs of several users, so
    each is told by all that its run *asked* and was answered by *responses*.
    """
    items = held.get_interruptions() if isinstance(held, RunState) else held.interruptions
    if not items:
        return []
    said = [
        [getattr(item, "call_id", None), getattr(item, "arguments", None)] for each in responses for item in each.output
    ]
    whole = xxh3_64_hexdigest(json.dumps([asked, said], sort_keys=True, default=str).encode())
    return [(item.call_id, whole) for item in items]


def _configured(run: Running, config: RunConfig) -> RunConfig:
    formatter = config.tool_error_formatter

    async def told(asked: Any) -> str | None:
        if asked.kind == "tool_not_found":
            return (await run.unknown(asked.tool_name, asked.call_id)).to_json()
        return None if formatter is None else await awaited(formatter(asked))

    return replace(
        config,
        model=guarded_model(config.model) if isinstance(config.model, Model) else config.model,
        model_provider=GuardedProvider(config.model_provider),
        tool_not_found_behavior="return_error_to_model",
        tool_error_formatter=told,
    )


def _last_word(run: Running, config: RunConfig) -> Any:
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
