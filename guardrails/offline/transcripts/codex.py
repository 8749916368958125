"""
Codex CLI: rollouts (JSON lines of `session_meta`, `turn_context`, `response_item`, `event_msg`; bare items in 2025), and what
`codex exec --json` prints.

A command's exit code stands in the header of its output, or in the metadata of an older one. In code mode a call is a script: it has failed
if it says so, if an end of a command that it shows is another exit code than 0, or if an item that was completed while it ran has failed.
The tokens of a response come after its calls. Actions of the program or its server (web search, the search for tools) are no calls.
"""

import re

from collections.abc import Iterator, Mapping
from typing import Any, Final

from guardrails.core.result import reading_of
from guardrails.hooks.tools import CODEX

from .calls import RecordedCall, Report
from .events import Came, Event, Made, Used, Values
from .fields import arguments_of, count, is_one_of, listed, mapping, objects, text, text_of, time_ms, usage_of
from .json_text import parsed


_LINES: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_OUTPUTS: Final = frozenset(f"{kind}_output" for kind in _CALLS)
_BARE: Final = _CALLS | _OUTPUTS | {"message", "reasoning", "web_search_call", "error"}
"""Items that stand alone on a line in 2025, as the Responses API writes them too."""
_ENDS: Final = frozenset({"task_started", "task_complete", "turn_aborted", "user_message"})
_PRINTED: Final = frozenset(
    f"{of}.{what}" for of in ("thread", "turn", "item") for what in ("started", "updated", "completed", "failed")
)
_SCRIPTS: Final = frozenset({"exec", "wait"})
"""Tools of code mode: one runs a script, the other waits for its end."""
_HEADER: Final = re.compile(
    r"(?:Chunk ID: \S{1,64}\n)?(?:Exit code: (?P<exit>-?\d{1,10})\n)?(?:Script (?P<script>\w{1,20})[^\n]{0,80}\n)?"
    r"(?:Wall time:? (?P<wall>\d{1,9}(?:\.\d{1,9})?) seconds?\n)?"
    r"(?:Process (?:exited with (?:code|signal) (?P<code>-?\d{1,10})|running with (?P<runs>session))[^\n]{0,80}\n?)?"
    r"(?:(?:Original token count|Total output lines): \d{1,10}\n){0,2}(?P<output>Output:\n?)?"
)
"""Above the output of a command or a script, which is another for each run."""
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
        if type(line.get("payload")) is dict:
            # Newer versions add kinds of lines.
            return is_one_of(line.get("type"), _LINES) or (None if type(line.get("type")) is str else False)
        if "type" not in line:
            return {"id", "timestamp"} <= line.keys() and not {"instructions", "git"}.isdisjoint(line)
        return is_one_of(line["type"], _PRINTED) or (None if is_one_of(line["type"], _BARE) else False)

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        session = _Session(file)
        for _, value in values:
            line = mapping(value)
            if is_one_of(line.get("type"), _PRINTED):
                yield from session.printed(line)
            else:
                yield from session.kept(line)
        yield from session.notes.values()


class _Session:
    """
    One file.
    """

    def __init__(self, file: str) -> None:
        self.id, self.named, self.model = file, False, ""
        self.response, self.untold, self.answered = 0, False, False
        """The latest response, whether its tokens are still to be told, and whether a result came after it."""
        self.scripts: set[str | None] = set()
        """The ids of those that run."""
        self.failing = False
        """Of the scripts that run, whether something in them has failed."""
        self.items: set[str | None] = set()
        self.notes: dict[str | None, Came] = {}
        """Outputs of scripts that may not be their last."""

    def kept(self, line: Mapping[str, Any]) -> Iterator[Event]:
        """
        Yields what a line of a rollout says.
        """
        item, at_ms = mapping(line.get("payload")), time_ms(line.get("timestamp"))
        kind, what = line.get("type"), item.get("type")
        if not item:
            item, at_ms, kind, what = line, None, "response_item" if kind else "session_meta", kind
        if kind == "session_meta" and not self.named and text(item.get("id")):
            # The file's own name comes first; a fork repeats its parent's.
            spawned = mapping(mapping(mapping(item.get("source")).get("subagent")).get("thread_spawn"))
            above = text(spawned.get("parent_thread_id"))
            self.id, self.named = f"{above}/{item['id']}" if above else str(item["id"]), True
        elif kind == "turn_context":
            self.model = text(item.get("model")) or self.model
        elif kind == "response_item" and is_one_of(what, _CALLS):
            said = item.get("input") if what == "custom_tool_call" else None
            arguments = arguments_of(item.get("arguments", item.get("action"))) if said is None else said
            tool, id_ = text(item.get("name")) or str(what).removesuffix("_call"), text(item.get("call_id"))
            yield self._made(tool, arguments, id_ or text(item.get("id")), at_ms)
        elif kind == "response_item" and is_one_of(what, _OUTPUTS):
            yield from self._came(text(item.get("call_id")), item.get("output"), at_ms)
        elif kind == "token_usage_record" or (kind == "event_msg" and what == "token_count"):
            # Newer versions write both.
            usage = mapping(item.get("usage")) or mapping(mapping(item.get("info")).get("last_token_usage"))
            if usage and self.untold:
                yield Used(self.id, self.response, *usage_of(usage))
                self.untold = False
        elif kind == "event_msg" and what == "item_completed":
            self.failing = self.failing or (bool(self.scripts) and _has_failed(item.get("item")))
        elif kind == "event_msg" and is_one_of(what, _ENDS):
            self.answered = True

    def printed(self, line: Mapping[str, Any]) -> Iterator[Event]:
        """
        Yields what a line of `codex exec --json` says, whose usage is that of all responses to one prompt.
        """
        item, kind = mapping(line.get("item")), line["type"]
        tool, arguments = _item_of(item)
        id_ = text(item.get("id"))
        if kind == "thread.started":
            self.id = text(line.get("thread_id")) or self.id
        elif kind == "turn.completed":
            yield Used(self.id, self.response, *usage_of(line.get("usage")))
        elif tool is not None:
            if id_ not in self.items:
                self.items.add(id_)
                yield self._made(tool, arguments, id_, None)
            if kind == "item.completed":
                self.answered = True
                told = (item.get(name) for name in ("error", "result", "aggregated_output", "agents_states", "status"))
                content = next((each for each in told if each is not None), None)
                content = mapping(content).get("content", mapping(content).get("message", content))
                came = Came(self.id, id_, content, _has_failed(item))
                came.kind = "exec_nonzero" if item.get("exit_code") else None
                yield came

    def _made(self, tool: str, arguments: Any, id_: str | None, at_ms: int | None) -> Made:
        self.response += not self.untold or self.answered
        self.untold, self.answered = True, False
        if tool in _SCRIPTS:
            self.scripts, self.failing = self.scripts | {id_}, self.failing and bool(self.scripts)
        call = RecordedCall(self.id, tool, arguments, id=id_, model=self.model or None, ts_ms=at_ms)
        return Made(call.declared(CODEX.get(tool)), id_, self.response)

    def _came(self, id_: str | None, output: Any, at_ms: int | None) -> Iterator[Event]:
        came = _result(Came(self.id, id_, at_ms=at_ms), output, self.failing and id_ in self.scripts)
        if id_ in self.scripts and type(output) is str and not output.startswith("Script "):
            # What a script tells the model while it runs; or all there is, if it could not run.
            self.notes[id_] = came
            return
        self.notes.pop(id_, None)
        self.scripts.discard(id_)
        self.answered = True
        yield came


def _has_failed(end: Any) -> bool:
    code, status = mapping(end).get("exit_code"), mapping(end).get("status")
    return status in ("failed", "declined") or (type(code) is int and code != 0)


def _item_of(item: Mapping[str, Any]) -> tuple[str | None, Any]:
    """
    Tool and arguments of an item that `codex exec --json` prints, as a rollout would name them; None: it is no call.
    """
    match item.get("type"):
        case "command_execution":
            return "exec_command", {"cmd": item.get("command")}
        case "mcp_tool_call":
            return f"mcp__{item.get('server')}__{item.get('tool')}", arguments_of(item.get("arguments"))
        case "file_change":
            return "apply_patch", {"changes": item.get("changes")}
        case "collab_tool_call":
            names = ("receiver_thread_ids", "prompt")
            return text(item.get("tool")), {name: item[name] for name in names if item.get(name)}
    return None, None


def _result(came: Came, output: Any, failing: bool) -> Came:
    """
    Returns *came* with an output, and the exit code and the time that stand in its header. A script is *failing* by what ran in it.
    """
    older = parsed(output) if type(output) is str and output.startswith('{"output":') else output
    if type(older) is dict:
        metadata, success = mapping(older.get("metadata")), older.get("success")
        code = metadata.get("exit_code")
        came.content = older.get("content", older.get("output"))
        came.failed = not success if type(success) is bool else code != 0 if type(code) is int else None
        came.ms, came.kind = _ms(metadata.get("duration_seconds")), "exec_nonzero" if older is not output else None
        return came
    came.content = told = text_of(output)
    header = next(_HEADER.finditer(told))
    below = told[header.end() :]
    came.ms = _ms(float(header["wall"] or "nan"))
    if script := header["script"]:
        pieces = list(map(_piece, map(text_of, listed(output)[1:]))) or [_piece(below)]
        came.failed = script == "failed" or (script != "running" and (failing or any(failed for failed, _ in pieces)))
        came.shown = "\n".join(shown for _, shown in pieces)
        came.kind = None if script == "failed" else "exec_nonzero"
    else:
        came.failed, came.kind = _failed(told, header), "cancelled" if told.startswith(_ABORTED) else None
        came.shown = below if header["wall"] and header["output"] else None
    return came


def _failed(output: str, header: re.Match[str]) -> bool | None:
    """
    By the exit code; without one by the words of Codex itself. A program that still runs has not failed.
    """
    if code := header["exit"] or header["code"]:
        return int(code) != 0
    if header["output"] and not header["runs"]:
        return reading_of(output[header.end() :].lstrip()).failed
    return False if header["runs"] else True if _FAILED.match(output) else None


def _piece(piece: str) -> tuple[bool, str]:
    """
    Whether something that a script has shown, or one of the things in it, is the end of a command or of a call that failed; and the output
    alone of that end: the rest is of that one run.
    """
    header = next(_HEADER.finditer(piece))
    value = parsed(piece) if piece.lstrip()[:1] in ("{", "[") else None
    if value is None:
        failed = (header["exit"] or header["code"] or "0") != "0"
        return failed, piece[header.end() :] if header["output"] else piece
    ends = [mapping(end.get("value")) or end for end in objects(value if type(value) is list else [value])]
    end = mapping(value)
    failed = any(_has_failed(end) or reading_of(end).failed for end in ends)
    return failed, (text(end.get("output")) if "chunk_id" in end else None) or piece


def _ms(seconds: Any) -> int | None:
    return count(seconds * 1000) if type(seconds) in (int, float) else None
