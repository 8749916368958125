"""
Codex CLI: rollouts (JSON lines of `session_meta`, `turn_context`, `response_item`, `event_msg`; bare items in 2025).

A command's exit code stands in the header of its output, or in the metadata of an older one. The tokens of a response
come after its calls. Actions of the program or its server (web search, the search for tools) are no calls.
"""

import re

from collections.abc import Iterator, Mapping
from typing import Any, Final

from guardrails.hooks.tools import CODEX

from .calls import RecordedCall, Report
from .events import Came, Event, Made, Used, Values
from .fields import arguments_of, count, is_one_of, mapping, text, text_of, time_ms
from .json_text import parsed
from .results import says_failure, settle


_LINES: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_OUTPUTS: Final = frozenset(f"{kind}_output" for kind in _CALLS)
_BARE: Final = _CALLS | _OUTPUTS | {"message", "reasoning", "web_search_call"}
"""Items that stand alone on a line in 2025, as the Responses API writes them too."""
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


class Codex:
    """
    Sessions of Codex CLI.
    """

    name = "codex rollout"

    def fits(self, value: Any) -> bool | None:
        line = mapping(value)
        if is_one_of(line.get("type"), _LINES):
            return type(line.get("payload")) is dict
        if "type" not in line:
            return {"id", "timestamp"} <= line.keys() and not {"instructions", "git"}.isdisjoint(line)
        return None if is_one_of(line["type"], _BARE) else False

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        session, named, model = file, False, None
        turn, first, answered = 0, None, False
        for _, value in values:
            line = mapping(value)
            at_ms, item = time_ms(line.get("timestamp")), mapping(line.get("payload"))
            kind = line.get("type") if item else "response_item" if "type" in line else "session_meta"
            item = item or line
            what = item.get("type")
            if kind == "session_meta" and not named and text(item.get("id")):
                # The file's own name comes first; a fork repeats its parent's.
                session, named = _session_id(item), True
            elif kind == "turn_context":
                model = text(item.get("model")) or model
            elif kind == "response_item" and is_one_of(what, _CALLS):
                turn += first is None or answered
                first, answered = first if first == turn else turn, False
                yield _made(item, session, turn, model, at_ms if item is not line else None)
            elif kind == "response_item" and is_one_of(what, _OUTPUTS):
                answered = True
                yield _came(item, session, at_ms if item is not line else None)
            elif kind == "event_msg" and what == "token_count":
                usage = mapping(mapping(item.get("info")).get("last_token_usage"))
                if usage and first is not None:
                    yield Used(session, first, count(usage.get("input_tokens")), count(usage.get("output_tokens")))
                    first = None
            elif kind == "event_msg" and is_one_of(what, _ENDS):
                answered = True


def _session_id(meta: Mapping[str, Any]) -> str:
    spawned = mapping(mapping(mapping(meta.get("source")).get("subagent")).get("thread_spawn"))
    parent = text(spawned.get("parent_thread_id"))
    return str(meta["id"]) if parent is None else f"{parent}/{meta['id']}"


def _made(item: Mapping[str, Any], session: str, turn: int, model: str | None, at_ms: int | None) -> Made:
    said = item.get("input") if item["type"] == "custom_tool_call" else None
    arguments = (
        said if "input" in item and said is not None else arguments_of(item.get("arguments", item.get("action")))
    )
    tool = text(item.get("name")) or str(item["type"]).removesuffix("_call")
    call = RecordedCall("", session, 0, tool, arguments, id=text(item.get("call_id")) or text(item.get("id")))
    call.model, call.ts_ms = model, at_ms
    return Made(call.declared(CODEX.get(tool)), call.id, turn)


def _came(item: Mapping[str, Any], session: str, at_ms: int | None) -> Came:
    def end(call: RecordedCall) -> None:
        _settle(call, item.get("output"))
        call.ended(at_ms)

    return Came(session, text(item.get("call_id")), then=end)


def _settle(call: RecordedCall, output: Any) -> None:
    """
    Put an output into *call*, with the exit code and the time from its header.
    """
    if type(output) is dict:
        settle(call, output.get("content", output.get("output")), failed=_flag(output))
    elif type(output) is str and output.startswith('{"output":'):
        older = mapping(parsed(output))
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


def _milliseconds(seconds: Any) -> int | None:
    return count(seconds * 1000) if type(seconds) in (int, float) else None
