"""
The envelope: the only thing of a call that the model reads.
"""

from collections.abc import Iterable
from copy import copy as shallow
from typing import Any, ClassVar, Self

import orjson

from guardrails.core.text.truncation import Rendered
from guardrails.core.values.types import Denial, ErrorType, Outcome

from .content import OPTIONAL, SETTABLE, Content
from .text import fields_of, text_of


class Envelope(Content):
    """
    What happened to one call, in a form that stands alone: state, completeness, retryability, next step.

    Guards shape it in place; after that it is a value. A tool may return one of its own.
    """

    __guardrails_envelope__: ClassVar = True

    __slots__ = ()

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
    def of(cls, outcome: Outcome, rendered: Rendered | None = None) -> Self:
        """
        The envelope of an outcome before any guard shapes it; *rendered* is its value as text.
        """
        failed = outcome.error_type is not None
        envelope = cls("error" if failed else "success", outcome.value)
        envelope.rendered = rendered
        if failed:
            envelope.error_type = outcome.error_type
            envelope.error_message = outcome.error_message
            envelope.http_status = outcome.http_status
        return envelope

    @classmethod
    def refusal(
        cls, denial: Denial, limit_message: str | None = None, *, left_out: frozenset[str] = frozenset()
    ) -> Self:
        """
        The envelope of a call that did not run; *limit_message* is what ends the session meanwhile.
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
            envelope._set({name: content for name, content in denial.details.items() if name in SETTABLE})
        if envelope.limit_message is None:
            envelope.limit_message = limit_message
        envelope.left_out = left_out
        return envelope

    @property
    def ok(self) -> bool:
        """
        The tool ran and worked.
        """
        return self.status == "success"

    def copy(self) -> Self:
        """
        A copy that can be shaped without changing this one.
        """
        return shallow(self)

    def shown(self, rendered: Rendered | None) -> Self:
        """
        A copy of what a tool said, to be shaped; *rendered* is its value as text.
        """
        made = self.copy()
        made.rendered = rendered
        return made

    def limit(self, message: str, hint: str, code: str | None = None) -> None:
        """
        Say that the call has used up a limit, and what to do; *code* is what was limited, if nothing else says so.
        """
        self.limit_message = message
        self.code = self.code or code
        self.hint(hint)

    def close(self, left_out: frozenset[str], progress: dict[str, Any] | None, *, merged: bool) -> None:
        """
        End the shaping: how it is written, without which fields, and what is left of the session.
        """
        self.left_out = left_out
        if merged:
            self.merged = True
        elif progress is not None:
            self.progress = progress

    def give_back(self, payload: bytes) -> None:
        """
        Say what the earlier call brought that a refused one repeats, as JSON.
        """
        self.previous_payload = payload

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
        shown = {**fields_of(self)}
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


def optional_fields(kept: Iterable[str] | None) -> frozenset[str]:
    """
    The optional fields that are left out when only *kept* are wanted; None wants all.
    """
    return frozenset() if kept is None else OPTIONAL - frozenset(kept)
