"""
The spans of agents, whichever program wrote them, as calls: with the attributes of OpenTelemetry's GenAI convention.

Spans are written as they end, or the latest first: they are put into the order of their start. The spans of models between
calls tell the tokens of the response that made them, and with which ids and arguments.
"""

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

from guardrails.core.result.kinds import kind_of_name, kind_of_status
from guardrails.core.values.types import ERROR_TYPES, ErrorType
from guardrails.offline.readers.base import RecordedCall
from guardrails.offline.readers.text.blocks import text_of
from guardrails.offline.readers.text.fields import amount, arguments_of, count, is_one_of, listed, text
from guardrails.offline.readers.text.result_text import settle


MAX_SPANS: Final = 64
"""Spans of one session that are held back while earlier ones may come."""
MAX_SESSIONS: Final = 10_000
MAX_MADE: Final = 256
"""Calls of one response whose spans are looked for."""
MODEL_CALLS: Final = frozenset({"chat", "generate_content", "text_completion"})

_OWN: Final[dict[str, ErrorType]] = {kind: kind for kind in ERROR_TYPES}
_REFUSED: Final = frozenset({"deny", "pending"})
_ENDED: Final = frozenset({"success", "error", "validation_error"})


class Made(NamedTuple):
    """
    A call that a model's response asks for.
    """

    id: str | None
    tool: str
    arguments: Any


class Span(NamedTuple):
    """
    A call of a tool, or of a model.
    """

    start_ns: int
    end_ns: int
    order: int
    session_id: str
    is_call: bool
    attributes: Mapping[str, Any]
    status: Mapping[str, Any]
    made: tuple["Made", ...] = ()
    """What a model's response called."""
    by_text: bool = False
    """A status that is no error says only that nothing was raised: then *failed* tells, or the text."""
    failed: bool | None = None


class SpanSession:
    """
    One session, its spans in the order of their start.
    """

    def __init__(self, source: str, session_id: str, held: int = MAX_SPANS) -> None:
        self._source = source
        self._most = held
        self._session_id = session_id
        self._held: list[Span] = []
        self._added = 0
        self._index = 0
        self._turn: int | None = None
        self._responded = False
        """A model's response came since the last call."""
        self._response: Mapping[str, Any] = {}
        self._made: list[Made] = []
        """What the latest response called, as far as no span was found for it."""

    def add(self, span: Span) -> Iterator[RecordedCall]:
        """
        Returns a span that has ended.
        """
        self._added += 1
        heappush(self._held, span._replace(order=self._added))
        if len(self._held) > self._most:
            yield from self._next()

    def rest(self) -> Iterator[RecordedCall]:
        while self._held:
            yield from self._next()

    def _next(self) -> Iterator[RecordedCall]:
        span = heappop(self._held)
        if span.is_call:
            tool = text(span.attributes.get("gen_ai.tool.name"))
            if tool is not None and span.attributes.get("guardrails.status") != "claimed":
                yield self._call(span, tool)
        else:
            self._responded, self._response = True, span.attributes
            self._made = list(span.made[:MAX_MADE])

    def _call(self, span: Span, tool: str) -> RecordedCall:
        said, response = span.attributes, self._response
        if self._responded:
            self._turn, self._responded = (self._turn or 0) + 1, False
        arguments = arguments_of(said.get("gen_ai.tool.call.arguments"))
        call = RecordedCall(self._source, self._session_id, self._index, tool, arguments, self._turn)
        call.id = text(said.get("gen_ai.tool.call.id"))
        self._join(call)
        call.model = text(response.get("gen_ai.response.model")) or text(response.get("gen_ai.request.model"))
        call.tokens_in = count(response.get("gen_ai.usage.input_tokens"))
        call.tokens_out = count(response.get("gen_ai.usage.output_tokens"))
        # The tokens are of the first call after the response only.
        self._response = {key: response[key] for key in response if key.endswith(".model")}
        self._index += 1
        if span.start_ns:
            call.ts_ms = span.start_ns // 1_000_000
            call.duration_ms = max(span.end_ns - span.start_ns, 0) // 1_000_000 if span.end_ns else None
        if text(said.get("guardrails.decision")) is None:
            _settle(call, span)
        else:
            _decide(call, span)
        return call

    def _join(self, call: RecordedCall) -> None:
        """
        Give *call* the id and the arguments that the model's response has for it.
        """
        made = [each for each in self._made if each.tool == call.tool]
        found = next((each for each in made if each.id is not None and each.id == call.id), None)
        if found is None and call.id is None:
            found = next((each for each in made if each.arguments == call.arguments), None)
            if found is None and made and type(call.arguments) is not dict:
                # Some programs write the bare value of a single argument.
                found = made[0]
        if found is not None:
            self._made.remove(found)
            call.id = call.id or found.id
            if type(call.arguments) is not dict:
                call.arguments = found.arguments


def _decide(call: RecordedCall, span: Span) -> None:
    """
    Note the decision that a chain of this library made on *call*. A call that it refused, or that did not end, has no
    result.
    """
    said = span.attributes
    call.decision, call.code = text(said.get("guardrails.decision")), text(said.get("guardrails.code"))
    call.nudges = tuple(code for code in listed(said.get("guardrails.nudges")) if type(code) is str)
    call.run, call.number = text(said.get("guardrails.run")) or "", count(said.get("guardrails.n"))
    call.has_result = not is_one_of(call.decision, _REFUSED) and is_one_of(said.get("guardrails.status"), _ENDED)
    if not call.has_result:
        call.duration_ms = None
        return
    _settle(call, span)
    complete = said.get("guardrails.is_complete")
    call.is_complete = complete if type(complete) is bool else None
    call.tool_cost_usd = amount(said.get("guardrails.cost_usd"))
    if call.is_error:
        call.retry_after_ms = count(said.get("guardrails.retry_after_ms"))


def _settle(call: RecordedCall, span: Span) -> None:
    """
    A span that ended had a result, though its text may have been left out.
    """
    kind = span.attributes.get("error.type")
    failed: bool | None = kind is not None or span.status.get("code") in (2, "STATUS_CODE_ERROR")
    if not failed and span.by_text:
        failed = span.failed
    content = span.attributes.get("gen_ai.tool.call.result")
    if span.by_text and not span.end_ns and not failed and content is None:
        call.has_result = False
        return
    settle(call, content if content is not None else text_of(span.status.get("message")), failed=failed)
    if content is None and not failed:
        call.result = None
    if failed and (named := _error_type(kind)) is not None:
        call.error_type = named


def _error_type(kind: Any) -> ErrorType | None:
    """
    Returns the meaning of `error.type`: a status, or the name of a class.
    """
    if type(kind) is not str:
        return None

    if (own := _OWN.get(kind)) is not None:
        return own

    if kind.isdecimal() and len(kind) == 3:
        return kind_of_status(int(kind))

    name = kind.rsplit(".", 1)[-1]
    return kind_of_name(name) or kind_of_name(name)


class Sessions:
    """
    The sessions of a file, of which so many are open at a time.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._open: dict[str, SpanSession] = {}

    def add(self, span: Span) -> Iterator[RecordedCall]:
        """
        Returns a span that has ended.
        """
        session = self._open.get(span.session_id)
        if session is None:
            if len(self._open) >= MAX_SESSIONS:
                yield from self._open.pop(next(iter(self._open))).rest()
            session = self._open[span.session_id] = SpanSession(self._source, span.session_id)
        yield from session.add(span)

    def rest(self) -> Iterator[RecordedCall]:
        for session in self._open.values():
            yield from session.rest()
