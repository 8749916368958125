"""
The steps of a case: a union of models, of which the key that names the kind of a step says which one it is.
"""

import re

from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, Union, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from guardrails.core.envelope import FIELDS
from guardrails.core.tool import REPEATS, Tool
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.schema import Fault, MapType, fit, json_schema, map_type, quoted, suggestion, unknown
from guardrails.core.values.types import ErrorType, Status
from guardrails.core.values.units import DURATION_PATTERN, ByteSize, Duration, byte_size, duration_ms, duration_s
from guardrails.policy.file import Mistake, Node, Position, find, inner, items, lines_of, mistakes_at, parse, plain
from guardrails.policy.reload import is_name


MAX_TIMES: Final = 100_000
"""Repetitions of a block, and requests of a step."""
MAX_RESULT: Final = 16 << 20
"""Bytes of a result that is only described by its size."""


def after(value: object) -> int:
    """
    Returns the milliseconds of a time after the step before, written as `+5s`.

    Raises ValueError for anything else: YAML reads `+5` as the number 5.
    """
    if not (isinstance(value, str) and value.startswith("+")):
        raise ValueError(f"not a time after the step before: write +500ms, +30s or +15m, got {quoted(str(value))}")
    return duration_ms(value[1:])


def _either(value: object) -> object:
    if not isinstance(value, dict | str):
        raise ValueError("not a map of keys or text")
    return value


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _failed(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


_DURATION, _SIZE = get_args(Duration)[1], get_args(ByteSize)[1]
_AFTER: Final = {"type": "string", "pattern": DURATION_PATTERN.replace("^", r"^\+", 1)}
At = Annotated[int, BeforeValidator(after), WithJsonSchema(_AFTER)]
Milliseconds = Annotated[int, BeforeValidator(duration_ms), WithJsonSchema(_DURATION.schema)]
Seconds = Annotated[float, BeforeValidator(duration_s), WithJsonSchema(_DURATION.schema)]
Bytes = Annotated[int, BeforeValidator(byte_size), Field(ge=2, le=MAX_RESULT), WithJsonSchema(_SIZE.schema)]
Whole = Annotated[int, Field(ge=0)]
Times = Annotated[int, Field(ge=1, le=MAX_TIMES)]
Dollars = Annotated[float, Field(ge=0, le=1e9)]
Text = Annotated[str, Field(min_length=1)]
Expected = Literal["allow", "nudge", "pending", "deny"]


class Part(BaseModel):
    """
    A map of a file of cases.
    """

    model_config = ConfigDict(strict=True, extra="forbid", use_attribute_docstrings=True)
    _position: Position

    def place(self, node: Node) -> None:
        """
        Note where it stands in its file, it and all below.
        """
        self._position = node.position
        for name in {"cases", "steps"} & self.model_fields_set:
            for part, below in zip(getattr(self, name), items(node, name), strict=True):
                part.place(below)

    @property
    def file(self) -> str:
        """
        The name of its file.
        """
        return self._position.source.name

    @property
    def line(self) -> int:
        """
        Where it stands there, from 1.
        """
        return self._position.line


class Failed(Part):
    """
    The failure of a call.
    """

    type: ErrorType
    message: str = ""
    http_status: Annotated[int, Field(ge=100, le=599)] | None = None
    retry_after: Milliseconds | None = None
    """The wait that the server asked for."""


class Step(Part):
    """
    One step.
    """

    at: At = 0
    """When: `+5s` after the step before. Absent: at its time."""


class End(Step):
    """
    How a call ends, and the envelope that the model is to read.
    """

    result: Any = "ok"
    """The result that the tool gives back; `ok` if the key is left out."""
    result_bytes: Bytes | None = None
    """In place of a result: a text of that many bytes of JSON."""
    error: Annotated[Failed, BeforeValidator(_failed, json_schema_input_type=ErrorType | Failed)] | None = None
    """In place of a result: the call fails."""
    cost_usd: Dollars | None = None
    """The real cost of the call. If the key is left out, the estimate counts."""
    tokens: Whole | None = None
    """The tokens that the call really used."""
    takes: Milliseconds = 0
    """The time that the call runs."""
    status: Status | None = None
    """Of the envelope."""
    envelope: dict[Literal[FIELDS], Any] = {}  # type: ignore[valid-type]
    """Fields of the envelope; maps are compared by the keys that are named here, null is a field that is not there."""

    @model_validator(mode="after")
    def _ends_once(self) -> Self:
        ends = [key for key in ("result", "result_bytes", "error", "pending", "lost") if key in self.model_fields_set]
        if len(ends) > 1:
            raise ValueError(f"a call ends in one way: {quoted(ends[0])} or {quoted(ends[1])}")
        return self


class Call(End):
    """
    A tool is called.
    """

    call: Text
    arguments: Annotated[dict[str, Any] | str, BeforeValidator(_either)] = {}
    """A map, or the text that the model wrote."""
    id: Text | None = None
    pending: Literal[True] | None = None
    """In place of a result: the call still runs."""
    lost: Literal[True] | None = None
    """In place of a result: nobody learns how the call ended, and its admission is given up."""
    expect: Expected = "allow"
    code: Text | None = None
    """Of the denial that the model reads, or of a nudge."""
    observed: Annotated[list[Text], BeforeValidator(_listed, json_schema_input_type=Text | list[Text])] = []
    """The codes of all that guards in observe mode would have said; absent: none."""

    @model_validator(mode="after")
    def _names_the_guard(self) -> Self:
        if self.expect != "allow" and self.code is None:
            raise ValueError(f"missing key `code`: which guard is to {self.expect}, and why")
        if self.expect == "allow" and self.code is not None:
            raise ValueError("`code` needs `expect: deny`, `pending` or `nudge`; of an observed one, write `observed`")
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


class Response(Part):
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

    wait: Milliseconds


class Amounts(Part):
    """
    The amounts by which the session may use more.
    """

    max_calls: Whole = 0
    max_turns: Whole = 0
    max_cost_usd: Dollars = 0
    max_tokens: Whole = 0
    max_elapsed: Seconds = 0


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
    steps: "Steps"


KINDS: Final[dict[str, type[Step]]] = {
    kind.__name__.lower(): kind
    for kind in (Call, Settle, Turn, Charge, Request, Wait, Extend, Approve, Refuse, Exhausted, Repeat)
}
"""By the key that names one."""


def _kind_of(step: object) -> str | None:
    return next((KINDS[key].__name__ for key in step if key in KINDS), None) if isinstance(step, dict) else None


_TAGGED: Final = tuple(Annotated[kind, Tag(kind.__name__)] for kind in KINDS.values())
Steps: Any = Annotated[list[Annotated[Union[_TAGGED], Discriminator(_kind_of)]], Field(min_length=1)]  # type: ignore[valid-type] # noqa: UP007


class Case(Part):
    """
    One session, from its start. Where `tools` are named, any other is unknown.
    """

    name: Text
    tools: list[Any] = []
    """Each a `Tool`."""
    steps: Steps


class CaseFile(Part):
    """
    What a policy is to decide: sequences of calls with the expected decision and code of each.
    """

    version: Literal[1]
    policy: Text | None = None
    """The policy that the cases were written for."""
    cases: Annotated[list[Case], Field(min_length=1)]


Repeat.model_rebuild()
PARTS: dict[Any, type[Part]] = {kind.__name__: kind for kind in KINDS.values()}
PARTS |= {"cases": Case, "error": Failed, "charge": Response, "extend": Amounts}
"""The model of a map, by the last name on the way to it that is here."""


def tool_type() -> MapType:
    """
    Returns the type of a declared tool.
    """
    own = {**map_type(Tool).types, "name": Text, "parameters": dict[str, Any], "annotations": dict[str, Any]}
    doc = "A tool that there is, and what is declared of it."
    return MapType("ToolDeclaration", {**own, **dict.fromkeys(REPEATS, bool)}, frozenset({"name"}), doc, of=Tool)


def cases_schema() -> dict[str, Any]:
    """
    Returns the JSON Schema (draft 2020-12) of case files, for editors.
    """
    made, named = CaseFile.model_json_schema(), dict[str, Any]()
    made["$defs"]["Case"]["properties"]["tools"]["items"] = json_schema(tool_type(), named)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "$defs": made["$defs"] | named}


SUFFIX: Final = ".cases.yaml"


def find_cases(policy: str) -> Path:
    """
    Returns the cases of a policy: of a shipped one by its name, of a file `team.yaml` those in `team.cases.yaml` beside
    it, or in `cases/team.yaml`.

    Raises PolicyError if there is no such policy, or none of these files.
    """
    path = find(policy)
    folder = path.parent
    places = [] if is_name(policy) else [folder / f"{path.stem}{SUFFIX}"]
    places = [*places, folder / "cases" / path.name]
    if file := next(filter(Path.is_file, places), None):
        return file
    looked = " and ".join(quoted(str(place.relative_to(folder))) for place in places)
    advice = f"looked for {looked} beside it; name their file after the policy"
    raise PolicyError([f"no cases for {quoted(policy)}: {advice}"])


def shipped_with_cases() -> list[str]:
    """
    Returns the names of the shipped policies that have cases, sorted.
    """
    folder = find("default").parent
    return sorted(path.stem for path in (folder / "cases").glob("*.yaml") if (folder / path.name).is_file())


def load_cases(path: str | PathLike[str]) -> CaseFile:
    """
    Returns the cases of a file.

    Raises OSError if it cannot be read, and PolicyError with every mistake as `file:line:column: message`.
    """
    return read_cases(Path(path).read_bytes(), str(path))


def read_cases(text: str | bytes, name: str = "<text>") -> CaseFile:
    """
    Returns the cases of a YAML text called *name* in messages.

    Raises PolicyError with every mistake as `file:line:column: message`, the source line and a caret.
    """
    source, root, mistakes = parse(text, name)
    made = None
    if root is not None:
        try:
            made = CaseFile.model_validate(plain(root))
            made.place(root)
        except ValidationError as error:
            mistakes += mistakes_at((_fault(each, root) for each in error.errors()), root)
        lines: dict[Any, int] = {}
        for number, node in enumerate(items(root, "cases")):
            named, tools = inner(node, "name"), _tools(node, ("cases", number), root, mistakes)
            if made is not None and not mistakes:
                made.cases[number].tools = tools
            if named and (first := lines.setdefault(named.value, named.position.line)) != named.position.line:
                mistakes.append(Mistake(named.position, f"name: another case has this name, on line {first}"))
    if mistakes or made is None:
        raise PolicyError(lines_of(mistakes, [source]))
    return made


def _tools(case: Node, path: tuple[str | int, ...], root: Node, mistakes: list[Mistake]) -> list[Tool]:
    """
    Returns the tools that a *case* declares.
    """
    tools = []
    for place, declared in enumerate(items(case, "tools")):
        settings, faults = fit(tool_type(), plain(declared), (*path, "tools", place))
        mistakes += mistakes_at(faults, root)
        if not faults:
            tools.append(Tool(name=settings["name"]).override(settings))
            try:
                tools[-1].arguments()
            except PolicyError as error:
                at = inner(declared, "parameters") or declared
                mistakes.append(Mistake(at.position, f"parameters: {error}"))
    return tools


_EXPECTED: Final = {
    **dict.fromkeys(("dict_type", "model_type", "union_tag_not_found"), "a map of keys"),
    "list_type": "a list",
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
}
"""The kind of value that was wanted, by the type of pydantic's error."""


def _fault(error: Any, root: Node) -> Fault:
    """
    Returns an *error* of pydantic's as a fault in the data of *root*. Its way there has also names of types, which are no keys.
    """
    loc, value, kind, path, node = error["loc"], error["input"], error["type"], tuple[str | int, ...](), root
    for part in loc:
        if (below := inner(node, part)) is not None:
            path, node = (*path, part), below
    last = str(loc[-1]) if loc else ""
    if kind == "extra_forbidden" or last == "[key]":
        model = next((PARTS[part] for part in reversed(loc[:-1]) if part in PARTS), CaseFile)
        known = FIELDS if last == "[key]" else model.model_fields
        return Fault(path, value, unknown(str(path[-1]), MapType("", dict.fromkeys(known))), kind="key")
    if kind == "missing" or (kind == "union_tag_not_found" and isinstance(value, dict)):
        names = [last] if kind == "missing" else KINDS
        return Fault(path, value, f"missing key {' or '.join(map(quoted, names))}", kind="missing")
    if kind == "literal_error":
        words = re.split(", | or ", error["ctx"]["expected"].replace("'", "").replace("True", "true"))
        expected = "one of " * (len(words) > 1) + ", ".join(map(quoted, words))
        return Fault(path, value, "", (expected,), suggestion(value, words) if isinstance(value, str) else "")
    sentence = error["msg"].removeprefix("Value error, ").removeprefix("Input ").replace("should", "must")
    return Fault(path, value, sentence, (_EXPECTED[kind],) if kind in _EXPECTED else ())
