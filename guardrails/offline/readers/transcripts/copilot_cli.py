"""
Copilot CLI sessions: JSON lines of events (`tool.execution_start`, `tool.execution_complete`, `assistant.message`).

The calls of a sub-agent are a session of their own, `session/agent`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.recent import Recent
from guardrails.offline.readers.text.fields import arguments_of, count, mapping, objects, text, time_ms
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import parsed_lines
from guardrails.offline.readers.text.result_text import settle
from guardrails.offline.readers.waiting import Waiting


class CopilotCLI:
    """
    Sessions of Copilot CLI.
    """

    name = "copilot cli session"
    whole = False

    def recognises(self, head: str) -> bool:
        return any(map(_is_event, leading_values(head)[:5]))

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        session = _Session(source, file)
        for _, event in parsed_lines(lines, report, file):
            yield from session.add(event, mapping(event.get("data")))
        yield from session.rest()


def _is_event(value: Any) -> bool:
    event = mapping(value)
    kind = event.get("type")
    return type(kind) is str and "." in kind and type(event.get("data")) is dict and "parentId" in event


@dataclass(slots=True)
class _Response:
    """
    One message of the model.
    """

    turn: int
    tokens_in: int | None
    tokens_out: int | None


class _Session:
    """
    One session, event by event.
    """

    def __init__(self, source: str, file: str) -> None:
        self._source = source
        self._session_id = file
        self._turns: Recent[str, int] = Recent()
        self._responses: Recent[str, _Response] = Recent()
        """By the id of each call that the message asks for."""
        self._open_in: Recent[str, str] = Recent()
        """The session of a call that runs: its end does not always name the agent."""
        self._waiting = Waiting()

    def add(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[RecordedCall]:
        """
        Returns one event.
        """
        match event.get("type"):
            case "session.start" | "session.resume":
                self._session_id = text(data.get("sessionId")) or self._session_id
            case "assistant.message":
                self._respond(self._name(event, data), data)
            case "tool.execution_start":
                self._begin(event, data)
            case "tool.execution_complete":
                call_id = text(data.get("toolCallId")) or ""
                session_id = self._open_in.pop(call_id, self._session_id)
                call = self._waiting.settle(session_id, call_id)
                if call is not None:
                    _settle(call, data, time_ms(event.get("timestamp")))
                yield from self._waiting.ready(session_id)

    def rest(self) -> Iterator[RecordedCall]:
        return self._waiting.rest()

    def _name(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> str:
        agent = text(event.get("agentId")) or text(data.get("parentToolCallId"))
        return self._session_id if agent is None else f"{self._session_id}/{agent}"

    def _respond(self, session_id: str, data: Mapping[str, Any]) -> None:
        response: _Response | None = None
        for request in objects(data.get("toolRequests")):
            call_id = text(request.get("toolCallId"))
            if call_id is None:
                continue

            if response is None:
                self._turns[session_id] = turn = self._turns.get(session_id, 0) + 1
                response = _Response(turn, count(data.get("inputTokens")), count(data.get("outputTokens")))
            self._responses[call_id] = response

    def _begin(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        tool, call_id = text(data.get("toolName")), text(data.get("toolCallId"))
        if tool is None:
            return

        call = RecordedCall(self._source, self._name(event, data), 0, tool, arguments_of(data.get("arguments")))
        call.id, call.model, call.ts_ms = call_id, text(data.get("model")), time_ms(event.get("timestamp"))
        response = self._responses.pop(call_id or "", None)
        if response is not None:
            call.turn = response.turn
            call.tokens_in, call.tokens_out = response.tokens_in, response.tokens_out
            response.tokens_in = response.tokens_out = None
        if call_id is not None:
            self._open_in[call_id] = call.session_id
        self._waiting.add(call, call_id)


def _settle(call: RecordedCall, data: Mapping[str, Any], at_ms: int | None) -> None:
    failed = data.get("success") is not True
    result = mapping(data.get("result"))
    error = mapping(data.get("error"))
    content = result.get("content") if result else error.get("message", data.get("error"))
    settle(call, content, failed=failed)
    call.ended(at_ms)
