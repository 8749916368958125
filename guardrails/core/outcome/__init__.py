"""
The result of an executor, in the library's words: the `Outcome` of a value, an exception or a failure that hides.
"""

from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from guardrails.core.text.collect import LIMIT_BYTES, Bytes, collect, collect_async, decoded
from guardrails.core.values.types import ERROR_TYPES, ErrorType, Failed, Outcome, Success, micro_dollars

from .plain_failures import Speaks, may_fail
from .result_classifier import FailureRule, ResultClassifier


if TYPE_CHECKING:
    from .hidden_failures import Failure

# What only a failure needs is imported by the first one: its patterns take 10 ms to compile.

MAX_COST: Final = 2**53
"""Micro-dollars (nine billion USD): a larger claim counts as this, so that it can be stored anywhere."""
MAX_TOKENS: Final = 2**53
_PLAIN: Final = frozenset({dict, str, list, tuple, int, float, bool, type(None)})
_NAMED: Final = frozenset({"code_error", "other"})
"""Kinds in which the class of an exception says something that its text does not."""

__all__ = [
    "FailureRule",
    "ResultClassifier",
    "collect_async",
    "outcome_of",
    "outcome_of_async",
]


class _Known(NamedTuple):
    """
    The facts by which an outcome is told, beside the result.
    """

    classifier: ResultClassifier | None
    limit: int
    now_ms: int | None
    speaks: Speaks | None
    arguments: Any
    passes: tuple[type[BaseException], ...]


def outcome_of(
    result: object,
    *,
    classifier: ResultClassifier | None = None,
    limit: int = LIMIT_BYTES,
    now_ms: int | None = None,
    speaks: Speaks | None = None,
    arguments: Any = None,
    passes: tuple[type[BaseException], ...] = (),
) -> Outcome:
    """
    Returns the outcome of a value that an executor returned or raised. Raises only exceptions of the types *passes*,
    and those only if an iterator does.

    *result* is a value, a `Success`, a `Failed`, an exception or an `Envelope` (which passes as it is). An iterator
    becomes a list of about *limit* bytes at most, bytes become text or `{"base64": "...", "bytes": n}`. The
    *classifier* says which results are failures. Without a classifier, results that anyone would call a failure are
    failures (`plain_failures`). MCP's `isError: true` always is a failure. By *now_ms*, milliseconds since 1970, a
    `Retry-After` that is a date is understood. By *speaks* and *arguments*, those of the call, it is known whose words
    a text is.

    After an exception the value is None. A result that is a failure keeps its value if the message does not say all of
    it. Text is then redacted and bounded; data stays as it is.
    """
    kind = type(result)
    if classifier is None and kind in _PLAIN and not may_fail(result):
        return Outcome(result)
    known = _Known(classifier, limit, now_ms, speaks, arguments, passes)
    if issubclass(kind, BaseException):
        return _failed(result, known)  # type: ignore[arg-type]
    if issubclass(kind, Success):
        success: Success = result  # type: ignore[assignment]
        return _charged(success, outcome_of(success.value, **known._asdict()))
    try:
        if issubclass(kind, Failed):
            failed: Failed = result  # type: ignore[assignment]
            return _charged(failed, _of_value(failed.value, known, _told(failed, known)))
        return _of_value(result, known)
    except Exception as problem:  # the tool has run: whatever its value does, the call has an outcome
        if isinstance(problem, passes):
            raise
        return _failed(problem, known)


async def outcome_of_async(result: object, **known: Any) -> Outcome:
    """
    Returns the outcome as `outcome_of` does, for executors that may also return an asynchronous iterator; cancellation
    passes through.
    """
    value = result.value if isinstance(result, Success) else result
    if not hasattr(type(value), "__anext__"):
        return outcome_of(result, **known)

    items: AsyncIterator[Any] = value  # type: ignore[assignment]
    try:
        taken, complete = await collect_async(items, known.get("limit", LIMIT_BYTES))
    except Exception as problem:  # a generator that raises half-way has failed
        if isinstance(problem, known.get("passes", ())):
            raise
        return outcome_of(problem, **known)
    outcome = outcome_of(taken, **known)
    outcome.complete = complete
    return _charged(result, outcome) if isinstance(result, Success) else outcome


def _told(failed: Failed, known: _Known) -> "Failure | None":
    from .hidden_failures import failure_in

    message = str(failed.message).strip()
    # MCP has a form for just this, which whatever is declared of the tool reads.
    said = [{"type": "text", "text": message}] if message else []
    failure = failure_in({"isError": True, "content": said, "structuredContent": failed.value}, known.classifier)
    if failure is None:
        return None
    kind = failed.error_type if failed.error_type in ERROR_TYPES else failure.error_type
    return failure._replace(error_type=kind, whole=failed.value is None)


def _of_value(value: Any, known: _Known, failure: "Failure | None" = None) -> Outcome:
    """
    Returns the outcome of *value*; *failure*: what is said of it, so that nobody looks for one.
    """
    kind = type(value)
    if hasattr(kind, "__guardrails_envelope__"):
        if failure is None:
            return Outcome(value)
        value = value.to_dict()

    complete = True
    if issubclass(kind, Bytes):
        value, complete = decoded(value, known.limit)
    elif hasattr(kind, "__next__"):
        items: Iterator[Any] = value
        value, complete = collect(items, known.limit)
    elif hasattr(kind, "__await__") or hasattr(kind, "__anext__"):
        return _not_awaited(value)

    failure = _failure_in(value, known, whole=complete) if failure is None else failure
    if failure is None:
        return Outcome(value, complete=complete)

    from .redaction import SCAN_CHARS, redact
    from .retry_after import wait_in_text, wait_ms

    message = redact(failure.message)
    text = value if isinstance(value, str) else failure.message if failure.whole else None
    if text is not None:
        complete = complete and len(text) <= 2 * SCAN_CHARS
        bare = text.strip()
        shown = redact(text, 2 * SCAN_CHARS, keep_traceback=True)
        if text is value and bare[:1] == "{":
            # An object stays the text that it was: the merged form adds to it.
            value = text if shown == bare else shown
        else:
            value = None if message == bare else shown
    wait = wait_ms(failure.retry_after_s, known.now_ms)
    return Outcome(
        value,
        failure.error_type,
        message,
        failure.http_status,
        wait_in_text(failure.message, known.now_ms) if wait is None else wait,
        complete=complete,
        found=failure.found,
    )


def _failure_in(value: Any, known: _Known, *, whole: bool) -> "Failure | None":
    try:
        if known.classifier is None and not may_fail(value):
            return None

        from .hidden_failures import failure_in

        return failure_in(value, known.classifier, known.speaks, known.arguments, whole=whole)
    except Exception:  # noqa: BLE001  an object that cannot be looked at is still a result
        return None


def _failed(exc: BaseException, known: _Known) -> Outcome:
    from .error_types import diagnosis_of, http_status_of
    from .redaction import redact
    from .retry_after import retry_after_ms_of

    kind, told_by = diagnosis_of(exc, known.arguments)
    message = _said(exc, kind)
    if told_by is not exc and (cause := _said(told_by, kind)) not in message:
        message = f"{message}: {cause}"
    return Outcome(None, kind, redact(message), http_status_of(exc), retry_after_ms_of(exc, known.now_ms))


def _said(exc: BaseException, kind: ErrorType) -> str:
    """
    Returns the text of *exc*, with the name of its class if that says more.
    """
    from .exception_facts import text_of

    text, name = text_of(exc).strip(), type(exc).__name__
    if not text:
        return name
    return f"{name}: {text}" if kind in _NAMED or " " not in text else text


def _not_awaited(value: Any) -> Outcome:
    close = getattr(value, "close", None)
    if close is not None:
        close()
    message = f"the tool returned an unawaited `{type(value).__name__}`; call it through the asynchronous session"
    return Outcome(None, "code_error", message)


def _charged(told: Success | Failed, outcome: Outcome) -> Outcome:
    outcome.cost = _cost(told.cost_usd)
    outcome.tokens = _tokens(told.tokens)
    return outcome


def _cost(usd: float | str | Decimal | None) -> int | None:
    """
    None, which keeps the estimate, for what is no amount: the call has been made, and a claim is no reason to lose it.
    """
    try:
        amount = float(usd)  # type: ignore[arg-type]
        if not amount >= 0:
            return None
        return min(micro_dollars(usd), MAX_COST) if amount * 1e6 < MAX_COST else MAX_COST
    except (TypeError, ValueError, OverflowError):
        return None


def _tokens(count: int | None) -> int | None:
    return min(count, MAX_TOKENS) if isinstance(count, int) and count >= 0 else None
