"""
What every format becomes: calls that somebody's agent made, in one form, and the remarks of who read them.
"""

from dataclasses import dataclass, field
from typing import Any, Self

from guardrails.core.text.signature import masked_result_hash, result_hash, sign
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import ErrorType


Session = str | tuple[str, str]
"""A session's id, or (id, run) where the name has more than one life."""


@dataclass(slots=True)
class RecordedCall:
    """
    One call of a transcript. A field that the transcript lacks is None.
    """

    session_id: str
    """Opaque: it never makes a path."""
    tool: str
    arguments: Any
    """Mapping, or text where the call had no JSON."""
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
    """What a chain said of it (`allow`, `nudge` or `deny`), in records of this library; so are the next five."""
    code: str | None = None
    """Of the denial."""
    nudges: tuple[str, ...] = ()
    """Codes of the nudges."""
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
    def session(self) -> Session:
        """
        The session, its life told apart.
        """
        return (self.session_id, self.run) if self.run else self.session_id

    @property
    def signature(self) -> int | None:
        """
        The signature, taken from tool and arguments if it was not recorded. None if they cannot be signed.
        """
        if self.sig is not None:
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

    def shows(self, text: str) -> None:
        """
        Say that *text* is the content of its result: the rest of it is of that one run.
        """
        if text != self.result:
            self.plain_hash, self.masked_hash = result_hash(text), masked_result_hash(text)

    def ended(self, at_ms: int | None) -> None:
        """
        Take the time from its start to *at_ms* for its duration, unless that is known.
        """
        if self.duration_ms is None and self.ts_ms is not None and at_ms is not None:
            self.duration_ms = max(at_ms - self.ts_ms, 0)


@dataclass(slots=True)
class Report:
    """
    The remarks of who reads files.
    """

    calls: int = 0
    broken: list[tuple[str, int]] = field(default_factory=list)
    """(file, line from 1) of what could not be read."""
    notices: list[str] = field(default_factory=list)
    """Sentences for a person: skipped files, lines of another form, missing results."""
    read_as: dict[str, str] = field(default_factory=dict)
    """The format that each file was read as that gave calls."""
    without: dict[str, str] = field(default_factory=dict)
    """What each file looks like that gave no calls."""

    def broke(self, file: str, line: int) -> None:
        """
        Note a broken line (from 1).
        """
        self.broken.append((file, line))

    def note(self, file: str, sentence: str) -> None:
        """
        Tell a person something about *file*.
        """
        self.notices.append(f"`{file}`: {sentence}")
