"""
The facts about a tool before it is called: its declarations.
"""

import functools
import inspect
import re

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import InitVar, fields, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Literal, Self

from guardrails.core.arguments import Arguments, arguments_of
from guardrails.core.result.failures import Source, Words
from guardrails.core.tools.failure_rules import ResultClassifier
from guardrails.core.values.dataclass import dataclass
from guardrails.core.values.names import TOKEN, own_name
from guardrails.core.values.schema import FromText, Ge, Gt
from guardrails.core.values.types import micro_dollars
from guardrails.core.values.units import Duration


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


@functools.lru_cache(maxsize=1024)
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
    return without_partials(function.func) if isinstance(function, functools.partial) else function


def from_annotations(annotations: Mapping[str, Any]) -> dict[str, Any]:
    """
    Returns MCP tool annotations as declarations. They are hints of a server, so no more is concluded than they say. A tool that may destroy is
    not read-only, whatever else is claimed.
    """
    said = {name: value for hint, name in _HINTS.items() if isinstance(value := annotations.get(hint), bool)}
    return {**said, "read_only": False} if said.get("destructive") else said


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
