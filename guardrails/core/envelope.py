"""
The envelope: the only thing of a call that the model reads.
"""

import json

from collections.abc import Mapping
from contextlib import suppress
from copy import copy as shallow
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, ClassVar, Final, Literal, Self, cast

import orjson

from guardrails.core.result.completeness import NARROWER
from guardrails.core.result.content import LINE
from guardrails.core.result.kinds import kind_of
from guardrails.core.text.control import cleaned, sanitise
from guardrails.core.text.truncation import Rendered
from guardrails.core.text.truncation import render as render_value
from guardrails.core.values.errors import GuardrailsError
from guardrails.core.values.types import ERROR_TYPES, STATUSES, Denial, ErrorType, NextAction, Outcome, Status, Success


Form = Literal["nested", "merged", "quiet"]
FORMS: Final = ("nested", "merged", "quiet")
_SPOKEN: Final = frozenset({"success", "error", "validation_error"})
_ECHO: Final = frozenset({"result", "results", "query_summary"})
"""Fields that a reader has already who reads them beside the result and the call."""
_SCALARS: Final = frozenset({bool, int, float, type(None)})
_TRIES: Final = frozenset({"max_retries_remaining", "retry_success_probability"})
"""Fields that say nothing of what is not to be tried again."""


_OURS: Final[dict[str, Any]] = {"by": None}
"""Of a field that the model reads if it is set: the type by which a tool may say it too. None: only code does."""
_TEXT, _INT, _BOOL, _LIST, _ANY = ({"by": kind} for kind in (str, int, bool, list, object))
_OPTIONAL: Final = {"optional": True}
"""Of a field that a policy's `fields` may leave out."""


@dataclass(slots=True, eq=False, repr=False)
class Envelope:
    """
    The result of one call, in a form that stands alone: state, completeness, retryability, next step.

    Its fields are written in this order. Guards shape it in place; after that it is a value. A tool may return one of its own.
    """

    __guardrails_envelope__: ClassVar = True

    status: Status = field(default="success", metadata=_OURS)
    _: KW_ONLY
    code: str | None = field(default=None, metadata=_OURS)
    query_summary: Any = field(default=None, metadata=_ANY | _OPTIONAL)
    value: Any = field(default=None, kw_only=False, metadata=_OURS)
    """What the tool gave back; a list is written as `results`, anything else as `result`."""
    total_matches: int | None = field(default=None, metadata=_INT | _OPTIONAL)
    is_complete: bool | None = field(default=None, metadata=_BOOL)
    sandbox: str | None = field(default=None, metadata=_OURS)
    """The sandbox of a call of a tool of ours: `bwrap`; None without one."""
    error_type: ErrorType | None = field(default=None, metadata=_TEXT)
    error_message: str | None = field(default=None, metadata=_TEXT)
    http_status: int | None = field(default=None, metadata=_INT | _OPTIONAL)
    tries: int | None = field(default=None, metadata=_OURS)
    """Calls that the library has made, if it has repeated one by itself; written as `attempts`."""
    errors: list[dict[str, str]] | None = field(default=None, metadata=_LIST)
    user_facing_hint: str | None = field(default=None, metadata=_TEXT)
    message: str | None = field(default=None, metadata=_TEXT)
    retryable: bool | None = field(default=None, metadata=_BOOL)
    retryable_after_correction: bool | None = field(default=None, metadata=_BOOL)
    retry_after_ms: int | None = field(default=None, metadata=_INT)
    max_retries_remaining: int | None = field(default=None, metadata=_INT | _OPTIONAL)
    retry_success_probability: float | None = field(default=None, metadata=_OURS | _OPTIONAL)
    next_action: NextAction | None = field(default=None, metadata=_OURS | _OPTIONAL)
    next_action_hint: str | None = field(default=None, metadata=_TEXT | _OPTIONAL)
    limit_message: str | None = field(default=None, metadata=_OURS)
    """`limit_reached` is written before it."""
    previous_payload: bytes | None = field(default=None, metadata=_OURS)
    """The earlier result that a refused repeat gives back, as JSON; written as `previous_result`."""
    previous_result_outdated: bool | None = field(default=None, metadata=_OURS)
    """A call made since may have changed what that result shows."""
    progress: dict[str, Any] | None = field(default=None, metadata=_ANY | _OPTIONAL)

    form: Form | None = field(default=None, init=False)
    """How it is written; None: nested, unless a host has a form of its own."""
    left_out: frozenset[str] = field(default=frozenset(), init=False)
    """Optional fields that are not written."""
    own: Mapping[str, Any] = field(default_factory=dict, init=False)
    """The words of a tool that made it."""
    nudged: bool = field(default=False, init=False)
    """The hint is said beside a result that stays as it is, too."""
    cut: bool = field(default=False, init=False)
    """The result was cut here; else it is as the tool gave it."""
    judged: str | None = field(default=None, init=False)
    """The model that was asked about the failure; for the record, not for the reader."""
    raised: BaseException | None = field(default=None, init=False)
    """The exception of the tool that it is of."""
    rendering: tuple[Any, Rendered] | None = field(default=None, init=False)
    """A value, and the text of it."""

    @classmethod
    def success(cls, value: Any = None, **fields: Any) -> Self:
        """
        Returns an envelope by which a tool says more than its value: `Envelope.success(rows, total_matches=90,
        is_complete=False)`.
        """
        return cls("success", value, **fields)

    @classmethod
    def error(cls, error_type: ErrorType, error_message: str, **fields: Any) -> Self:
        """
        Returns an envelope by which a tool reports a failure that it understands.
        """
        return cls("error", error_type=error_type, error_message=error_message, **fields)

    @classmethod
    def spoken(cls, result: Any) -> Any:
        """
        Returns the envelope that *result* speaks as, an object of a tool that may; anything else as it is.

        It speaks by `status`: `success`, `error` or `validation_error`. Fields that do not have the form of theirs, and those
        that only a chain can know, are data like all others.
        """
        if isinstance(result, Success):
            return replace(result, value=cls.spoken(result.value))
        if type(result) is not dict or type(status := result.get("status")) is not str or status not in _SPOKEN:
            return result
        words = {name: content for name, content in result.items() if _BY.get(name) in (object, type(content))}
        data = {name: content for name, content in result.items() if name != "status" and name not in words}
        alone = data.keys() == {"result"} or data.keys() == {"results"}
        if (kind := words.get("error_type")) is not None and kind not in ERROR_TYPES:
            words["error_type"] = kind_of(kind) or "other"
        return cls(status, *data.values(), **words) if alone else cls(status, data or None, **words)  # type: ignore[arg-type]

    @classmethod
    def of(cls, outcome: Outcome, rendered: Rendered | None = None) -> Self:
        """
        Returns the envelope of an outcome before any guard shapes it; *rendered* is its value as text.
        """
        envelope = cls("success" if outcome.error_type is None else "error", outcome.value)
        envelope.rendering = None if rendered is None else (outcome.value, rendered)
        if outcome.error_type is not None:
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
        envelope = cls(
            denial.status, code=denial.code, retryable=denial.retryable, retry_after_ms=denial.retry_after_ms
        )
        if denial.status == "limit_reached":
            envelope.limit_message = denial.message
        else:
            envelope.message, envelope.limit_message = denial.message, limit_message
        envelope.next_action_hint = denial.hint or None
        for name, content in denial.details.items():
            if name in _SETTABLE:
                setattr(envelope, name, content)
        envelope.left_out = left_out
        return envelope

    @property
    def ok(self) -> bool:
        """
        The tool ran and worked.
        """
        return self.status == "success"

    @property
    def attempts(self) -> int:
        """
        Calls that the library has made. It repeats one by itself if a policy says so.
        """
        return self.tries or 1

    @property
    def limit_reached(self) -> bool | None:
        """
        The call has used up a limit, or came after it.
        """
        return None if self.limit_message is None else True

    @property
    def previous_result(self) -> Any:
        """
        The earlier result that a refused repeat gives back; None if it is not kept.
        """
        return None if self.previous_payload is None else orjson.loads(self.previous_payload)

    @property
    def rendered(self) -> Rendered | None:
        """
        The value as text, if that is made.
        """
        made = self.rendering
        return made[1] if made is not None and made[0] is self.value else None

    def render(self, max_bytes: int = 1 << 62) -> Rendered:
        """
        Returns the value as text of at most *max_bytes*, made once.
        """
        made = self.rendering
        if made is None or made[0] is not self.value or len(made[1].payload) > max_bytes:
            made = self.rendering = self.value, render_value(self.value, max_bytes)
        return made[1]

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
        made.rendering = None if rendered is None else (made.value, rendered)
        own = {name: getattr(made, name) for name in _SETTABLE if name not in ("sandbox", "tries")}
        made.own = {name: word for name, word in own.items() if word is not None}
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

    def repeat_refused(self, refusal: "Envelope") -> None:
        """
        Say of a failure that the library did not make the call again, for what *refusal* tells.
        """
        if not refusal.retryable:
            self.unrepeatable()
        self.code, self.limit_message = refusal.code, refusal.limit_message
        self.retryable, self.retry_after_ms = bool(refusal.retryable), refusal.retry_after_ms
        parts = ("It was not made again.", refusal.message, refusal.next_action_hint)
        self.next_action_hint = " ".join(filter(None, parts))

    def cut_off(self, *, here: bool) -> None:
        """
        Say that the result is not complete. If it was cut *here*, the value itself tells how much of it there is.
        """
        self.is_complete, self.cut = False, here
        self.nudge(NARROWER if here else f"Only its beginning came. {NARROWER}")

    def close(self, left_out: frozenset[str], progress: dict[str, Any] | None, form: Form | None) -> None:
        """
        End the shaping: without which fields it is written, what is left of the session, and in which *form*. A tool's own progress
        stays beside the session's, as `tool`.
        """
        self.left_out, self.form = left_out, form
        tool = self.own.get("progress")
        self.progress = progress if tool is None else tool if progress is None else {**progress, "tool": tool}

    def hint(self, text: str) -> None:
        """
        Add a sentence to the next step.
        """
        before = self.next_action_hint
        self.next_action_hint = text if not before else before if text in before else f"{before} {text}"

    def nudge(self, text: str) -> None:
        """
        Add a hint that is said beside a result that stays as it is, too.
        """
        self.nudged = True
        self.hint(text)

    def fields(self) -> dict[str, Any]:
        """
        Returns the fields that say something, in order; an earlier result as it is kept.
        """
        kind = type(self.value)
        names = _NAMES[kind is not dict and issubclass(kind, list | tuple)]
        shown = {name: word for name, word in zip(names, _read(self), strict=True) if word is not None}
        if self.limit_message is not None:
            shown["limit_reached"] = True
        short = len(self.value) <= LINE and self.value[:1] not in ("{", "[") if kind is str else kind in _SCALARS
        if short and self.is_complete and "is_complete" not in self.own:
            # That it is all needs not be said of a scalar, or of one short line.
            del shown["is_complete"]
        left_out = self.left_out
        if self.retryable is False:
            # There is no question left.
            left_out |= _TRIES if self.retryable_after_correction else _TRIES | {"retryable_after_correction"}
        for name in left_out:
            shown.pop(name, None)
        return shown

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the same with the earlier result read; the value as the tool gave it.
        """
        shown = self.fields()
        return shown if self.previous_payload is None else {**shown, "previous_result": self.previous_result}

    def notes(self) -> dict[str, Any]:
        """
        Returns what is said beside a result that stays as it is: of a failure all but the result, of a success a hint, that there is more,
        a limit that is used up or, in the quiet form, near, and the words of a tool that made the envelope.
        """
        if not self.ok:
            return {name: value for name, value in self.fields().items() if name not in _ECHO and name != "progress"}
        near = self.form == "quiet" and self.progress is not None and len(self.progress) > 1
        names = {
            *(name for name in self.own if name != "is_complete" and name not in _ECHO),
            *(("is_complete", "next_action_hint") if self.is_complete is False else ()),
            *(("next_action_hint",) if self.nudged else ()),
            *(("limit_reached", "limit_message") if self.limit_message is not None else ()),
            *(("progress",) if near else ()),
        }
        return {name: value for name, value in self.fields().items() if name in names} if names else {}

    def to_json(self, form: Form | None = None) -> str:
        """
        Returns the text for the model, in *form* or its own.
        """
        form = form or self.form
        text = None if form is None else merged(self) if form == "merged" else quiet(self) if form == "quiet" else None
        return nested(self) if text is None else text

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Envelope) and self.to_json() == other.to_json()

    def __repr__(self) -> str:
        return f"Envelope({self.to_json()})"


_FIELDS: Final = {each.name: each.metadata for each in fields(Envelope) if each.metadata}
_KEYS: Final = [name for one in _FIELDS for name in (("limit_reached", one) if one == "limit_message" else (one,))]
_WRITTEN: Final = {"tries": "attempts", "previous_payload": "previous_result"}
_NAMES: Final = [[{**_WRITTEN, "value": value}.get(name, name) for name in _KEYS] for value in ("result", "results")]
# That a limit is reached is written where there is a message of it.
_read: Final = attrgetter(*("limit_message" if name == "limit_reached" else name for name in _KEYS))
_BY: Final[dict[Any, type]] = {name: form["by"] for name, form in _FIELDS.items() if form.get("by")}
_SETTABLE: Final = tuple(name for name in _FIELDS if name not in ("status", "value", "previous_payload"))
FIELDS: Final = tuple(dict.fromkeys(name for pair in zip(*reversed(_NAMES), strict=True) for name in pair))
"""The fields that an envelope can hold, in the order in which they are written."""
OPTIONAL: Final = frozenset(name for name, form in _FIELDS.items() if form.get("optional"))
"""The fields that a policy's `fields` may leave out."""


class CallDenied(GuardrailsError):
    """
    A call was refused and the caller wanted the tool's own value; *envelope* says why.
    """

    def __init__(self, envelope: Envelope) -> None:
        super().__init__(f"{envelope.code}: {envelope.message or envelope.status}")
        self.envelope = envelope


class CallFailed(GuardrailsError):
    """
    A tool ran without an exception, but its result is a failure, and the caller wanted the tool's own value; *envelope*
    says which.
    """

    def __init__(self, envelope: Envelope) -> None:
        text = envelope.error_message or envelope.message or envelope.status
        super().__init__(f"{envelope.error_type or envelope.code or envelope.status}: {text}")
        self.envelope = envelope


MAX_BYTES: Final = 8_192
"""Bytes of a message beside the result and the earlier one that a refusal gives back."""
MARK: Final = "[guardrails] "
"""The beginning of a line of ours below a tool's own text."""


def nested(envelope: "Envelope") -> str:
    """
    Returns *envelope* as an object, in which the result is one field.
    """
    shown, size = envelope.fields(), 0
    if envelope.value is not None:
        payload = envelope.render().payload
        size = len(payload)
        shown["results" if "results" in shown else "result"] = orjson.Fragment(payload)
    if envelope.previous_payload is not None:
        size += len(envelope.previous_payload)
        shown["previous_result"] = orjson.Fragment(envelope.previous_payload)
    return cleaned(_written(shown, size).decode())


def merged(envelope: "Envelope") -> str | None:
    """
    Returns the tool's own text with what *envelope* has to say spliced in. Returns None if it must be nested: a refusal, a failure that
    is no object, an object that says of itself what only we say, or that has a field of ours.
    """
    if envelope.status not in STATUSES[:2]:
        return None
    text, strict = _own(envelope)
    # Behind marks that nobody sees, spaces of any kind and a byte order mark, it begins like an object.
    opened = next((one for one in text if one.isprintable() and not one.isspace()), "") == "{"
    if (opened and (not strict or imitates(text))) or not (opened or envelope.ok):
        return None
    notes = _noted({name: one for name, one in envelope.notes().items() if name != "status"})
    if not notes:
        return text
    if opened and not {name for name, _ in _members(text)}.isdisjoint(notes):
        return None
    return with_fields(text if strict else json.dumps(text, ensure_ascii=False), notes)


def quiet(envelope: "Envelope") -> str | None:
    """
    Returns the tool's own text, and below it what *envelope* has to say. Returns None for what is no success, or has a mark of ours.
    """
    text = _own(envelope)[0] if envelope.ok else MARK
    if MARK in text:
        return None
    block = block_of(envelope)
    return text if block is None else f"{text}\n\n{block}"


def block_of(envelope: "Envelope") -> str | None:
    """
    Returns the line that is read beside a result which stays as it is; None if there is nothing to say.
    """
    notes = envelope.notes()
    return f"{MARK}{orjson.dumps(_noted(notes)).decode()}" if notes else None


def _own(envelope: "Envelope") -> tuple[str, bool]:
    """
    Returns the tool's own text, and whether it is JSON for every parser.
    """
    rendered = envelope.render()
    if rendered.text is None:
        return cleaned(rendered.payload.decode()), True
    text = sanitise(rendered.text)
    return text, text == rendered.text and is_strict(text)


def _noted(fields: dict[str, Any]) -> dict[str, Any]:
    """
    Returns *fields*, cleaned and within bounds.
    """
    clean = {name: sanitise(one) if isinstance(one, str) else one for name, one in fields.items()}
    return cast("dict[str, Any]", orjson.loads(_written(clean)))


def _written(shown: dict[str, Any], size: int = 0) -> bytes:
    """
    Returns the fields *shown* as JSON, in at most `MAX_BYTES` bytes beside *size* bytes of what is JSON already. Of more, each field is cut to
    its share.
    """
    try:
        written = orjson.dumps(shown)
    except (TypeError, ValueError):  # a tool's or guard's own code may fill a field with what JSON cannot say
        written = b""
    if 0 < len(written) <= MAX_BYTES + size:
        return written
    # The names take the rest.
    share = (MAX_BYTES - 1_024) // len(shown)
    return orjson.dumps({name: _cut(content, share) for name, content in shown.items()})


def _cut(content: Any, share: int) -> Any:
    return content if isinstance(content, orjson.Fragment) else orjson.Fragment(render_value(content, share).payload)


CLAIMS: Final = ("retryable", "retry_after_ms", "max_retries_remaining", "is_complete", "next_action_hint")
"""Fields by which a tool's own object would speak as an envelope."""
LIMITS: Final = "limit_"
"""The beginning of fields that tell of a limit."""

# An object is a tuple of its members, of two with one name too: a reader may take either. Numbers stay text: nobody reads them here, and
# Python refuses integers of more than 4,300 digits.
_decode = json.JSONDecoder(object_pairs_hook=tuple, parse_int=str, parse_float=str).decode
_SPACE: Final = " \t\n\r"


def _members(text: str) -> tuple[tuple[str, Any], ...]:
    """
    Returns the top-level members of the JSON object *text*; none of text that is no object.
    """
    with suppress(ValueError, RecursionError):
        made = _decode(text)
        return made if isinstance(made, tuple) else ()
    return ()


def imitates(text: str) -> bool:
    """
    Returns whether the JSON object *text* could be taken for an envelope of ours; text that is no object imitates nothing.
    """
    return any(
        name in CLAIMS or name.startswith(LIMITS) or (name == "status" and isinstance(value, str) and value in STATUSES)
        for name, value in _members(text)
    )


def is_strict(text: str) -> bool:
    """
    Returns whether *text* is JSON for every parser. It has no NaN, no half of a surrogate pair, no number beyond a
    double, and at most 254 containers within each other.
    """
    with suppress(TypeError, ValueError):
        return bool(orjson.dumps(orjson.loads(text)))
    return False


def with_fields(text: str, added: Mapping[str, Any]) -> str:
    """
    Returns *text*, a JSON object, with the members *added* before its last brace, and a value that is no object as
    `{"result": <value or text>, ...}`. An object that has some of the same names is written anew.
    """
    new = json.dumps(added, ensure_ascii=False)[1:-1]
    try:
        value = _decode(text)
        if isinstance(value, tuple) and not added.keys().isdisjoint(dict(value)):
            return json.dumps({**json.loads(text), **added}, ensure_ascii=False)
    except (ValueError, RecursionError):
        value, text = None, json.dumps(text, ensure_ascii=False)
    if not isinstance(value, tuple):
        return f'{{"result": {text.strip(_SPACE)}, {new}}}'
    head, brace, rest = text.rpartition("}")
    body = head.rstrip(_SPACE)
    return f"{body}{', ' if value else ''}{new}{head[len(body) :]}{brace}{rest}"


def limit_fields(text: str, message: str | None = None, *, max_tool_turns: int | None = None) -> str:
    """
    Returns the JSON text of a tool's result with `limit_reached` and `limit_message` added, all other fields kept. The *message* says
    which limit; with *max_tool_turns* it is that of B5: `Tool call limit reached (3). Stopping tool loop.`

    A value that is no object becomes `{"result": <value or text>, ...}`. Without a limit the text stays as it is.
    """
    if message is None and max_tool_turns is not None:
        message = f"Tool call limit reached ({max_tool_turns}). Stopping tool loop."
    return text if message is None else with_fields(text, {"limit_reached": True, "limit_message": message})
