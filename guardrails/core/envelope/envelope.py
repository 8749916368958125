"""
The envelope: the only thing of a call that the model reads.
"""

from collections.abc import Iterable
from copy import copy as shallow
from dataclasses import replace
from typing import Any, ClassVar, Final, Self, Unpack

import orjson

from guardrails.core.result.kinds import kind_of_name
from guardrails.core.text.truncation import LIMIT, Rendered, leading_of
from guardrails.core.values.types import ERROR_TYPES, Denial, ErrorType, Outcome, Success

from .content import OPTIONAL, SETTABLE, Content, Fields, More, Tried
from .text import fields_of, text_of


_SPOKEN: Final = frozenset({"success", "error", "validation_error"})
_FORMS: Final[dict[str, type]] = {
    **dict.fromkeys(("error_type", "error_message", "user_facing_hint", "message", "next_action_hint"), str),
    **dict.fromkeys(("total_matches", "http_status", "retry_after_ms", "max_retries_remaining"), int),
    **dict.fromkeys(("is_complete", "retryable", "retryable_after_correction"), bool),
    "query_summary": object,
    "errors": list,
}
"""The fields that a tool may say as an envelope, and their types; no number is negative."""


def _is_sound(content: Any) -> bool:
    return (
        content >= 0 if type(content) is int else type(content) is not list or all(type(one) is dict for one in content)
    )


NARROWER: Final = "Ask for a smaller part: a range, a filter or a page."
"""The next step after a result that was cut."""


class Envelope(Content):
    """
    The result of one call, in a form that stands alone: state, completeness, retryability, next step.

    Guards shape it in place; after that it is a value. A tool may return one of its own.
    """

    __guardrails_envelope__: ClassVar = True

    __slots__ = ()

    @classmethod
    def success(cls, value: Any = None, **fields: Unpack[Fields]) -> Self:
        """
        Returns an envelope by which a tool says more than its value: `Envelope.success(rows, total_matches=90,
        is_complete=False)`.
        """
        return cls("success", value, **fields)

    @classmethod
    def error(cls, error_type: ErrorType, error_message: str, **fields: Unpack[More]) -> Self:
        """
        Returns an envelope by which a tool reports a failure that it understands.
        """
        return cls("error", error_type=error_type, error_message=error_message, **fields)

    @classmethod
    def spoken(cls, said: Any) -> Any:
        """
        Returns the envelope that *said* speaks as, an object of a tool that may; anything else as it is.

        It speaks by `status`: `success`, `error` or `validation_error`. Fields that do not have the form of theirs, and those
        that only a chain can know, are data like all others.
        """
        if isinstance(said, Success):
            return replace(said, value=cls.spoken(said.value))
        if type(said) is not dict or type(status := said.get("status")) is not str or status not in _SPOKEN:
            return said
        fields: dict[str, Any] = {}
        data: dict[Any, Any] = {}
        for name, content in said.items():
            form = _FORMS.get(name) if type(name) is str else None
            if form is object or (form is type(content) and _is_sound(content)):
                fields[name] = content
            elif name != "status":
                data[name] = content
        if data.keys() == {"result"} or data.keys() == {"results"}:
            [value] = data.values()
        else:
            value = data or None
        if (kind := fields.get("error_type")) is not None and kind not in ERROR_TYPES:
            fields["error_type"] = kind_of_name(kind) or "other"
        return cls(status, value, **fields)  # type: ignore[arg-type]

    @classmethod
    def of(cls, outcome: Outcome, rendered: Rendered | None = None) -> Self:
        """
        Returns the envelope of an outcome before any guard shapes it; *rendered* is its value as text.
        """
        failed = outcome.error_type is not None
        envelope = cls("error" if failed else "success", outcome.value)
        envelope.rendered = rendered
        if failed:
            envelope.error_type = outcome.error_type
            envelope.error_message = outcome.error_message
            envelope.http_status = outcome.http_status
            envelope.retryable, envelope.max_retries_remaining = outcome.retryable, outcome.retries
        return envelope

    @classmethod
    def refusal(
        cls, denial: Denial, limit_message: str | None = None, *, left_out: frozenset[str] = frozenset()
    ) -> Self:
        """
        Returns the envelope of a call that did not run; *limit_message* names the limit that has ended the session
        meanwhile.
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
        Returns a copy that can be shaped without changing this one.
        """
        return shallow(self)

    def shown(self, rendered: Rendered | None) -> Self:
        """
        Returns a copy of a tool's own envelope, to be shaped; *rendered* is its value as text.
        """
        made = self.copy()
        made.rendered = rendered
        return made

    def limit(self, message: str, hint: str, code: str | None = None) -> None:
        """
        Say that the call has used up a limit, and the next step. The limit is *code*, if nothing else says so.

        No call is left to repeat a failure with.
        """
        if self.next_action == "retry":
            self.unrepeatable()
        self.limit_message = message
        self.code = self.code or code
        self.hint(hint)

    def unrepeatable(self) -> None:
        """
        Say of a failure that the same call is not to be made again. The hint to repeat it goes.
        """
        if self.next_action == "retry":
            self.next_action_hint = None
        self.retryable, self.retry_after_ms = False, None
        self.max_retries_remaining, self.next_action = 0, "give_up"

    def attempted(self, attempts: int, again_ms: int | None = None) -> None:
        """
        Say how often the library has made the call, and after how long it makes it again, None if it does not.
        """
        self.tried = Tried(attempts, again_ms)

    def repeat_refused(self, refusal: "Envelope") -> None:
        """
        Say of a failure that the library did not make the call again, for what *refusal* tells.
        """
        self.attempted(self.attempts)
        self.code, self.limit_message = refusal.code, refusal.limit_message
        self.retryable, self.retry_after_ms = bool(refusal.retryable), refusal.retry_after_ms
        if not self.retryable:
            self.max_retries_remaining, self.next_action = 0, "give_up"
        said = (refusal.message, refusal.next_action_hint)
        self.next_action_hint = " ".join(text for text in ("It was not made again.", *said) if text)

    def cut_to(self, shown: str, original_bytes: int | None) -> None:
        """
        Say that the result is not complete: *shown* of it is there. *original_bytes* is the size of the whole that was
        cut; None says that it was cut before it came.
        """
        self.is_complete = False
        if original_bytes is not None:
            self.cut = original_bytes
        self.nudge(f"The result was cut{shown}. {NARROWER}")

    def close(self, left_out: frozenset[str], progress: dict[str, Any] | None, *, merged: bool) -> None:
        """
        End the shaping: how it is written, without which fields, and what is left of the session.
        """
        self.left_out = left_out
        if merged:
            self.merged = True
        elif progress is not None:
            self.progress = progress

    def give_back(self, payload: bytes, cut: int | None = None) -> None:
        """
        Say what the earlier call brought that a refused call repeats, as JSON, at most 65,536 bytes. *cut* is the size
        of the whole if this was not all.
        """
        self.cut = cut
        self.previous_payload = payload if len(payload) <= LIMIT else leading_of(payload, LIMIT)

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
        Returns the fields that are there, in order; the value as the tool gave it.
        """
        shown = {**fields_of(self)}
        if self.previous_payload is not None:
            shown["previous_result"] = self.previous_result
        return shown

    @property
    def previous_result(self) -> Any:
        """
        The earlier result that a refused repeat gives back; None if it is not kept.
        """
        return None if self.previous_payload is None else orjson.loads(self.previous_payload)

    def to_json(self) -> str:
        """
        Returns the text for the model.
        """
        return text_of(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Envelope) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Envelope({self.to_json()})"


def optional_fields(kept: Iterable[str] | None) -> frozenset[str]:
    """
    Returns the optional fields that are left out when only *kept* are wanted; None wants all.
    """
    return frozenset() if kept is None else OPTIONAL - frozenset(kept)
