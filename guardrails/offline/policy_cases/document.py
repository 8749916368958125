"""
The content of a file of policy cases, described to pydantic and to editors.

A step is one flat map for every kind. A misspelt key is known by its place alone, and one sentence by `reading` says
which keys go with which.
"""

import dataclasses
import typing

from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired

from annotated_types import Ge, Le, MinLen
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from guardrails.core.envelope.envelope import FIELDS
from guardrails.core.tools.tool import REPEATS, Tool
from guardrails.core.values.types import ErrorType, Status
from guardrails.core.values.units import DURATION_PATTERN, ByteSize, Duration, FromText, duration_ms


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MAX_TIMES: Final = 100_000
"""Repetitions of a block, and steps of a whole case."""
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


At = Annotated[
    Any,
    FromText(
        moment,
        {
            "anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": DURATION_PATTERN.replace("^", r"^\+?", 1)},
            ]
        },
    ),
]
Name = Annotated[str, MinLen(1)]
Whole = Annotated[int, Ge(0)]
Dollars = Annotated[float, Ge(0), Le(1e9)]
Text = Annotated[str, MinLen(1)]


class Failed(TypedDict):
    """
    The failure of a call.
    """

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    type: ErrorType
    message: NotRequired[str]
    http_status: NotRequired[Annotated[int, Ge(100), Le(599)]]
    retry_after: NotRequired[Duration]
    """The wait that the server asked for."""


class Charge(TypedDict):
    """
    A model response that is charged; its turn begins.
    """

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    tokens: NotRequired[Whole]
    """Left out if the response did not say what it used."""
    cost_usd: NotRequired[Dollars]
    """Absent: its price is unknown, which ends a session with a cost limit unless `on_unpriced` is `warn`."""
    calls: NotRequired[Whole]
    """Tool calls of the response; 0: unknown."""
    begins_turn: NotRequired[bool]
    """False: more is charged for the same response."""


class Extend(TypedDict):
    """
    The amounts by which the session may use more.
    """

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    max_calls: NotRequired[Whole]
    max_turns: NotRequired[Whole]
    max_cost_usd: NotRequired[Dollars]
    max_tokens: NotRequired[Whole]
    max_elapsed: NotRequired[Duration]


class Step(TypedDict):
    """
    One step: exactly one of `call`, `settle`, `turn`, `charge`, `request`, `wait`, `extend`, `approve`, `refuse`,
    `exhausted`, `repeat`.
    """

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    call: NotRequired[Name]
    """A tool is called."""
    settle: NotRequired[Name]
    """The pending call of that id ends."""
    turn: NotRequired[Whole]
    """A model response with that many calls came; 0: unknown how many."""
    charge: NotRequired[Charge]
    request: NotRequired[Annotated[int, Ge(1), Le(MAX_TIMES)]]
    """So many model requests start."""
    wait: NotRequired[Duration]
    extend: NotRequired[Extend]
    approve: NotRequired[Text]
    """A person approves the call of that id, which waits: made again, it runs."""
    refuse: NotRequired[Text]
    """A person refuses the call of that id, which waits."""
    reason: NotRequired[str]
    """Why."""
    exhausted: NotRequired[Text | None]
    """The code that ended the session, as a host reads it before its next model request. null if the session goes on."""
    repeat: NotRequired[Annotated[int, Ge(1), Le(MAX_TIMES)]]
    """Run *steps* so many times; `$n` in their texts is the number of the repetition, from 1."""

    at: NotRequired[At]
    """When: `+5s` after the step before, or seconds after the start. Absent: at the time of the step before."""
    arguments: NotRequired[dict[str, Any] | str]
    """A map, or the text that the model wrote."""
    id: NotRequired[Name]
    result: NotRequired[Any]
    """The result that the tool gives back; `ok` if the key is left out."""
    result_bytes: NotRequired[Annotated[ByteSize, Ge(2), Le(MAX_RESULT)]]
    """In place of a result: a text of that many bytes of JSON."""
    error: NotRequired[ErrorType | Failed]
    """In place of a result: the call fails."""
    pending: NotRequired[Literal[True]]
    """In place of a result: the call still runs."""
    lost: NotRequired[Literal[True]]
    """In place of a result: nobody learns how the call ended, and its admission is given up."""
    takes: NotRequired[Duration]
    """The time that the call runs."""
    cost_usd: NotRequired[Dollars]
    """The real cost of the call. If the key is left out, the estimate counts."""
    tokens: NotRequired[Whole]
    """The tokens that the call really used."""

    expect: NotRequired[Literal["allow", "nudge", "pending", "deny"]]
    """Absent: `allow`."""
    code: NotRequired[Text]
    """Of the denial that the model reads, or of a nudge."""
    observed: NotRequired[Text | list[Text]]
    """The codes of all that guards in observe mode would have said; absent: none."""
    status: NotRequired[Status]
    """Of the envelope."""
    envelope: NotRequired[dict[str, Any]]
    """Fields of the envelope; maps are compared by the keys that are named here, null is a field that is not there."""

    steps: NotRequired[Annotated[list["Step"], MinLen(1)]]


def _tool() -> Any:
    """
    The declarations of a tool, made of its fields.
    """
    hints = typing.get_type_hints(Tool, include_extras=True)
    kinds: dict[str, Any] = {f.name: NotRequired[hints[f.name]] for f in dataclasses.fields(Tool)}
    kinds |= {
        "name": Name,
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
def adapter() -> TypeAdapter[dict[str, Any]]:
    """
    pydantic's check of a whole file.
    """
    make: Any = TypedDict
    case = make(
        "Case",
        {
            "name": Name,
            "tools": NotRequired[list[_tool()]],  # type: ignore[misc]
            "steps": Annotated[list[Step], MinLen(1)],
        },
    )
    case.__doc__ = "One session, from its start. Where `tools` are named, any other is unknown."
    document = make(
        "Cases",
        {
            "version": Literal[1],
            "policy": NotRequired[Name],
            "cases": Annotated[list[case], MinLen(1)],  # type: ignore[valid-type]
        },
    )
    document.__doc__ = "What a policy is to decide: sequences of calls with the expected decision and code of each."
    for made in (case, document):
        made.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
    return TypeAdapter(document)


@lru_cache(maxsize=1)
def json_schema() -> dict[str, Any]:
    """
    Returns the JSON Schema (draft 2020-12) of case files, for editors and for suggestions.
    """
    body = adapter().json_schema(mode="validation")
    step = body["$defs"]["Step"]["properties"]
    # For editors only: an unknown field is told by `reading`, with the one that was meant.
    step["envelope"]["propertyNames"] = {"enum": list(FIELDS)}
    return {"$schema": DIALECT, **body}
