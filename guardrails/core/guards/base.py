"""
The base of guards: settings that look before a call and shape the envelope after it.
"""

import dataclasses
import re

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, dataclass_transform

from guardrails.core.retries.serving import Retried
from guardrails.core.state.entries import Entry
from guardrails.core.state.holds import NOTHING
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import Denial, Mode, Nudge, Outcome, ToolCall

from .session_limits import Far, Limits
from .settings import default_of, laid, named_only, respelt


if TYPE_CHECKING:
    from guardrails.core.envelope.envelope import Envelope
    from guardrails.core.retries.model import RetryModel
    from guardrails.core.state.state import Entry, SessionState


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
    guess: tuple[int, int] = NOTHING
    """Of what nobody estimates, what calls of the tool have used on average: micro-dollars, tokens."""
    retried: Retried | None = None
    """Of a failure, where models are loaded: what they are asked."""
    failed: Entry | None = None
    """Of a call that is to be decided: the latest same call of its session, if that failed."""
    no_retry: Denial | None = None
    """Of a failure: why it is not to be repeated though it may pass."""
    models: "Mapping[str, RetryModel] | None" = None
    """Of a call whose arguments do not fit: the models that are loaded."""


T = TypeVar("T", bound="Guard")
Verdict = Denial | Nudge | None
Codes = Mapping[str, tuple[str, ...]]


_PROMISES = {"check": ("checks_fresh", "far"), "spent": ("far",), "turn_spent": ("far",)}
"""By method what is promised of it."""


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
    """Other accepted spellings of settings; `cycle.nudge` is a key of the setting `cycle`."""

    tool_settings: ClassVar[tuple[str, ...] | None] = None
    """The settings that a `tools:` rule may have; None: all of them, `()`: it is about whole sessions."""
    scope_settings: ClassVar[tuple[str, ...] | None] = None
    """The settings that it may have in a scope; None: all of them, `()`: it looks at one session's own calls."""
    listed: ClassVar[str | None] = None
    """The setting that a list stands for, in a policy file: `approve: [pay_*]`."""
    unwritten: ClassVar[tuple[str, ...]] = ()
    """Settings that no file has."""
    files: ClassVar[tuple[str, ...]] = ()
    """Settings that name a file, relative to the policy file."""
    nudges_repeats: ClassVar[bool] = False
    """True: what it nudges is left out of the envelope of a call that brought something new."""
    sees_unfit: ClassVar[bool] = True
    """Whether it looks at a call whose arguments do not fit the tool, though `validation` refuses that call."""

    mode: Mode = "enforce"
    """`observe` records what would have been said and changes nothing; `off` is as if it were not there."""

    def __init_subclass__(cls) -> None:
        for method, promises in _PROMISES.items():
            for promise in promises:
                # What a parent promises of its own method is not promised of another that replaces it.
                if method in cls.__dict__ and promise not in cls.__dict__:
                    setattr(cls, promise, getattr(Guard, promise))

    def applies(self, tool: Tool) -> bool:
        """
        Returns whether it is about *tool*, by its settings and the tool's declarations. Asked once for each tool.
        """
        return True

    # Promises: a guard is not asked where it says that it would say nothing. `testing.promises` holds it to them.

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        """
        Returns whether `check` may object to a fresh call of *tool*: valid, and like none that is remembered or runs.

        Asked once for each tool; *known* are the tools there are (None: nobody said).
        """
        return True

    def far(self) -> Far | None:
        """
        Returns the test of far limits: then `check`, `spent` and `turn_spent` say nothing of a fresh call.
        """
        return None

    # What it asks of the library.

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
        return None

    @property
    def limits(self) -> Limits | None:
        """
        The limits of the session that `extend` raises, a child shares and the envelope tells; None if it holds none.
        """
        return None

    @property
    def retry_model(self) -> str | None:
        """
        The model file that it asks of a failure, by `facts.retried`.
        """
        return None

    @property
    def explores(self) -> float | None:
        """
        The share of failures that it calls retryable only to learn from them; None without one.
        """
        return None

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

    # What it does.

    def paths(self, call: ToolCall, tool: Tool) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """
        Returns (path, folders) of each path of which `check` asks if it really is in one of the folders. `call.places`
        has the answers, in this order, under this guard's name. Code outside the core looks them up.

        It is asked before the state is locked: slow work can be done here, into a cache that `check` reads.
        """
        return ()

    def check(self, call: ToolCall, state: "SessionState", facts: Facts) -> Verdict:
        """
        Look at a call before it runs. Returns None if there is no objection.
        """

    def charge(self, call: ToolCall, state: "SessionState", facts: Facts) -> dict[str, int]:
        """
        Returns new values of this guard's counters for a call that is being admitted; `state.meter(key)` is the old
        one.
        """
        return {}

    def undo(self, tool: str, state: "SessionState", facts: Facts) -> dict[str, int]:
        """
        Returns new values of this guard's counters for a call of *tool* that was admitted and never ran.
        """
        return {}

    def settle(self, call: ToolCall, outcome: Outcome, state: "SessionState", facts: Facts) -> dict[str, int]:
        """
        Returns new values of this guard's counters once the call is done; `facts` holds the charged estimates.
        """
        return {}

    def shape(
        self, envelope: "Envelope", call: ToolCall, outcome: Outcome, state: "SessionState", facts: Facts
    ) -> "Envelope":
        """
        Change what the model will read of an outcome.
        """
        return envelope

    def shape_failure(
        self, envelope: "Envelope", call: ToolCall, outcome: Outcome, state: "SessionState", facts: Facts
    ) -> "Envelope":
        """The same, of failures only."""
        return envelope

    def spent(self, state: "SessionState", now_ms: int) -> Denial | None:
        """
        Returns the session-ending cause that holds now; no further call may run.
        """

    def blown(self, state: "SessionState", now_ms: int) -> Denial | None:
        """
        Returns the same, if no call brings it about: it is not asked for after one.
        """

    def turn_spent(self, state: "SessionState", now_ms: int) -> Denial | None:
        """
        Returns the session-ending cause that holds once the present turn is over; its own calls may still run.
        """

    def turn_refused(self, state: "SessionState", now_ms: int) -> Denial | None:
        """
        Returns the same, if refusals bring it about: it is not asked for after a call that ran.
        """

    def request(self, state: "SessionState", now_ms: int) -> dict[str, int]:
        """
        Returns new values of counters when a model request starts.
        """
        return {}

    def usage(self, state: "SessionState", tokens: int, now_ms: int) -> dict[str, int]:
        """
        Returns new values of counters when a model response used *tokens*.
        """
        return {}

    def response(
        self,
        state: "SessionState",
        cost: int | None,
        tokens: int,
        model: str | None,
        untold: bool,
    ) -> dict[str, int]:
        """
        Returns new values of counters after a response of *model* was charged. A *cost* of None: its price is unknown
        or, if *model* is None too, not asked for. With *untold* it did not tell its usage.
        """
        return {}

    def but(self, settings: Mapping[str, Any]) -> Self:
        """
        Returns the same with other *settings*, of maps key by key.
        """
        named, _ = respelt(settings, self.aliases)
        return dataclasses.replace(
            self, **{name: laid(value, getattr(self, name, None)) for name, value in named.items()}
        )

    def settings(self) -> dict[str, Any]:
        """
        Returns the settings that differ from the defaults.
        """
        return {f.name: value for f in dataclasses.fields(self) if (value := getattr(self, f.name)) != default_of(f)}

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self.settings().items())
        return f"{type(self).__name__}({shown})"


@dataclass_transform(kw_only_default=True, frozen_default=True)
def guard(cls: type[T]) -> type[T]:
    """
    Make a guard of a class: a frozen, slotted, keyword-only dataclass that knows its name.

    Raises TypeError if the class is no `Guard`, or a setting has a name that every guard has.
    """
    if not (isinstance(cls, type) and issubclass(cls, Guard)):
        shown = getattr(cls, "__name__", None) or repr(cls)
        raise TypeError(f"`@guard` is for subclasses of `Guard`: write `class {shown}(Guard)`")
    if "name" not in cls.__dict__:
        cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
    made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    named_only(made, Guard.__dict__.keys())
    return made


def latest(state: "SessionState", sig: int | None) -> "Entry | None":
    """
    Returns the latest executed call of signature *sig* that *state* remembers.
    """
    seq = None if sig is None else state.latest.get(sig)
    # The window has one entry for each number, so that none needs to be looked for.
    return None if seq is None else state.window[seq - state.window[0].seq]


def overrides(guard: Guard | type[Guard], method: str) -> bool:
    """
    Returns whether *guard* has a *method* of its own.
    """
    cls = guard if isinstance(guard, type) else type(guard)
    return getattr(cls, method) is not getattr(Guard, method)
