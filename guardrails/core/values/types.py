"""
The vocabulary of the library: values that every other module speaks in, and the closed lists.

Nothing here does anything. Times are integers in milliseconds since 1970, money is integer micro-dollars (1 USD =
1,000,000), so that sums are exact.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, Self, get_args


Status = Literal["success", "error", "validation_error", "duplicate_call_blocked", "limit_reached", "denied"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)

ErrorType = Literal[
    "auth",
    "permission",
    "rate_limit",
    "validation",
    "not_found",
    "conflict",
    "precondition",
    "server_error",
    "unavailable",
    "timeout",
    "connection",
    "cancelled",
    "tool_missing",
    "invalid_path",
    "too_large",
    "exec_nonzero",
    "code_error",
    "other",
]
ERROR_TYPES: Final[tuple[ErrorType, ...]] = get_args(ErrorType)
WITHOUT_EFFECT: Final[frozenset[ErrorType | None]] = frozenset({"tool_missing"})
"""Failures before which nothing was done. A call that failed otherwise may have done half of its work: `mkdir a && cp b a`."""

NextAction = Literal["retry", "fix_arguments", "fix_precondition", "ask_user", "give_up"]
RetrySource = Literal["agent", "policy", "explore"]
MANY: Final = 255
"""Calls admitted beside one that runs, from which on they are not counted."""
EntryStatus = Literal["running", "ok", "error", "expired"]
Mode = Literal["enforce", "observe", "off"]

MICRO: Final = 1_000_000
NO_TIME: Final = -1
"""The time of a clock that fails, in milliseconds: the session\'s time stands still."""


@lru_cache(maxsize=1024)
def micro_dollars(usd: float | str | Decimal) -> int:
    """
    *usd* as integer micro-dollars, halves to even; the decimal the reader sees is what counts (0.1 is 100,000).

    Raises ValueError where *usd* is no finite number.
    """
    try:
        return int((Decimal(str(usd)) * MICRO).to_integral_value(ROUND_HALF_EVEN))
    except (ArithmeticError, ValueError):
        raise ValueError(f"not an amount in USD: `{usd}`") from None


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
    """xxh3-128 of tool and canonical arguments, 16 bytes; None where the arguments cannot be signed."""
    sig: int | None
    """The low 64 bits of *signature*, signed: what state and records carry."""
    problems: tuple[Problem, ...] = ()
    canonical: bytes | None = None
    """The arguments in canonical form, JSON; None where they cannot be signed."""
    asked: Any = None
    """The arguments for the echo to the model: the tool may change those that it is given. None: as they are."""
    places: Mapping[str, tuple[bool, ...]] | None = None
    """Whether each path that a guard asked about really is where it must be, symbolic links followed, by the guard's name;
    None: nobody looked."""
    sketch: int | None = None
    """What `repetition` tells calls that are worded alike by; None: nobody looked."""
    news: bool | None = None
    """Whether it has a value that a result has shown since its tool began to fail, not tried yet; None: nobody looked."""

    @classmethod
    def signed(
        cls,
        tool: str,
        arguments: Any,
        call_id: str,
        signed: tuple[bytes | None, int | None, bytes | None],
        problems: tuple[Problem, ...],
        asked: Any,
    ) -> Self:
        """
        A call whose `signature`, `sig` and `canonical` arguments are *signed*.
        """
        made = cls.__new__(cls)
        made.tool, made.arguments, made.id = tool, arguments, call_id
        made.signature, made.sig, made.canonical = signed
        made.problems = problems
        made.asked = asked
        made.places = made.sketch = made.news = None
        return made

    def note_sketch(self, sketch: int) -> int:
        """
        Keep the *sketch* that was taken of it.
        """
        self.sketch = sketch
        return sketch

    def note_news(self, *, news: bool) -> bool:
        """
        Keep whether it brings *news*.
        """
        self.news = news
        return news


@dataclass(frozen=True, slots=True, kw_only=True)
class Nudge:
    """
    A guard's hint: the call runs, *hint* goes into its envelope.
    """

    code: str
    hint: str
    values: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """
    A guard's objection: the call does not run, the model reads an envelope made of this.

    A denial is a value with a code, the numbers and a next step; *message* says what, *hint* what to do instead.
    """

    code: str
    message: str
    hint: str = ""
    status: Status = "denied"
    ends_session: bool = False
    """The session is exhausted: tools are off and the model is to write its final answer."""
    retryable: bool = False
    retry_after_ms: int | None = None
    strike: bool = True
    """Counts towards `denials.max_turns_in_a_row`."""
    running: bool = False
    """Of a repeat: the same call still runs, so that no earlier result is its answer."""
    scope: str | None = None
    """The scope whose limit it is; None: the session's own."""
    details: dict[str, Any] = field(default_factory=dict)
    """Further envelope fields, such as `errors` of a `validation_error`."""
    values: dict[str, object] = field(default_factory=dict)
    """The numbers behind the message, for a policy's own wording: `$limit`, `$used`, ..."""

    def __post_init__(self) -> None:
        if self.status in ("success", "error"):
            raise ValueError(f"a denial is no `{self.status}`: the tool did not run")


@dataclass(slots=True)
class Success:
    """
    What an executor may return instead of a bare value: the value with what the call really cost.
    """

    value: Any
    cost_usd: float | str | Decimal | None = None
    tokens: int | None = None


@dataclass(slots=True)
class Outcome:
    """
    What the executor did, in the library's words: a value, or an error of the closed list.
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


@dataclass(slots=True)
class Entry:
    """
    One executed call in the window.
    """

    seq: int
    """Position among the executed calls of the session, from 1."""
    tool: str
    sig: int | None
    at_ms: int
    changes: bool = True
    """It may have changed something."""
    status: EntryStatus = "running"
    error_type: ErrorType | None = None
    result_hash: int = 0
    """Evidence: of a success as it is, of an error with digits deleted."""
    retry_at_ms: int = 0
    """After a failure: when a retry may run; 0 where nobody advised one, and tries are left all the same."""
    retries_left: int = 0
    """After a failure: how many more identical calls are a retry; 0 after a success or a lasting failure."""
    explored: bool = False  # a retry of it is advised only to learn from what comes of it
    turn: int = 0  # mark of its turn, see `SessionState.mark`
    beside: int = 0  # calls that were admitted while it ran; `MANY` stands for that many or more
    sketch: int = 0  # its arguments, where `Loops` looked at them; see `repetition`
    steady: int = 0  # 32 bits of its result but for what is volatile, or of the family of its failure; 0: not taken
    empty: bool = False  # it brought nothing
    unfinished: bool = False  # it said that what is waited for is not there yet

    @classmethod
    def begun(cls, seq: int, tool: str, sig: int | None, at_ms: int, changes: bool, *, turn: int, sketch: int) -> Self:  # noqa: FBT001
        """
        Of a call that is just admitted.
        """
        made = cls.__new__(cls)
        made.seq, made.tool, made.sig, made.at_ms, made.changes, made.turn = seq, tool, sig, at_ms, changes, turn
        made.status = "running"
        made.error_type = None
        made.result_hash = made.retry_at_ms = made.retries_left = made.beside = made.steady = 0
        made.explored = made.empty = made.unfinished = False
        made.sketch = sketch
        return made

    @property
    def advised(self) -> bool:
        """
        Whether its envelope said that the same call may be made again.
        """
        return self.retries_left > 0 and self.retry_at_ms > 0

    def due(self, now_ms: int) -> bool:
        """
        Whether the wait before the same call is over, if it failed for a cause that may pass.
        """
        return 0 < self.retry_at_ms <= now_ms

    @property
    def worked(self) -> bool:
        """
        Whether it may have changed something, as far as its end tells.
        """
        return self.changes and self.error_type not in WITHOUT_EFFECT


@dataclass(slots=True)
class Pending:
    """
    An admission that is not settled yet.
    """

    seq: int
    n: int
    """Number of its `call` event."""
    id: str
    tool: str
    sig: int | None
    at_ms: int
    expires_ms: int
    cost: int
    tokens: int
    turn: int
    claimed: bool
    entry: Entry
    hints: tuple[tuple[str, str], ...] = ()
    """(code, hint) of the nudges."""
    limit: tuple[str, str] | None = None
    """(code, message) of the limit that this call used up."""

    @classmethod
    def opened(
        cls,
        call_id: str,
        entry: Entry,
        *,
        n: int,
        expires_ms: int,
        cost: int,
        tokens: int,
        turn: int,
        claimed: bool,
        hints: tuple[tuple[str, str], ...] = (),
        limit: tuple[str, str] | None = None,
    ) -> Self:
        """
        That of the call *call_id*, as its *entry* in the window tells it.
        """
        made = cls.__new__(cls)
        made.seq, made.tool, made.sig, made.at_ms, made.entry = entry.seq, entry.tool, entry.sig, entry.at_ms, entry
        made.n = n
        made.id = call_id
        made.expires_ms = expires_ms
        made.cost = cost
        made.tokens = tokens
        made.turn = turn
        made.claimed = claimed
        made.hints = hints
        made.limit = limit
        return made


def low(sig: int | None) -> int:
    """
    As much of a signature as is kept of a refused call: 32 bits, -1 where there is none.
    """
    return -1 if sig is None else sig & 0xFFFF_FFFF


def pending_key(call_id: str, sig: int | None, seq: int | None) -> tuple[str, int | None]:
    """
    Where an admission is kept: a call that cannot be signed is never the same call as another, so it has its own place.
    """
    return (f"{call_id}#{seq}", None) if sig is None else (call_id, sig)
