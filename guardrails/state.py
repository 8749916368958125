"""
The state of a session: the only thing that guards look at, and everything that changes it.

Rule 1: every transition lives in this file, those of scopes in `scope_state`, of failing tools in `failing`. Rule 2: a
transition is a pure function of the state and its arguments; the store runs it atomically and may run it again on a fresh
copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from .failing import Failing, note_refused
from .retries.context import Settled
from .retries.spec import MAX_LOOKBACK
from .types import NO_TIME, WITHOUT_EFFECT, Denial, ErrorType, Outcome, ToolCall


METERS: Final = 64
"""Named counters a session may hold; the last one is shared by all that come later (stricter, never looser)."""
OVERFLOW: Final = "*"
REMEMBERED_PROBLEMS: Final = 8
"""Signatures of invalid calls kept to tell a first validation error from a repeated one."""
ADMISSION_MS: Final = 600_000
"""How long an admission may stay unsettled where its tool declares no timeout."""
GRACE_MS: Final = 1_000
"""How much longer where the library itself runs the call: it settles it at the timeout, and that must come first."""
NEVER: Final = 1 << 62
STEP_BACK_MS: Final = 1_000
"""A clock that is further behind was set back; less is two threads that read it before they took the lock."""

EntryStatus = Literal["running", "ok", "error", "expired"]


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
    """After a failure: when a retry may run."""
    retries_left: int = 0
    """After a failure: how many more identical calls are a retry; 0 after a success or a lasting failure."""
    explored: bool = False  # a retry of it is advised only to learn from what comes of it
    turn: int = 0  # low 8 bits of its turn's number
    sketch: int = 0  # its arguments, where `Loops` looked at them; see `repetition`
    steady: int = 0  # 32 bits of its result but for what is volatile, or of the family of its failure; 0: not taken
    empty: bool = False  # it brought nothing
    unfinished: bool = False  # it said that what is waited for is not there yet

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


@dataclass(slots=True)
class SessionState:
    """
    Totals, a bounded window of recent calls and bounded named counters.
    """

    started_ms: int = -1
    """Time of the first event; -1 before it."""
    behind_ms: int = field(default=0, compare=False)
    """How far the clock was set back since the session began; what it says is that much too little."""
    now_ms: int = 0
    """The latest time seen; time never goes back."""
    n: int = 0  # events so far: the number of the latest record
    seq: int = 0  # executed calls so far, children's excluded
    calls: int = 0
    """Admitted calls, those of closed children included."""
    turns: int = 0
    """Turns with an admitted call."""
    cost: int = 0  # micro-dollars: settled calls and charged model responses
    tokens: int = 0
    requests: int = 0
    """Model requests started."""
    unpriced: int = 0
    """Model responses whose price is unknown."""
    held_cost: int = 0
    """Estimates of admitted, unsettled calls."""
    held_tokens: int = 0
    reserved: dict[str, dict[str, int]] = field(default_factory=dict)
    """What children hold, by child: limit name to amount."""

    turn: int = 0
    """Number of the present turn; 0 before the first `begin_turn`."""
    turn_expects: int = 0  # how many calls the present turn has; 0: unknown
    turn_decided: int = 0
    turn_admitted: int = 0
    turn_strikes: int = 0
    denied_turns: int = 0
    """Turns in a row, up to the previous one, in which every decided call was denied."""

    streak_tool: str = ""
    streak: int = 0
    streak_failures: int = 0  # failures in a row at the end of the streak
    changed_seq: int = 0
    """`seq` of the latest admitted call that may have changed something."""

    window: list[Entry] = field(default_factory=list)
    trail: list[Settled] = field(default_factory=list)
    """The latest calls that are over, oldest first: what the features of a failure are taken from."""
    results: dict[int, int] = field(default_factory=dict)
    """`seq` of the latest call in the window that is over, by result hash."""
    dull_seq: int = 0
    """`seq` of the latest call that failed, was empty, or brought what another in the window had brought."""
    refused: int = 0
    """Turns with a refusal since a call was last admitted; 0 where nobody tells turns."""
    latest: dict[int | None, int] = field(default_factory=dict)
    """`seq` of the latest call in the window, by signature: to look here is all that most calls need."""
    failing: dict[str, Failing] = field(default_factory=dict)
    """The tools whose latest call failed, by name, as far as they are followed."""
    pending: dict[tuple[str, int | None], Pending] = field(default_factory=dict)
    meters: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    """Limits of this session that differ from its policy's: raised by `extend`, given to a child."""
    problems: list[int] = field(default_factory=list)
    exhausted: tuple[str, str] | None = None
    """(code, message) of the first cause that ended the session."""
    closed: bool = False
    run: str = field(default="", compare=False)
    """Which life of the session this is, drawn by who records it; `""`: not recorded."""
    shared: int = field(default=0, compare=False)
    """Events of its children so far, which share its counters."""
    family: tuple[str, int, int] | None = field(default=None, compare=False)
    """Of a child, in a step: its root's life, `n` and `shared`, which place the event among those of the family."""

    def limit(self, name: str, default: int | None) -> int | None:
        """
        The limit *name* of this session.
        """
        return self.limits.get(name, default) if self.limits else default

    def meter(self, key: str) -> int:
        """
        The counter *key*, 0 where it was never charged.
        """
        value = self.meters.get(key)
        if value is None and len(self.meters) >= METERS - 1:
            return self.meters.get(OVERFLOW, 0)
        return value or 0

    def reserved_by_children(self, name: str) -> int:
        """
        How much of limit *name* children hold.
        """
        return sum(held.get(name, 0) for held in self.reserved.values()) if self.reserved else 0

    @property
    def elapsed_ms(self) -> int:
        """
        Milliseconds from the first event to the latest.
        """
        return self.now_ms - self.started_ms if self.started_ms >= 0 else 0

    def earlier(self, sig: int | None, last: int) -> Sequence[Entry]:
        """
        The calls of signature *sig* among the *last* executed ones, newest first.
        """
        if sig is None or sig not in self.latest:
            return ()
        after = self.seq - last
        return [entry for entry in reversed(self.window) if entry.sig == sig and entry.seq > after]


def time_of(state: SessionState, now_ms: int) -> int:
    """
    The session's time when the clock says *now_ms*: it never goes back.
    """
    return max(now_ms + state.behind_ms, state.now_ms)


def touch(state: SessionState, now_ms: int) -> int:
    """
    Let time pass; the clamped time.
    """
    if state.started_ms < 0:
        state.started_ms = state.now_ms = now_ms
        return now_ms
    now = now_ms + state.behind_ms
    if now >= state.now_ms:
        state.now_ms = now
    elif state.now_ms - now > STEP_BACK_MS and now_ms != NO_TIME:
        # The clock was set back. Standing still until it has caught up would make honest calls look like a rush.
        state.behind_ms += state.now_ms - now
    return state.now_ms


def number(state: SessionState) -> int:
    """
    Draw the number of the next event.
    """
    state.n += 1
    return state.n


def pending_key(call_id: str, sig: int | None, seq: int | None) -> tuple[str, int | None]:
    """
    Where an admission is kept: a call that cannot be signed is never the same call as another, so it has its own place.
    """
    return (f"{call_id}#{seq}", None) if sig is None else (call_id, sig)


def set_meter(state: SessionState, key: str, value: int) -> None:
    """
    Set the counter *key*. Raises TypeError where *value* is no int: a guard made it.
    """
    if type(value) is not int or type(key) is not str:
        raise TypeError(f"a counter is an int by name, not `{key!r:.40}`: `{value!r:.40}`")
    full = key not in state.meters and len(state.meters) >= METERS - 1
    state.meters[OVERFLOW if full else key] = value


def expire(state: SessionState) -> list[Pending]:
    """
    Give up admissions that are overdue: their estimate stays charged, a late outcome changes nothing.
    """
    overdue = [pending for pending in state.pending.values() if pending.expires_ms <= state.now_ms]
    for pending in overdue:
        del state.pending[pending_key(pending.id, pending.sig, pending.seq)]
        state.held_cost -= pending.cost
        state.held_tokens -= pending.tokens
        state.cost += pending.cost
        state.tokens += pending.tokens
        pending.entry.status = "expired"
    return overdue


def admit(
    state: SessionState,
    call: ToolCall,
    cost: int,
    tokens: int,
    timeout_ms: int | None,
    changes: bool,  # noqa: FBT001
    claimed: bool,  # noqa: FBT001
    window: int,
) -> Pending:
    """
    Charge a call and open its admission; *window* is how many executed calls are remembered.
    """
    tool, sig, now = call.tool, call.sig, state.now_ms
    state.n, state.seq = n, seq = state.n + 1, state.seq + 1
    state.calls += 1
    state.turn_decided += 1
    state.turns += state.turn_admitted == 0
    state.turn_admitted += 1
    state.denied_turns = state.refused = 0
    if tool == state.streak_tool:
        state.streak += 1
    else:
        state.streak_tool, state.streak, state.streak_failures = tool, 1, 0
    if changes:
        state.changed_seq = seq
    state.held_cost += cost
    state.held_tokens += tokens
    entry = Entry(seq, tool, sig, now, changes)
    entry.turn = state.turn & 0xFF
    if call.sketch is not None:
        entry.sketch = call.sketch
    state.window.append(entry)
    state.latest[sig] = seq
    if len(state.window) > window:
        oldest = state.window.pop(0)
        if state.latest.get(oldest.sig) == oldest.seq:
            del state.latest[oldest.sig]
        if state.results.get(oldest.result_hash) == oldest.seq:
            del state.results[oldest.result_hash]
    expires = now + (ADMISSION_MS if timeout_ms is None else timeout_ms)
    if claimed:
        expires += GRACE_MS
    pending = Pending(seq, n, call.id, tool, sig, now, expires, cost, tokens, state.turn, claimed, entry)
    state.pending[pending_key(call.id, None, seq) if sig is None else (call.id, sig)] = pending
    return pending


def take_up(state: SessionState, pending: Pending) -> int:
    """
    Let an admission be run: its time starts now, not when it was asked for; the number of the event.
    """
    pending.claimed = True
    pending.expires_ms += state.now_ms - pending.at_ms + GRACE_MS
    return number(state)


def deny(state: SessionState, call: ToolCall, denial: Denial) -> int:
    """
    Note a refused call: nothing is charged, the window does not age; the number of its event.
    """
    state.turn_decided += 1
    note_refused(state.failing, call, denial.code, state.seq)
    strike = denial.strike
    if denial.status == "validation_error" and call.sig is not None and call.sig not in state.problems:
        state.problems.append(call.sig)
        del state.problems[:-REMEMBERED_PROBLEMS]
        strike = False
    if strike:
        state.refused += state.turn > 0 and state.turn_strikes == 0
        state.turn_strikes += 1
    if denial.ends_session and denial.scope is None:
        exhaust(state, denial)
    return number(state)


def exhaust(state: SessionState, cause: Denial) -> None:
    """
    End the session; the first cause stays.
    """
    if state.exhausted is None:
        state.exhausted = (cause.code, cause.message)


def settle(
    state: SessionState, pending: Pending, outcome: Outcome, result_hash: int, steady: int = 0, empty: int = 0
) -> None:
    """
    Replace the estimate of an admission by what it really cost, and note how it ended; *empty* as `emptiness` says.
    """
    del state.pending[pending_key(pending.id, pending.sig, pending.seq)]
    state.held_cost -= pending.cost
    state.held_tokens -= pending.tokens
    state.cost += pending.cost if outcome.cost is None else outcome.cost
    state.tokens += pending.tokens if outcome.tokens is None else outcome.tokens
    entry, failed = pending.entry, outcome.error_type is not None
    entry.status, entry.error_type = "error" if failed else "ok", outcome.error_type
    entry.result_hash, entry.steady, entry.empty, entry.unfinished = result_hash, steady, empty == 2, empty == 3
    if failed or entry.empty or result_hash in state.results:
        state.dull_seq = entry.seq
    if state.results.get(result_hash, 0) < entry.seq >= state.window[0].seq:
        state.results[result_hash] = entry.seq
    # A call from before the streak says nothing of it, though it be of the same tool.
    if pending.seq > state.seq - state.streak:
        state.streak_failures = state.streak_failures + 1 if failed else 0
    state.trail.append(Settled(entry.tool, entry.sig, entry.error_type, state.now_ms))
    del state.trail[:-MAX_LOOKBACK]


def end_turn(state: SessionState) -> None:
    """
    Close the present turn: a turn in which every decided call was refused is a strike.
    """
    if state.turn_admitted == 0 and state.turn_strikes > 0:
        state.denied_turns += 1
    state.turn_decided = state.turn_admitted = state.turn_strikes = 0


def begin_turn(state: SessionState, calls: int) -> None:
    """
    Open the next turn, of *calls* calls (0: unknown).
    """
    state.turn += 1
    state.turn_expects = calls


def charge(state: SessionState, cost: int | None, tokens: int) -> None:
    """
    Charge a model response; *cost* in micro-dollars, None where its price is unknown.
    """
    state.unpriced += cost is None
    state.cost += cost or 0
    state.tokens += tokens


def extend(state: SessionState, limits: dict[str, int]) -> None:
    """
    Set limits and let an exhausted session go on; the refused turns so far are forgiven, blown fuses replaced.
    """
    state.limits.update(limits)
    state.exhausted, state.denied_turns, state.turn_strikes = None, 0, 0
    state.meters = {key: value for key, value in state.meters.items() if value >= 0}


def reserve(state: SessionState, child: str, amounts: dict[str, int]) -> None:
    """
    Hold *amounts* for the session *child*.
    """
    state.reserved[child] = amounts


def release(state: SessionState, child: str, used: dict[str, int]) -> None:
    """
    Give back what the session *child* held, and charge what it used.
    """
    if state.reserved.pop(child, None) is None:
        return
    state.calls += used.get("max_calls", 0)
    state.turns += used.get("max_turns", 0)
    state.cost += used.get("max_cost", 0)
    state.tokens += used.get("max_tokens", 0)
