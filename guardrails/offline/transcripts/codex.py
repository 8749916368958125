"""
Codex CLI: rollouts (JSON lines of `session_meta`, `turn_context`, `response_item`, `event_msg`), and what `codex exec --json` prints.

A command's exit code stands in the header of its output, or in the metadata of an older one. In code mode a call is a script: it has failed
if it says so, if an end that it shows is a failure, or if an item that was completed while it ran has failed.
The tokens of a response come after its calls. Actions of the program or its server (web search, the search for tools) are no calls.
"""

import re

from collections.abc import Iterator, Mapping
from typing import Any, Final

from guardrails.core.result import reading_of
from guardrails.core.values.types import ErrorType
from guardrails.hooks.clients import CLIENTS

from .calls import Came, Event, Format, Made, RecordedCall, Used, Values
from .fields import ITEM_CALLS, ITEM_OUTPUTS, amount, at, item_call, json_in, listed, mapping, objects, text, text_of


_LINES: Final = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_SCRIPTS: Final = ("exec", "wait")
"""Tools of code mode: one runs a script, the other waits for its end."""
_HEADER: Final = re.compile(
    r"(?:Chunk ID: \S{1,64}\n)?(?:Exit code: (?P<exit>-?\d{1,10})\n)?(?:Script (?P<script>\w{1,20})[^\n]{0,80}\n)?"
    r"(?:Wall time:? (?P<wall>\d{1,9}(?:\.\d{1,9})?) seconds?\n)?"
    r"(?:Process (?:exited with (?:code|signal) (?P<code>-?\d{1,10})|running with (?P<runs>session))[^\n]{0,80}\n?)?"
    r"(?:(?:Original token count|Total output lines): \d{1,10}\n){0,2}(?P<output>Output:\n?)?"
)
"""Above the output of a command or a script, which is another for each run."""
_FAILED: Final = re.compile(
    r"\w{1,40}(?: \w{1,40})? failed\b|failed (?:in sandbox|to)\b|execution error|aborted by user|unsupported call|sandbox error"
    r"|command timed out|exec_command failed"
)
_SHOWN: Final = re.compile(
    r'(?<!\\)"(?:exit_code"\s*:\s*-?[1-9]|isError"\s*:\s*true|status"\s*:\s*"rejected",\s*"reason")'
)
"""In what a script has shown, at any depth: the end of a command, a result of MCP, a promise that was settled."""


def _fits(value: Any) -> bool | None:
    kind = text(at(value, "type"))
    # Newer versions add kinds of lines.
    return kind in _LINES or None if kind and type(at(value, "payload")) is dict else False


def _events(values: Values, file: str) -> Iterator[Event]:
    session, model, step = file, None, 0
    untold: int | None = None
    """The step of calls whose tokens are still to be told; calls of one step are of one response."""
    running: dict[str | None, bool] = {}
    """The ids of scripts, and whether something in them has failed."""
    for _, line in values:
        kind, item, time = line["type"], line["payload"], line.get("timestamp")
        what, id_, output = item.get("type"), text(item.get("call_id")), item.get("output")
        if kind == "session_meta" and session == file and text(item.get("id")):
            # The file's own name comes first; a fork repeats its parent's.
            above = text(at(item, "source", "subagent", "thread_spawn", "parent_thread_id"))
            session = f"{above}/{item['id']}" if above else item["id"]
        elif kind == "turn_context":
            model = item.get("model") or model
        elif kind == "response_item" and what in ITEM_CALLS:
            tool, arguments = item_call(item)
            if tool in _SCRIPTS:
                running[id_] = False
            untold = step
            call = RecordedCall(session, tool, arguments, id=id_, model=model)
            yield Made(call.declared(CLIENTS["codex"].tool_of(tool)), id_ or id(item), step, time)
        elif kind == "response_item" and what in ITEM_OUTPUTS and not (id_ in running and _is_aside(output)):
            step += 1
            yield _came(session, id_, output, running.pop(id_, False), time)
        elif untold is not None and (usage := item.get("usage") or at(item, "info", "last_token_usage")):
            yield Used(session, untold, usage)
            step, untold = step + 1, None
        elif what == "item_completed" and _failed(item.get("item")):
            running = dict.fromkeys(running, True)


def _is_aside(output: Any) -> bool:
    """
    Whether the *output* of a script is a word of it while it runs.
    """
    return type(output) is str and not output.startswith("Script ") and not _FAILED.match(output)


def _came(session: str, id_: str | None, output: Any, failing: bool, time: Any) -> Came:
    """
    Returns the result of a call by its *output*, above which stand its exit code and its time. A script is *failing* by what ran in it.
    """
    result = text_of(output)
    if result.startswith('{"output":') and (older := mapping(json_in(result))):
        ms = 1000 * (amount(at(older, "metadata", "duration_seconds")) or 0) or None
        return Came(session, id_, older.get("output"), _failed(older.get("metadata")), time, ms, "exec_nonzero")
    header = next(_HEADER.finditer(result))
    below, ms = result[header.end() :], float(header["wall"]) * 1000 if header["wall"] else None
    if script := header["script"]:
        failing = failing or any(map(_shows_failure, [text_of(piece) for piece in listed(output)[1:]] or [below]))
        failing = script == "failed" or (script != "running" and failing)
        return Came(session, id_, result, failing, time, ms, "other" if script == "failed" else "exec_nonzero", below)
    failed: bool | None = True if _FAILED.match(result) else None
    if code := header["exit"] or header["code"]:
        failed = int(code) != 0
    elif header["output"] or header["runs"]:
        # A program that still runs has not failed.
        failed = not header["runs"] and not reading_of(below.lstrip()).ok
    kind: ErrorType = "cancelled" if result.startswith("aborted by user") else "other"
    return Came(session, id_, result, failed, time, ms, kind, below if header["wall"] and header["output"] else None)


def _failed(end: Any) -> bool:
    code = at(end, "exit_code")
    return at(end, "status") in ("failed", "declined") or (type(code) is int and code != 0)


def _shows_failure(piece: str) -> bool:
    """
    Whether something that a script has shown, as text or as JSON, is the end of a command or of a call that failed.
    """
    header = next(_HEADER.finditer(piece))
    if _SHOWN.search(piece) or (header["exit"] or header["code"] or "0") != "0":
        return True
    value = json_in(piece) if piece.lstrip()[:1] in ("{", "[") else None
    return not all(reading_of(end).ok for end in objects(value if type(value) is list else [value]))


def _prints(value: Any) -> bool:
    return str(at(value, "type")).startswith(("thread.", "turn.", "item."))


def _printed(values: Values, file: str) -> Iterator[Event]:
    """
    Yields what lines of `codex exec --json` say, whose usage is that of all responses to one prompt.
    """
    session, run, completed, response = file, 0, 0, 0
    for _, line in values:
        item, kind = mapping(line.get("item")), line["type"]
        tool, arguments = _call_of(item)
        if kind == "thread.started":
            session, run = text(line.get("thread_id")) or session, run + 1
        elif kind == "turn.completed":
            yield Used(session, response, line.get("usage"))
        elif tool is not None:
            # Ids are counted anew when a thread is resumed.
            id_, response = text(item.get("id")), completed
            yield Made(
                RecordedCall(session, tool, arguments, id=id_).declared(CLIENTS["codex"].tool_of(tool)),
                (run, id_),
                response,
            )
            if kind == "item.completed":
                completed += 1
                content = item.get("error") or item.get("result") or item.get("aggregated_output", item.get("status"))
                content = mapping(content).get("content", mapping(content).get("message", content))
                failure: ErrorType = "exec_nonzero" if item.get("exit_code") else "other"
                yield Came(session, (run, id_), content, _failed(item), kind=failure)


def _call_of(item: Mapping[str, Any]) -> tuple[str | None, Any]:
    """
    Tool and arguments of an item, as a rollout would name them; None: it is no call.
    """
    names = {"command_execution": "exec_command", "file_change": "apply_patch"}
    names["mcp_tool_call"] = f"mcp__{item.get('server')}__{item.get('tool')}"
    arguments = {name: item[of] for name, of in (("cmd", "command"), ("changes", "changes")) if of in item}
    return names.get(str(item.get("type"))), item.get("arguments", arguments)


CODEX: Final = Format("codex rollout", _fits, _events)
CODEX_EXEC: Final = Format("codex exec", _prints, _printed)
