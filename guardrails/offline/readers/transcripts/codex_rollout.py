"""
Codex CLI rollouts: JSON lines of `session_meta`, `turn_context`, `response_item` and `event_msg`, or bare items (2025).

A command's exit code stands in the header of its output, or in the metadata of an older one. The tokens of a response
come after its calls and often after their outputs, so a response's calls are given out when it is over. Actions of the
program or its server (web search, the search for tools) are no calls.
"""

import re

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from guardrails.hooks.tools import CODEX
from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.text.blocks import text_of
from guardrails.offline.readers.text.fields import arguments_of, count, is_one_of, mapping, text, time_ms
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import parse, parsed_lines
from guardrails.offline.readers.text.result_text import says_failure, settle
from guardrails.offline.readers.waiting import Waiting


_LINES: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_ENDS: Final = frozenset({"task_started", "task_complete", "turn_aborted", "user_message"})
_HEADER: Final = re.compile(
    r"(?:Chunk ID: \S{1,64}\n)?"
    r"(?:Exit code: (?P<exit>-?\d{1,10})\n)?"
    r"(?:Wall time: (?P<wall>\d{1,9}(?:\.\d{1,9})?) seconds?\n)?"
    r"(?:Process exited with (?:code|signal) (?P<code>-?\d{1,10})|Process running with (?P<runs>session)|(?P<output>Output:))?"
)
_ABOVE: Final = re.compile(
    r"\A(?:Chunk ID: \S{1,64}\n)?(?:Exit code: -?\d{1,10}\n)?Wall time: [\d.]{1,20} seconds?\n(?:Process [^\n]{1,80}\n)?"
    r"(?:(?:Original token count|Total output lines): \d{1,10}\n){0,2}Output:\n"
)
"""The header of a command's output, which is another for each run."""
_ABORTED: Final = "aborted by user"
_FAILED: Final = re.compile(
    r"\w{1,40}(?: \w{1,40})? failed\b|failed (?:in sandbox|to)\b|execution error|aborted by user|unsupported call|sandbox error"
    r"|command timed out|exec_command failed"
)


class CodexRollout:
    """
    Sessions of Codex CLI.
    """

    name = "codex rollout"
    whole = False

    def recognises(self, head: str) -> bool:
        return any(map(_is_line, leading_values(head)[:5]))

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        rollout = _Rollout(source, file)
        for _, line in parsed_lines(lines, report, file):
            payload = line.get("payload")
            if type(payload) is dict:
                yield from rollout.add(line.get("type"), payload, time_ms(line.get("timestamp")))
            else:
                yield from rollout.add("response_item" if "type" in line else "session_meta", line, None)
        yield from rollout.rest()


def _is_line(value: Any) -> bool:
    line = mapping(value)
    if is_one_of(line.get("type"), _LINES):
        return type(line.get("payload")) is dict

    return "type" not in line and {"id", "timestamp"} <= line.keys() and bool({"instructions", "git"} & line.keys())


class _Rollout:
    """
    One session, line by line.
    """

    def __init__(self, source: str, file: str) -> None:
        self._source = source
        self._session_id = file
        self._named = False
        self._model: str | None = None
        self._turn = 0
        self._first: RecordedCall | None = None
        """The first call since the last count of tokens."""
        self._answered = False
        """The response of the last call is over: an output came, or the user."""
        self._known: set[str] = set()
        self._waiting = Waiting()

    def add(self, kind: Any, payload: Mapping[str, Any], at_ms: int | None) -> Iterator[RecordedCall]:
        """
        Returns one line.
        """
        if kind == "session_meta":
            self._name(payload)
        elif kind == "turn_context":
            self._model = text(payload.get("model")) or self._model
        elif kind == "response_item":
            item = payload.get("type")
            if is_one_of(item, _CALLS):
                yield from self._begin(payload, at_ms)
            elif is_one_of(item, _OUTPUTS):
                self._answered = True
                call = self._waiting.settle(self._session_id, text(payload.get("call_id")) or "")
                if call is not None:
                    _settle(call, payload.get("output"))
                    call.ended(at_ms)
        elif kind == "event_msg" and payload.get("type") == "token_count":
            yield from self._count(mapping(mapping(payload.get("info")).get("last_token_usage")))
        elif kind == "event_msg" and is_one_of(payload.get("type"), _ENDS):
            self._answered = True

    def rest(self) -> Iterator[RecordedCall]:
        return self._waiting.rest()

    def _name(self, meta: Mapping[str, Any]) -> None:
        """
        The file's own name comes first; a fork repeats its parent's.
        """
        own = text(meta.get("id"))
        if self._named or own is None:
            return

        self._named = True
        spawned = mapping(mapping(mapping(meta.get("source")).get("subagent")).get("thread_spawn"))
        parent = text(spawned.get("parent_thread_id"))
        self._session_id = own if parent is None else f"{parent}/{own}"

    def _begin(self, item: Mapping[str, Any], at_ms: int | None) -> Iterator[RecordedCall]:
        call_id = text(item.get("call_id")) or text(item.get("id"))
        tool = text(item.get("name")) or str(item["type"]).removesuffix("_call")
        if call_id in self._known:
            return
        if call_id is not None:
            self._known.add(call_id)

        if self._first is None or self._answered:
            self._turn += 1
        self._answered = False
        call = RecordedCall(self._source, self._session_id, 0, tool, _arguments(item), turn=self._turn, id=call_id)
        call.declared(CODEX.get(tool))
        call.model, call.ts_ms = self._model, at_ms
        if self._first is None:
            self._first = call
        elif self._first.turn != self._turn:
            # The response before ended without a count of tokens.
            yield from self._waiting.ready(self._session_id)
            self._first = call
        self._waiting.add(call, call_id)

    def _count(self, usage: Mapping[str, Any]) -> Iterator[RecordedCall]:
        if usage and self._first is not None:
            self._first.tokens_in = count(usage.get("input_tokens"))
            self._first.tokens_out = count(usage.get("output_tokens"))
            self._first = None
        yield from self._waiting.ready(self._session_id)


def _arguments(item: Mapping[str, Any]) -> Any:
    if item["type"] == "custom_tool_call":
        return item.get("input")

    return arguments_of(item.get("arguments", item.get("action")))


def _settle(call: RecordedCall, output: Any) -> None:
    """
    Put an output into *call*, with the exit code and the time from its header.
    """
    if type(output) is dict:
        settle(call, output.get("content", output.get("output")), failed=_flag(output))
    elif type(output) is str and output.startswith('{"output":'):
        older = _parsed(output)
        settle(call, older.get("output") if older else output, failed=_flag(older))
        call.duration_ms = _milliseconds(mapping(older.get("metadata")).get("duration_seconds"))
        if call.error_type == "other":
            call.error_type = "exec_nonzero"
    else:
        told = text_of(output)
        header = _HEADER.match(told)
        settle(call, told, failed=_failed(told, header))
        if told.startswith(_ABORTED):
            call.error_type = "cancelled"
        if header is not None and header["wall"]:
            call.duration_ms = _milliseconds(float(header["wall"]))
        call.shows(_ABOVE.sub("", told))


def _failed(output: str, header: re.Match[str] | None) -> bool | None:
    """
    By the exit code; without one by the words of Codex itself. A program that still runs has not failed.
    """
    if header is not None and (code := header["exit"] or header["code"]):
        return int(code) != 0

    if header is not None and header["runs"]:
        return False

    if header is not None and header["output"]:
        return says_failure(output[header.end() :].lstrip())

    return True if _FAILED.match(output) else None


def _flag(output: Mapping[str, Any]) -> bool | None:
    success = output.get("success")
    if type(success) is bool:
        return not success

    code = mapping(output.get("metadata")).get("exit_code")
    return code != 0 if type(code) is int else None


def _parsed(output: str) -> Mapping[str, Any]:
    try:
        return mapping(parse(output.encode("utf-8", "surrogatepass")))
    except ValueError:
        return mapping(None)


def _milliseconds(seconds: Any) -> int | None:
    return count(seconds * 1000) if type(seconds) in (int, float) else None
