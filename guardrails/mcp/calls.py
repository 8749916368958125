"""
Calls of MCP tools behind sessions, for each place between a client and a server: in the server, in the client, and in a proxy.

All messages are as on the wire. A refusal and a failure have one shape. A note stands beside a success where its client reads it, and
structured content stays valid for the tool's `outputSchema`. What a server says in our names is not ours.
"""

import asyncio
import json
import re
import time

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, Unpack
from uuid import uuid4

from jsonschema_rs import validator_for

from guardrails.core.arguments import foreign_arguments
from guardrails.core.arguments.json_schema import SchemaArguments, ServerArguments, refuse
from guardrails.core.envelope import Envelope, block_of
from guardrails.core.result.content import block_of as on_wire
from guardrails.core.result.content import read_mcp, wrapped_value
from guardrails.core.result.exceptions import ends_unknown, failure_of
from guardrails.core.result.kinds import kind_of_text
from guardrails.core.text.control import visible
from guardrails.core.tool import Tool, from_annotations
from guardrails.core.values.errors import GuardrailsError
from guardrails.core.values.logs import warn_once
from guardrails.core.values.types import Failed
from guardrails.hooks.results import cut, mapping, mark_of
from guardrails.policy.policy import Policy, unheld
from guardrails.policy.sessions import SessionOptions, Sessions
from guardrails.policy.tools import checked_arguments
from guardrails.session.session import Session, scoped

from .pins import by_name


Listed = Mapping[str, Any]
"""A tool as its server lists it."""
Known = dict[str, tuple[Tool, Listed]]
"""Tools by their names, each as it is declared and as it is listed."""
Listing = Callable[[], Awaitable[Iterable[Listed]]]
Send = Callable[[Any], Awaitable[Any]]
"""Makes the call with the arguments that are given, and returns the result."""
PREFIX: Final = "io.github.toolcall-guardrails"
RUN: Final = f"{PREFIX}/run"
"""Key of a request's `_meta` by which a client says to which run of an agent a call belongs."""
ENVELOPE: Final = f"{PREFIX}/envelope"
"""Key of a result's `_meta` that holds the envelope of a call that did not succeed, or the notes beside a success."""
NOTES: Final = "_guardrails"
"""Key of the structured content that holds the same, as far as the tool's `outputSchema` allows it."""
UNKNOWN: Final[dict[str, Any]] = {"not": {}}
"""The `outputSchema` of a tool that is not known: only what its server gave is sure to fit it."""
THEIRS: Final = "(the server's words) "
"""Before a text of a server that begins as ours do."""
_OURS: Final = re.compile(r"[\W_]*+".join(["(?i)", *"guardrails"]) + r"\b")
"""With any signs between, as some of them are not seen; a bracket is among the first."""
PROCESS: Final = "process"
"""The run of calls that name none and come from a process of one's own: MCP has no sessions."""
IDLE_S: Final = 1800.0
"""Seconds without a call after which calls that name no run are another run: a server outlives conversations."""
STUCK_S: Final = 60.0
"""
Seconds without a call after which a session goes on whose model only repeated what was refused, or ran away, until its tools were off:
who asks anew takes as long, and nobody else could extend it.
"""
MISSING: Final = {
    "request": "MCP tells of no model request",
    "response": "MCP tells of no model response, so that what tools use alone counts",
}
"""What guards may need and MCP has not, with the words for it."""
MAX_RUNS: Final = 1_000
"""Runs that are told apart by their pauses."""


class Run(NamedTuple):
    """
    The key that tells the calls of one conversation from others; the *name* of a stranger's is None.
    """

    name: str | None
    named: bool
    """By the client or the operator: they say where one ends."""


def run_of(meta: Any, session: str | None = PROCESS, *owner: str | None) -> Run:
    """
    Returns the run that a call belongs to: the one that its client names in *meta*, else the *session* of its transport. Each *owner* has runs
    of its own. Strangers without a session who name none are not one conversation: the results of one are none of another's.
    """
    named = (meta or {}).get(RUN)
    name = session if named is None else str(named)
    return Run(json.dumps([*owner, name]) if any(owner) else name, named=named is not None)


class Asks(Exception):
    """
    A tool asks its client for input; the call comes again with that.
    """


class Guarding:
    """
    Sessions by the runs that calls name, and what is known of the tools. *guarded* and *options* as `Sessions` takes them.
    """

    def __init__(self, guarded: Policy | Session, **options: Unpack[SessionOptions]) -> None:
        self.sessions = Sessions(guarded, **options)
        # A session that is made already may be of a loop that tells of its model.
        if isinstance(guarded, Policy) and (limits := unheld(guarded, MISSING)):
            warn_once(limits, "not held: %s", limits)
        self._clock: Callable[[], float] = options.get("clock") or time.time
        self._runs: dict[str, tuple[Session, float]] = {}
        """Sessions by their runs, each with the time of its latest call, in seconds."""
        self.tools: dict[str, tuple[Tool, Listed | None]] = {}
        """Those that are known, by name, each as it is declared and as it is listed; None: not listed."""

    async def session(self, run: Run) -> Session:
        """
        The session of *run*; a stranger's is new each time, for its caller to end.
        """
        if run.name is None:
            return self.sessions.of()
        now = self._clock()
        session, called_at = self._runs.pop(run.name, (None, now))
        # Other processes may have the same store.
        anew = run.name == PROCESS if session is None else not run.named and now - called_at > IDLE_S
        if session is None or anew:
            session = self.sessions.of(f"{run.name}:{uuid4()}" if anew else run.name, run=anew)
        self._runs[run.name] = session, now
        if len(self._runs) > MAX_RUNS:
            del self._runs[next(iter(self._runs))]
        if now - called_at > STUCK_S:
            await asyncio.to_thread(_go_on, session)
        return session

    def hear(self, listed: Iterable[Any], held: Mapping[str, str] | None = None) -> Known:
        """
        Know the tools that a server *listed*, and return them by name; *held* says why some are held, by their names, listed or not.
        """
        reasons = held or {}
        named = {name: {"name": name} for name in reasons} | by_name(listed)
        tools = {name: (tool_of(one, reasons.get(name, "")), one) for name, one in named.items()}
        self.tools.update(tools)
        return tools

    async def known(self, name: str, listing: Listing) -> tuple[Tool, Listed | None]:
        """
        Returns the tool *name* as it is declared and as it is listed; *listing* is asked once for an unknown one, and each
        time for one that is held: somebody may have allowed it.
        """
        if name not in self.tools or self.tools[name][0].held:
            # Hints are not worth a call: whether the tool is there, its server says.
            with suppress(Exception):
                self.hear(await listing())
            self.tools.setdefault(name, (Tool(name=name), None))
        return self.tools[name]

    async def serve(self, asked: Mapping[str, Any], run: Run, listing: Listing, send: Send, **more: Any) -> Any:
        """
        Returns a server's answer to a call of *run*; see `call`. A stranger's session is over with it.
        """
        session = await self.session(run)
        try:
            return await self.call(session, asked, listing, send, **more)
        finally:
            if run.name is None:
                self.sessions.end(session)

    async def call(
        self,
        session: Session,
        asked: Listed,
        listing: Listing,
        send: Send,
        *,
        wire: Any = lambda one: one,
        failures: Any = (),
    ) -> Any:
        """
        The answer of `send(arguments)`, if *session* lets the call run that is *asked* for by its parameters, with the notes of its envelope;
        else the refusal. An answer with nothing to add, or that is no tool result, such as a question to the client, is returned as it came;
        *wire* gives what it is on the wire. The call that carries the answer to that question is the very call that asked.

        Raises what *send* raises but for exceptions of the types *failures*, as the host's own failures have forms of their own.
        """
        tool, listed = await self.known(asked["name"], listing)
        scope = scope_of(session, tool, asked, listed=listed is not None)
        # What the server says, once it is asked.
        its = SimpleNamespace(answer=None, given=None, value=None, raised=None)

        async def execute(_: str, fitted: Any) -> Any:
            its.given = its.raised = None
            try:
                its.answer = await send(fitted)
            except Exception as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    # Its time is up, or nobody waits for it any more: that says more.
                    raise
                its.raised = error
                kind = failure_of(error, fitted).error_type or "other"
                its.value = Failed(str(error), error_type=kind, unknown=ends_unknown(error, kind))
            else:
                if is_question(its.answer):
                    raise Asks
                its.given = wire(its.answer)
                its.value = outcome_of(its.given) if _is_result(its.given) else "began a task"
            return _explained(tool, fitted, its.value)

        try:
            envelope = await scope.acall(tool.name, asked.get("arguments") or {}, execute)
        except Asks:
            return its.answer
        watched = watches(session.ledger.policy)
        if its.raised is not None and (watched or not isinstance(its.raised, failures)):
            raise its.raised
        if its.given is None:
            return refused(envelope)
        if watched or not _is_result(its.given):
            return its.answer
        if its.given.get("isError") or not envelope.ok:
            return refused(envelope, its.given)
        made = answered(envelope, its.given, its.value, UNKNOWN if listed is None else listed.get("outputSchema"))
        return its.answer if made is its.given else made


def _explained(tool: Tool, arguments: Any, value: Any) -> Any:
    """
    Returns the *value* of a call; a failure as the server tells it, with the fields that are wrong if it says that arguments do not fit.
    """
    failed = isinstance(value, Failed) and (value.error_type or kind_of_text(value.message))
    if tool.parameters is None or failed != "validation":
        return value
    fitted = checked_arguments(replace(tool, parameters=SchemaArguments(tool.parameters.schema())), arguments)
    return fitted if isinstance(fitted, Envelope) else value


def watches(policy: Policy) -> bool:
    """
    Whether *policy* decides and records, and changes nothing.
    """
    chain = policy.chain
    return chain.mode != "enforce" and not any(rule.mode == "enforce" for rule in chain.rules)


def scope_of(session: Session, tool: Tool, asked: Mapping[str, Any], *, listed: bool) -> Session:
    """
    Returns *session* as a call of *tool* sees it that is *asked* for.
    """
    again = asked.get("inputResponses") is not None or asked.get("requestState") is not None
    if listed and not again:
        session.calls.declare(tool, listed=False)
        return scoped(session, {}, passes=(Asks,))
    # The very call that asked its client for something is no repeat. The names of tools that no server lists are the client's: they are not kept.
    return scoped(session, {}, [replace(tool, repeats="allow") if again else tool], passes=(Asks,))


def _go_on(session: Session) -> None:
    with suppress(GuardrailsError):  # what is wrong with the store, the call hears of
        if (session.exhausted or "").startswith(("denials.", "growth.")):
            session.extend()


def _is_result(given: Any) -> bool:
    return isinstance(given, Mapping) and "content" in given


# Of a server


def without_ours(message: Any) -> Any:
    """
    Returns the *message* of a server, or a part of it, without keys of ours, and with a mark before each text that begins as ours do.
    """
    if isinstance(message, str):
        return f"{THEIRS}{message}" if (match := _OURS.match(message)) and "[" in match[0] else message
    if isinstance(message, list):
        return [without_ours(one) for one in message]
    if isinstance(message, dict):
        return {name: without_ours(one) for name, one in message.items() if not name.startswith((NOTES, PREFIX))}
    return message


def tool_of(listed: Listed, held: str = "", **more: Any) -> Tool:
    """
    Returns the tool that a server *listed*, with *more* of its fields. The arguments of one that is *held* are not checked.
    """
    schema, name = listed.get("inputSchema"), more.pop("name", listed["name"])
    spec = foreign_arguments(name, schema, ServerArguments) if schema and not held else None
    return Tool(name=name, parameters=spec, held=held, **from_annotations(mapping(listed.get("annotations"))), **more)


def as_shown(listed: Listed) -> Listed:
    """
    Returns a *listed* tool as a client is told it: in words that a person sees, and with room for a note in its `outputSchema`, if that
    is of an object.
    """
    schema = mapping(listed.get("outputSchema"))
    fields = schema.get("properties", {})
    words = {part: visible(text) for part in ("title", "description") if isinstance(text := listed.get(part), str)}
    if schema.get("type") != "object" or not isinstance(fields, dict):
        return {**listed, **words}
    note = {"type": "object", "description": "What is to be known of this result beside it."}
    return {**listed, **words, "outputSchema": {**schema, "properties": {**fields, NOTES: note}}}


def is_question(result: Any) -> bool:
    """
    Returns whether *result* asks the client for input: an object of an SDK, or what is on the wire.
    """
    kind = result.get("resultType") if isinstance(result, dict) else getattr(result, "result_type", None)
    return kind == "input_required" or hasattr(result, "input_required")


def outcome_of(result: Mapping[str, Any]) -> Any:
    """
    Returns the outcome of a call: the value of its *result*, or a `Failed`.

    Images and other bytes are the number and the hash of them: no model reads base64 as text.
    """
    shown = [one if is_text(one) else mark_of(mapping(one).get("type"), one) for one in _blocks(result)]
    return read_mcp({**result, "content": shown})


async def all_pages(ask: Callable[[str | None], Awaitable[Any]]) -> list[Listed]:
    """
    The tools of all pages, each that *ask* gets by its cursor; the last has no tool that is new.
    """
    tools: dict[str, Listed] = {}
    cursor: str | None = None
    while True:
        page, before = await ask(cursor), len(tools)
        tools = by_name(map(on_wire, page.tools)) | tools
        cursor = page.next_cursor
        if cursor is None or len(tools) == before:
            return [*tools.values()]


# For a client


def refused(envelope: Envelope, result: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """
    Returns the answer of a call that did not run, or whose *result* is a failure. It has `isError`, one line for a
    person and the envelope as JSON. It has no structured content, which clients would check. Images and other blocks
    that are no text stay.
    """
    given, text = {**(result or {})}, envelope.to_json()
    given.pop("structuredContent", None)
    lines = {"type": "text", "text": f"{_line(envelope)}\n{text}"}
    given["content"] = [lines, *(block for block in _blocks(given) if not is_text(block))]
    return {**given, "isError": True, "_meta": {**mapping(given.get("_meta")), ENVELOPE: json.loads(text)}}


def answered(envelope: Envelope, result: Mapping[str, Any], value: Any, schema: Any = None) -> Mapping[str, Any]:
    """
    Returns the *result* of a success with the notes of *envelope*; the very *result* if there are none. The session knows
    its content as *value*. The tool's `outputSchema` is *schema*, for which structured content stays valid.

    If a guard put another value in place of the content, and the value does not fit *schema*, it is a failure.
    """
    notes, shaped = envelope.notes(), envelope.value is not value and envelope.value != value
    whole = shaped or envelope.cut or envelope.form == "nested"
    if not whole and not notes:
        return result
    content, structured = [*_blocks(result)], result.get("structuredContent")
    if structured is not None and (shaped or envelope.cut):
        wrapped = {"result": envelope.value} if wrapped_value(structured) is not structured else envelope.value
        other = wrapped if shaped else cut(structured, len(envelope.render().payload))
        if _fits(other, schema):
            structured = other
        elif shaped:
            return refused(envelope, result)
    noted = {**structured, NOTES: notes} if isinstance(structured, dict) and notes else None
    fits = noted is not None and _fits(noted, schema)
    if whole:
        content = [{"type": "text", "text": envelope.to_json()}, *(one for one in content if not is_text(one))]
    elif not fits or notes.keys() != {"next_action_hint"}:
        # A hint is said once; that a limit is reached also to clients that read texts alone.
        content.append({"type": "text", "text": block_of(envelope)})
    made = {**result, "content": content}
    if structured is not None:
        made["structuredContent"] = noted if fits else structured
    return {**made, "_meta": {**mapping(result.get("_meta")), ENVELOPE: notes}} if notes else made


def _blocks(result: Mapping[str, Any]) -> list[Any]:
    content: Any = result.get("content")
    return content if isinstance(content, list) else []


def is_text(block: Any) -> bool:
    """
    Returns whether all that a *block* of content says is text, which the envelope has.
    """
    given = mapping(block)
    kind, resource = given.get("type"), mapping(given.get("resource"))
    return kind == "text" or (kind == "resource" and "blob" not in resource)


def _fits(structured: Any, schema: Any) -> bool:
    """
    Returns whether *structured* is valid by *schema*, if there is one; False also for a schema that is none.
    """
    with suppress(ValueError):
        return validator_for(dict(mapping(schema)), retriever=refuse).is_valid(structured)
    return False


def _line(envelope: Envelope) -> str:
    """
    The state of a call in one line, as clients that show text only quote it.
    """
    text = envelope.message or envelope.error_message or envelope.limit_message or envelope.next_action_hint or ""
    code = envelope.code or envelope.error_type or envelope.status
    return f"[guardrails:{code}] {' '.join(text[:500].split()) or envelope.status}"
