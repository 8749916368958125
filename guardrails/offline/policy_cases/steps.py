"""
The steps of a case and their types: the key that names the kind of a step says which others go with it.
"""

import dataclasses

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Annotated, Any, Final, Literal, TypedDict, Union

from guardrails.core.envelope.envelope import FIELDS
from guardrails.core.tools.tool import REPEATS, Tool
from guardrails.core.values.schema import FromText, Ge, Le, MapType, MinLen, Schema, json_schema, map_type, quoted
from guardrails.core.values.types import ErrorType, Status
from guardrails.core.values.units import DURATION_PATTERN, ByteSize, Duration, duration_ms


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MAX_TIMES: Final = 100_000
"""Repetitions of a block, and requests of a step."""
MAX_RESULT: Final = 16 << 20
"""Bytes of a result that is only described by its size."""


def after(value: object) -> float:
    """
    Returns the milliseconds of a time after the step before, written as `+5s`.

    Raises ValueError for anything else: YAML reads `+5` as the number 5.
    """
    if not (isinstance(value, str) and value.startswith("+")):
        raise ValueError(f"not a time after the step before: write +500ms, +30s or +15m, got {quoted(str(value))}")
    return duration_ms(value[1:])


At = Annotated[Any, FromText(after, {"type": "string", "pattern": DURATION_PATTERN.replace("^", r"^\+", 1)})]
Whole = Annotated[int, Ge(0)]
Times = Annotated[int, Ge(1), Le(MAX_TIMES)]
Dollars = Annotated[float, Ge(0), Le(1e9)]
Text = Annotated[str, MinLen(1)]
Said = Literal["allow", "nudge", "pending", "deny"]


@dataclass(kw_only=True)
class Failed:
    """
    The failure of a call.
    """

    type: ErrorType
    message: str = ""
    http_status: Annotated[int, Ge(100), Le(599)] | None = None
    retry_after: Duration | None = None
    """The wait that the server asked for."""


@dataclass(kw_only=True)
class Step:
    """
    One step.
    """

    at: At = None
    """When: `+5s` after the step before. Absent: at its time."""
    line: int = field(default=0, init=False, compare=False)
    """Where it stands in its file, from 1."""

    def check(self, given: Collection[str]) -> None:
        """
        Raise ValueError if the keys *given* do not go together.
        """


@dataclass(kw_only=True)
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
    envelope: dict[Literal[FIELDS], Any] | None = None  # type: ignore[valid-type]
    """Fields of the envelope; maps are compared by the keys that are named here, null is a field that is not there."""

    def check(self, given: Collection[str]) -> None:
        ends = [key for key in ("result", "result_bytes", "error", "pending", "lost") if key in given]
        if len(ends) > 1:
            raise ValueError(f"a call ends in one way: {quoted(ends[0])} or {quoted(ends[1])}")


@dataclass(kw_only=True)
class Call(End):
    """
    A tool is called.
    """

    call: Text
    arguments: dict[str, Any] | str = field(default_factory=dict)
    """A map, or the text that the model wrote."""
    id: Text | None = None
    pending: Literal[True] | None = None
    """In place of a result: the call still runs."""
    lost: Literal[True] | None = None
    """In place of a result: nobody learns how the call ended, and its admission is given up."""
    expect: Said = "allow"
    code: Text | None = None
    """Of the denial that the model reads, or of a nudge."""
    observed: Text | list[Text] = ()  # type: ignore[assignment]
    """The codes of all that guards in observe mode would have said; absent: none."""

    def check(self, given: Collection[str]) -> None:
        super().check(given)
        if self.expect != "allow" and self.code is None:
            raise ValueError(f"missing key `code`: which guard is to {self.expect}, and why")
        if self.expect == "allow" and self.code is not None:
            raise ValueError("`code` needs `expect: deny`, `pending` or `nudge`; of an observed one, write `observed`")


@dataclass(kw_only=True)
class Settle(End):
    """
    The pending call of that id ends.
    """

    settle: Text


@dataclass(kw_only=True)
class Turn(Step):
    """
    A model response with so many tool calls came; 0: unknown how many.
    """

    turn: Whole


@dataclass(kw_only=True)
class Response:
    """
    A model response that is charged; its turn begins.
    """

    tokens: Whole | None = None
    """Left out if the response did not say what it used."""
    cost_usd: Dollars | None = None
    """Absent: its price is unknown, which ends a session with a cost limit unless `on_unpriced` is `warn`."""
    calls: Whole = 0
    """Tool calls of the response; 0: unknown."""
    begins_turn: bool = True
    """False: more is charged for the same response."""


@dataclass(kw_only=True)
class Charge(Step):
    """
    A model response is charged.
    """

    charge: Response


@dataclass(kw_only=True)
class Request(Step):
    """
    So many model requests start.
    """

    request: Times


@dataclass(kw_only=True)
class Wait(Step):
    """
    Nothing but time passes.
    """

    wait: Duration


class Amounts(TypedDict, total=False):
    """
    The amounts by which the session may use more.
    """

    max_calls: Whole
    max_turns: Whole
    max_cost_usd: Dollars
    max_tokens: Whole
    max_elapsed: Duration


@dataclass(kw_only=True)
class Extend(Step):
    """
    The session may use more.
    """

    extend: Amounts


@dataclass(kw_only=True)
class Approve(Step):
    """
    A person approves the call of that id, which waits: made again, it runs.
    """

    approve: Text


@dataclass(kw_only=True)
class Refuse(Step):
    """
    A person refuses the call of that id, which waits.
    """

    refuse: Text
    reason: str = ""


@dataclass(kw_only=True)
class Exhausted(Step):
    """
    The code that ended the session, as a host reads it before its next model request. null if the session goes on.
    """

    exhausted: Text | None


@dataclass(kw_only=True)
class Repeat(Step):
    """
    Run *steps* so many times; `$n` in their texts is the number of the repetition, from 1.
    """

    repeat: Times
    steps: Annotated[list[Step], MinLen(1)]


KINDS: Final[dict[str, type[Step]]] = {
    kind.__name__.lower(): kind
    for kind in (Call, Settle, Turn, Charge, Request, Wait, Extend, Approve, Refuse, Exhausted, Repeat)
}
"""By the key that names a kind of step."""


def _step(kind: type[Step], **given: Any) -> Step:
    made = kind(**given)
    made.check(given)
    return made


@cache
def cases_type() -> MapType:
    """
    Returns the type of a whole file.
    """
    kinds = {key: dataclasses.replace(map_type(kind), make=partial(_step, kind)) for key, kind in KINDS.items()}
    steps: Any = Annotated[list[Union[tuple(kinds.values())]], MinLen(1)]  # type: ignore[misc] # noqa: UP007
    kinds["repeat"].types = {**kinds["repeat"].types, "steps": steps}
    own = {**map_type(Tool).types, "name": Text, "parameters": dict[str, Any], "annotations": dict[str, Any]}
    doc = "A tool that there is, and what is declared of it."
    tool = MapType("ToolDeclaration", {**own, **dict.fromkeys(REPEATS, bool)}, frozenset({"name"}), doc, of=Tool)
    doc = "One session, from its start. Where `tools` are named, any other is unknown."
    types = {"name": Text, "tools": list[tool], "steps": steps}  # type: ignore[valid-type]
    case = MapType("Case", types, frozenset({"name", "steps"}), doc)
    doc = "What a policy is to decide: sequences of calls with the expected decision and code of each."
    types = {"version": Literal[1], "policy": Text, "cases": Annotated[list[case], MinLen(1)]}  # type: ignore[valid-type]
    return MapType("Cases", types, frozenset({"version", "cases"}), doc)


def cases_schema() -> Schema:
    """
    Returns the JSON Schema (draft 2020-12) of case files, for editors.
    """
    named: dict[str, Schema] = {}
    json_schema(cases_type(), named)
    return {"$schema": DIALECT, "$defs": named, **named.pop("Cases")}
