"""
The facts about a tool before it is called: its declarations.
"""

import inspect
import re

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import InitVar, dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from typing import Annotated, Any, Final, Literal, Self

from guardrails.core.arguments import Arguments, arguments_of, foreign_arguments
from guardrails.core.arguments.problems import read_arguments
from guardrails.core.result.content import at, http_error, number_of, short
from guardrails.core.result.failures import FAILED, Sign, Source, Words
from guardrails.core.text.signature import sign
from guardrails.core.values.errors import SessionError
from guardrails.core.values.names import TOKEN, bounded_name, own_name
from guardrails.core.values.schema import FromText, Ge, Gt, MaxLen, MinLen
from guardrails.core.values.types import ErrorType, Problem, ToolCall, micro_dollars
from guardrails.core.values.units import Duration


Field = Annotated[str, MinLen(1), MaxLen(200)]
Scalar = str | int | float | bool

SCAN_CHARS: Final = 8192
"""A regular expression sees this much of a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRule:
    """
    One sign of a failure. Exactly one of *equals*, *at_least*, *present* and *matches* is set.

    Raises ValueError if that is not so, or if *matches* is no regular expression.
    """

    field: Annotated[str, MaxLen(200)] = ""
    """Dotted path in the result, list items by number (`errors.0.code`); `""`: the result itself, or its text."""
    equals: Scalar | tuple[Scalar, ...] | None = None
    """The value, or one of the values; `true` is not 1."""
    at_least: float | None = None
    present: bool | None = None
    """True: the field is there and neither null, false, empty nor 0; False: it is not."""
    matches: Annotated[str, MinLen(1), MaxLen(1000)] | None = None
    """A regular expression of Rust, looked for in the first 8,192 characters in linear time: no lookaround, no
    backreferences, `$` at the very end only. `(?i)` ignores case."""
    error_type: ErrorType | None = None
    """None: taken from the status, or from the text of the failure."""

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.equals, self.at_least, self.present, self.matches)) != 1:
            raise ValueError("a failure rule takes exactly one of `equals`, `at_least`, `present` and `matches`")
        if self.matches is not None:
            finder(self.matches)

    def applies(self, views: Sequence[Any]) -> bool:
        """
        Returns whether the rule finds its sign in one of *views* of a result.
        """
        values = [value for view in views if (value := at(view, self.field)) is not None]
        if self.present is not None:
            return bool(views) and any(values) is self.present
        return any(map(self._fits, values))

    def _fits(self, value: Any) -> bool:
        if self.matches is not None:
            return isinstance(value, str) and finder(self.matches)(value)
        if self.at_least is not None:
            return (number := number_of(value)) is not None and number >= self.at_least
        return _is_any(value, self.equals if isinstance(self.equals, tuple | list) else (self.equals,))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultClassifier:
    """
    The signs by which a result of a tool is a failure; nothing else makes one, but MCP's `isError: true`.

    `status_field` is judged first, then `error_when` in order; the first sign decides. Fields are looked for in the
    result without its carriers: JSON text, MCP's blocks and `structuredContent`. Raises ValueError if a pattern is no regular expression.
    """

    status_field: Field | None = None
    """Dotted path of an HTTP status, a word, or a boolean that is false for a failure."""
    ok_values: tuple[Scalar, ...] = ()
    """Values of *status_field* for a success; empty: no status from 400 up, no word of failure, not false."""
    error_when: tuple[FailureRule, ...] = ()
    message_field: Field | None = None
    """Dotted path of the message; None: the usual ones (`error.message`, `error`, `message`, `detail`, ...)."""
    retry_after_field: Field | None = None
    """Dotted path of the wait in seconds."""

    def sign(self, views: tuple[Any, ...], text: str | None) -> Sign | None:
        """
        Returns the first declared sign of a failure in the *views* of a result, and its *text*; None if there is none.
        """
        status = None if self.status_field is None else _first(views, self.status_field)
        if status is not None and self._is_bad(status):
            return Sign(None, http_error(status), f"{self.status_field}: {short(status)}")
        for rule in self.error_when:
            seen: tuple[Any, ...] = views if rule.field or text is None else (text, *views)
            if rule.applies(seen):
                message = f"{rule.field}: {short(_first(seen, rule.field))}" if rule.field else text or ""
                return Sign(rule.error_type, None, message)
        return None

    def _is_bad(self, status: Any) -> bool:
        if self.ok_values:
            return not _is_any(status, self.ok_values)
        word = status.strip().lower() if isinstance(status, str) else ""
        return status is False or (number_of(status) or 0) >= 400 or word in FAILED


def _first(views: Sequence[Any], path: str) -> Any:
    return next((value for view in views if (value := at(view, path)) is not None), None)


def _is_any(value: object, wanted: Sequence[Any]) -> bool:
    """
    Returns whether *value* is one of *wanted*; `true` is not 1.
    """
    return any(value == one and isinstance(value, bool) is isinstance(one, bool) for one in wanted)


@lru_cache(maxsize=512)
def finder(pattern: str) -> Callable[[str], bool]:
    """
    Returns a function that tells whether *pattern* occurs in the first 8,192 characters of a text, in a time that is linear in
    the text for any of both. Raises ValueError.

    Its author is of a policy, and the text of strangers: Python's own engine goes back and tries again, for minutes on 30 characters.
    """
    from pydantic_core import SchemaError, SchemaValidator

    try:
        fits = SchemaValidator({"type": "str", "pattern": pattern}).isinstance_python
    except SchemaError as error:
        reason = str(error).rpartition("rror: ")[2].strip().rstrip(".")
        raise ValueError(f"not a regular expression: `{pattern[:100]}`: {reason}") from None
    return lambda text: fits(text[:SCAN_CHARS].encode(errors="replace").decode())


Wire = Literal["chat", "responses"]
"""chat.completions, or Responses."""
_SHOWS: Final = r"""(?ix)read|cat|grep|glob|fetch|logs?|tail|head|view|open|load|browse|scrape|crawl|download|print|dump|display|transcript|inbox
|(?:file|content|page|document)s?"""
"""Words of the names of tools that show what others wrote."""
_WRITES: Final = "(?i)create|add|insert|write|put|set|save|update|edit|delete|remove|move|upload|send|append"
_RUNS: Final = (
    "(?i)bash|shell|sh|zsh|cmd|exec|terminal|console|powershell|pwsh|i?python|node|code|interpreter|repl|jupyter"
)
_HINTS: Final = {"readOnlyHint": "read_only", "destructiveHint": "destructive", "idempotentHint": "idempotent"}
SHELLS: Final = frozenset({"bash", "shell", "exec_shell", "run_command", "run_shell_command", "terminal"})
REPEATS: Final[Mapping[str, Literal["allow", "evidence"]]] = {"polling": "allow", "stable": "evidence"}
"""The words of `Tool.repeats` by the older ones, which still work."""


def renewed(declared: Mapping[str, Any]) -> dict[str, Any]:
    """
    Returns *declared* with `repeats` in place of the older words.
    """
    now = {word: value for word, value in declared.items() if word not in REPEATS}
    for old in REPEATS.keys() & declared.keys():
        now.setdefault("repeats", REPEATS[old] if declared[old] else None)
    return now


def _defining(parameters: Any) -> object:
    if parameters is not None and not hasattr(type(parameters), "check") and not callable(parameters):
        arguments_of(parameters)
    return parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """
    One tool: what the model is told of it and what the guards may rely on.

    Its *parameters* are a function, a pydantic model class or a JSON Schema. They yield both the schema that the model
    sees and the check at the boundary. Everything declared here can be set or overridden by a policy's `tools:` rules.
    """

    name: str
    description: str = ""
    parameters: Annotated[Any, FromText(_defining, {"type": "object", "additionalProperties": {}})] = None
    read_only: bool | None = None
    """Changes nothing; None: unknown, which counts as state-changing."""
    idempotent: bool | None = None
    """Running it twice does no more than once; False: never called retryable after a timeout or a lost connection."""
    repeats: Literal["allow", "evidence", "ask"] | None = None
    """The same arguments again. `allow`: meant to be, exempt from duplicates and streaks. `evidence`: same result until work is done,
    so one is enough; never implied by *read_only*. `ask`: the second equal call is a person's decision, as of a payment."""
    polling: InitVar[bool] = False
    """The old word for `repeats: allow`."""
    stable: InitVar[bool] = False
    """The old word for `repeats: evidence`."""
    destructive: bool | None = None
    """What it does cannot be undone: a call whose end is unknown is not made again, as of `idempotent: false`."""
    retryable: bool | None = None
    """A prior for failures of kinds that may pass; evidence changes it."""
    cost_usd: Annotated[float, Ge(0)] = 0.0
    """Estimate reserved at admission, until the call settles; 0: free, until its calls say what they cost."""
    tokens: Annotated[int, Ge(0)] = 0
    """The same of tokens; 0: none, until its calls say what they used."""
    timeout: Annotated[Duration, Gt(0)] | None = None
    """Seconds."""
    same_thread: bool = False
    """It works only in the thread that calls it: without a *timeout* it is not held to the time that the session has left."""
    result: ResultClassifier | None = None
    """The rules by which a failure that hides in a result is found."""
    more: str = ""
    """Dotted path in its results to what a next call goes on from (`next_cursor`); without a value there, a result is complete."""
    total: str = ""
    """Dotted path in its results to the number of all matches (`meta.count`)."""
    returns_envelope: bool = False
    """An object that it returns in the form of an envelope (`status: error`, `error_type`, `retryable`, ...) is taken as one. Text never is."""
    ask_user: tuple[str, ...] = ()
    """Arguments that only the user can know."""
    paths: tuple[str, ...] = ()
    """Arguments that are paths, as globs of their names (`path`, `*_dir`, `edits.path`); for the guard `workspace`."""
    commands: tuple[str, ...] = ()
    """
    Arguments that are shell commands, text or lists of words; for the guard `shell`. `command+args`: the words of one
    command, from several arguments.
    """
    labels: tuple[str, ...] = ()
    """Arguments that only tell a person what the call is for, in other words each time: no part of what makes calls the same."""
    held: str = ""
    """Why every call of it is refused until somebody has looked at it; empty: it is not held."""

    def __post_init__(self, polling: bool, stable: bool) -> None:
        if self.repeats is None and (polling or stable):
            object.__setattr__(self, "repeats", REPEATS["polling" if polling else "stable"])

    @classmethod
    def of(cls, function: Callable[..., Any], *, hidden: Collection[str] = (), **declarations: Any) -> Self:
        """
        Returns the tool that *function* is: its name, docstring and signature, without the parameters *hidden* that the
        host passes. Raises PolicyError if the signature of a function with hidden parameters cannot be read.
        """
        declarations.setdefault("name", name_of(function))
        text = inspect.getdoc(without_partials(function)) or ""
        declarations.setdefault("description", " ".join(text.split("\n\n")[0].split()))
        return cls(parameters=arguments_of(function, hidden=hidden) if hidden else function, **declarations)

    def override(self, declared: Mapping[str, Any]) -> Self:
        """
        Returns the same tool with *declared* on top; MCP-style `annotations` are read if no plainer word is said.
        """
        known, declared = {f.name for f in fields(self)}, renewed(declared)
        hints = from_annotations(declared.get("annotations") or {})
        hints = {name: hint for name, hint in hints.items() if getattr(self, name) is None}
        return replace(self, **{k: v for k, v in {**hints, **declared}.items() if k in known})

    @property
    def shell(self) -> bool:
        """
        Whether it runs what its arguments say: by declaration, or by one of six names.
        """
        return bool(self.commands) or own_name(self.name).lower() in SHELLS

    @property
    def changes(self) -> bool:
        """
        Whether a call may change something: all that is not known does.
        """
        return not (self.read_only or self.repeats == "evidence")

    @property
    def acts(self) -> bool:
        """
        Whether a call that may have happened is not to be made again unseen.
        """
        return self.changes and not self.idempotent and (self.idempotent is False or self.read_only is False)

    @property
    def cost(self) -> int:
        """
        The estimate in micro-dollars.
        """
        return micro_dollars(self.cost_usd) if self.cost_usd else 0

    def arguments(self) -> Arguments | None:
        """
        Returns the check of its arguments. Returns None if no parameters are declared.
        """
        made = hasattr(type(self.parameters), "check") and hasattr(type(self.parameters), "schema")
        return self.parameters if made or self.parameters is None else arguments_of(self.parameters)

    def openai(self, wire: Wire = "chat") -> dict[str, Any]:
        """
        Returns the entry of the `tools` list of chat.completions, or of Responses.
        """
        spec = self.arguments()
        schema = spec.schema() if spec is not None else {"type": "object", "properties": {}}
        function = {"name": self.name, "description": self.description, "parameters": schema}
        # Responses is strict unless told otherwise, and refuses a schema with an optional parameter then.
        return {"type": "function"} | ({"function": function} if wire == "chat" else {**function, "strict": False})


def host_arguments(tool: Tool) -> Arguments | None:
    """
    Returns the check of the arguments of a *tool* that a host gave. A schema may be that of a server, which nobody here can mend: see
    `foreign_arguments`. Raises PolicyError if a function or model is not valid.
    """
    code = callable(tool.parameters) or hasattr(type(tool.parameters), "check")
    return tool.arguments() if code else foreign_arguments(tool.name, tool.parameters)


@lru_cache(maxsize=1024)
def speaker(tool: str) -> Words:
    """
    Returns whose words a text of *tool* is, by its name.
    """
    names = TOKEN.findall(own_name(tool))
    runs, shows, writes = (any(re.fullmatch(words, name) for name in names) for words in (_RUNS, _SHOWS, _WRITES))
    return "program" if runs else "shown" if shows and not writes else "own"


def source_of(tool: Tool) -> Source:
    """
    Returns what is known of *tool* for the reading of its results.
    """
    rules, words = tool.result, "program" if tool.commands else speaker(tool.name)
    sign, says, waits = (rules.sign, rules.message_field, rules.retry_after_field) if rules else (None, None, None)
    return Source(sign, says, waits, tool.more, tool.total, words)


def name_of(function: Callable[..., Any]) -> str:
    """
    Returns the name of *function*: its own, that of the function of a partial, that of the class of a callable object.
    """
    bare = without_partials(function)
    return str(getattr(bare, "__name__", type(bare).__name__))


def without_partials(function: Callable[..., Any]) -> Callable[..., Any]:
    """
    Returns the function of a partial, another as it is.
    """
    return without_partials(function.func) if isinstance(function, partial) else function


def from_annotations(annotations: Mapping[str, Any]) -> dict[str, Any]:
    """
    Returns MCP tool annotations as declarations. They are hints of a server, so no more is concluded than they say. A tool that may destroy is
    not read-only, whatever else is claimed.
    """
    hints = {name: value for hint, name in _HINTS.items() if isinstance(value := annotations.get(hint), bool)}
    return {**hints, "read_only": False} if hints.get("destructive") else hints


# Values that declarations name

MAX_VALUES: Final = 1_000
MAX_DEPTH: Final = 16


class TooManyError(Exception):
    """
    More values than anyone checks, or nested too deep.
    """


def named(arguments: Any, names: Sequence[str]) -> list[tuple[str, Any]]:
    """
    Returns (name, value) of each argument that one of *names* matches. A name is a glob, `edits.path` is a path in the
    objects of `edits`, and lists are looked into. A free-form input is a value as a whole.

    Raises TooManyError.
    """
    if names and not isinstance(arguments, Mapping):
        return [("", arguments)]
    matches: list[tuple[str, Any]] = []
    level = [("", arguments)] if names else []
    for _ in range(MAX_DEPTH):
        inside = [member for name, value in level for member in _members(name, value)]
        level = []
        for member in inside:
            (matches if any(fnmatchcase(member[0], name) for name in names) else level).append(member)
    if level or len(matches) > MAX_VALUES:
        raise TooManyError(f"more than {MAX_VALUES:,} values, or more than {MAX_DEPTH} levels of them")
    return matches


def _members(name: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(f"{name}.{key}".lstrip("."), inner) for key, inner in value.items()]
    return [(name, inner) for inner in value] if isinstance(value, list | tuple) else []


def tool_call(tool: str, arguments: Any, call_id: str, spec: Arguments | None, labels: Sequence[str] = ()) -> ToolCall:
    """
    Returns the call of *tool* with *arguments*, a mapping or the JSON text of a model, checked against *spec*.

    A call whose arguments do not fit is signed as it came; what is wrong is in its `problems`. Its *labels* are not signed.
    """
    problems: tuple[Problem, ...] = ()
    if type(arguments) is not dict:
        arguments, problems = read_arguments(arguments, required=spec is not None)
    if spec is not None and not problems:
        arguments, problems = spec.check(arguments)
    signed = arguments
    if labels and isinstance(arguments, dict):
        signed = {name: value for name, value in arguments.items() if name not in labels}
    signature, sig, canonical = sign(tool, signed)
    return ToolCall(tool, arguments, call_id, signature, sig, problems, canonical)


def checked(tool: Any, call_id: Any) -> tuple[str, str | None]:
    """
    Returns the names of a call as plain text: a member of a string enumeration is its value. The name of a tool is
    bounded.

    Raises TypeError if a name is no text, SessionError for an empty id.
    """
    if not isinstance(tool, str):
        raise TypeError(f"`tool` is the name of a tool, not `{type(tool).__name__}`")
    if call_id is not None and not isinstance(call_id, str):
        raise TypeError(f"`id` is the model's id of the call, text or None, not `{type(call_id).__name__}`")
    if call_id == "":
        raise SessionError("`id` must not be empty: leave it out if the model gave none")
    return bounded_name(str.__str__(tool)), None if call_id is None else str.__str__(call_id)
