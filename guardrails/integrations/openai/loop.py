"""
The agent loop: ask the model, run its calls behind a session, and go on until there is an answer.

It is written once, as a coroutine. The synchronous driver runs it without an event loop, since nothing in it waits then.
"""

import asyncio

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Literal

from guardrails.core.envelope import Envelope
from guardrails.core.guards.amounts import ITERATIONS
from guardrails.core.refusals import ended
from guardrails.core.text.control import sanitise
from guardrails.core.values.errors import LoopLimitExceeded
from guardrails.core.values.logs import log
from guardrails.core.values.types import Denial
from guardrails.integrations.hosting import BROKEN_OFF, Asking, awaited
from guardrails.policy.tools import Registry
from guardrails.session.final_answer import Ended, Strategy, ToolChoice
from guardrails.session.session import Session
from guardrails.session.steps import Execute

from .body import Body, is_cut
from .chat_completions import ChatCompletions
from .messages import cleaned, compacted, mend
from .reading import RequestedCall, Turn, check_sendable, part
from .responses import Responses
from .tools import Offered, Tools


MAX_TOOL_ITERATIONS: Final = 20
CUT_ASKS: Final = 2
"""Times the model is asked for one turn if its stream is cut: once, and once more."""
LIMIT_CODE: Final = "loop.max_tool_iterations"


Wire = ChatCompletions | Responses
"""One API of the client."""
WIRES: Final[Mapping[str, Wire]] = {"chat": ChatCompletions(), "responses": Responses()}


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
        tools: Registry | Iterable[Offered] = (),
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
        said = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        self.messages: list[Any] = said if isinstance(said, list) else list(said)
        self._client, self._session, self._blocking = client, session, blocking
        self._wire = WIRES[wire]
        self._tools = Tools(session, self._wire, tools, execute, blocking=blocking)
        # An `omit` of the client is falsy.
        self._requested, self._strategy = tool_choice or None, strategy
        self._stream, self._on_text = stream, on_text
        self._max, self._on_limit = max(1, max_tool_iterations), on_limit
        self._parallel, self._compact, self._digest = parallel, compact, digest
        self._options = {"model": model, **cleaned(options)}
        mend(self._wire, self.messages)
        asked = bool(self.messages) and part(self.messages[-1], "role") == "user"
        self._asking = Asking(session, user=asked)
        # Who is asked says what a model costs.
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
        final = self._asking.final
        while final.ended is None:
            limit = self._max + self._session.ledger.read(lambda state, _: state.limits.get(ITERATIONS, 0))
            if self._on_limit == "raise" and self._iterations >= limit:
                raise LoopLimitExceeded(f"max tool iterations ({limit}) exceeded")
            final.force(LIMIT_CODE if self._iterations >= limit else None)
            turn = await self._turn(await self._sent())
            if turn is None:
                continue
            runs = self._asking.take(turn.text, len(turn.calls), **self._charged(turn.usage)) == "run"
            self._iterations += runs
            self._finish_reason = turn.finish_reason
            last = ended(LIMIT_CODE, "Tool call limit", str(limit), self._iterations)
            await self._keep(turn, last if runs and self._iterations >= limit else None, runs=runs)
        answer, told = self._asking.answer or "", self._told(iterations=self._iterations, code=final.code)
        if final.ended == "digest":
            self.messages.append({"role": "assistant", "content": answer})
            log.warning("tool loop ended without an answer, returning digest", extra=told)
            await self._say(answer)
            self._check_listener()
        else:
            log.info("tool loop complete, returning text response", extra=told)
        counts = self._requests, self._iterations
        return LoopResult(answer, final.ended, final.code, self._finish_reason, *counts, self.messages, self._session)

    async def _sent(self) -> dict[str, Any]:
        """
        The next request; tells the session that it starts.
        """
        self._tools.refresh()
        messages = self.messages
        if self._compact is not None:
            kept = await awaited(self._compact(list(messages)))
            messages = compacted(self._wire, messages, kept, self._session.digest if self._digest else None)
        choice = self._asking.ask(self._requested, strategy=self._strategy)
        request = self._wire.request([*map(cleaned, messages)], stream=self._stream) | self._options
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
        reply, body, begun = self._wire.reply(), Body(self._client, None), False
        try:
            made = await awaited(self._create(**request))
            begun, body = True, Body(self._client, made)
            if self._stream:
                async with aclosing(_events(body.stream(made))) as events:
                    async for event in events:
                        await self._say(reply.add(event))
            else:
                await self._say(reply.read(body.whole(made)))
            turn = reply.turn(len(self.messages), closed=body.closed if self._stream else None)
            check_sendable(turn.messages)
        except BaseException as error:
            failure = body.failure(error)
            if begun or failure is not error:
                self._asking.charge(**self._charged(reply.usage), whole=False)
            else:
                self._asking.failed()
            self._cut += 1
            if begun and self._stream and self._cut < CUT_ASKS and is_cut(error):
                log.warning("model stream was cut, asking once more", extra=self._told(error=str(error)))
                return None
            if failure is error:
                raise
            raise failure from error
        self._cut = 0
        return turn

    async def _keep(self, turn: Turn, limit: Denial | None, *, runs: bool) -> None:
        """
        Keep *turn*, and a result for each of its calls, also if running them is broken off. The last one tells the *limit*.
        """
        self.messages.extend(turn.messages)
        waiting, results = [*turn.calls], dict[str, Envelope]()
        try:
            if runs:
                log.info("executing tool calls", extra=self._told(iteration=self._iterations, count=len(turn.calls)))
            self._check_listener()
            if runs and not self._blocking:
                await self._run(turn.calls, results)
            while waiting:
                envelope = results.get(waiting[0].id) or await self._made(waiting[0], runs=runs)
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
        Run all at once, or as many as the user said. If one cannot go on, none does.
        """
        room = asyncio.Semaphore(self._parallel or len(calls))

        async def guarded(call: RequestedCall) -> None:
            async with room:
                results[call.id] = await self._made(call, runs=True)

        try:
            async with asyncio.TaskGroup() as group:
                for call in calls:
                    group.create_task(guarded(call))
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _made(self, call: RequestedCall, *, runs: bool) -> Envelope:
        if not runs:
            return self._asking.refusal(call.tool, call.arguments, id=call.id)
        session, execute = self._tools.session, self._tools.executor(call.tool)
        if self._blocking:
            return session.call(call.tool, call.arguments, execute, id=call.id)
        return await session.acall(call.tool, call.arguments, execute, id=call.id)

    async def _say(self, text: str) -> None:
        # An error of the listener waits, so that the response is still read and kept.
        if text and self._on_text is not None and self._text_error is None:
            try:
                await awaited(self._on_text(sanitise(text)))
            except Exception as error:  # raised once the response is kept
                self._text_error = error

    def _check_listener(self) -> None:
        if self._text_error is not None:
            raise self._text_error

    def _charged(self, usage: Any) -> dict[str, Any]:
        return {"model": self._options["model"], "usage": usage, "provider": self._endpoint}

    def _told(self, **fields: Any) -> dict[str, Any]:
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
