"""
The envelope: the only thing of a call that the model reads.
"""

from collections.abc import Iterable
from typing import Any, ClassVar, Final, Self

import orjson

from .merged import imitates, imitates_text, with_fields
from .truncation import Rendered
from .truncation import render as render_value
from .types import Denial, ErrorType, NextAction, Outcome, Status


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


class Envelope:
    """
    What happened to one call, in a form that stands alone: state, completeness, retryability, next step.

    Guards shape it in place; after that it is a value. A tool may return one of its own.
    """

    __guardrails_envelope__: ClassVar = True

    # Class attributes are the defaults, so that making one costs only what it says.
    status: Status = "success"
    code: str | None = None
    query_summary: Any = None
    total_matches: int | None = None
    is_complete: bool | None = None
    error_type: ErrorType | None = None
    error_message: str | None = None
    http_status: int | None = None
    errors: list[dict[str, str]] | None = None
    user_facing_hint: str | None = None
    message: str | None = None
    retryable: bool | None = None
    retryable_after_correction: bool | None = None
    retry_after_ms: int | None = None
    max_retries_remaining: int | None = None
    retry_success_probability: float | None = None
    next_action: NextAction | None = None
    next_action_hint: str | None = None
    limit_message: str | None = None
    previous_result: Any = None
    progress: dict[str, Any] | None = None
    rendered: Rendered | None = None
    """The value as text, once that is made; a guard that replaces the value clears it."""
    merged: bool = False
    """Written in the merged form."""
    left_out: frozenset[str] = frozenset()
    """Optional fields that are not written."""
    _value: Any = None

    def __init__(self, status: Status = "success", value: Any = None, **fields: Any) -> None:
        if status != "success":
            self.status = status
        if value is not None:
            self._value = value
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
        envelope = cls()
        if outcome.error_type is not None:
            envelope.status = "error"
            envelope.error_type = outcome.error_type
            envelope.error_message = outcome.error_message
            if outcome.http_status is not None:
                envelope.http_status = outcome.http_status
            if outcome.value is None:
                return envelope
        envelope._value = outcome.value
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
        if denial.retry_after_ms is not None:
            envelope.retry_after_ms = denial.retry_after_ms
        if denial.hint:
            envelope.next_action_hint = denial.hint
        for name, content in denial.details.items():
            setattr(envelope, name, content)
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
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def hint(self, text: str) -> None:
        """
        Add a sentence to the next step.
        """
        self.next_action_hint = f"{self.next_action_hint} {text}" if self.next_action_hint else text

    def to_dict(self) -> dict[str, Any]:
        """
        The fields that are there, in order; the value as the tool gave it.
        """
        return self._fields(self._value)

    def to_json(self) -> str:
        """
        The text for the model.
        """
        if self.merged:
            text = self._merged()
            if text is not None:
                return text
        fields = self._fields(orjson.Fragment(self.render().payload))
        try:
            return orjson.dumps(fields).decode()
        except (TypeError, ValueError):
            # A field that a tool's or guard's own code filled with what JSON cannot say.
            return orjson.dumps(
                {
                    k: v if isinstance(v, orjson.Fragment) else orjson.Fragment(render_value(v).payload)
                    for k, v in fields.items()
                }
            ).decode()

    def _fields(self, value: Any) -> dict[str, Any]:
        own = self.__dict__
        status = self.status
        left_out = self.left_out
        fields: dict[str, Any] = {"status": status}
        for name in _BEFORE_VALUE:
            if name in own and own[name] is not None and name not in left_out:
                fields[name] = own[name]
        if status == "success" or self._value is not None:
            fields["results" if isinstance(self._value, (list, tuple)) else "result"] = value
        # The few fields that are there, in the order of all.
        for name in sorted(own.keys() & _AFTER_VALUE.keys(), key=_AFTER_VALUE.__getitem__):
            if own[name] is not None and name not in left_out:
                if name == "limit_message":
                    fields["limit_reached"] = True
                fields[name] = own[name]
        return fields

    def _merged(self) -> str | None:
        if self.status != "success":
            return None
        value = self._value
        text = self.render().text
        if text is None:
            text = self.render().payload.decode()
        if imitates(value) if isinstance(value, dict) else imitates_text(text):
            return None
        added = self._said()
        if not added:
            return text
        return with_fields(text, added)

    def _said(self) -> dict[str, Any]:
        said: dict[str, Any] = {}
        if self.is_complete is False:
            said["is_complete"] = False
        if self.is_complete is False or self._nudged:
            said["next_action_hint"] = self.next_action_hint
        if self.limit_message is not None:
            said["limit_reached"] = True
            said["limit_message"] = self.limit_message
        return {name: content for name, content in said.items() if content is not None and name not in self.left_out}

    _nudged: bool = False

    def nudge(self, text: str) -> None:
        """
        Add the hint of a nudge: it is said in the merged form too.
        """
        self._nudged = True
        self.hint(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Envelope) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Envelope({self.to_json()})"


_BEFORE_VALUE: Final = FIELDS[1 : FIELDS.index("results")]
_AFTER_VALUE: Final = {name: place for place, name in enumerate(FIELDS) if place >= FIELDS.index("total_matches")}
_SETTABLE: Final = frozenset(FIELDS) - {"status", "results", "result", "limit_reached"}


def optional_fields(kept: Iterable[str] | None) -> frozenset[str]:
    """
    The optional fields that are left out when only *kept* are wanted; None wants all.
    """
    return frozenset() if kept is None else OPTIONAL - frozenset(kept)
