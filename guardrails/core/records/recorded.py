"""
Events, calls and outcomes as records tell them.
"""

from collections.abc import Mapping
from typing import Any, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.similarity import NO_SKETCH
from guardrails.core.prepare import Prepared
from guardrails.core.retries.serving import Advised
from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import Outcome, Problem, ToolCall


Record = Mapping[str, Any]


WRONG: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of a record whose fields are missing, or hold a value that no record has there."""


def no_good(error: Exception, record: object = None) -> SessionError:
    """
    Returns the error to raise if *record*, or one of several, is no record of this library, as *error* shows.
    """
    n, own = (record.get("n"), record.get("session_id")) if isinstance(record, Mapping) else (None, None)
    which = f"the record of event {n!r:.20} of `{own!s:.80}`" if n is not None else "a record"
    said = f"lacks or misstates {error!s:.100}" if isinstance(error, KeyError) else f"is no good: {error!s:.200}"

    return SessionError(f"{which} {said}")


def call_of(record: Record) -> ToolCall:
    """
    Returns the call of *record*.
    """
    problems = tuple(Problem(*problem) for problem in record["problems"])
    places, sketch = record.get("places"), record.get("sketch")
    if sketch is None and any(str(path).startswith("arguments") for path in record.get("erased") or ()):
        sketch = NO_SKETCH
    return ToolCall(
        record["tool"],
        record.get("arguments"),
        record["id"],
        None,
        record["sig"],
        problems,
        places=None if places is None else {guard: tuple(answers) for guard, answers in places.items()},
        sketch=sketch,
    )


def prepared_of(record: Record) -> Prepared:
    """
    Returns the outcome of *record*, with its hashes.
    """
    outcome = Outcome(
        None,
        record["error_type"],
        record["error_message"] or "",
        record["http_status"],
        record["retry_after_ms"],
        cost=record["cost"],
        tokens=record["tokens"],
    )
    own = None
    if record["claims"] is not None:
        retryable, wait_ms, retries = record["claims"]
        own = Envelope(
            "success" if outcome.error_type is None else "error",
            retryable=retryable,
            retry_after_ms=wait_ms,
            max_retries_remaining=retries,
            sandbox=record.get("sandbox"),
        )
    evidence = record["result_hash" if outcome.error_type is None else "result_hash_masked"]
    unknown = record.get("uncertain", False)
    return Prepared(outcome, None, evidence, own, record.get("steady", 0), record.get("empty", 0), unknown)


def advised_of(record: Record) -> Advised | None:
    """
    Returns the model's words on the failure of *record*. Returns None if no model judged it.
    """
    if record.get("model_version") is None:
        return None
    # What only a budget denied, the model had advised.
    retryable = bool(record["retryable"]) or "no_retry" in record
    return Advised(retryable, record["wait_ms"], record["max_retries_remaining"] or 0)
