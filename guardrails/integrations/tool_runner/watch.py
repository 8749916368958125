"""
Watches the requests and responses of one run of the SDK's tool runner. It adds the session's limits, and answers the
calls that would end the runner.
"""

import json

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.outcome.redaction import sanitise
from guardrails.core.tools.tool_choice import Strategy, forces
from guardrails.core.values.errors import needs
from guardrails.core.values.logs import log
from guardrails.integrations.openai.answers import limited, refusal
from guardrails.integrations.openai.context import cleaned
from guardrails.integrations.openai.reading import (
    Cut,
    check_sendable,
    checked_object,
    readable_usage,
    text_in,
    written_in,
)
from guardrails.integrations.openai.responses import Response
from guardrails.integrations.openai.wire import part
from guardrails.session.session import Session
from guardrails.session.turns.loop import Loop, Refuse, RequestedCall, Run, Turn
from guardrails.session.turns.turns import Requested


if TYPE_CHECKING:
    from openai.types.responses import Response as Whole

UNREADABLE: Final = "guardrails_unreadable_call"
"""The function that runs in place of calls the runner would end on; no model is told of it, nor sees its name."""


class Watch:
    """
    One run: each request passes `asked`, each response `answered`.
    """

    def __init__(self, session: Session, loop: Loop, names: Iterable[str], strategy: Strategy | None) -> None:
        self._session = session
        self._loop = loop
        self._names = frozenset(names)
        self._strategy = strategy
        self._requested: Any = None
        self._model = ""
        self.endpoint: str | None = None
        """Who is asked says what a model costs."""
        self.failure: BaseException | None = None
        """Why a reply could not be gone on with, which the runner does not say."""
        self._answered = False
        self._asked: Requested | None = None
        self._usage: Any = None
        self._refusing: str | None = None
        self._ids: set[str] = set()
        self._mended: dict[int, tuple[str, str | None]] = {}
        """Of the present response, by place: the id of the call, and the arguments of the call that stands in for it."""

    def params(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """
        The parameters of the run, for the runner: it takes no choice that forces a function, since it never resets one.
        """
        params = dict(given)
        choice = params.get("tool_choice") or None
        if forces(choice):
            del params["tool_choice"]
        self._requested = choice
        return params

    def asked(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """
        The next request as it is sent; tells the session that it starts.
        """
        given = request["input"]
        if not self._loop.requests and (isinstance(given, str) or (given and part(given[-1], "role") == "user")):
            self._session.go_on()
        self._asked = self._session.request()
        self._mended, self._answered, self._usage = {}, False, None
        self._loop.more = self._session.iterations_more
        ask = self._loop.ask(self._session.exhausted_by or self._asked.code)
        self._model = str(request["model"])
        own = {"input", "tools", "tool_choice"}
        sent: dict[str, Any] = cleaned({name: said for name, said in request.items() if name not in own})
        sent["input"] = sanitise(given) if isinstance(given, str) else [cleaned(_as_it_came(item)) for item in given]
        tools = [tool for tool in request.get("tools") or () if tool.get("name") != UNREADABLE]
        if tools:
            sent["tools"] = tools
            choice = (
                "none"
                if ask.forced
                else self._session.tool_choice(self._requested, first=ask.first, strategy=self._strategy)
            )
            if choice is not None:
                sent["tool_choice"] = choice
        return sent

    @contextmanager
    def asking(self) -> Iterator[None]:
        """
        While a request is sent: one that fails holds nothing.
        """
        try:
            yield
        except BaseException:
            if self._asked is not None:
                self._asked.release()
            raise

    def limited(self, envelope: Envelope) -> str:
        """
        The text of *envelope*, with the limit of the loop if no more calls will be run after those of this response.
        """
        return limited(envelope, self._loop.told()).to_json()

    def answered(self, response: "Whole") -> "Whole":
        """
        Charge *response*; it, with what the runner can go on with. Raises ResponseFailed if it failed, or is none.
        """
        turn = self._turn(response)
        self._answered = True
        self._charge(len(turn.calls))
        step = self._loop.take(turn)
        self._refusing = step.code if isinstance(step, Refuse) else None
        if isinstance(step, Run):
            told = {"session": self._session.id, "iteration": step.iteration, "count": len(step.calls)}
            log.info("executing tool calls", extra=told)
        end = self._loop.end
        if end is None and turn.calls:
            return response.model_copy(update={"output": [self.item(i, at) for at, i in enumerate(response.output)]})
        told = {"session": self._session.id, "iterations": self._loop.iterations, "code": self._loop.code}
        if end is None or end.answer is None:
            # The runner asks nobody twice who has said nothing.
            log.warning("tool loop ended without an answer, returning digest", extra=told)
            return _saying(response, self._session.digest())
        log.info("tool loop complete, returning text response", extra=told)
        return response

    def check_ended(self) -> None:
        """
        Raise Cut if a stream is over without its response.
        """
        if not self._answered:
            raise Cut

    def broken(self, error: BaseException) -> None:
        """
        The response broke off with *error*; it is charged as far as its usage is known, and is never free.
        """
        self.failure = error
        self._charge(0, whole=False)

    def item(self, item: Any, place: int, *, whole: bool = True) -> Any:
        """
        An output item with an id of its own; a call that the runner cannot take, once it is *whole*, as one it can.
        """
        if text_in(checked_object(item, "an item of `output`"), "type") != "function_call":
            return item
        made = self._mended.get(place)
        if made is None:
            own = text_in(item, "call_id")
            call_id = own if own and own not in self._ids else f"{own or 'call'}_{self._loop.requests}_{place}"
            self._ids.add(call_id)
            made = self._mended[place] = (call_id, None)
        name, arguments = text_in(item, "name"), written_in(item, "arguments")
        update = {"call_id": made[0], "arguments": arguments}
        if whole and (name not in self._names or not _is_object(arguments)):
            stand_in = json.dumps({"tool": name, "arguments": arguments})
            update |= {"name": UNREADABLE, "arguments": stand_in}
        return item.model_copy(update=update)

    def refused(self, tool: str, arguments: Any) -> str | None:
        """
        Returns the answer to a call of *tool* that came after the final answer was asked for. None if the call may be
        tried.
        """
        if self._refusing is None:
            return None
        call = RequestedCall("-", tool, arguments)
        return refusal(self._session, self._loop, call, self._refusing).to_json()

    def _charge(self, calls: int, *, whole: bool = True) -> None:
        told: dict[str, Any] = {"calls": calls, "provider": self.endpoint, "whole": whole, "request": self._asked}
        self._session.charge(model=self._model, usage=self._usage, **told)

    def _turn(self, response: "Whole") -> Turn:
        reply = Response()
        try:
            reply.read(response)
            turn = reply.turn(self._loop.requests)
            check_sendable(reply.messages())
        finally:
            self._usage = readable_usage(reply.usage)
        return turn


def _is_object(arguments: Any) -> bool:
    try:
        return isinstance(json.loads(arguments, parse_constant=_refuse), dict)
    except (ValueError, TypeError, RecursionError):
        return False


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _as_it_came(item: Any) -> Any:
    if not isinstance(item, Mapping) or item.get("type") != "function_call" or item.get("name") != UNREADABLE:
        return item
    came = json.loads(item["arguments"])
    return {**item, "name": came["tool"], "arguments": came["arguments"]}


def _saying(response: "Whole", text: str) -> "Whole":
    with needs("openai"):
        from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    said = ResponseOutputText(type="output_text", text=text, annotations=[])
    message = ResponseOutputMessage(
        id=f"msg_digest_{response.id}", type="message", role="assistant", status="completed", content=[said]
    )
    return response.model_copy(update={"output": [message], "status": "completed", "incomplete_details": None})
