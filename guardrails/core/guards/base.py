"""
The base of guards: settings that look before a call, shape the envelope after it, and remember one value of a session. A guard finds here
all that it speaks in.

Promises, each with a test:

* A guard is asked by at most six hooks. `check`, `shape` and `spent` change nothing that it remembers; `admit`, `settle` and `event`
  return the new value, and change the old one never: what a guard counted is taken back whole if another fails.
* The value is plain data (None, bool, int, float, text, lists, tuples and dicts of them). It is packed with the state.
* An attribute that a guard, the state or the facts do not have is an error of the guard.
"""

import dataclasses
import re

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self, TypeVar, dataclass_transform

from guardrails.core.state import Entry, SessionState
from guardrails.core.tool import Tool
from guardrails.core.values.schema import Checked, suggestion
from guardrails.core.values.types import Denial, Mode, Nudge, Outcome, ToolCall


if TYPE_CHECKING:
    from guardrails.core.envelope import Envelope
    from guardrails.core.guards.budget import Limits
    from guardrails.core.guards.evidence import Again
    from guardrails.core.retries.model import RetryModel
    from guardrails.core.retries.serving import Advice


__all__ = ["Codes", "Denial", "Edge", "Entry", "Event", "Facts", "Guard", "Keys", "Nudge", "Outcome", "SessionState"]
__all__ += ["Tool", "ToolCall", "Verdict", "counter", "guard", "laid", "map_of", "overrides", "respelt"]
TOOLS: Final = 64
"""Tools that are counted by themselves; further ones share one count, for names come from the model."""
NO_TOOL: Final = Tool(name="-")
"""Stands for the tool where it is about no call."""


class Facts:
    """
    Everything a decision depends on that is neither in the call nor in the state; recorded, so that a replay is exact.
    """

    now_ms: int
    tool: Tool
    cost: int
    """Estimated cost of the call, or of the model request, in micro-dollars."""
    tokens: int
    """Estimated tokens of it."""
    turn: int
    """Number of the present turn."""
    known: frozenset[str] | None = None
    """The tools there are; None: nobody said."""
    turn_over: bool = False
    """The present turn is over: a limit of turns counts too."""
    request: bool = False
    """It is about a model request."""
    ahead: bool = False
    """What is next is a model request: money for a usual one counts too."""
    holder: str = ""
    """In a scope: the session that the call, or the request, is of."""
    least: int = 0
    """Micro-dollars of the cheapest tool, if no tool is free and the session may end by that."""
    seq: int = 0
    """Number of the call among the executed ones; 0: it has none."""
    over: bool = False
    """A call is over: a limit of calls was named to the call that used it up."""
    expires_ms: int = 0
    """Of a call that is admitted: when its admission ends."""
    entry: Entry | None = None
    """Of a call that is over: what is remembered of it; None if it is late."""
    failed: Entry | None = None
    """Of a call that is to be decided: the latest same call of its session, if that failed."""
    again: "Again | None" = None
    """Of a call that is to be decided: what the same calls before it tell, once a guard has asked."""
    duration_ms: int = 0
    """Once the call is done: how long it took."""
    late: bool = False
    """Its admission was given up before."""
    unknown: bool = False
    """Nobody knows how it ended, and it is not to be made twice: the same call will be refused."""
    hints: tuple[tuple[str, str], ...] = ()
    """Of a call that is over: (code, hint) of the nudges before it ran; those that `shape` leaves there are said with its result."""
    models: "Mapping[str, RetryModel] | None" = None
    """The learned models that are loaded."""
    advised: "Advice | None" = None
    """Of a failure that is replayed: the verdict of a model, as it was recorded."""

    def __init__(
        self, now_ms: int, tool: Tool = NO_TOOL, cost: int = 0, tokens: int = 0, turn: int = 0, **more: Any
    ) -> None:
        self.now_ms, self.tool, self.cost, self.tokens, self.turn = now_ms, tool, cost, tokens, turn
        if more:
            # The look at its names makes a dict of them, which takes longer than all the rest.
            vars(self).update(more)


class Event(NamedTuple):
    """
    Something that happened and is no call that ran: its name and values, as the record has them.

    `refusal` (code, sig, strike, tool), `advised`, `turn`, `charge`, `request`, `release`, `extend`, `reserve`, `unpark`, `expire`, `withdraw`.
    """

    name: str
    values: Mapping[str, Any]


class Edge(NamedTuple):
    """
    In a scope: a guard that goes by the sum of the amounts *names* alone lets a call through as long as that is at most *most* with it.

    The names are those that a scope counts (`calls`, `cost` and `held_cost` in micro-dollars, `tokens`, `held_tokens`), or keys of the
    numbers that the guard remembers.
    """

    names: tuple[str, ...]
    most: int
    floor: int | None = None
    """Of the level of a bucket, which runs out by itself: what it is at least by now."""


T = TypeVar("T", bound="Guard")
Verdict = Denial | Nudge | None
Codes = Mapping[str, tuple[str, ...]]


class Map(dict[str, Any]):
    """
    A setting with keys of its own, such as `cycle: {nudge: 2, deny: 3}`. It has a hash, as a guard does, so that nothing may change it.
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


map_of: Any = Map
"""
Returns the default of a setting with keys of its own; the ones that are given are laid upon it.
"""
Keys = partial(Checked, Map)
"""
Mark of an `Annotated` setting that is a map, `Keys()`. Its keys are those of the `TypedDict`; any of them may be left out, and others are
refused.
"""


def laid(given: Any, below: Any) -> Any:
    """
    Returns *given* for a setting that is *below*: of a map key by key.
    """
    return Map({**below, **given}) if isinstance(below, Map) and isinstance(given, Mapping) else given


def respelt(given: Mapping[str, Any], aliases: Mapping[str, str], error: type[Exception] = TypeError) -> dict[str, Any]:
    """
    Returns the settings *given* under their own names. Raises *error* if one is given by two names.
    """
    names = [aliases.get(key, key) for key in given]
    for key, name in zip(given, names, strict=True):
        if key != name and names.count(name) > 1:
            raise error(f"`{name}` is given twice, once as `{key}`")
    return dict(zip(names, given.values(), strict=True))


class _Slot:
    """
    A place for what a guard works out of its settings, once.
    """

    __slots__ = ("_bound",)
    _bound: Any


@dataclass_transform(kw_only_default=True, frozen_default=True)
def _frozen(cls: type[T]) -> type[T]:
    # The methods that dataclasses write for each class took a quarter of a start: `Guard` has them once, for all.
    return dataclass(init=False, repr=False, eq=False, slots=True)(cls)


@_frozen
class Guard(_Slot):
    """
    One guard of the chain. Its fields are its settings.

    A subclass, made with `@guard`, may define any of the six hooks. All of them are pure.
    """

    name: ClassVar[str] = "guard"
    """The key in a policy file and the prefix of the codes; the class name in snake case."""
    codes: ClassVar[Codes | None] = None
    """Its codes, each with the names of its `values`, for a policy's own wording; None: not declared."""
    aliases: ClassVar[dict[str, str]] = {}
    """Other accepted names of settings."""
    events: ClassVar[tuple[str, ...]] = ()
    """The events of which its hook `event` is asked."""
    family: ClassVar[bool] = False
    """What it remembers is of the whole family: of a session and its children."""
    ends_by_calls: ClassVar[bool] = True
    """Whether a call that was admitted, or is over, may bring the end that `spent` finds; else it is asked after other events only."""
    ends_by_turns: ClassVar[bool] = False
    """Whether the next turn of a host that announces none may bring it."""
    in_families: ClassVar[tuple[str, ...]] = ()
    """Those of its hooks `admit` and `settle` that have something to do in a session with a parent or children only."""
    only_failures: ClassVar[bool] = False
    """Its `shape` is asked of failures only."""

    needs: ClassVar[Mapping[str, str]] = {}
    """By setting, what it goes by that not every host has: what is told of a `request` or a `response` of the model, or the `run` of a tool."""
    tool_settings: ClassVar[tuple[str, ...] | None] = None
    """The settings that a `tools:` rule may have; None: all of them, `()`: it is about whole sessions."""
    scope_settings: ClassVar[tuple[str, ...] | None] = None
    """The settings that it may have in a scope; None: all of them. A guard without `edges` has no place there."""
    listed: ClassVar[str | None] = None
    """The setting that a list stands for, in a policy file: `approve: [pay_*]`."""
    files: ClassVar[tuple[str, ...]] = ()
    """Settings that name a file, relative to the policy file."""
    model_kind: ClassVar[str | None] = None
    """The format of the learned model that its setting `model` names; None: it asks none."""

    mode: Mode = "enforce"
    """`observe` records its verdicts and changes nothing; `off` is as if it were not there."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init__(self, **settings: Any) -> None:
        kind, given, none = type(self).__name__, respelt(settings, self.aliases), dataclasses.MISSING
        for field in (fields := dataclasses.fields(self)):
            default = field.default if field.default_factory is none else field.default_factory()
            value = laid(given.pop(field.name, default), default)
            if value is none:
                raise TypeError(f"`{kind}` needs a value for `{field.name}`")
            object.__setattr__(self, field.name, value)
        for name in given:
            raise TypeError(f"`{kind}` has no setting `{name}`{suggestion(name, [field.name for field in fields])}")
        self.__post_init__()

    def __post_init__(self) -> None:
        """
        Work out of the settings what is needed of them, once.
        """

    def __setattr__(self, name: str, *value: Any) -> None:
        raise dataclasses.FrozenInstanceError(f"settings do not change: `{name}` of `{self}`")

    __delattr__ = __setattr__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.settings() == other.settings()

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, field.name) for field in dataclasses.fields(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self.settings()), ()

    def __init_subclass__(cls) -> None:
        if "check" in cls.__dict__ and "checks_fresh" not in cls.__dict__:
            # What a parent promises of its own method is not promised of another that replaces it.
            cls.checks_fresh = Guard.checks_fresh  # type: ignore[method-assign]

    # The six hooks.

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        """
        Look at a call before it runs. Returns None if there is no objection.
        """

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        """
        Returns what it remembers once a call was admitted.
        """
        return mine

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts) -> Any:
        """
        Returns what it remembers once a call is over; *facts* holds the charged estimates, and whether it is late.
        """
        return mine

    def shape(
        self, envelope: "Envelope", call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts
    ) -> "Envelope | None":
        """
        Change what the model will read of an outcome. Returns None, or what is read in place of *envelope*.
        """

    def spent(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        """
        Returns the cause that ends the session now; no further call may run. With `facts.request`, why a model request is not to be made.
        """

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        """
        Returns what it remembers after *event*, one of its `events`.
        """
        return mine

    def edges(self, state: SessionState, mine: Any, now_ms: int) -> Sequence[Edge] | None:
        """
        Returns, in a scope, where it begins to answer otherwise: what others add below that changes nothing. A scope holds amounts, so that
        a guard without this hook is refused there. None: by its settings it goes by more, so that of two steps at once one is done again.
        """

    # What the chain asks of it, once.

    @property
    def key(self) -> str:
        """
        The name of what it remembers.
        """
        return self.name

    def companions(self) -> tuple["Guard", ...]:
        """
        Returns guards that remember something for it, where the policy has none of their key.
        """
        return ()

    @classmethod
    def implied(cls, tool: Tool) -> "Guard | None":
        """
        Returns the guard that a declaration of *tool* stands for, where the policy has none of this kind.
        """

    def asks(self, tool: str) -> bool:
        """
        Returns whether a person has to approve calls of *tool*: if it fails, they are refused.
        """
        return False

    @property
    def auto_ms(self) -> int | None:
        """
        The longest wait after which the library makes a failed call again by itself; None: it never does.
        """

    def applies(self, tool: Tool) -> bool:
        """
        Returns whether it is about *tool*, by its settings and the tool's declarations. Asked once for each tool.
        """
        return True

    def for_tool(self, tool: Tool) -> "Guard | None":
        """
        Returns what of it is about *tool*; None: nothing.
        """
        return self if self.applies(tool) else None

    def hears(self, hook: str) -> bool:
        """
        Returns whether *hook*, one of the six, has something to do by its settings. Asked once for each set of guards.
        """
        return overrides(self, hook)

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        """
        Returns whether `check` may object to a fresh call of *tool*: valid, and like none that is remembered or runs.

        Asked once for each tool; *known* are the tools there are (None: nobody said).
        """
        return True

    @property
    def remembers(self) -> int:
        """
        Executed calls that a session has to remember for it.
        """
        return 0

    @property
    def result_bytes(self) -> int | None:
        """
        Bytes of serialised text that are kept of a result; None keeps all.
        """

    @property
    def limits(self) -> "Limits | None":
        """
        The limits of the session that `extend` raises, a child shares and the envelope names; None if it holds none.
        """

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> None:
        """
        Raise ValueError if *settings*, each valid by itself, do not go together.
        """

    @classmethod
    def ruled(cls, own: "Guard | None", settings: Mapping[str, Any]) -> tuple["Guard", ...]:
        """
        Returns the guards of a tool whose `tools:` rule has *settings*; *own* is the policy's guard, None without one.
        """
        return (cls(**settings),) if own is None else (own.but(settings),)

    def prepare(self) -> None:
        """
        Read what its settings name, once, when a policy is made. Raises GuardrailsError.
        """

    def paths(self, call: ToolCall, tool: Tool) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """
        Returns (path, folders) of each path of which `check` asks if it really is in one of the folders. `call.places`
        has the answers, in this order, under this guard's name. Code outside the core looks them up.

        It is asked before the state is locked: slow work can be done here, into a cache that `check` reads.
        """
        return ()

    def but(self, settings: Mapping[str, Any]) -> Self:
        """
        Returns the same with other *settings*, of maps key by key.
        """
        named = respelt(settings, self.aliases).items()
        return dataclasses.replace(self, **{name: laid(value, getattr(self, name, None)) for name, value in named})

    def settings(self) -> dict[str, Any]:
        """
        Returns the settings that differ from the defaults.
        """
        named = ((field, getattr(self, field.name)) for field in dataclasses.fields(self))
        return {field.name: value for field, value in named if value != field.default}

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self.settings().items())
        return f"{type(self).__name__}({shown})"

    __repr__ = __str__


@dataclass_transform(kw_only_default=True, frozen_default=True)
def guard(cls: type[T]) -> type[T]:
    """
    Make a guard of a class: a frozen, slotted, keyword-only dataclass that knows its name, and its settings by each of their spellings.

    Raises TypeError if the class is no `Guard`, or a setting has a name that every guard has.
    """
    if not (isinstance(cls, type) and issubclass(cls, Guard)):
        raise TypeError(f"`@guard` is for subclasses of `Guard`, and `{cls!r:.80}` is none")
    if "name" not in cls.__dict__:
        cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
    made = _frozen(cls)
    for name in {field.name for field in dataclasses.fields(made)}.intersection(Guard.__dict__) - {"mode"}:
        raise TypeError(f"`{cls.__name__}.{name}`: every guard has a `{name}` of another kind; name it otherwise")
    return made


def counter(mine: Any, tool: str, prefix: str = "") -> str:
    """
    Returns the key by which a guard counts *tool* in what it remembers.
    """
    key = prefix + tool
    return key if not mine or key in mine or len(mine) < TOOLS else prefix


def overrides(guard: Guard | type[Guard], method: str) -> bool:
    """
    Returns whether *guard* has a *method* of its own.
    """
    cls = guard if isinstance(guard, type) else type(guard)
    return getattr(cls, method) is not getattr(Guard, method)
