"""
The tool runner of the openai SDK, guarded: its functions run behind a session, whose limits force the final answer.

    runner = GuardedToolRunner(session, tools=[search_hotels])
    response = runner.run(client, {"model": "gpt-5-mini", "input": "find a hotel in Kyoto"})
    print(response.output_text)

The SDK's runner ends without an answer on its step limit, a tool that raises, or an unregistered function. It also ends
on arguments that do not fit or are no JSON, and on ids that are missing or repeated. Here the model reads a result
instead.
"""

import inspect

from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, Unpack

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.tools.tool_choice import Strategy
from guardrails.core.values.errors import needs
from guardrails.integrations.openai.offered import Offered, Tools
from guardrails.integrations.openai.responses import Responses
from guardrails.policy.registry import Registry
from guardrails.session.calls.calls import Execute
from guardrails.session.session import Session
from guardrails.session.turns.final_answer import FORCED_ASKS
from guardrails.session.turns.loop import MAX_TOOL_ITERATIONS, Loop

from .client import AsyncWatchedClient, WatchedClient
from .options import RunnerOptions, TurnOptions
from .watch import UNREADABLE, Watch


with needs("openai", "`GuardedToolRunner`"):
    from openai.lib.responses_tool_runner import (
        AsyncRegisteredFunction,
        AsyncResponsesToolRunner,
        RegisteredFunction,
        ResponsesToolRunner,
        ToolRunnerError,
    )


if TYPE_CHECKING:
    from openai.lib.responses_tool_runner import ResponsesRunnerTurn

F = TypeVar("F")

_STAND_IN: Final = {
    "type": "function",
    "name": UNREADABLE,
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}


class _Guarded(Generic[F]):
    """
    The part that both runners share: the functions offered, and the run under way.
    """

    _kind: type[F]
    """A function of the SDK's own runner."""
    _watch: Watch | None = None

    def __init__(
        self,
        session: Session,
        *,
        tools: Registry | Iterable[Offered | Registry] = (),
        execute: Execute | None = None,
        functions: Iterable[F] = (),
        strategy: Strategy | None = None,
        **options: Unpack[RunnerOptions],
    ) -> None:
        own = Registry()
        self._given: dict[str, Any] = {}
        for function in functions:
            given: Any = function
            self._given[given.tool["name"]] = given
            own.add(_declared(given.tool), _running(given))
        offered = [tools] if isinstance(tools, Registry) else list(tools)
        self._offered = Tools(session, Responses(), [*offered, own], execute)
        self._session = session
        self._strategy = strategy
        if self._offered.asynchronous and self._kind is RegisteredFunction:
            raise TypeError(f"`{self._offered.asynchronous[0]}` is asynchronous: use `AsyncGuardedToolRunner`")
        super().__init__(functions=self._registered(), **options)  # type: ignore[call-arg, misc]

    def _guarded(self, name: str) -> Callable[[dict[str, object]], Any]:
        raise NotImplementedError

    def _registered(self) -> list[Any]:
        made: Callable[..., Any] = self._kind
        functions = [made(_STAND_IN, self._guarded(UNREADABLE))]
        for listed in self._offered.listed:
            given, guarded = self._given.get(listed["name"]), self._guarded(listed["name"])
            if given is None:
                functions.append(made(listed, guarded))
            else:
                settings = {"allow_output_override": given.allow_output_override, "independent": given.independent}
                functions.append(made(dict(given.tool), guarded, **settings))
        return functions

    def _begun(self, params: Mapping[str, Any], max_steps: int | None) -> tuple[Watch, dict[str, Any], int]:
        loop = Loop(max_tool_iterations=MAX_TOOL_ITERATIONS if max_steps is None else max_steps, called="max_steps")
        names = [listed["name"] for listed in self._offered.listed]
        watch = self._watch = Watch(self._session, loop, names, self._strategy)
        loop.more = self._session.iterations_more
        return watch, watch.params(params), loop.limit + FORCED_ASKS

    def _asked(self, name: str, arguments: Any) -> tuple[str, Any, str | None]:
        """
        The tool and the arguments that the model wrote, and what answers them if nothing is to be tried.
        """
        if name == UNREADABLE:
            name, arguments = arguments["tool"], arguments["arguments"]
        return name, arguments, None if self._watch is None else self._watch.refused(name, arguments)

    def _said(self, envelope: Envelope) -> str:
        return envelope.to_json() if self._watch is None else self._watch.limited(envelope)


class GuardedToolRunner(_Guarded[RegisteredFunction], ResponsesToolRunner):
    """
    A `ResponsesToolRunner` whose functions run behind *session*, for one run at a time.

    *tools* and *execute* are those of `guardrails.integrations.openai.run`. *functions* are registered for the SDK's
    own runner; they run unchanged, but their results go back as envelopes. The *options* are the SDK's (`browser`,
    `computer`, `early_execution`). Actions of a browser or a computer pass no guard.

    `run` and `iterate` are the SDK's, with three differences. After *max_steps* requests whose functions ran (20), or
    at an exhausted session, the final answer is asked for with `tool_choice: "none"`. It is asked for twice if need be;
    then the session's digest is the answer. With `eager=True`, ToolRunnerError is raised instead. A `tool_choice` that
    forces a function is taken, and holds for the first request. *strategy* decides on it turn by turn.
    """

    _kind = RegisteredFunction

    def iterate(
        self, client: Any, params: Any, *, max_steps: int | None = None, **options: Unpack[TurnOptions]
    ) -> "Generator[ResponsesRunnerTurn, None, None]":
        """
        As the SDK's.
        """
        watch, params, most = self._begun(params, max_steps)
        watched: Any = WatchedClient(client, watch)
        return _telling(watch, super().iterate(watched, params, max_steps=most, **options))

    def _guarded(self, name: str) -> Callable[[dict[str, object]], str]:
        def execute(arguments: dict[str, object]) -> str:
            tool, given, refused = self._asked(name, arguments)
            if refused is not None:
                return refused
            return self._said(self._offered.session.call(tool, given, self._offered.executor(tool)))

        return execute


class AsyncGuardedToolRunner(_Guarded[AsyncRegisteredFunction], AsyncResponsesToolRunner):
    """
    The same, awaited; functions of both kinds.
    """

    _kind = AsyncRegisteredFunction

    def iterate(
        self, client: Any, params: Any, *, max_steps: int | None = None, **options: Unpack[TurnOptions]
    ) -> "AsyncGenerator[ResponsesRunnerTurn, None]":
        """
        As the SDK's.
        """
        watch, params, most = self._begun(params, max_steps)
        watched: Any = AsyncWatchedClient(client, watch)
        return _atelling(watch, super().iterate(watched, params, max_steps=most, **options))

    def _guarded(self, name: str) -> Callable[[dict[str, object]], Any]:
        async def execute(arguments: dict[str, object]) -> str:
            tool, given, refused = self._asked(name, arguments)
            if refused is not None:
                return refused
            return self._said(await self._offered.session.acall(tool, given, self._offered.executor(tool)))

        return execute


def _telling(
    watch: Watch, turns: "Generator[ResponsesRunnerTurn, None, None]"
) -> "Generator[ResponsesRunnerTurn, None, None]":
    try:
        yield from turns
    except ToolRunnerError as error:
        raise _told(error, watch) from watch.failure


async def _atelling(
    watch: Watch, turns: "AsyncGenerator[ResponsesRunnerTurn, None]"
) -> "AsyncGenerator[ResponsesRunnerTurn, None]":
    try:
        async with aclosing(turns):
            async for turn in turns:
                yield turn
    except ToolRunnerError as error:
        raise _told(error, watch) from watch.failure


def _told(error: ToolRunnerError, watch: Watch) -> ToolRunnerError:
    """
    *error* with the cause that the SDK leaves out.
    """
    if watch.failure is None or type(error) is not ToolRunnerError:
        return error
    return ToolRunnerError(f"{error} {watch.failure}", list(error.attempted_call_ids), list(error.completed_call_ids))


def _declared(tool: Mapping[str, Any]) -> Tool:
    model = getattr(tool, "model", None)
    return Tool(
        name=tool["name"], description=tool.get("description") or "", parameters=model or tool.get("parameters") or None
    )


def _running(function: Any) -> Execute:
    model = getattr(function.tool, "model", None)

    def fitted(arguments: Any) -> Any:
        return arguments if model is None else model.model_validate(arguments, by_name=True)

    if isinstance(function, AsyncRegisteredFunction):

        async def run_async(_: str, arguments: Any) -> Any:
            made: Any = function.execute(fitted(arguments))
            return await made if inspect.isawaitable(made) else made

        return run_async
    return lambda _, arguments: function.execute(fitted(arguments))
