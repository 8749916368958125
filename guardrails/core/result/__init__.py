"""
The one reading of a result: failed and how, unfinished, empty, an acknowledgement, complete or not, its size, its hashes, its wait.

A result is read once, and every question asks the reading. Carriers are taken off first (`content`): JSON text, a fenced block, the
blocks and the structured content of MCP, a library's result types. So a word that is understood in one is understood in all.

    content        what a result says without its carriers: waiting, done, nothing, news
    failures       failures that hide in it
    kinds          the kinds of failure, as one table
    exceptions     what was raised
    waits          how long the other side asked to wait
    redaction      text that is fit to be read by a model
    completeness   sure signs of more
"""

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from xxhash import xxh3_64_intdigest

from guardrails.core.text.collect import LIMIT_BYTES, Bytes, collect, collect_async, decoded
from guardrails.core.text.room import size_of
from guardrails.core.text.signature import masked_result_hash, result_hash
from guardrails.core.text.truncation import Rendered, render
from guardrails.core.values.types import ERROR_TYPES, Failed, NextAction, Outcome, Success, micro_dollars

from .completeness import Extent, extent_of
from .content import content_of, given_by, is_unfinished, news_in, news_of
from .failures import Failure, Rules, Words, failure_in, may_fail
from .redaction import untraced


if TYPE_CHECKING:
    from collections.abc import Callable

MAX_CLAIM: Final = 2**53
"""Micro-dollars (nine billion USD), and tokens: a larger claim counts as this, so that it can be stored anywhere."""
STEADY: Final = 65_536
"""Bytes of a result of which the news is taken; longer ones are compared as they are."""
_PLAIN: Final = frozenset({dict, str, list, tuple, int, float, bool, type(None)})

__all__ = ["Reading", "Source", "reading_of", "reading_of_async"]


class Source(NamedTuple):
    """
    What is known of the tool whose results are read.
    """

    rules: Rules | None = None
    words: Words = "own"
    more: str = ""
    total: str = ""


NOBODY: Final = Source()


class Reading(Outcome):
    """
    An outcome, and what its content says. Each answer is found when it is first asked for.
    """

    source: Source = NOBODY
    arguments: Any = None
    """Those of the call: what repeats them is no news."""
    rendered: Rendered | None = None
    """The value as the model reads it, once that is made."""

    content: Any
    """The value without its carriers: an object, a list, a scalar, or a text that is no data."""
    unfinished: bool
    """The work goes on: a `status` of waiting, a percentage, or one short line (60 characters) that is read like one."""
    empty: bool
    """It holds something with nothing in it, or says in one short line that nothing was found, and no more. It is a fact of a look only:
    of a call that works the caller does not ask."""
    acknowledges: bool
    """It only says that something was done (`ok`, true, null, `{"success": true}`, ids, what was given), what time it is, or a count of 0:
    an equal one is no evidence."""
    extent: Extent
    """How much of all it is, how many matches there are, and how to go on."""
    size: int
    """Bytes of the value as JSON, estimated from its length, its first and its last row."""
    hash: int
    """64 bits of the result as it is; of a failure without its digits."""
    steady: int
    """32 bits of the news in it: rows in any order; of an object neither what repeats an argument, nor times, durations, ids of the request
    and counts of progress. Of a failure its kind and first words, without digits and arguments."""
    follows: NextAction | None
    """The step that follows a failure of this kind; None after a success, and if the kind is not known."""

    @classmethod
    def like(cls, outcome: Outcome, arguments: Any = None) -> "Reading":
        """
        Returns the reading of an *outcome* that is known already.
        """
        made = cls.of(outcome.value, arguments=arguments)
        made.__dict__.update(vars(outcome))
        return made

    @classmethod
    def of(cls, value: Any, source: Source = NOBODY, arguments: Any = None) -> "Reading":
        """
        Returns the reading of a success.
        """
        made = cls.__new__(cls)
        made.value, made.source, made.arguments = value, source, arguments
        return made

    def __getattr__(self, name: str) -> Any:
        reader = _ANSWERS.get(name)
        if reader is None:
            raise AttributeError(name)
        answer = self.__dict__[name] = reader(self)
        return answer

    @property
    def failed(self) -> bool:
        return self.error_type is not None

    @property
    def is_complete(self) -> bool | None:
        """
        Whether this is all: False on a sure sign of more, of work that goes on and of a cut; None if nothing is known.
        """
        whole = self.complete and (self.rendered is None or self.rendered.complete)
        return self.extent.complete if whole else False


def evidence_of(outcome: Outcome, rendered: Rendered | None) -> bytes:
    """
    Returns the text that tells one outcome from another: the result, else the words of the failure.
    """
    said = f"{outcome.error_type}: {outcome.error_message}"
    return said.encode(errors="replace") if rendered is None else rendered.payload


def _payload(reading: Reading) -> bytes:
    if reading.rendered is None and (not reading.failed or reading.value is not None):
        reading.rendered = render(reading.value)
    return evidence_of(reading, reading.rendered)


def _news(reading: Reading) -> int:
    return (
        2
        if reading.failed
        else news_in(reading.content, given_by(reading.arguments))
        if reading.content not in (None, "")
        else 0
    )


def _hash(reading: Reading) -> int:
    said, rendered = _payload(reading), reading.rendered
    return (
        masked_result_hash(said) if reading.failed or rendered is None else result_hash(said, rendered.original_bytes)
    )


def _steady(reading: Reading) -> int:
    said, given = _payload(reading), given_by(reading.arguments)
    if reading.failed:
        text = untraced((reading.error_message or said.decode(errors="replace"))[:4096])
        for one in sorted((one for one in given if len(one) > 1), key=len, reverse=True):
            text = text.replace(one, "~")
        words = "".join(char for char in text if not char.isdigit())[:120]
        return xxh3_64_intdigest(f"{reading.error_type}: {words}".encode(errors="replace")) & 0xFFFFFFFF or 1
    news = news_of(reading.content, given) if len(said) <= STEADY else {}
    seen = None if news in ({}, reading.content) else orjson.dumps(news, default=str, option=orjson.OPT_NON_STR_KEYS)
    return (reading.hash if seen is None else xxh3_64_intdigest(seen)) & 0xFFFFFFFF or 1


def _follows(reading: Reading) -> NextAction | None:
    from .kinds import follows

    return None if reading.error_type is None else follows(reading.error_type)


_ANSWERS: "Final[dict[str, Callable[[Reading], Any]]]" = {
    "content": lambda reading: content_of(reading.value),
    "unfinished": lambda reading: not reading.failed and is_unfinished(reading.content),
    "news": _news,
    "empty": lambda reading: reading.content in ("", None) or (_news(reading) == 1 and not reading.unfinished),
    "acknowledges": lambda reading: _news(reading) == 0,
    "extent": lambda reading: extent_of(reading.content, reading.source.more, reading.source.total),
    "size": lambda reading: size_of(reading.value) if reading.rendered is None else reading.rendered.original_bytes,
    "hash": _hash,
    "steady": _steady,
    "follows": _follows,
}


def reading_of(
    result: object,
    source: Source = NOBODY,
    *,
    arguments: Any = None,
    now_ms: int | None = None,
    limit: int = LIMIT_BYTES,
    passes: tuple[type[BaseException], ...] = (),
) -> Reading:
    """
    Returns the reading of a value that an executor returned or raised. Raises only exceptions of the types *passes*, and those only if an
    iterator does.

    *result* is a value, a `Success`, a `Failed`, an exception or an `Envelope` (which passes as it is). An iterator becomes a list of about
    *limit* bytes at most, bytes become text or `{"base64": "...", "bytes": n}`. By *now_ms*, milliseconds since 1970, dates of a wait are
    understood. After an exception the value is None. A result that is a failure keeps its value if the message does not say all of it. Text
    is then redacted and bounded; data stays as it is.
    """
    kind = type(result)
    if source.rules is None and kind in _PLAIN and not may_fail(result):
        return Reading.of(result, source, arguments)
    if isinstance(result, Success | Failed):
        # MCP has a form for just this, which whatever is declared of the tool reads.
        blocks = (
            [{"type": "text", "text": str(result.message).strip()}]
            if isinstance(result, Failed) and str(result.message).strip()
            else []
        )
        failed = {"isError": True, "content": blocks, "structuredContent": result.value}
        read = reading_of(
            failed if isinstance(result, Failed) else result.value,
            source,
            arguments=arguments,
            now_ms=now_ms,
            limit=limit,
            passes=passes,
        )
        if isinstance(result, Failed):
            read.error_type = result.error_type if result.error_type in ERROR_TYPES else read.error_type
            read.value = None if result.value is None else result.value
        read.cost, read.tokens = (
            _cost(result.cost_usd),
            min(result.tokens, MAX_CLAIM) if isinstance(result.tokens, int) and result.tokens >= 0 else None,
        )
        return read
    try:
        if not isinstance(result, BaseException):
            return _of_value(result, Reading.of(result, source, arguments), now_ms, limit)
        problem = result
    except Exception as raised:  # the tool has run: whatever its value does, the call has an outcome
        if isinstance(raised, passes):
            raise
        problem = raised
    return _raised(problem, Reading.of(None, source, arguments), now_ms)


async def reading_of_async(result: object, source: Source = NOBODY, **known: Any) -> Reading:
    """
    Returns the reading as `reading_of` does, for executors that may also return an asynchronous iterator; cancellation passes through.
    """
    value = result.value if isinstance(result, Success) else result
    if not hasattr(type(value), "__anext__"):
        return reading_of(result, source, **known)
    items: AsyncIterator[Any] = value  # type: ignore[assignment]
    try:
        taken, complete = await collect_async(items, known.get("limit", LIMIT_BYTES))
    except Exception as problem:  # a generator that raises half-way has failed
        if isinstance(problem, known.get("passes", ())):
            raise
        return reading_of(problem, source, **known)
    read = reading_of(
        Success(taken, result.cost_usd, result.tokens) if isinstance(result, Success) else taken, source, **known
    )
    read.complete = complete
    return read


def _of_value(value: Any, read: Reading, now_ms: int | None, limit: int) -> Reading:
    kind = type(value)
    if hasattr(kind, "__guardrails_envelope__"):
        return read
    if issubclass(kind, Bytes):
        read.value, read.complete = decoded(value, limit)
    elif hasattr(kind, "__next__"):
        read.value, read.complete = collect(value, limit)
    elif hasattr(kind, "__await__") or hasattr(kind, "__anext__"):
        getattr(value, "close", lambda: None)()
        message = f"the tool returned an unawaited `{kind.__name__}`; call it through the asynchronous session"
        return _fails(read, Failure("code_error", message, whole=True))
    try:
        closer = read.source.rules is not None or may_fail(read.value)
        given = given_by(read.arguments)
        found = (
            failure_in(read.value, read.content, read.source.rules, read.source.words, given, now_ms)
            if closer
            else None
        )
    except Exception:  # noqa: BLE001  an object that cannot be looked at is still a result
        found = None
    return read if found is None else _fails(read, found)


def _fails(read: Reading, failure: Failure) -> Reading:
    from .kinds import passes
    from .redaction import SCAN_CHARS, redact

    message, value = redact(failure.message), read.value
    if isinstance(value, str) or failure.whole:
        text = value if isinstance(value, str) else failure.message
        shown = redact(text, 2 * SCAN_CHARS, keep_traceback=True)
        read.complete = read.complete and len(text) <= 2 * SCAN_CHARS
        # An object stays the text that it was: the merged form adds to it.
        same = text is value and text.lstrip()[:1] == "{" and shown == text.strip()
        read.value = text if same else None if message == text.strip() else shown
    read.error_type, read.error_message, read.http_status = failure.kind, message, failure.status
    read.retry_after_ms, read.retries = failure.wait_ms, failure.retries
    read.retryable = passes(failure.kind, failure.message) if failure.retryable is None else failure.retryable
    return read


def _raised(exc: BaseException, read: Reading, now_ms: int | None) -> Reading:
    from .exceptions import chain, diagnosis_of, message_of, status_of
    from .waits import wait_of

    kind, teller = diagnosis_of(exc, read.arguments)
    status = next((found for link in chain(exc) if (found := status_of(link)) is not None), None)
    return _fails(
        read, Failure(kind, message_of(exc, kind, teller), whole=True, status=status, wait_ms=wait_of(exc, now_ms))
    )


def _cost(usd: float | str | Decimal | None) -> int | None:
    """
    None, which keeps the estimate, for what is no amount: the call has been made, and a claim is no reason to lose it.
    """
    try:
        amount = float(usd)  # type: ignore[arg-type]
        return (
            None if not amount >= 0 else min(micro_dollars(usd), MAX_CLAIM) if amount * 1e6 < MAX_CLAIM else MAX_CLAIM
        )  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
