"""
One loop's conversation: the next request, the messages, and what the session is told. It serves every wire, sync and
async.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from json import JSONDecodeError
from typing import Any, Final, Literal, Self, Unpack

from guardrails.core.guards.amounts import ITERATIONS
from guardrails.core.tools.tool_choice import Strategy, ToolChoice
from guardrails.core.values.logs import log
from guardrails.core.values.usage import Usage, read_usage
from guardrails.policy.tools import Registry
from guardrails.session.final_answer import refusal
from guardrails.session.session import Requested, Session
from guardrails.session.steps import Execute

from .answers import Answers
from .chat_completions import ChatCompletions
from .context import Compact, Context, cleaned
from .heard import Heard, raw
from .listener import Listener
from .loop import MAX_TOOL_ITERATIONS, Loop, LoopResult, OnLimit
from .offered import Offered, Tools
from .reading import check_sendable, cut_off, readable_usage
from .responses import Responses
from .settings import RequestOptions
from .wire import Reply, Wire


WIRES: Final[Mapping[str, Wire]] = {"chat": ChatCompletions(), "responses": Responses()}


class Conversation:
    """
    The steps that both drivers, sync and async, take before and after each request.
    """

    def __init__(
        self,
        session: Session,
        /,
        *,
        model: str,
        messages: Iterable[Any] | str,
        tools: Registry | Iterable[Offered | Registry] = (),
        execute: Execute | None = None,
        wire: Literal["chat", "responses"] | Wire = "chat",
        tool_choice: ToolChoice = None,
        strategy: Strategy | None = None,
        stream: bool = False,
        on_text: Callable[[str], object] | None = None,
        on_usage: Callable[[Usage], object] | None = None,
        max_tool_iterations: int = MAX_TOOL_ITERATIONS,
        on_limit: OnLimit = "answer",
        parallel: int | None = None,
        compact: Compact | None = None,
        digest: bool = True,
        **request_options: Unpack[RequestOptions],
    ) -> None:
        self._blocking = False
        self.stream = stream
        self.parallel = parallel
        self.listener = Listener(on_text)
        self.compact = compact
        self._on_usage = on_usage
        self._loop = Loop(max_tool_iterations=max_tool_iterations, on_limit=on_limit)
        self._session = session
        if isinstance(wire, str) and wire not in WIRES:
            raise ValueError(f"`wire` is {' or '.join(WIRES)}, or an object that speaks one, not `{wire}`")
        self._wire: Wire = WIRES[wire] if isinstance(wire, str) else wire
        self._wire.check(request_options)
        self.tools = Tools(session, self._wire, tools, execute)
        self._model = model
        said = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        self._context = Context(
            self._wire, said, request_options.pop("previous_response_id", None) if self._wire.chained else None
        )
        # An `omit` of the client is falsy.
        self._requested = self._wire.choice(tool_choice or None)
        self._strategy = strategy
        self._put_back = digest
        self._options = cleaned(request_options)
        self._finish_reason: str | None = None
        self._endpoint: str | None = None
        self._key: str | None = None
        self._asked: Requested | None = None
        """The request under way."""
        self._again = False
        """Whether the latest response was cut off and is asked for once more."""

    @classmethod
    def blocking(cls, session: Session, **settings: Any) -> Self:
        """
        One whose tools a synchronous driver can run; TypeError for others.
        """
        made = cls(session, **settings)
        made._blocking = True
        made._refuse_asynchronous()
        return made

    def due(self) -> bool:
        """
        Returns whether another request is. LoopLimitExceeded at the limit, with `on_limit="raise"`.
        """
        self._loop.more = self._session.ledger.read(lambda state, _: state.limits.get(ITERATIONS, 0))
        return self._loop.next()

    def create(self, client: Any) -> Callable[..., Any]:
        """
        Returns the client's function that sends a request.
        """
        # Who is asked says what a model costs.
        self._endpoint = str(getattr(client, "base_url", "") or "") or None
        key = getattr(client, "api_key", None)
        self._key = key if isinstance(key, str) else None
        create = self._wire.create(client)
        return create if self.stream else raw(create)

    def reply(self) -> Reply:
        """
        A response, still empty.
        """
        return self._wire.reply()

    def heard(self, made: Any) -> Heard:
        """
        Returns the reply to a request, as the client has it.
        """
        return Heard(made, url=self._endpoint, secret=self._key)

    def used(self) -> list[Any]:
        """
        The messages in use, for `compact`.
        """
        return self._context.used()

    def compacted(self, kept: Any) -> None:
        """
        Go on with the messages *kept* and the session's digest.
        """
        self._context.compacted(list(kept), self._session.digest if self._put_back else None)

    def request(self) -> dict[str, Any]:
        """
        The arguments of the next request; tells the session that it starts.
        """
        self.tools.refresh()
        self._refuse_asynchronous()
        self._again = False
        if not self._loop.requests and self._context.asked:
            self._session.ledger.go_on()
        self._asked = self._session.request()
        refused = self._session.exhausted or self._asked.code
        forced = self._loop.ask(refused)
        own = self._wire.request(self._context.next(), stream=self.stream)
        request = {"model": self._model, **own, **self._options}
        if self.tools.listed:
            request["tools"] = self.tools.listed
            choice = (
                "none"
                if forced
                else self._session.tool_choice(self._requested, first=self._loop.first, strategy=self._strategy)
            )
            if choice is not None:
                request["tool_choice"] = self._wire.choice(choice)
        return request

    @contextmanager
    def asking(self) -> Iterator[None]:
        """
        While a request is sent. A client that gives no raw responses reads them there.
        """
        try:
            yield
        except JSONDecodeError as error:
            self._charge(None, 0, whole=False)
            raise self.heard(error.doc).no_json() from error
        except BaseException:
            if self._asked is not None:
                self._asked.release()
            raise

    @contextmanager
    def receiving(self, reply: Reply, heard: Heard) -> Iterator[None]:
        """
        While *reply* comes in. A reply that breaks off is charged as far as its usage is known, and is never free. A
        stream that is cut is asked for once more. Raises ResponseFailed for a reply that is no response.
        """
        try:
            yield
        except BaseException as error:
            self._charge(reply.usage, 0, whole=False)
            if cut_off(error, streamed=self.stream) and self._loop.cut():
                log.warning("model stream was cut, asking once more", extra=self._told(error=str(error)))
                self._again = True
                return
            told = heard.told(error)
            if told is error:
                raise
            raise told from error

    @contextmanager
    def answering(self, reply: Reply, heard: Heard) -> "Iterator[Answers]":
        """
        Charge *reply* and yield the calls to run, which get their results there.

        On leaving, the conversation has a result for every call, also if running them was broken off.
        """
        turn, kept = None, []
        if not self._again:
            with self.receiving(reply, heard):
                turn, kept = reply.turn(len(self._context.whole)), reply.messages()
                check_sendable(kept)
        if turn is None:
            yield Answers((), self._wire, self._context.append, ())
            return
        self._finish_reason = turn.finish_reason
        self._charge(turn.usage, len(turn.calls))
        meaning = self._loop.take(turn.text, turn.calls)
        if kept:
            self._context.extend(kept)
            # A response that said nothing is not gone on from: there would be nothing new to send.
            self._context.answered(turn.id)
        run = turn.calls if meaning == "run" else ()
        answers = Answers(turn.calls, self._wire, self._context.append, run, self._loop.last() if run else None)
        if run:
            log.info("executing tool calls", extra=self._told(iteration=self._loop.iterations, count=len(run)))
        try:
            for position, call in enumerate(() if run else turn.calls):
                answers.give(position, refusal(self._session, self._loop, call.tool, call.arguments, call.id))
            yield answers
        finally:
            answers.break_off()

    def result(self) -> LoopResult:
        """
        Returns the result of the loop; a digest is said in the model's place.
        """
        loop = self._loop
        if loop.ended is None:
            raise RuntimeError("the loop has not ended")
        answer, told = loop.text, self._told(iterations=loop.iterations, code=loop.code)
        if answer is None:
            answer = self._session.digest()
            self._context.append(self._wire.answer(answer))
            log.warning("tool loop ended without an answer, returning digest", extra=told)
        else:
            log.info("tool loop complete, returning text response", extra=told)

        return LoopResult(
            answer=answer,
            ended=loop.ended,
            code=loop.code,
            finish_reason=self._finish_reason,
            requests=loop.requests,
            iterations=loop.iterations,
            messages=self._context.whole,
            session=self._session,
        )

    def _charge(self, usage: Any, calls: int, *, whole: bool = True) -> None:
        usage = readable_usage(usage)
        told: dict[str, Any] = {"calls": calls, "provider": self._endpoint, "whole": whole, "request": self._asked}
        self._session.charge(model=self._model, usage=usage, **told)
        if self._on_usage is not None and (used := read_usage(usage)).known:
            self._on_usage(used)

    def _refuse_asynchronous(self) -> None:
        if self._blocking and self.tools.asynchronous:
            raise TypeError(f"`{self.tools.asynchronous[0]}` is asynchronous: use `arun`")

    def _told(self, **fields: Any) -> dict[str, Any]:
        return {"session": self._session.id, **fields}
