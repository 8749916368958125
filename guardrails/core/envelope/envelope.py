"""
The envelope: the only thing of a call that the model reads.
"""

from collections.abc import Iterable, Mapping
from copy import copy as shallow
from typing import Any, ClassVar, Final, Self

import orjson

from guardrails.core.retries.serving import Judged
from guardrails.core.text.truncation import Rendered
from guardrails.core.text.truncation import render as render_value
from guardrails.core.values.types import Denial, ErrorType, NextAction, Outcome, Status

from .text import fields_of, text_of


FIELDS: Final = (
    "status",
    "code",
    "query_summary",
    "results",
    "result",
    "total_matches",
    "is_complete",
    "error_type",
    "error_message",
    "http_status",
    "errors",
    "user_facing_hint",
    "message",
    "retryable",
    "retryable_after_correction",
    "retry_after_ms",
    "max_retries_remaining",
    "retry_success_probability",
    "next_action",
    "next_action_hint",
    "limit_reached",
    "limit_message",
    "previous_result",
    "previous_result_outdated",
    "progress",
)
"""What an envelope can hold, in the order it is written."""
OPTIONAL: Final = frozenset({"query_summary", "total_matches", "next_action", "next_action_hint", "progress"}) | {
    "max_retries_remaining",
    "retry_success_probability",
    "http_status",
}
"""What a policy's `fields` may leave out."""
UNBOUNDED: Final = 1 << 62
_NONE: Final[frozenset[str]] = frozenset()


class Envelope:
    """
    What happened to one call, in a form that stands alone: state, completeness, retryability, next step.

    Guards shape it in place; after that it is a value. A tool may return one of its own.
    """

    __guardrails_envelope__: ClassVar = True

    __slots__ = (
        "_value",
        "code",
        "error_message",
        "error_type",
        "errors",
        "http_status",
        "is_complete",
        "judged",
        "left_out",
        "limit_message",
        "max_retries_remaining",
        "merged",
        "message",
        "next_action",
        "next_action_hint",
        "nudged",
        "previous_payload",
        "previous_result_outdated",
        "progress",
        "query_summary",
        "rendered",
        "retry_after_ms",
        "retry_success_probability",
        "retryable",
        "retryable_after_correction",
        "status",
        "total_matches",
        "user_facing_hint",
    )

    def __init__(self, status: Status = "success", value: Any = None, **fields: Any) -> None:
        self.status: Status = status
        self._value = value
        self.code: str | None = None
        self.query_summary: Any = None
        self.total_matches: int | None = None
        self.is_complete: bool | None = None
        self.error_type: ErrorType | None = None
        self.error_message: str | None = None
        self.http_status: int | None = None
        self.errors: list[dict[str, str]] | None = None
        self.user_facing_hint: str | None = None
        self.message: str | None = None
        self.retryable: bool | None = None
        self.retryable_after_correction: bool | None = None
        self.retry_after_ms: int | None = None
        self.max_retries_remaining: int | None = None
        self.retry_success_probability: float | None = None
        self.next_action: NextAction | None = None
        self.next_action_hint: str | None = None
        self.limit_message: str | None = None
        self.previous_payload: bytes | None = None
        """The earlier result that a refused repeat gives back, as JSON."""
        self.previous_result_outdated: bool | None = None
        """A call made since may have changed what that result shows."""
        self.progress: dict[str, Any] | None = None
        self.rendered: Rendered | None = None
        """The value as text, once that is made; a guard that replaces the value clears it."""
        self.merged = False
        """Written in the merged form."""
        self.nudged = False
        """The hint is said in the merged form too."""
        self.judged: Judged | None = None
        """What a model was asked about the failure, and said; for the record, not for the reader."""
        self.left_out: frozenset[str] = _NONE
        """Optional fields that are not written."""
        if fields:
            self._set(fields)

    def _set(self, fields: Mapping[str, Any]) -> None:
        for name, content in fields.items():
            if name not in _SETTABLE:
                raise TypeError(f"an envelope has no field `{name}`")
            setattr(self, name, content)

    @classmethod
    def success(cls, value: Any = None, **fields: Any) -> Self:
        """
        What a tool may return to say more than its value: `Envelope.success(rows, total_matches=90, is_complete=False)`.
        """
        return cls("success", value, **fields)

    @classmethod
    def error(cls, error_type: ErrorType, error_message: str, **fields: Any) -> Self:
        """
        What a tool may return for a failure it understands.
        """
        return cls("error", error_type=error_type, error_message=error_message, **fields)

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        """
        The envelope of an outcome before any guard shapes it.
        """
        if outcome.error_type is None:
            return cls("success", outcome.value)
        envelope = cls("error", outcome.value)
        envelope.error_type = outcome.error_type
        envelope.error_message = outcome.error_message
        envelope.http_status = outcome.http_status
        return envelope

    @classmethod
    def refusal(cls, denial: Denial) -> Self:
        """
        The envelope of a call that did not run.
        """
        envelope = cls(denial.status)
        envelope.code = denial.code
        if denial.status == "limit_reached":
            envelope.limit_message = denial.message
        else:
            envelope.message = denial.message
        envelope.retryable = denial.retryable
        envelope.retry_after_ms = denial.retry_after_ms
        envelope.next_action_hint = denial.hint or None
        if denial.details:
            envelope._set({name: content for name, content in denial.details.items() if name in _SETTABLE})
        return envelope

    @property
    def ok(self) -> bool:
        """
        The tool ran and worked.
        """
        return self.status == "success"

    @property
    def value(self) -> Any:
        """
        What the tool gave back.
        """
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = value
        self.rendered = None

    def render(self, max_bytes: int = UNBOUNDED) -> Rendered:
        """
        The value as text of at most *max_bytes*, made once.
        """
        rendered = self.rendered
        if rendered is None or rendered.size > max_bytes:
            rendered = self.rendered = render_value(self._value, max_bytes)
        return rendered

    def copy(self) -> Self:
        """
        A copy that can be shaped without changing this one.
        """
        return shallow(self)

    def hint(self, text: str) -> None:
        """
        Add a sentence to the next step.
        """
        self.next_action_hint = f"{self.next_action_hint} {text}" if self.next_action_hint else text

    def nudge(self, text: str) -> None:
        """
        Add the hint of a nudge: it is said in the merged form too.
        """
        self.nudged = True
        self.hint(text)

    def to_dict(self) -> dict[str, Any]:
        """
        The fields that are there, in order; the value as the tool gave it.
        """
        shown = fields_of(self)
        if self.previous_payload is not None:
            shown["previous_result"] = self.previous_result
        return shown

    @property
    def previous_result(self) -> Any:
        """
        The earlier result that a refused repeat gives back; None where it is not kept.
        """
        return None if self.previous_payload is None else orjson.loads(self.previous_payload)

    def to_json(self) -> str:
        """
        The text for the model.
        """
        return text_of(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Envelope) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Envelope({self.to_json()})"


_SETTABLE: Final = frozenset(FIELDS) - {"status", "results", "result", "limit_reached", "previous_result"}


def optional_fields(kept: Iterable[str] | None) -> frozenset[str]:
    """
    The optional fields that are left out when only *kept* are wanted; None wants all.
    """
    return frozenset() if kept is None else OPTIONAL - frozenset(kept)
