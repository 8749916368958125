"""
The agent loop: ask the model, run its calls behind a session, and go on until there is an answer.

It is written once, as a coroutine. The synchronous driver runs it without an event loop, since nothing in it waits then.
"""

import asyncio

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from guardrails.core.arguments import foreign_arguments
from guardrails.core.envelope import Envelope
from guardrails.core.guards.budget import ITERATIONS
from guardrails.core.refusals import ended
from guardrails.core.text.control import sanitise
from guardrails.core.tool import Tool
from guardrails.core.values.errors import LoopLimitExceeded
from guardrails.core.values.logs import log
from guardrails.core.values.types import Denial
from guardrails.integrations.hosting import BROKEN_OFF, HostLoop, maybe_await
from guardrails.policy.tools import Registered, Registry, checked_arguments, missing
from guardrails.session.final_answer import Ended, Strategy, ToolChoice
from guardrails.session.session import Session, scoped
from guardrails.session.steps import Execute, is_async

from .wires import WIRES, Body, RequestedCall, Turn, Wire, check_sendable, clean, compacted, is_cut, mend, part


MAX_TOOL_ITERATIONS: Final = 20
CUT_ASKS: Final = 2
"""Times the model is asked for one turn if its stream is cut: once, and once more."""
LIMIT_CODE: Final = "loop.max_tool_iterations"

Offered = Mapping[str, Any] | Tool | Callable[..., Any] | Registry
"""An entry of a `tools` list of the wire, a `Tool`, a Python function, or tools that may change."""
Offers = Registry | Iterable[Offered]


@dataclass(frozen=True, slots=True)
class LoopResult:
    """
    The end of an agent loop.
    """

    answer: str
    ended: Ended
    """answered: of its own accord; forced: with tools switched off; digest: not at all, `session.digest()` speaks."""
    code: str | None
    """Why the answer was forced: the session's code, `loop.max_tool_iterations` or `loop.no_answer`."""
    finish_reason: str | None
    """Of the last response: `length` is a text cut short."""
    requests: int
    iterations: int
    """Requests whose calls were run."""
    messages: list[Any]
    """The whole conversation, the answer last; fit to go on with."""
    session: Session


class Loop:
    """
    One loop of *model* with *client*; the settings are those of `run`. With *blocking* nothing in it waits.
    """

    def __init__(
        self,
        client: Any,
        session: Session,
        /,
        *,
        blocking: bool,
        model: str,
        messages: Iterable[Any] | str,
        tools: Offers = (),
        execute: Execute | None = None,
        wire: Literal["chat", "responses"] = "chat",
        tool_choice: ToolChoice = None,
        strategy: Strategy | None = None,
        stream: bool = False,
        on_text: Callable[[str], object] | None = None,
        max_tool_iterations: int = MAX_TOOL_ITERATIONS,
        on_limit: Literal["answer", "raise"] = "answer",
        parallel: int | None = None,
        compact: Callable[[list[Any]], Any] | None = None,
        digest: bool = True,
        **options: Any,
    ) -> None:
        if wire not in WIRES:
            raise ValueError(f"`wire` is {' or '.join(WIRES)}, not `{wire}`")
        first = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        self.messages: list[Any] = first if isinstance(first, list) else list(first)
        self._client, self._session, self._blocking = client, session, blocking
        self._wire = WIRES[wire]
        self._tools = Tools(session, self._wire, tools, execute, blocking=blocking)
        # An `omit` of the client is falsy.
        self._requested, self._strategy = tool_choice or None, strategy
        self._stream, self._on_text = stream, on_text
        self._max, self._on_limit = max(1, max_tool_iterations), on_limit
        self._parallel, self._compact, self._digest = parallel, compact, digest
        self._options = {"model": model, **clean(options)}
        mend(self._wire, self.messages)
        user = bool(self.messages) and part(self.messages[-1], "role") == "user"
        self._loop = HostLoop(session, user=user)
        # The endpoint says what a model costs.
        self._endpoint = str(getattr(client, "base_url", "") or "") or None
        api = self._wire.api(client)
        self._create: Callable[..., Any] = getattr(api, "with_raw_response", api).create
        self._requests = self._iterations = self._cut = 0
        self._finish_reason: str | None = None
        self._text_error: Exception | None = None

    async def result(self) -> LoopResult:
        """
        Run to the end; see `run`.
        """
        final = self._loop.final
        while final.ended is None:
            limit = self._max + self._session.ledger.read(lambda state, _: state.limits.get(ITERATIONS, 0))
            if self._on_limit == "raise" and self._iterations >= limit:
                raise LoopLimitExceeded(f"max tool iterations ({limit}) exceeded")
            final.force(LIMIT_CODE if self._iterations >= limit else None)
            turn = await self._turn(await self._next_request())
            if turn is None:
                continue
            runs = self._loop.take(turn.text, len(turn.calls), **self._charge(turn.usage)) == "run"
            self._iterations += runs
            self._finish_reason = turn.finish_reason
            last = ended(LIMIT_CODE, "Tool call limit", str(limit), self._iterations)
            await self._keep(turn, last if runs and self._iterations >= limit else None, runs=runs)
        answer, extra = final.answer or "", self._extra(iterations=self._iterations, code=final.code)
        if final.ended == "digest":
            self.messages.append({"role": "assistant", "content": answer})
            log.warning("tool loop ended without an answer, returning digest", extra=extra)
            await self._say(answer)
            self._check_listener()
        else:
            log.info("tool loop complete, returning text response", extra=extra)
        counts = self._requests, self._iterations
        return LoopResult(answer, final.ended, final.code, self._finish_reason, *counts, self.messages, self._session)

    async def _next_request(self) -> dict[str, Any]:
        """
        The next request; the session hears that it starts.
        """
        self._tools.refresh()
        messages = self.messages
        if self._compact is not None:
            rest = await maybe_await(self._compact(list(messages)))
            messages = compacted(self._wire, messages, rest, self._session.digest if self._digest else None)
        choice = self._loop.ask(self._requested, strategy=self._strategy)
        request = self._wire.request([*map(clean, messages)], stream=self._stream) | self._options
        if self._tools.listed:
            request["tools"] = self._tools.listed
            if choice is not None:
                request["tool_choice"] = choice
        return request

    async def _turn(self, request: dict[str, Any]) -> Turn | None:
        """
        The response to *request*, None if its stream was cut for the first time: it is asked for once more.

        A response that breaks off is charged as far as its usage is known, and is never free.
        """
        self._requests += 1
        reply, body, begun = self._wire(), Body(self._client, None), False
        try:
            response = await maybe_await(self._create(**request))
            begun, body = True, Body(self._client, response)
            if self._stream:
                async with aclosing(_events(body.stream(response))) as events:
                    async for event in events:
                        await self._say(reply.add(event))
            else:
                await self._say(reply.read(body.whole(response)))
            turn = reply.turn(len(self.messages), closed=body.closed if self._stream else None)
            check_sendable(turn.messages)
        except BaseException as error:
            failure = body.failure(error)
            if begun or failure is not error:
                self._loop.charge(**self._charge(reply.usage), whole=False)
            else:
                self._loop.failed()
            self._cut += 1
            if begun and self._stream and self._cut < CUT_ASKS and is_cut(error):
                log.warning("model stream was cut, asking once more", extra=self._extra(error=str(error)))
                return None
            if failure is error:
                raise
            raise failure from error
        self._cut = 0
        return turn

    async def _keep(self, turn: Turn, limit: Denial | None, *, runs: bool) -> None:
        """
        Keep *turn*, and a result for each of its calls, also if running them is broken off. The last one names the *limit*.
        """
        self.messages.extend(turn.messages)
        waiting, results = [*turn.calls], dict[str, Envelope]()
        try:
            if runs:
                log.info("executing tool calls", extra=self._extra(iteration=self._iterations, count=len(turn.calls)))
            self._check_listener()
            if runs and not self._blocking:
                await self._run(turn.calls, results)
            while waiting:
                envelope = results.get(waiting[0].id) or await self._envelope(waiting[0], runs=runs)
                if limit is not None and len(waiting) == 1 and envelope.limit_message is None:
                    envelope = envelope.copy()
                    envelope.limit(limit.message, limit.hint, limit.code)
                self.messages.append(self._wire.result(waiting[0], envelope.to_json()))
                del waiting[0]
        finally:
            for call in waiting:
                self.messages.append(self._wire.result(call, results.get(call.id, BROKEN_OFF).to_json()))

    async def _run(self, calls: Sequence[RequestedCall], results: dict[str, Envelope]) -> None:
        """
        Run all at once, or as many as the user wants. If one cannot go on, none does.
        """
        room = asyncio.Semaphore(self._parallel or len(calls))

        async def guarded(call: RequestedCall) -> None:
            async with room:
                results[call.id] = await self._envelope(call, runs=True)

        try:
            async with asyncio.TaskGroup() as group:
                for call in calls:
                    group.create_task(guarded(call))
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _envelope(self, call: RequestedCall, *, runs: bool) -> Envelope:
        if not runs:
            return self._loop.refusal(call.tool, call.arguments, id=call.id)
        session, execute = self._tools.session, self._tools.executor(call.tool)
        if self._blocking:
            return session.call(call.tool, call.arguments, execute, id=call.id)
        return await session.acall(call.tool, call.arguments, execute, id=call.id)

    async def _say(self, text: str) -> None:
        # An error of the listener waits, so that the response is still read and kept.
        if text and self._on_text is not None and self._text_error is None:
            try:
                await maybe_await(self._on_text(sanitise(text)))
            except Exception as error:  # raised once the response is kept
                self._text_error = error

    def _check_listener(self) -> None:
        if self._text_error is not None:
            raise self._text_error

    def _charge(self, usage: Any) -> dict[str, Any]:
        return {"model": self._options["model"], "usage": usage, "provider": self._endpoint}

    def _extra(self, **fields: Any) -> dict[str, Any]:
        return {"session": self._session.id, **fields}


async def _events(stream: Any) -> AsyncGenerator[Any, None]:
    """
    The events of a *stream* of either kind of client.
    """
    if hasattr(stream, "__aiter__"):
        async with stream:
            async for event in stream:
                yield event
    else:
        with stream:
            for event in stream:
                yield event


class Tools:
    """
    The tools *offered* in their order, and how to run each: a function runs itself, the others go to *execute*.

    A call in `session` of this object has its parameters checked at the boundary. The policy's parameters count if it
    declares them. A tool that is not listed is refused. Raises TypeError if nothing can run a tool, also because nothing
    can be awaited (*blocking*), or its name is unfit or given twice, PolicyError if a tool is not valid.
    """

    def __init__(
        self, session: Session, wire: Wire, offered: Offers, execute: Execute | None, *, blocking: bool
    ) -> None:
        self._own, self._wire, self._execute, self._blocking = session, wire, execute, blocking
        tools = [offered] if isinstance(offered, Registry) else offered
        self._offered = [tool if isinstance(tool, Mapping) else self._registry(tool) for tool in tools]
        self._latest: list[Mapping[str, Registered]] | None = None
        self.refresh()

    def refresh(self) -> None:
        """
        List the tools that registries have by now.
        """
        now = [offered.entries for offered in self._offered if isinstance(offered, Registry)]
        if self._latest is not None and all(a is b for a, b in zip(now, self._latest, strict=True)):
            return
        begun, self._latest = self._latest is not None, now
        self.listed: list[dict[str, Any]] = []
        self._entries: dict[str, Registered] = {}
        for listed, entry in self._offers():
            name = "" if entry is None else entry.tool.name
            if name in self._entries and not begun:
                raise TypeError(f"two tools are named `{name}`")
            if name in self._entries:
                # Whoever registers a name that another registry has must not end a loop that is under way.
                log.warning("two tools are named `%s`: the earlier one in `tools` stays", name)
                continue
            if entry is not None and entry.asynchronous and self._blocking:
                raise TypeError(f"`{name}` is asynchronous: use `arun`")
            if entry is not None:
                self._entries[name] = entry
            self.listed.append(listed)
        specs = {name: entry.tool.arguments() for name, entry in self._entries.items()}
        free = {name: spec for name, spec in specs.items() if spec is not None and not self._own.calls.defines(name)}
        offers = [replace(one.tool, parameters=None) for one in self._entries.values()]
        # Responses are charged to the session itself, which is to know what a call costs.
        self._own.calls.offer(*offers)
        self.session = scoped(self._own, free, offers)

    def executor(self, name: str) -> Execute:
        """
        Returns the function that runs the tool *name*. For a tool that nobody offered it says so, with or without guards.
        """
        entry = self._entries.get(name)
        if entry is None:
            return lambda tool, _: missing(tool, self._entries)
        # After the policy's check, text still has to become the type that the function annotates.
        fits = entry.fits and self._own.calls.defines(name)

        def run(tool: str, arguments: Any) -> Any:
            if isinstance(arguments, str):
                # It never runs on text that should have been an object, with guards or without.
                return Envelope.error("validation", "the arguments are not a JSON object; send them as one")
            fitted = checked_arguments(entry.tool, arguments) if fits else arguments
            return fitted if isinstance(fitted, Envelope) else entry.run(tool, fitted)

        async def arun(tool: str, arguments: Any) -> Any:
            return await maybe_await(run(tool, arguments))

        return arun if entry.asynchronous else run

    def _registry(self, offered: Any) -> Registry:
        if isinstance(offered, Registry):
            return offered
        registry = Registry(() if isinstance(offered, Tool) else [offered])
        if isinstance(offered, Tool):
            registry.add(offered, self._runs(offered.name))
        return registry

    def _runs(self, name: str) -> Execute:
        if self._execute is None:
            raise TypeError(f"`execute` is needed to run `{name}`")
        return self._execute

    def _offers(self) -> Iterator[tuple[dict[str, Any], Registered | None]]:
        """
        The entries to list, each with the tool that it is; one that the server runs is none, and passes no guard.
        """
        for offered in self._offered:
            if isinstance(offered, Registry):
                yield from ((entry.tool.openai(self._wire.form), entry) for entry in offered.entries.values())
                continue
            kind, function, entry = offered.get("type", "function"), offered.get("function", offered), None
            if kind == "custom":
                raise TypeError("a free-form tool (`custom`) is not run by this loop: offer a function of one text")
            if kind == "function":
                name, parameters, run = function["name"], function.get("parameters"), self._runs(function["name"])
                spec = foreign_arguments(name, parameters) if parameters else None
                entry = Registered(Tool(name=name, parameters=spec), run, is_async(run), fits=False)
            yield dict(offered), entry
