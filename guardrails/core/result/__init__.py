"""
The one reading of a result: failed and how, unfinished, empty, an acknowledgement, complete or not, its size, its hashes, its wait.

A result is read once, and every question asks the reading. Carriers are taken off first (`content`): JSON text, a fenced block, the
blocks and the structured content of MCP, a library's result types. So a word that is understood in one is understood in all.

    content        what a result says without its carriers: waiting, done, nothing
    news           the news in it, as a number
    failures       failures that hide in it
    kinds          the kinds of failure, as one table
    exceptions     what was raised
    waits          how long the other side asked to wait
    names          the meaning of member names, and the form of an object
    completeness   sure signs of more
"""

from contextlib import suppress
from typing import Any, Final, NamedTuple

from guardrails.core.text.plain_json import LIMIT, taken
from guardrails.core.text.signature import masked_result_hash, result_hash
from guardrails.core.text.truncation import Rendered, render
from guardrails.core.values.types import ERROR_TYPES, End, Failed, Outcome, Success, claimed

from .content import LONG, Carried, content_of, given_by, news_in
from .failures import Source, failure_in, may_fail
from .names import Form, form_of


NOBODY: Final = Source()
_PROGRAMS: Final = frozenset({"command", "cmd", "code", "script"})
"""Arguments of a tool that shows what a program says."""


class Terms(NamedTuple):
    """
    Terms on which a result is read.
    """

    now_ms: int | None = None
    """Milliseconds since 1970, by which dates of a wait are understood."""
    limit: int = LIMIT
    """About the most bytes that are taken of an iterator."""
    passes: tuple[type[BaseException], ...] = ()
    """Types of the exceptions of an iterator that are raised on."""


TERMS: Final = Terms()


class Reading(End):
    """
    An outcome, and what its content says.
    """

    raised: BaseException | None = None
    """The exception that it is of, which the tool raised or its iterator."""

    def __init__(
        self, value: Any, source: Source = NOBODY, arguments: Any = None, content: Any = ..., form: Form | None = None
    ) -> None:
        if content is ...:
            content = content_of(value).value
        if form is None and type(content) is dict:
            form = form_of(content)
        self.value, self.source = value, source
        self.arguments, self.given = arguments, given_by(arguments)
        """Those of the call, and their values: what repeats these is no news."""
        self.content = content
        """The value without its carriers: an object, a list, a scalar, or a text that is no data."""
        self.form = form
        """That of a content that is an object."""
        self.news = 2 if type(content) is str and len(content) > LONG else news_in(content, self.given, form=form)
        """
        3: the work goes on, by a `status` of waiting, a percentage, or one short line (60 characters) that is read like one; 2: it brings
        news, as a failure does; 1: it holds something with nothing in it, or says in one short line that nothing was found, and no more;
        0: it only says that something was done (`ok`, true, null, `{"success": true}`, ids, what was given), what time it is, or a count
        of 0.
        """

    def render(self, *limit: int) -> Rendered | None:
        """
        Returns the value as the model reads it, made once, with its hash; None for a failure without one.
        """
        shown, failed = self.rendered, self.error_type is not None
        if shown is None and not (failed and self.value is None):
            shown = self.rendered = render(self.value, *limit)
        hash_of = masked_result_hash if failed else result_hash
        self.hash = hash_of(evidence_of(self, shown))
        return shown


def evidence_of(outcome: Outcome, rendered: Rendered | None) -> bytes:
    """
    Returns the text that tells one outcome from another: the result, else the words of the failure.
    """
    if rendered is not None:
        return rendered.payload
    return f"{outcome.error_type}: {outcome.error_message}".encode(errors="replace")


def reading_of(result: Any, source: Source = NOBODY, arguments: Any = None, terms: Terms = TERMS) -> Reading:
    """
    Returns the reading of a value that an executor returned or raised, on these *terms*.

    *result* is a value, a `Success`, a `Failed`, an exception or an `Envelope` (which passes as it is). An iterator becomes a list, bytes
    become text or `{"base64": "...", "bytes": n}`. After an exception the value is None. A result that is a failure keeps its value if the
    message does not say all of it. Text is then redacted and bounded; data stays as it is.
    """
    kind = type(result)
    form = form_of(result) if kind is dict else None
    if source.sign is None and not may_fail(result, form):
        return Reading(result, source, arguments, result, form)
    if issubclass(kind, Failed):
        # MCP has a form for just this, which whatever is declared of the tool reads.
        blocks = [{"type": "text", "text": text}] if (text := str(result.message).strip()) else []
        given = {"isError": True, "content": blocks, "structuredContent": result.value}
        read = _read(given, source, arguments, terms)
        read.error_type = result.error_type if result.error_type in ERROR_TYPES else read.error_type
        read.value, read.unknown = result.value, result.unknown
    else:
        read = _read(result.value if issubclass(kind, Success) else result, source, arguments, terms)
    if issubclass(kind, Success | Failed):
        read.cost, read.tokens = claimed(result.cost_usd, result.tokens)
    return read


def _read(value: Any, source: Source, arguments: Any, terms: Terms) -> Reading:
    if hasattr(type(value), "__guardrails_envelope__"):
        return Reading(value, source, arguments, None)
    try:
        value, complete = taken(value, terms.limit)
    except Exception as problem:  # the tool has run: whatever its value does, the call has an outcome
        if isinstance(problem, terms.passes):
            raise
        value = problem
    if issubclass(type(value), BaseException):
        from guardrails.core.result.exceptions import failure_of, set_failure

        read, told = Reading(None, source, arguments, None), failure_of(value, arguments, terms.now_ms)
        read.raised = value
        set_failure(read, told, told.error_message)
        return read
    carried, failure = Carried(value), None
    with suppress(Exception):  # an object that cannot be looked at is still a result
        carried = content_of(value)
        runs = not _PROGRAMS.isdisjoint(arguments if hasattr(arguments, "keys") else ())
        by = source._replace(words="program") if runs and source.words == "own" else source
        failure = failure_in(value, carried, by, given_by(arguments), terms.now_ms)
    read = Reading(value, source, arguments, carried.value)
    read.complete = complete
    if failure is not None:
        from guardrails.core.result.exceptions import set_failure

        set_failure(read, failure, value if isinstance(value, str) else carried.text)
    return read
