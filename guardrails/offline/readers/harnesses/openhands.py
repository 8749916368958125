"""
OpenHands: the events of a conversation as JSON lines or as a list, of version 1 (`kind`) or 0 (`action`, `observation`).

An action is a call, and its observation the result, joined by the id of the call. A failure is told by the exit code of
a command, else by the event's own flag. A command that still runs (exit code -1) has not failed by that. The tokens of
a response are what the conversation's totals grew by before its first call (version 1), or stand with the call (version
0). Events name no conversation: it is named by its file.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.text.fields import (
    amount,
    arguments_of,
    count,
    is_one_of,
    listed,
    mapping,
    objects,
    text,
    time_ms,
)
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import parsed_values
from guardrails.offline.readers.text.result_text import settle
from guardrails.offline.readers.waiting import Waiting


_RESULTS: Final = frozenset({"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"})
_LABELS: Final = ("summary", "security_risk")
"""What the model is asked to say of each call, for a person."""
_KINDS: Final = _RESULTS | {
    "ActionEvent",
    "MessageEvent",
    "SystemPromptEvent",
    "ConversationStateUpdateEvent",
    "Condensation",
    "CondensationRequest",
    "PauseEvent",
}
_SOURCES: Final = frozenset({"agent", "user", "environment", "hook"})
_RUNS: Final = -1
"""The exit code of a command that has not ended."""


class OpenHands:
    """
    Conversations of OpenHands.
    """

    name = "openhands conversation"
    whole = True

    def recognises(self, head: str) -> bool:
        values = leading_values(head)
        first = values[0] if values else None
        return any(map(_is_event, (first if type(first) is list else values)[:5]))

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        events = _Events(source, file)
        for number, value in parsed_values(lines, report, file):
            if type(value) not in (dict, list):
                report.broke(file, number)
            for event in objects(value if type(value) is list else [value]):
                yield from events.add(event)
        yield from events.rest()


def _is_event(value: Any) -> bool:
    event = mapping(value)
    if not is_one_of(event.get("source"), _SOURCES) or type(event.get("timestamp")) is not str:
        return False

    if is_one_of(event.get("kind"), _KINDS):
        return type(event.get("id")) is str
    return type(event.get("id")) is int and (type(event.get("action")) is str or type(event.get("observation")) is str)


class _Events:
    """
    One conversation, event by event.
    """

    def __init__(self, source: str, session_id: str) -> None:
        self._source = source
        self._session_id = session_id
        self._waiting = Waiting()
        self._turn = 0
        self._response: str | None = None
        self._model: str | None = None
        self._spent: tuple[int, int, float] | None = None
        """Tokens in and out and USD of the conversation, as last told."""
        self._new: tuple[int, int, float] | None = None
        """The same of what came since the last response."""

    def add(self, event: Mapping[str, Any]) -> Iterator[RecordedCall]:
        """
        Returns one event.
        """
        kind = event.get("kind")
        if kind == "ActionEvent":
            self._act(event)
        elif is_one_of(kind, _RESULTS):
            yield from self._answer(event, text(event.get("tool_call_id")), _settle)
        elif kind == "ConversationStateUpdateEvent" and event.get("key") == "stats":
            self._count(mapping(event.get("value")))
        elif kind is None and "observation" in event:
            said = mapping(event.get("tool_call_metadata"))
            yield from self._answer(event, text(said.get("tool_call_id")), _settle_old)
        elif kind is None and type(event.get("action")) is str:
            self._act_old(event, mapping(event.get("tool_call_metadata")))

    def rest(self) -> Iterator[RecordedCall]:
        return self._waiting.rest()

    def _answer(self, event: Mapping[str, Any], call_id: str | None, put: Any) -> Iterator[RecordedCall]:
        call = self._waiting.settle(self._session_id, call_id or "")
        if call is not None:
            put(call, event)
            call.ended(time_ms(event.get("timestamp")))
        yield from self._waiting.ready(self._session_id)

    def _act(self, event: Mapping[str, Any]) -> None:
        wire = mapping(event.get("tool_call"))
        tool = text(event.get("tool_name")) or text(wire.get("name"))
        if tool is None:
            return

        arguments = arguments_of(wire.get("arguments"))
        call, is_first = self._begin(event, tool, arguments, text(event.get("llm_response_id")))
        own = mapping(event.get("action"))
        call.labels = tuple(label for label in _LABELS if label in mapping(arguments) and label not in own)
        call.model = self._model
        if is_first and self._new is not None:
            call.tokens_in, call.tokens_out, cost = self._new
            # No price is known where the total stays at zero.
            call.cost_usd = cost if self._spent is not None and self._spent[2] else None
        self._new = None
        self._waiting.add(call, text(event.get("tool_call_id")) or text(wire.get("id")))

    def _act_old(self, event: Mapping[str, Any], said: Mapping[str, Any]) -> None:
        tool, call_id = text(said.get("function_name")), text(said.get("tool_call_id"))
        if tool is None:
            return

        response = mapping(said.get("model_response"))
        call, is_first = self._begin(event, tool, _said(response, call_id, event), text(response.get("id")))
        call.model = text(response.get("model"))
        usage = mapping(response.get("usage"))
        if is_first:
            call.tokens_in = count(usage.get("prompt_tokens"))
            call.tokens_out = count(usage.get("completion_tokens"))
        self._waiting.add(call, call_id)

    def _begin(
        self, event: Mapping[str, Any], tool: str, arguments: Any, response: str | None
    ) -> tuple[RecordedCall, bool]:
        """
        A call, and whether it is the first of its response.
        """
        is_first = response is None or response != self._response
        self._turn += is_first
        self._response = response
        call_id = text(event.get("tool_call_id")) or text(mapping(event.get("tool_call_metadata")).get("tool_call_id"))
        call = RecordedCall(self._source, self._session_id, 0, tool, arguments, turn=self._turn, id=call_id)
        call.ts_ms = time_ms(event.get("timestamp"))
        return call, is_first

    def _count(self, stats: Mapping[str, Any]) -> None:
        tokens_in = tokens_out = 0
        cost = 0.0
        for metrics in mapping(stats.get("usage_to_metrics")).values():
            told = mapping(metrics)
            usage = mapping(told.get("accumulated_token_usage"))
            tokens_in += count(usage.get("prompt_tokens")) or 0
            tokens_out += count(usage.get("completion_tokens")) or 0
            cost += amount(told.get("accumulated_cost")) or 0.0
            self._model = self._model or text(told.get("model_name"))
        before = self._spent
        self._spent = tokens_in, tokens_out, cost
        if before is not None and tokens_in >= before[0] and tokens_out >= before[1] and cost >= before[2]:
            more = tokens_in - before[0], tokens_out - before[1], cost - before[2]
            held = self._new or (0, 0, 0.0)
            self._new = held[0] + more[0], held[1] + more[1], held[2] + more[2]


def _settle(call: RecordedCall, event: Mapping[str, Any]) -> None:
    """
    Put the result of an event of version 1 into *call*.
    """
    kind = event["kind"]
    if kind == "AgentErrorEvent":
        settle(call, event.get("error"), failed=True)
    elif kind == "UserRejectObservation":
        settle(call, event.get("rejection_reason"), failed=True)
        call.error_type = "permission" if event.get("rejection_source") == "hook" else "cancelled"
    else:
        seen = mapping(event.get("observation"))
        if "content" in seen:
            flag = seen.get("is_error")
            _put(call, seen["content"], seen.get("exit_code"), flag, strict=flag is True)


def _settle_old(call: RecordedCall, event: Mapping[str, Any]) -> None:
    """
    Put the result of an event of version 0 into *call*.
    """
    if "content" not in event:
        return

    extras, success = mapping(event.get("extras")), event.get("success")
    code = extras.get("exit_code", mapping(extras.get("metadata")).get("exit_code"))
    flag = True if event["observation"] == "error" else not success if type(success) is bool else None
    _put(call, event["content"], code, None if code == _RUNS else flag)


def _put(call: RecordedCall, content: Any, code: Any, flag: Any, *, strict: bool = False) -> None:
    """
    Put *content* into *call*: by the exit code if the command has ended, else by *flag*; *strict*: by the flag before all.
    """
    ended = type(code) is int and code != _RUNS and not strict
    settle(call, content, failed=code != 0 if ended else flag if type(flag) is bool else None)
    if ended and call.error_type == "other":
        call.error_type = "exec_nonzero"


def _said(response: Mapping[str, Any], call_id: str | None, event: Mapping[str, Any]) -> Any:
    """
    The arguments as the model gave them, or as the event has them.
    """
    for choice in listed(response.get("choices")):
        for wire in objects(mapping(mapping(choice).get("message")).get("tool_calls")):
            if wire.get("id") == call_id:
                return arguments_of(mapping(wire.get("function")).get("arguments"))
    return event.get("args") or {}
