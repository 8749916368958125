"""
Calls that somebody's agent made, in one form, and the events that a format makes them of: a call was `Made`, a result `Came`, a response
`Used` tokens. One join does the rest.

Formats hand on the values of a transcript as they are, of whatever type: the join takes of them what has the type that it should have.
"""

import re

from ast import literal_eval
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from guardrails.core.result import reading_of
from guardrails.core.result.content import Carried, content_of
from guardrails.core.result.kinds import kind_of_text, status_in
from guardrails.core.text.signature import masked_result_hash, result_hash, sign
from guardrails.core.tool import Tool
from guardrails.core.values.errors import SessionError
from guardrails.core.values.names import MAX_CHARS, bounded_name
from guardrails.core.values.types import ErrorType
from guardrails.core.values.usage import read_usage

from .fields import amount, arguments_of, count, text, text_of, time_ms


_PRINTED: Final = re.compile(r"TextContent\(type='text', text=('(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\")", re.DOTALL)
"""A block of a result of MCP, as Python prints it."""


@dataclass(slots=True)
class RecordedCall:
    """
    One call of a transcript. A field that the transcript lacks is None.
    """

    session_id: str
    """Opaque: it never makes a path."""
    tool: str
    arguments: Any
    """Mapping, or text where the call had no JSON. None: they were not kept."""
    source: str = ""
    """The file or data set it is from, as a table names it."""
    call_index: int = 0
    """Position in its session, from 0."""
    turn: int | None = None
    """Which model response made it, counted within the session; calls of one response share it."""
    id: str | None = None
    model: str | None = None
    ts_ms: int | None = None
    duration_ms: int | None = None
    result: str | None = None
    """Text of the result, as far as the transcript holds it."""
    has_result: bool = True
    """False: the transcript ends before the result, or it was never given."""
    is_error: bool | None = None
    """Where the format has no flag for it, what the result's text says of itself."""
    error_type: ErrorType | None = None
    http_status: int | None = None
    retry_after_ms: int | None = None
    plain_hash: int | None = None
    """Evidence of a success, 63 bits; None: to be taken from *result*."""
    masked_hash: int | None = None
    """Evidence of an error, with digits and the like deleted."""
    steady: int = 0
    """In records of this library: what is news in the result, as a hash; 0: to be taken from *result*."""
    empty: int = 0
    """The same: 1 if it only acknowledges, 2 if it is empty, 3 if it is unfinished."""
    tokens_in: int | None = None
    """Of the model response, on its first call only, so that sums are right."""
    tokens_out: int | None = None
    cost_usd: float | None = None
    """Of the model response, on its first call only."""
    read_only: bool | None = None
    polling: bool = False
    labels: tuple[str, ...] = ()
    """Names of arguments that its host's tool has for a person to read: see `Tool.labels`."""
    sig: int | None = None
    """The call's signature, where the arguments were not kept; None: to be taken from *tool* and *arguments*."""
    decision: str | None = None
    """What a chain said of it (`allow`, `nudge` or `deny`), in records of this library; so are the next four."""
    code: str | None = None
    """Of the denial."""
    observed: tuple[str, ...] = ()
    """Codes of guards in observe mode that would have denied it."""
    is_complete: bool | None = None
    """What the envelope said of the result."""
    tool_cost_usd: float | None = None
    """Of running the tool itself."""
    run: str = ""
    """Which life of its session: a name that is used again without its state is another session. `""`: the only one."""
    number: int | None = None
    """Of its event, in records of this library, which count the events of a life."""
    signed: tuple[bytes | None, int | None, bytes | None] | None = None
    """What `sign` says of *tool* and *arguments*, where it was asked already."""

    @property
    def signature(self) -> int | None:
        """
        The signature, taken from tool and arguments if it was not recorded. None if they cannot be signed, or were not kept.
        """
        if self.sig is not None or self.arguments is None:
            return self.sig
        self.signed = signed = self.signed or sign(self.tool, self.arguments)
        return signed[1]

    def declared(self, tool: Tool | None) -> Self:
        """
        Returns the same call, with the declaration that its program makes of its own *tool*, as it has when it runs.
        """
        if tool is not None:
            self.read_only, self.polling, self.labels = tool.read_only, tool.repeats == "allow", tool.labels
        return self


@dataclass(slots=True)
class Report:
    """
    The remarks of who reads files.
    """

    broken: list[tuple[str, int]] = field(default_factory=list)
    """(file, line from 1) of what could not be read."""
    notices: list[str] = field(default_factory=list)
    """Sentences for a person: skipped files and lines that could not be read, and then missing results."""
    unread: int = 0
    """Of these, those before the missing results."""
    read_as: dict[str, str] = field(default_factory=dict)
    """The format that each file was read as that gave calls."""
    without: dict[str, str] = field(default_factory=dict)
    """What each file looks like that gave no calls."""

    def note(self, file: str, sentence: str, *, unread: bool = True) -> None:
        """
        Tell a person something about *file*. What is *unread* comes first: of many notices the first are shown.
        """
        self.notices.insert(self.unread if unread else len(self.notices), f"`{file}`: {sentence}")
        self.unread += unread

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the same for another program.
        """
        broken = len(self.broken)
        return {"read_as": self.read_as, "without_calls": self.without, "notices": self.notices, "broken_lines": broken}


class Made(NamedTuple):
    """
    A call was made. The join gives it its place, its time and its turn. A call whose tool is no text is left out.
    """

    call: RecordedCall
    key: Hashable = None
    """By which its result is known, within its session: a key that is told again is the same call. None: the call has all that there is of it."""
    response: Hashable = None
    """Of the model: calls of one response are one turn."""
    at: Any = None
    """When: ISO 8601 text, or seconds or milliseconds since 1970."""


class Came(NamedTuple):
    """
    The result of the call *key* came. Only the first counts.
    """

    session: str
    key: Hashable
    content: Any = None
    """None: the transcript does not hold it."""
    failed: bool | None = None
    """By the format's own sign; None: it has none, and the content is asked."""
    at: Any = None
    """When, as in `Made`."""
    ms: Any = None
    """How long the call took; None: from its beginning to *at*."""
    kind: ErrorType = "other"
    """Of the failure, if the content tells none."""
    shown: str | None = None
    """The part of the content that is not of this one run."""


class Used(NamedTuple):
    """
    A response used tokens, and cost so much: told of its first call. Told again, the larger output counts.
    """

    session: str
    response: Hashable
    usage: Any = None
    """An object with numbers of tokens, by the names of any program."""
    cost_usd: Any = None


Event = Made | Came | Used
Values = Iterable[tuple[int, Any]]
"""The JSON values of a file with the line, from 1, that each begins on: one a line, or one in all."""


class Format(NamedTuple):
    """
    One format.
    """

    name: str
    """As a person would call it: `claude code session`."""
    fits: Callable[[Any], bool | None]
    """Whether a JSON value, a line or a whole document, is of this format. None: other formats have it too."""
    events: Callable[[Values, str], Iterator[Event]]
    """Yields what happened, in order, by the values that fit. The file's name is that of a session that has no id."""


def joined(events: Iterable[Event], source: str) -> list[RecordedCall]:
    """
    Returns the calls of *events* in the order in which they were made, with their results.
    """
    lengths = Counter[tuple[str, str]]()
    keyed: dict[tuple[str, Hashable], RecordedCall] = {}
    firsts: defaultdict[str, dict[Hashable, RecordedCall]] = defaultdict(dict)
    """Of a session's responses the first call."""
    calls, used = [], []
    for event in events:
        if isinstance(event, Used):
            used.append(event)
        elif isinstance(event, Came):
            if (known := keyed.get((event.session, event.key))) is not None and not known.has_result:
                _end(known, event)
        elif text(event.call.tool):
            call, session = event.call, event.call.session_id
            if event.key is not None:
                if keyed.setdefault((session, event.key), call) is not call:
                    continue
                call.has_result = False
            call.tool = bounded_name(call.tool) if len(call.tool) > MAX_CHARS else call.tool
            call.source, call.call_index = call.source or source, lengths[session, call.run]
            call.ts_ms = time_ms(event.at) if call.ts_ms is None else call.ts_ms
            call.id, call.model, call.arguments = text(call.id), text(call.model), arguments_of(call.arguments)
            if event.response is not None:
                first = firsts[session].setdefault(event.response, call)
                call.turn = first.turn or len(firsts[session])
            lengths[session, call.run] += 1
            calls.append(call)
    for event in used:
        if event.response in firsts[event.session]:
            _use(firsts[event.session][event.response], event)
    return calls


def _use(call: RecordedCall, used: Used) -> None:
    call.cost_usd = amount(used.cost_usd) if call.cost_usd is None else call.cost_usd
    # Many formats have no usage, and to look for it by all names that programs have for it takes long.
    if used.usage is None or (type(used.usage) is dict and all(value is None for value in used.usage.values())):
        return
    with suppress(SessionError):
        if (tokens := read_usage(used.usage)).known:
            call.tokens_in = tokens.input if call.tokens_in is None else call.tokens_in
            call.tokens_out = max(tokens.output, call.tokens_out or 0)


def _end(call: RecordedCall, came: Came) -> None:
    """
    Put a result into *call*. What its format does not say of a failure is read from it, as in a session.
    """
    answer, failed, kind = text_of(came.content), came.failed, call.error_type
    carried = content_of(answer) if '"text"' in answer else Carried(None)
    if "[TextContent(" in answer[:200] and (blocks := _PRINTED.findall(answer)):
        carried = Carried(None, answer.rstrip(")").endswith("isError=True"), "\n".join(map(literal_eval, blocks)))
    # A format without a failure there may only know that nothing was raised: then the flag stays in the answer, which is judged later.
    if carried.text is not None and not (carried.failed and failed is False):
        answer = carried.text
    # What a format calls good may still say otherwise, which is judged later.
    read = None if failed is False or (failed and kind) else reading_of(answer)
    failed = failed or (read is not None and (carried.failed or not read.ok))
    call.has_result, call.is_error, call.result = True, failed, None if came.content is None else answer
    if failed and read is not None and kind is None:
        error = read.error_type or kind_of_text(answer) or "other"
        kind = came.kind if error == "other" else error
        call.http_status = read.http_status or status_in(answer)
    call.error_type = kind if failed else None
    if came.shown is not None and came.shown != call.result:
        call.plain_hash, call.masked_hash = result_hash(came.shown), masked_result_hash(came.shown)
    call.duration_ms = count(came.ms)
    if call.duration_ms is None and call.ts_ms is not None and (end_ms := time_ms(came.at)) is not None:
        call.duration_ms = max(end_ms - call.ts_ms, 0)
