"""
Gemini CLI sessions: one JSON object with `messages`, or the JSON lines of later versions.

In the lines a message is written again when it changes, and a rewind takes messages back; a call that was made stays
made, once.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from guardrails.hooks.clients.gemini import plain_text, shell_failed
from guardrails.hooks.tools import of_gemini
from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.text.blocks import text_of
from guardrails.offline.readers.text.fields import (
    arguments_of,
    count,
    is_one_of,
    listed,
    mapping,
    objects,
    text,
    time_ms,
    total,
)
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import parsed_values
from guardrails.offline.readers.text.result_text import settle


_ENDED: Final = frozenset({"success", "error", "cancelled"})


class GeminiCLI:
    """
    Sessions of Gemini CLI.
    """

    name = "gemini cli session"
    whole = True

    def recognises(self, head: str) -> bool:
        return any({"sessionId", "projectHash"} <= mapping(value).keys() for value in leading_values(head)[:3])

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        session = _Session(source, file)
        message: Mapping[str, Any] = {}
        for _, value in parsed_values(lines, report, file):
            line = mapping(value)
            session.name(line)
            for each in [line, *objects(line.get("messages")), *_set(line)]:
                if "toolCalls" not in each and each.get("type") != "gemini":
                    continue

                if each.get("id") != message.get("id"):
                    yield from session.calls(message)
                message = each
        yield from session.calls(message)


def _set(line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    return objects(mapping(line.get("$set")).get("messages"))


class _Session:
    """
    One session, message by message.
    """

    def __init__(self, source: str, file: str) -> None:
        self._source = source
        self._session_id = file
        self._index = 0
        self._turn = 0
        self._known: set[str] = set()

    def name(self, line: Mapping[str, Any]) -> None:
        """
        Take the session's id if a line tells it.
        """
        self._session_id = text(line.get("sessionId")) or self._session_id

    def calls(self, message: Mapping[str, Any]) -> Iterator[RecordedCall]:
        """
        Returns the calls of one message that were not yet given.
        """
        first = True
        for wire in objects(message.get("toolCalls")):
            tool, call_id = text(wire.get("name")), text(wire.get("id"))
            if tool is None or call_id in self._known:
                continue
            if call_id is not None:
                self._known.add(call_id)

            self._turn += first
            call = RecordedCall(self._source, self._session_id, self._index, tool, arguments_of(wire.get("args")))
            call.declared(of_gemini(tool))
            call.turn, call.id, call.model = self._turn, call_id, text(message.get("model"))
            call.ts_ms = time_ms(message.get("timestamp"))
            if first:
                tokens = mapping(message.get("tokens"))
                call.tokens_in = count(tokens.get("input"))
                call.tokens_out = total(tokens.get("output"), tokens.get("thoughts"))
            _settle(call, wire)
            self._index += 1
            first = False
            yield call


def _settle(call: RecordedCall, wire: Mapping[str, Any]) -> None:
    status = wire.get("status")
    responses = [mapping(each.get("functionResponse")).get("response") for each in objects(wire.get("result"))]
    # Its status stands behind the result; a file that is cut off may end between them.
    if status is None or (not listed(wire.get("result")) and not is_one_of(status, _ENDED)):
        call.has_result = False
        return

    content = [_content(response) for response in responses if response is not None]
    told = "\n".join(content) if content else wire.get("result")
    settle(call, told, failed=status != "success" or any(shell_failed(call.tool, text) for text in content))
    if content:
        call.shows("\n".join(plain_text(call.tool, text) for text in content))
    if status == "cancelled":
        call.error_type = "cancelled"
    end_ms = time_ms(wire.get("timestamp"))
    if call.ts_ms is not None and end_ms is not None and end_ms > call.ts_ms:
        call.duration_ms = end_ms - call.ts_ms


def _content(response: Any) -> str:
    told = mapping(response)
    return text_of(next((told[key] for key in ("output", "error") if key in told), response))
