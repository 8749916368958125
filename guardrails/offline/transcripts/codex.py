"""
Codex CLI: rollouts (JSON lines of `session_meta`, `turn_context`, `response_item`, `event_msg`), and what `codex exec --json` prints.

A command's exit code stands in the header of its output, or in the metadata of an older one. In code mode a call is a script: it has failed
if it says so, if an end of a command that it shows is another exit code than 0, or if an item that was completed while it ran has failed.
The tokens of a response come after its calls. Actions of the program or its server (web search, the search for tools) are no calls.
"""

import re

from collections.abc import Iterator, Mapping
from typing import Any, Final

from guardrails.core.result import reading_of
from guardrails.hooks.tools import CODEX as TOOLS

from .calls import Came, Event, Format, Made, RecordedCall, Used, Values
from .fields import amount, at, item_call, json_in, listed, mapping, objects, text, text_of


_LINES: Final = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS: Final = tuple(f"{kind}_output" for kind in _CALLS)
_SCRIPTS: Final = ("exec", "wait")
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


def _fits(value: Any) -> bool | None:
    # Newer versions add kinds of lines; until mid-2025 items stood bare, below a head.
    known = at(value, "type") in _LINES and type(at(value, "payload")) is dict
    head = type(value) is dict and ("record_type" in value or value.keys() >= {"id", "instructions"})
    return known or head or (None if text(at(value, "type")) else False)


def _events(values: Values, file: str) -> Iterator[Event]:
    rollout = _Rollout(file)
    for _, line in values:
        kind, item = line.get("type"), line.get("payload")
        if type(item) is not dict:
            kind, item = "session_meta" if "instructions" in line else "response_item", line
        yield from rollout.events(kind, item, line.get("timestamp"))


class _Rollout:
    """
    One file.
    """

    def __init__(self, file: str) -> None:
        self.session, self.named, self.model = file, False, None
        self.step = 0
        """Of the file: calls of one step are of one response."""
        self.untold: int | None = None
        """The step of calls whose tokens are still to be told."""
        self.scripts: set[str | None] = set()
        """The ids of those that run."""
        self.failing = False
        """Of the scripts that run, whether something in them has failed."""

    def events(self, kind: Any, item: Mapping[str, Any], time: Any) -> Iterator[Event]:
        """
        Yields what an *item* of this *kind* says.
        """
        what = item.get("type")
        if kind == "session_meta" and not self.named and text(item.get("id")):
            # The file's own name comes first; a fork repeats its parent's.
            above = text(at(item, "source", "subagent", "thread_spawn", "parent_thread_id"))
            self.session, self.named = f"{above}/{item['id']}" if above else item["id"], True
        elif kind == "turn_context":
            self.model = item.get("model") or self.model
        elif kind == "response_item" and what in _CALLS:
            yield self._made(item, time)
        elif kind == "response_item" and what in _OUTPUTS:
            yield from self._came(item, time)
        elif self.untold is not None and (usage := item.get("usage") or at(item, "info", "last_token_usage")):
            yield Used(self.session, self.untold, usage)
            self.step, self.untold = self.step + 1, None
        elif what == "item_completed":
            self.failing = self.failing or (bool(self.scripts) and _failed(item.get("item")))

    def _made(self, item: Mapping[str, Any], time: Any) -> Made:
        (tool, said), id_ = item_call(item), text(item.get("call_id"))
        if tool in _SCRIPTS:
            self.scripts, self.failing = self.scripts | {id_}, self.failing and bool(self.scripts)
        self.untold = self.step
        call = RecordedCall(self.session, tool, said, id=id_, model=self.model)
        return Made(call.declared(TOOLS.get(tool)), id_ or id(item), self.step, time)

    def _came(self, item: Mapping[str, Any], time: Any) -> Iterator[Came]:
        id_, output = text(item.get("call_id")), item.get("output")
        scripted = id_ in self.scripts
        if scripted and type(output) is str and not output.startswith("Script ") and not _FAILED.match(output):
            # A script's word while it runs.
            return
        self.scripts.discard(id_)
        self.step += 1
        older = json_in(output) if type(output) is str and output.startswith('{"output":') else None
        came = Came(self.session, id_, text_of(output), at=time)
        if older is None:
            _read(came, list(map(text_of, listed(output)[1:])), self.failing and scripted)
        else:
            code, seconds = at(older, "metadata", "exit_code"), amount(at(older, "metadata", "duration_seconds"))
            came.content, came.failed = older.get("output"), code != 0 if type(code) is int else None
            came.ms, came.kind = None if seconds is None else seconds * 1000, "exec_nonzero"
        yield came


def _failed(end: Any) -> bool:
    code = at(end, "exit_code")
    return at(end, "status") in ("failed", "declined") or (type(code) is int and code != 0)


def _read(came: Came, pieces: list[str], failing: bool) -> None:
    """
    Note the exit code and the time that stand in the header of the content of *came*, which a script shows in *pieces*. A script is *failing* by
    what ran in it.
    """
    header = next(_HEADER.finditer(came.content))
    below = came.content[header.end() :]
    came.ms = float(header["wall"]) * 1000 if header["wall"] else None
    if script := header["script"]:
        failing = failing or any(map(_shows_failure, pieces or [below]))
        came.failed = script == "failed" or (script != "running" and failing)
        came.kind, came.shown = "other" if script == "failed" else "exec_nonzero", below
        return
    if code := header["exit"] or header["code"]:
        came.failed = int(code) != 0
    elif header["output"] or header["runs"]:
        # A program that still runs has not failed.
        came.failed = not header["runs"] and not reading_of(below.lstrip()).ok
    else:
        came.failed = True if _FAILED.match(came.content) else None
    came.kind = "cancelled" if came.content.startswith(_ABORTED) else "other"
    came.shown = below if header["wall"] and header["output"] else None


def _shows_failure(piece: str) -> bool:
    """
    Whether something that a script has shown, or one of the things in it, is the end of a command or of a call that failed.
    """
    value = json_in(piece) if piece.lstrip()[:1] in ("{", "[") else None
    if value is None:
        header = next(_HEADER.finditer(piece))
        return (header["exit"] or header["code"] or "0") != "0"
    ends = (mapping(end.get("value")) or end for end in objects(value if type(value) is list else [value]))
    return any(_failed(end) or not reading_of(end).ok for end in ends)


def _prints(value: Any) -> bool:
    return str(at(value, "type")).startswith(("thread.", "turn.", "item."))


def _printed(values: Values, file: str) -> Iterator[Event]:
    """
    Yields what lines of `codex exec --json` say, whose usage is that of all responses to one prompt.
    """
    session, completed, response = file, 0, 0
    for _, line in values:
        item, kind = mapping(line.get("item")), line["type"]
        tool, arguments = _call_of(item)
        if kind == "thread.started":
            session = text(line.get("thread_id")) or session
        elif kind == "turn.completed":
            yield Used(session, response, line.get("usage"))
        elif tool is not None:
            id_, response = text(item.get("id")), completed
            yield Made(RecordedCall(session, tool, arguments, id=id_).declared(TOOLS.get(tool)), id_, response)
            if kind == "item.completed":
                completed += 1
                content = item.get("error") or item.get("result") or item.get("aggregated_output", item.get("status"))
                content = mapping(content).get("content", mapping(content).get("message", content))
                came = Came(session, id_, content, _failed(item))
                came.kind = "exec_nonzero" if item.get("exit_code") else "other"
                yield came


def _call_of(item: Mapping[str, Any]) -> tuple[str | None, Any]:
    """
    Tool and arguments of an item, as a rollout would name them; None: it is no call.
    """
    names = {"command_execution": "exec_command", "file_change": "apply_patch"}
    names["mcp_tool_call"] = f"mcp__{item.get('server')}__{item.get('tool')}"
    said = {name: item[of] for name, of in (("cmd", "command"), ("changes", "changes")) if of in item}
    return names.get(str(item.get("type"))), item.get("arguments", said)


CODEX: Final = Format("codex rollout", _fits, _events)
CODEX_EXEC: Final = Format("codex exec", _prints, _printed)
