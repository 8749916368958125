"""
The steps of a case, as pydantic reads them: the key that names the kind of a step says which others go with it.
"""

import dataclasses
import typing

from functools import lru_cache, reduce
from operator import or_
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, Self

from annotated_types import Ge, Le, MinLen
from pydantic import BaseModel, ConfigDict, Discriminator, PrivateAttr, Tag, TypeAdapter, create_model, model_validator
from typing_extensions import TypedDict

from guardrails.core.envelope.envelope import FIELDS
from guardrails.core.tools.tool import REPEATS, Tool
from guardrails.core.values.types import ErrorType, Status
from guardrails.core.values.units import DURATION_PATTERN, ByteSize, Duration, FromText, duration_ms
from guardrails.policy.file import quoted, suggestion


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MAX_STEPS: Final = 100_000
"""Repetitions of a block, and steps of a whole case, repetitions counted."""
MAX_RESULT: Final = 16 << 20
"""Bytes of a result that is only described by its size."""
_STRICT: Final = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Moment(NamedTuple):
    """
    A point on a case's clock.
    """

    ms: int
    relative: bool
    """Counted from the step before; else from the start of the case."""


def moment(value: object) -> Moment:
    """
    Returns *value* as a point in time: `+5s` after the step before, `65s` or a number of seconds after the start.

    Raises ValueError for anything else.
    """
    if isinstance(value, str) and value.startswith("+"):
        return Moment(duration_ms(value[1:]), relative=True)
    try:
        return Moment(duration_ms(value), relative=False)
    except ValueError as error:
        wanted = "not a time: write `+5s` (after the step before), or 65s (after the start)"
        raise ValueError(f"{wanted}, {str(error).rpartition(', ')[2]}") from None


_TIME: Final = [
    {"type": "number", "minimum": 0},
    {"type": "string", "pattern": DURATION_PATTERN.replace("^", r"^\+?", 1)},
]
At = Annotated[Any, FromText(moment, {"anyOf": _TIME})]
Whole = Annotated[int, Ge(0)]
Times = Annotated[int, Ge(1), Le(MAX_STEPS)]
Dollars = Annotated[float, Ge(0), Le(1e9)]
Text = Annotated[str, MinLen(1)]
Said = Literal["allow", "nudge", "pending", "deny"]


class Failed(BaseModel):
    """
    The failure of a call.
    """

    model_config = _STRICT
    type: ErrorType
    message: str = ""
    http_status: Annotated[int, Ge(100), Le(599)] | None = None
    retry_after: Duration | None = None
    """The wait that the server asked for."""


class Step(BaseModel):
    """
    One step.
    """

    model_config = _STRICT
    at: At = None
    """When: `+5s` after the step before, or seconds after the start. Absent: at the time of the step before."""
    _line: int = PrivateAttr(0)

    @property
    def line(self) -> int:
        """
        Where it stands in its file, from 1.
        """
        return self._line


class End(Step):
    """
    How a call ends, and the envelope that the model is to read.
    """

    result: Any = "ok"
    """The result that the tool gives back; `ok` if the key is left out."""
    result_bytes: Annotated[ByteSize, Ge(2), Le(MAX_RESULT)] | None = None
    """In place of a result: a text of that many bytes of JSON."""
    error: ErrorType | Failed | None = None
    """In place of a result: the call fails."""
    cost_usd: Dollars | None = None
    """The real cost of the call. If the key is left out, the estimate counts."""
    tokens: Whole | None = None
    """The tokens that the call really used."""
    takes: Duration = 0
    """The time that the call runs."""
    status: Status | None = None
    """Of the envelope."""
    envelope: dict[str, Any] | None = None
    """Fields of the envelope; maps are compared by the keys that are named here, null is a field that is not there."""

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        ends = [key for key in ("result", "result_bytes", "error", "pending", "lost") if key in self.model_fields_set]
        if len(ends) > 1:
            raise ValueError(f"a call ends in one way: {quoted(ends[0])} or {quoted(ends[1])}")
        unknown = next((field for field in self.envelope or () if field not in FIELDS), None)
        if unknown is not None:
            near = suggestion(unknown, FIELDS) or f", known here: {', '.join(map(quoted, FIELDS))}"
            raise ValueError(f"unknown key {quoted(unknown)} of `envelope`{near}")
        return self


class Call(End):
    """
    A tool is called.
    """

    call: Text
    arguments: dict[str, Any] | str = {}
    """A map, or the text that the model wrote."""
    id: Text | None = None
    pending: Literal[True] | None = None
    """In place of a result: the call still runs."""
    lost: Literal[True] | None = None
    """In place of a result: nobody learns how the call ended, and its admission is given up."""
    expect: Said = "allow"
    code: Text | None = None
    """Of the denial that the model reads, or of a nudge."""
    observed: Text | list[Text] = []
    """The codes of all that guards in observe mode would have said; absent: none."""

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        if self.expect != "allow" and self.code is None:
            raise ValueError(f"missing key `code`: which guard is to {self.expect}, and why")
        if self.expect == "allow" and self.code is not None:
            raise ValueError("`code` needs `expect: deny`, `pending` or `nudge`; of an observed one, write `observed`")
        known = {"status", "envelope"} if self.expect in ("deny", "pending") else set()
        early = self.model_fields_set & {"takes", "cost_usd", "tokens", "status", "envelope"} - known
        if early and (self.pending or self.lost):
            advice = "write it at its `settle`" if self.pending else "it has no end"
            raise ValueError(
                f"{quoted(min(early))} of a {'pending' if self.pending else 'lost'} call is not known: {advice}"
            )
        return self


class Settle(End):
    """
    The pending call of that id ends.
    """

    settle: Text


class Turn(Step):
    """
    A model response with so many tool calls came; 0: unknown how many.
    """

    turn: Whole


class Response(BaseModel):
    """
    A model response that is charged; its turn begins.
    """

    model_config = _STRICT
    tokens: Whole | None = None
    """Left out if the response did not say what it used."""
    cost_usd: Dollars | None = None
    """Absent: its price is unknown, which ends a session with a cost limit unless `on_unpriced` is `warn`."""
    calls: Whole = 0
    """Tool calls of the response; 0: unknown."""
    begins_turn: bool = True
    """False: more is charged for the same response."""


class Charge(Step):
    """
    A model response is charged.
    """

    charge: Response


class Request(Step):
    """
    So many model requests start.
    """

    request: Times


class Wait(Step):
    """
    Nothing but time passes.
    """

    wait: Duration


class Amounts(TypedDict, total=False):
    """
    The amounts by which the session may use more.
    """

    __pydantic_config__ = _STRICT  # type: ignore[misc]
    max_calls: Whole
    max_turns: Whole
    max_cost_usd: Dollars
    max_tokens: Whole
    max_elapsed: Duration


class Extend(Step):
    """
    The session may use more.
    """

    extend: Amounts


class Approve(Step):
    """
    A person approves the call of that id, which waits: made again, it runs.
    """

    approve: Text


class Refuse(Step):
    """
    A person refuses the call of that id, which waits.
    """

    refuse: Text
    reason: str = ""


class Exhausted(Step):
    """
    The code that ended the session, as a host reads it before its next model request. null if the session goes on.
    """

    exhausted: Text | None


class Repeat(Step):
    """
    Run *steps* so many times; `$n` in their texts is the number of the repetition, from 1.
    """

    repeat: Times
    steps: Annotated[list["AnyStep"], MinLen(1)]


_KINDS: Final[tuple[type[Step], ...]] = (
    *(Call, Settle, Turn, Charge, Request, Wait, Extend, Approve, Refuse, Exhausted, Repeat),
)
KINDS: Final = {kind.__name__.lower(): kind for kind in _KINDS}
"""By the key that names a kind of step."""


def _kind(value: Any) -> str | None:
    # The name of the kind is a key of the step, too: the tag is another word, so that a place leads to the step.
    return next((f"a {key}" for key in value if key in KINDS), None) if isinstance(value, dict) else None


if typing.TYPE_CHECKING:
    AnyStep = Step
else:
    AnyStep = Annotated[
        reduce(or_, (Annotated[kind, Tag(f"a {key}")] for key, kind in KINDS.items())),
        Discriminator(
            _kind,
            custom_error_type="no_kind",
            custom_error_message=f"a step is a map of keys, one of them {', '.join(map(quoted, KINDS))}",
        ),
    ]
Repeat.model_rebuild()


def _declaration() -> Any:
    """
    The declarations of a tool, made of its fields.
    """
    hints = typing.get_type_hints(Tool, include_extras=True)
    kinds: dict[str, Any] = {f.name: NotRequired[hints[f.name]] for f in dataclasses.fields(Tool)}
    kinds |= {
        "name": Text,
        "parameters": NotRequired[dict[str, Any]],
        "annotations": NotRequired[dict[str, Any]],
        "ask_user": NotRequired[list[str]],
        **dict.fromkeys(REPEATS, NotRequired[bool]),
    }
    make: Any = TypedDict
    made = make("ToolDeclaration", kinds)
    made.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
    made.__doc__ = "A tool that there is, and what is declared of it."
    return made


@lru_cache(maxsize=1)
def adapter() -> TypeAdapter[Any]:
    """
    pydantic's check of a whole file.
    """
    make: Any = create_model
    steps = Annotated[list[AnyStep], MinLen(1)]
    case = make("Case", __config__=_STRICT, name=Text, tools=(list[_declaration()], []), steps=steps)  # type: ignore[misc]
    case.__doc__ = "One session, from its start. Where `tools` are named, any other is unknown."
    cases = Annotated[list[case], MinLen(1)]  # type: ignore[valid-type]
    document = make("Cases", __config__=_STRICT, version=Literal[1], policy=(Text | None, None), cases=cases)
    document.__doc__ = "What a policy is to decide: sequences of calls with the expected decision and code of each."
    return TypeAdapter(document)


@lru_cache(maxsize=1)
def json_schema() -> dict[str, Any]:
    """
    Returns the JSON Schema (draft 2020-12) of case files, for editors and for suggestions.
    """
    body = adapter().json_schema(mode="validation")
    for kind in ("Call", "Settle"):
        # For editors only: an unknown field is a mistake of the step, with the one that was meant.
        body["$defs"][kind]["properties"]["envelope"]["propertyNames"] = {"enum": list(FIELDS)}
    return {"$schema": DIALECT, **body}
