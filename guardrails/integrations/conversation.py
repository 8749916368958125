"""
One loop's conversation over chat.completions: the next request, the messages, and what the session is told.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from ..envelope import Envelope
from ..guards.budget import FINISH
from ..logs import log
from ..loop import LIMIT_CODE, Loop, LoopResult, Refuse, RequestedCall, Run
from ..session import Session
from ..turns import Strategy, ToolChoice
from ..types import Denial
from .chat_completions import Response, answer_message, result_message
from .offered import Tools


_NOT_MADE: Final = "This call was not made: the final answer was asked for."
_BROKEN_OFF: Final = Envelope.error("cancelled", "this call was broken off before it gave a result")


class Conversation:
    """
    What both loops, sync and async, ask before and after each request.
    """

    def __init__(
        self,
        loop: Loop,
        session: Session,
        tools: Tools,
        *,
        model: str,
        messages: Iterable[Any],
        tool_choice: ToolChoice,
        strategy: Strategy | None,
        options: dict[str, Any],
    ) -> None:
        self._loop = loop
        self._session = session
        self._tools = tools
        self._model = model
        self._messages = messages if isinstance(messages, list) else list(messages)
        # An `omit` of the client is falsy.
        self._requested = tool_choice or None
        self._strategy = strategy
        self._options = options
        self._finish_reason: str | None = None

    def request(self, *, stream: bool) -> dict[str, Any]:
        """
        The arguments of the next `chat.completions.create`; tells the session that it starts.
        """
        self._session.request()
        ask = self._loop.ask(self._session.exhausted_by)
        request = {"model": self._model, "messages": self._messages, **self._options}
        if stream:
            request = {"stream": True, "stream_options": {"include_usage": True}, **request}
        if self._tools.listed:
            request["tools"] = self._tools.listed
            choice = (
                "none"
                if ask.forced
                else self._session.tool_choice(self._requested, first=ask.first, strategy=self._strategy)
            )
            if choice is not None:
                request["tool_choice"] = choice
        return request

    @contextmanager
    def answering(self, response: Response) -> Iterator[tuple[tuple[RequestedCall, ...], dict[int, str]]]:
        """
        Charge *response* and yield the calls to run, and where the text of each result goes, by position.

        On leaving, the conversation has the turn with a result for every call, also where running them was broken off.
        """
        turn = response.turn(len(self._messages))
        self._finish_reason = turn.finish_reason
        self._session.charge(model=self._model, usage=turn.usage, calls=len(turn.calls))
        step = self._loop.take(turn)
        answers: dict[int, str] = {}
        calls: tuple[RequestedCall, ...] = ()
        if isinstance(step, Run):
            calls = step.calls
            log.info("executing tool calls", extra=self._told(iteration=step.iteration, count=len(calls)))
        elif isinstance(step, Refuse):
            answers = {i: self._refused(call, step.code).to_json() for i, call in enumerate(step.calls)}
        try:
            yield calls, answers
        finally:
            if turn.calls or turn.text.strip():
                self._messages.append(response.message())
            for position, call in enumerate(turn.calls):
                self._messages.append(result_message(call, answers.get(position) or _BROKEN_OFF.to_json()))

    def result(self) -> LoopResult:
        """
        What it came to; a digest is said in the model's place.
        """
        end = self._loop.end
        if end is None:
            raise RuntimeError("the loop has not ended")
        answer = end.answer
        if answer is None:
            answer = self._session.digest()
            self._messages.append(answer_message(answer))
            log.warning(
                "tool loop ended without an answer, returning digest",
                extra=self._told(iterations=self._loop.iterations, code=end.code),
            )
        else:
            log.info(
                "tool loop complete, returning text response",
                extra=self._told(iterations=self._loop.iterations, code=end.code),
            )
        return LoopResult(
            answer=answer,
            ended=end.ended,
            code=end.code,
            finish_reason=self._finish_reason,
            requests=self._loop.requests,
            iterations=self._loop.iterations,
            messages=self._messages,
            session=self._session,
        )

    def _refused(self, call: RequestedCall, code: str) -> Envelope:
        if self._session.exhausted:
            # Asked for the record's sake; an exhausted session denies everything.
            decision = self._session.decide(call.tool, call.arguments, id=call.id)
            if decision.envelope is not None:
                return decision.envelope
        limit = self._loop.max_tool_iterations
        message = f"Tool call limit reached ({limit}). Stopping tool loop." if code == LIMIT_CODE else _NOT_MADE
        return Envelope.refusal(Denial(code=code, status="limit_reached", message=message, hint=FINISH))

    def _told(self, **fields: Any) -> dict[str, Any]:
        return {"session": self._session.id, **fields}
