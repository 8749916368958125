"""
Sessions that coding CLIs keep: Claude Code, Gemini CLI and OpenCode.

* Claude Code: JSON lines as the program keeps them, or as `--output-format stream-json` prints them. The calls of a sub-agent are a session
  of their own, `session/agent`: by `agentId` or `parent_tool_use_id`. The sidechains of older versions are one, `session/sidechain`. The
  `progress` of a sub-agent in a parent's file is not read: the sub-agent has its own file.
* Gemini CLI: one JSON object with `messages`, or the JSON lines of later versions. In the lines a message is written again when it changes,
  and a rewind takes messages back; a call that was made stays made, once.
* OpenCode: what `opencode export` writes, or the JSON lines of `opencode run --format json`. A response is a step. A command that ended with
  another exit code than 0 has failed, though its state says that it completed. The sessions of sub-agents are named `above/below`.
"""

import re

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from guardrails.core.result import reading_of
from guardrails.core.values.types import ErrorType
from guardrails.hooks.clients import CLIENTS, plain_text, shell_failed

from .calls import Came, Event, Format, Made, RecordedCall, Used, Values
from .fields import ITEM_CALLS, ITEM_OUTPUTS, amount, at, item_call, json_in, listed, mapping, objects, text, text_of


_CLAUDE_IDS: Final = {"uuid", "leafUuid", "sessionId", "isSidechain", "parent_tool_use_id", "subtype", "snapshot"}
"""Of which a line has one."""
_SPEAKERS: Final = ("assistant", "user")


# Claude Code


def _fits_claude(value: Any) -> bool:
    line = mapping(value)
    speaks = line.get("type") in _SPEAKERS and "content" in mapping(line.get("message"))
    return bool(text(line.get("type"))) and (speaks or not _CLAUDE_IDS.isdisjoint(line))


def _claude(values: Values, file: str) -> Iterator[Event]:
    for number, line in values:
        message, time = mapping(line.get("message")), line.get("timestamp")
        if not message or line["type"] not in _SPEAKERS:
            continue
        session = text(line.get("sessionId")) or text(line.get("session_id")) or file
        agent = text(line.get("agentId")) or text(line.get("parent_tool_use_id"))
        agent = "sidechain" if agent is None and line.get("isSidechain") is True else agent
        session = f"{session}/{agent}" if agent else session
        # One response is spread over several lines, each of which tells how much it has written so far.
        response = text(message.get("id")) or text(line.get("requestId")) or text(line.get("uuid")) or ""
        yield Used(session, response, message.get("usage"))
        took = mapping(line.get("toolUseResult"))
        for block in objects(message.get("content")):
            if block.get("type") == "tool_use" and (tool := text(block.get("name"))):
                call = RecordedCall(session, tool, block.get("input"), id=block.get("id"), model=message.get("model"))
                yield Made(call.declared(CLIENTS["claude"].tool_of(tool)), text(call.id) or number, response, time)
            elif block.get("type") == "tool_result":
                ms, failed = took.get("durationMs", took.get("totalDurationMs")), block.get("is_error") is True
                yield Came(session, text(block.get("tool_use_id")), block.get("content") or "", failed, time, ms)


# Gemini CLI


def _fits_gemini(value: Any) -> bool | None:
    line = mapping(value)
    sure = line.get("type") == "gemini" or not {"projectHash", "$set", "$rewindTo"}.isdisjoint(line)
    # What the user and the program say has no sign of its own.
    return sure or (None if {"id", "type", "content"} <= line.keys() else False)


def _gemini(values: Values, file: str) -> Iterator[Event]:
    session, messages = file, dict[tuple[str, Any], Mapping[str, Any]]()
    for number, line in values:
        session = text(line.get("sessionId")) or session
        for place, message in enumerate((line, *objects(line.get("messages")), *objects(at(line, "$set", "messages")))):
            key = session, text(message.get("id")) or (number, place)
            if message.get("toolCalls") or (message.get("type") == "gemini" and key not in messages):
                messages[key] = message
    for (session_id, key), message in messages.items():
        yield Used(session_id, key, {f"{of}_tokens": at(message, "tokens", of) for of in ("input", "output", "total")})
        for place, wire in enumerate(objects(message.get("toolCalls"))):
            if tool := text(wire.get("name")):
                call = RecordedCall(session_id, tool, wire.get("args"), id=wire.get("id"), model=message.get("model"))
                own, time = text(call.id) or (key, place), message.get("timestamp")
                yield Made(call.declared(CLIENTS["gemini"].tool_of(tool)), own, key, time)
                yield from _gemini_results(wire, call, own, time)


def _gemini_results(wire: Mapping[str, Any], call: RecordedCall, key: Any, start: Any) -> Iterator[Event]:
    status, result, time = wire.get("status"), wire.get("result"), wire.get("timestamp")
    # Its status stands behind the result; a file that is cut off may end between them.
    if status in ("success", "error", "cancelled") or (status is not None and listed(result)):
        responses = [at(each, "functionResponse", "response") for each in objects(result)]
        known = [(mapping(each), each) for each in responses if each is not None]
        content = [text_of(held.get("output", held.get("error", each))) for held, each in known]
        failed = status != "success" or any(shell_failed(call.tool, each) for each in content)
        shown = "\n".join(plain_text(call.tool, each) for each in content) if content else None
        call.error_type = "cancelled" if status == "cancelled" else None
        output = "\n".join(content) if content else result or ""
        yield Came(call.session_id, key, output, failed, None if time == start else time, shown=shown)


# OpenCode


def _fits_opencode(value: Any) -> bool:
    held = mapping(value)
    is_line = text(held.get("sessionID")) and text(held.get("type")) and "timestamp" in held
    messages = objects(held.get("messages") or [{}])
    return bool(is_line or (mapping(held.get("info")) and all("parts" in each for each in messages)))


def _opencode(values: Values, file: str) -> Iterator[Event]:
    steps = Counter[str]()
    for _, line in values:
        above, session = text(at(line, "info", "parentID")), text(at(line, "info", "id")) or text(line.get("sessionID"))
        session = f"{above}/{session}" if above else session or file
        for message in objects(line.get("messages")):
            steps[session] += 1
            for part in objects(message.get("parts")):
                yield from _opencode_part(part, session, at(message, "info", "modelID"), steps)
        yield from _opencode_part(mapping(line.get("part")), session, None, steps)


def _opencode_part(part: Mapping[str, Any], session: str, model: Any, steps: Counter[str]) -> Iterator[Event]:
    kind, tool, state = part.get("type"), text(part.get("tool")), mapping(part.get("state"))
    if kind == "step-start":
        steps[session] += 1
    elif kind == "step-finish":
        tokens = mapping(part.get("tokens"))
        usage = {f"cache_{name}_input_tokens": at(tokens, "cache", name) for name in ("read", "write")}
        # Counted beside the output, as Google counts its thoughts.
        usage["thoughts_token_count"] = tokens.get("reasoning")
        usage |= {f"{name}_tokens": tokens.get(name) for name in ("input", "output")}
        yield Used(session, steps[session], usage, part.get("cost"))
    elif kind == "tool" and tool is not None:
        call = RecordedCall(session, tool, state.get("input"), id=part.get("callID"), model=model)
        key = text(call.id) or text(part.get("id")) or tool
        yield Made(call, key, steps[session], at(state, "time", "start"))
        if (status := state.get("status")) in ("completed", "error"):
            code, end = at(state, "metadata", "exit"), at(state, "time", "end")
            content = state.get("error" if status == "error" else "output")
            failed = status == "error" or (type(code) is int and code != 0)
            yield Came(session, key, content, failed, end, kind="exec_nonzero" if code else "other")


CLAUDE_CODE: Final = Format("claude code session", _fits_claude, _claude)
GEMINI_CLI: Final = Format("gemini cli session", _fits_gemini, _gemini)
OPENCODE: Final = Format("opencode session", _fits_opencode, _opencode)


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
            call = RecordedCall(session, tool, arguments, id=id_).declared(CLIENTS["codex"].tool_of(tool))
            yield Made(call, (run, id_), response)
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
