"""
What a guard is: settings that look before a call and shape the envelope after it.
"""

import dataclasses
import functools
import re

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Template
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

from guardrails.core.retries.serving import Retried
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import Denial, Mode, Nudge, Outcome, ToolCall


if TYPE_CHECKING:
    from guardrails.core.envelope.envelope import Envelope
    from guardrails.core.state.state import Entry, SessionState


T = TypeVar("T", bound="Guard")
Verdict = Denial | Nudge | None
Codes = Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class Facts:
    """
    Everything a decision depends on that is neither in the call nor in the state; recorded, so that a replay is exact.
    """

    now_ms: int
    tool: Tool
    cost: int = 0
    """Estimated cost of the call in micro-dollars."""
    tokens: int = 0
    """Estimated tokens of the call."""
    turn: int = 0
    """Number of the present turn."""
    known: frozenset[str] | None = None
    """The tools there are; None: nobody said."""
    duration_ms: int = 0
    """Once the call is done: how long it took."""
    retried: Retried | None = None
    """Of a failure, where models are loaded: what they are asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """
    One guard of the chain. Its fields are its settings; it holds no state of its own.

    A subclass, made with `@guard`, may define any of the methods below. All of them are pure: they read the call, the
    state and the facts, and change nothing (`shape` may change the envelope it is given).
    """

    __pydantic_config__: ClassVar = {"extra": "forbid", "strict": True, "revalidate_instances": "always"}

    name: ClassVar[str] = "guard"
    """The key in a policy file and the prefix of the codes; the class name in snake case."""
    codes: ClassVar[Codes | None] = None
    """The codes it says, each with the names of its `values`, for a policy's own wording; None: not told."""
    aliases: ClassVar[dict[str, str]] = {}
    """Other accepted spellings of settings."""

    shapes_successes: ClassVar[bool] = True
    """False: `shape` has nothing to say of a success and is not asked."""

    mode: Mode = "enforce"
    """`observe` records what would have been said and changes nothing; `off` is as if it were not there."""

    @property
    def active(self) -> bool:
        """
        False where the settings make this guard say nothing ever; it then costs nothing.
        """
        return True

    @property
    def calls_spend(self) -> tuple[str, ...]:
        """
        Which of `spent` and `turn_spent` a call can bring about; only they are asked after one.
        """
        return ("spent", "turn_spent")

    def applies(self, tool: Tool) -> bool:
        """
        Whether it may have anything to say of calls of *tool*, by what the tool declares. Asked once for each tool.
        """
        return True

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        """
        Whether `check` may say anything of a fresh call of *tool*: valid, and like none that is remembered or runs.

        Asked once for each tool; *known* are the tools there are (None: nobody said).
        """
        return True

    def paths(self, call: ToolCall, tool: Tool) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """
        (path, folders) of each path that `check` wants to know of whether it really is in one of the folders; the answers
        are in `call.places` under this guard's name, in this order. What looks them up stands outside the core.

        Asked before the state is locked: what takes long can be worked out here, into a cache that `check` reads.
        """
        return ()

    def check(self, call: ToolCall, state: "SessionState", facts: Facts) -> Verdict:
        """
        Look at a call before it runs; None has nothing against it.
        """

    def charge(self, call: ToolCall, state: "SessionState", facts: Facts) -> dict[str, int]:
        """
        New values of this guard's counters for a call that is being admitted; `state.meter(key)` is the present value.
        """
        return {}

    def settle(self, call: ToolCall, outcome: Outcome, state: "SessionState", facts: Facts) -> dict[str, int]:
        """
        New values of this guard's counters once the call is done; `facts` holds the estimates that were charged.
        """
        return {}

    def shape(
        self, envelope: "Envelope", call: ToolCall, outcome: Outcome, state: "SessionState", facts: Facts
    ) -> "Envelope":
        """
        Change what the model will read of an outcome.
        """
        return envelope

    def spent(self, state: "SessionState", now_ms: int) -> Denial | None:
        """
        The session-ending cause that holds now; no further call may run.
        """

    def turn_spent(self, state: "SessionState", now_ms: int) -> Denial | None:
        """
        The session-ending cause that holds once the present turn is over; its own calls may still run.
        """

    def request(self, state: "SessionState", now_ms: int) -> dict[str, int]:
        """
        New values of counters when a model request starts.
        """
        return {}

    def usage(self, state: "SessionState", tokens: int, now_ms: int) -> dict[str, int]:
        """
        New values of counters when a model response used *tokens*.
        """
        return {}

    def settings(self) -> dict[str, Any]:
        """
        The settings that differ from the defaults.
        """
        return {f.name: value for f in dataclasses.fields(self) if (value := getattr(self, f.name)) != _default_of(f)}

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self.settings().items())
        return f"{type(self).__name__}({shown})"


def _default_of(field: "dataclasses.Field[Any]") -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


_PROMISES = {"check": "checks_fresh", "shape": "shapes_successes", "spent": "calls_spend", "turn_spent": "calls_spend"}


@dataclass_transform(kw_only_default=True, frozen_default=True)
def guard(cls: type[T]) -> type[T]:
    """
    Make a guard of a class: a frozen, slotted, keyword-only dataclass that knows its name.

    Raises TypeError where the class is no `Guard`.
    """
    if not (isinstance(cls, type) and issubclass(cls, Guard)):
        shown = getattr(cls, "__name__", None) or repr(cls)
        raise TypeError(f"`@guard` is for subclasses of `Guard`: write `class {shown}(Guard)`")
    if "name" not in cls.__dict__:
        cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
    for method, promise in _PROMISES.items():
        # What a parent promises of its own method is not promised of another that replaces it.
        if method in cls.__dict__ and promise not in cls.__dict__:
            setattr(cls, promise, getattr(Guard, promise))
    made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    _name_settings(made)
    return made


def _name_settings(cls: type[Guard]) -> None:
    plain: Callable[..., None] = cls.__init__
    own = [field.name for field in dataclasses.fields(cls) if field.name != "mode"] or ["mode"]

    @functools.wraps(plain)
    def __init__(self: Guard, *unnamed: Any, **settings: Any) -> None:  # noqa: N807
        if unnamed:
            written = ", ".join(f"{name}={value!r:.80}" for name, value in zip(own, unnamed, strict=False))
            raise TypeError(f"`{cls.__name__}` takes keyword arguments only: {cls.__name__}({written})")
        named: dict[str, Any] = {}
        for key, value in settings.items():
            name = cls.aliases.get(key, key)
            if name in named:
                raise TypeError(f"`{name}` is given twice, once as `{key}`")
            named[name] = value
        plain(self, **named)

    cls.__init__ = __init__  # type: ignore[method-assign]


def latest(state: "SessionState", sig: int | None) -> "Entry | None":
    """
    The latest executed call of signature *sig* that *state* remembers.
    """
    seq = None if sig is None else state.latest.get(sig)
    # The window has one entry for each number, so that none needs to be looked for.
    return None if seq is None else state.window[seq - state.window[0].seq]


def filled(text: str, values: Mapping[str, object], otherwise: str) -> str:
    """
    *text* with *values* for its placeholders; *otherwise* where one of them has none.
    """
    template = Template(text)
    return template.safe_substitute(values) if values.keys() >= set(template.get_identifiers()) else otherwise


def overrides(guard: Guard, method: str) -> bool:
    """
    Whether *guard* has a *method* of its own.
    """
    return getattr(type(guard), method) is not getattr(Guard, method)
