"""
The contents of an envelope.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypedDict, Unpack

from guardrails.core.retries.serving import Judged
from guardrails.core.text.truncation import Rendered
from guardrails.core.text.truncation import render as render_value
from guardrails.core.values.types import ErrorType, NextAction, Status


FIELDS: Final = (
    "status",
    "code",
    "query_summary",
    "results",
    "result",
    "total_matches",
    "is_complete",
    "truncated",
    "original_bytes",
    "sandbox",
    "error_type",
    "error_message",
    "http_status",
    "attempts",
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
"""The fields that an envelope can hold, in the order in which they are written."""
OPTIONAL: Final = frozenset({"query_summary", "total_matches", "next_action", "next_action_hint", "progress"}) | {
    "max_retries_remaining",
    "retry_success_probability",
    "http_status",
}
"""The fields that a policy's `fields` may leave out."""
UNBOUNDED: Final = 1 << 62


class More(TypedDict, total=False):
    """
    Facts that code may add to any result beside its value.
    """

    code: str | None
    query_summary: Any
    total_matches: int | None
    is_complete: bool | None
    sandbox: str | None
    http_status: int | None
    errors: list[dict[str, str]] | None
    user_facing_hint: str | None
    message: str | None
    retryable: bool | None
    retryable_after_correction: bool | None
    retry_after_ms: int | None
    max_retries_remaining: int | None
    retry_success_probability: float | None
    next_action: NextAction | None
    next_action_hint: str | None
    limit_message: str | None
    previous_result_outdated: bool | None
    progress: dict[str, Any] | None


class Fields(More, total=False):
    """
    The same, and the failure.
    """

    error_type: ErrorType | None
    error_message: str | None


SETTABLE: Final = frozenset(Fields.__annotations__)
"""The fields that code may set by name."""
_NONE: Final[frozenset[str]] = frozenset()


class Tried(NamedTuple):
    """
    The facts of a call that the library makes again by itself.
    """

    attempts: int
    again_ms: int | None
    """It makes it once more, after this wait at least; None: it does not."""


class Content:
    """
    The fields of an envelope, and its value as text.
    """

    __slots__ = (
        "_value",
        "code",
        "cut",
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
        "sandbox",
        "status",
        "total_matches",
        "tried",
        "user_facing_hint",
    )

    def __init__(self, status: Status = "success", value: Any = None, **fields: Unpack[Fields]) -> None:
        self.status: Status = status
        self._value = value
        self.code: str | None = None
        self.query_summary: Any = None
        self.total_matches: int | None = None
        self.is_complete: bool | None = None
        self.sandbox: str | None = None
        """The sandbox of a call of a tool of ours: `bwrap`; None without one."""
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
        self.cut: int | None = None
        """The bytes of the whole as JSON, or about as many, of a result that was cut; None: it is as the tool gave it."""
        self.rendered: Rendered | None = None
        """The value as text, once that is made; a guard that replaces the value clears it."""
        self.merged = False
        """Written in the merged form."""
        self.nudged = False
        """The hint is said in the merged form too."""
        self.judged: Judged | None = None
        """The question to a model about the failure, and its answer; for the record, not for the reader."""
        self.tried: Tried | None = None
        """The library may make the call again by itself; None: it does not."""
        self.left_out: frozenset[str] = _NONE
        """Optional fields that are not written."""
        if fields:
            self._set(fields)

    def _set(self, fields: Mapping[str, Any]) -> None:
        for name, content in fields.items():
            if name not in SETTABLE:
                raise TypeError(f"an envelope has no field `{name}`")
            setattr(self, name, content)

    @property
    def attempts(self) -> int:
        """
        The number of calls that the library has made. It repeats one by itself if a policy says so.
        """
        return 1 if self.tried is None else self.tried.attempts

    @property
    def value(self) -> Any:
        """
        The value that the tool gave back.
        """
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = value
        self.rendered = None

    def render(self, max_bytes: int = UNBOUNDED) -> Rendered:
        """
        Returns the value as text of at most *max_bytes*, made once.
        """
        rendered = self.rendered
        if rendered is None or rendered.size > max_bytes:
            rendered = self.rendered = render_value(self._value, max_bytes)
        return rendered
