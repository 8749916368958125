"""
The vocabulary of the library: values that every other module speaks in, and the closed lists.

Nothing here does anything. Times are integers in milliseconds since 1970, money is integer micro-dollars (1 USD =
1,000,000), so that sums are exact.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, get_args


if TYPE_CHECKING:
    from guardrails.core.envelope import Envelope
    from guardrails.core.text.truncation import Rendered

Status = Literal["success", "error", "validation_error", "duplicate_call_blocked", "limit_reached", "denied"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)

_Answered = Literal["auth", "permission", "rate_limit", "validation", "not_found", "conflict", "precondition"]
_Broken = Literal["server_error", "unavailable", "timeout", "connection", "cancelled"]
_Local = Literal["tool_missing", "invalid_path", "too_large", "exec_nonzero", "code_error", "other"]
ErrorType = Literal[_Answered, _Broken, _Local]
"""What a service answers, why there is no answer, and what fails on this side."""
INVALID: Final = "validation_error"
"""Error type of calls that were refused because their arguments did not fit: they did not run."""
ERROR_TYPES: Final[tuple[ErrorType, ...]] = get_args(ErrorType)

NextAction = Literal["retry", "fix_arguments", "fix_precondition", "ask_user", "give_up"]
Mode = Literal["enforce", "observe", "off"]

MICRO: Final = 1_000_000
MAX_AMOUNT: Final = 2**53
"""Micro-dollars (nine billion USD), and tokens, that can be stored anywhere."""


def micro_dollars(usd: float | str | Decimal) -> int:
    """
    Returns *usd* as integer micro-dollars, halves to even, at most `MAX_AMOUNT`; the decimal the reader sees is what counts (0.1 is
    100,000).

    Raises ValueError if *usd* is no finite number.
    """
    try:
        exact = Decimal(str(usd)) * MICRO
        if exact.is_finite():
            exact = max(Decimal(-MAX_AMOUNT), min(exact, Decimal(MAX_AMOUNT)))
        return int(exact.to_integral_value(ROUND_HALF_EVEN))
    except (ArithmeticError, ValueError):
        raise ValueError(f"not an amount in USD: `{usd!s:.100}`") from None


def claimed(usd: Any, tokens: Any) -> tuple[int | None, int | None]:
    """
    Returns the micro-dollars and the tokens that a tool says a call used. None, which keeps the estimate, for what is no amount; a larger
    claim than `MAX_AMOUNT` counts as that.
    """
    try:
        cost = micro_dollars(usd)
    except (TypeError, ValueError):
        cost = -1
    used = min(tokens, MAX_AMOUNT) if isinstance(tokens, int) else -1
    return cost if cost >= 0 else None, used if used >= 0 else None


class Problem(NamedTuple):
    """
    One thing that is wrong with the arguments of a call.
    """

    field: str
    """Dotted path of the argument, `""` for the arguments as a whole."""
    message: str
    kind: Literal["json", "missing", "unknown", "type", "value"]
    """json: not readable; missing: required and absent; unknown: no such argument; type, value: there, but wrong."""


@dataclass(slots=True)
class ToolCall:
    """
    One call as the guards see it: arguments already coerced, signature already taken.
    """

    tool: str
    arguments: Any
    id: str
    signature: bytes | None
    """xxh3-128 of tool and canonical arguments, 16 bytes; None if the arguments cannot be signed."""
    sig: int | None
    """The low 64 bits of *signature*, signed: what state and records carry."""
    problems: tuple[Problem, ...] = ()
    canonical: bytes | None = None
    """The arguments in canonical form, JSON; None if they cannot be signed."""
    places: Mapping[str, tuple[bool, ...]] | None = None
    """Whether each path that a guard asked about really is where it must be, symbolic links followed, by the guard's name;
    None: nobody looked."""
    sketch: int | None = None
    """The number by which calls that are worded alike are found, see `similarity`; None if nobody looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nudge:
    """
    A guard's hint: the call runs, *hint* goes into its envelope.
    """

    code: str
    hint: str
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Denial:
    """
    A guard's objection: the call does not run, the model reads an envelope made of this.

    A denial is a value with a code, the numbers and a next step; *message* says what, *hint* what to do instead.
    """

    code: str
    message: str
    hint: str = ""
    status: Status = "denied"
    _: KW_ONLY
    ends_session: bool = False
    """The session is exhausted: tools are off and the model is to write its final answer."""
    retryable: bool = False
    retry_after_ms: int | None = None
    strike: bool = True
    """Counts towards `denials.max_turns_in_a_row`."""
    running: bool = False
    """Of a repeat: the same call still runs, so that no earlier result is its answer."""
    parks: int | None = None
    """A person may allow the call: it is admitted, and waits so many milliseconds for an answer; 0: until there is one."""
    scope: str | None = None
    """The scope whose limit it is; None: the session's own."""
    details: dict[str, Any] = field(default_factory=dict)
    """Further envelope fields, such as `errors` of a `validation_error`."""
    values: Mapping[str, object] = field(default_factory=dict)
    """The numbers behind the message, for a policy's own wording: `$limit`, `$used`, ..."""

    def __post_init__(self) -> None:
        if self.status in ("success", "error"):
            raise ValueError(f"a denial is no `{self.status}`: the tool did not run")


@dataclass(slots=True)
class Success:
    """
    A value with the true cost of the call, which an executor may return instead of a bare value.
    """

    value: Any
    cost_usd: float | str | Decimal | None = None
    tokens: int | None = None


@dataclass(slots=True)
class Failed:
    """
    A failure that the host of a call reports: an executor may return it, or `complete` be given it. The *message* tells
    how the call failed.

    Without an *error_type* of the closed list the message tells which it is. A *value* is what came beside the message.
    """

    message: str
    _: KW_ONLY
    error_type: ErrorType | None = None
    value: Any = None
    cost_usd: float | str | Decimal | None = None
    tokens: int | None = None
    unknown: bool = False
    """Nobody knows whether the call happened."""


@dataclass
class Outcome:
    """
    The result of an executor, in the library's words: a value, or an error of the closed list.
    """

    value: Any = None
    """JSON-like value, text, or an `Envelope`; generators and bytes are already resolved. None after an exception; a
    result that says it failed is kept where it says more than the message."""
    error_type: ErrorType | None = None
    """None: it worked."""
    error_message: str = ""
    """Redacted, capped, never a traceback."""
    http_status: int | None = None
    retry_after_ms: int | None = None
    cost: int | None = None
    """Actual cost in micro-dollars; None keeps the estimate."""
    tokens: int | None = None
    complete: bool = True
    """False: the value was cut while it was collected (an endless generator)."""
    retryable: bool | None = None
    """The same call may work later, or never will: a claim of the tool, or plain from the failure; None: nobody says."""
    retries: int | None = None
    """Further tries that the tool itself says are left."""

    @property
    def ok(self) -> bool:
        """
        The call worked.
        """
        return self.error_type is None


class End(Outcome):
    """
    An outcome with all that costs time already done, outside of any lock.
    """

    rendered: "Rendered | None" = None
    """The value as the model reads it, once that is made."""
    hash: int = 0
    """Evidence: 64 bits of it, once it is rendered; of a failure without its digits."""
    steady: int = 0
    """Of a success, where asked for, what is not volatile; of a failure its family; 0: not taken."""
    came: int = 0
    """What it brought, a place in `state.CAME`."""
    own: "Envelope | None" = None
    """The envelope that the tool itself made."""
    unknown: bool = False
    """The call may have happened: what runs it raised a time limit or a cancellation, and nobody ended its work."""
    unread: bool = False
    """The call was answered before: no model reads this."""
    at_ms: int = 0
    """When it was read, by the clock of its session."""

    @classmethod
    def of(cls, outcome: Outcome, **known: Any) -> Self:
        """
        Returns *outcome* as the end of a call, with what else is *known* of it.
        """
        made = cls.__new__(cls)
        made.__dict__.update(vars(outcome), **known)
        return made
