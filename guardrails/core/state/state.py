"""
The state of a session: the only thing that guards look at, and everything that changes it.

Rule 1: every transition lives in this file, those of scopes in `scope_state`, of failing tools in `failing`, of work that is
over in `worked`, of families in `family`. Rule 2: a transition is a pure function of the state and its arguments; the store
runs it atomically and may run it again on a fresh copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from guardrails.core.retries.context import Settled
from guardrails.core.retries.spec import MAX_LOOKBACK
from guardrails.core.values.session_time import read
from guardrails.core.values.types import Denial, Outcome, ToolCall, low, pending_key
from guardrails.core.values.types import Entry as Entry  # noqa: PLC0414  what a state is made of
from guardrails.core.values.types import Pending as Pending  # noqa: PLC0414

from .failing import Failing, note_refused
from .worked import end, tell


METERS: Final = 64
"""Named counters a session may hold; the last one is shared by all that come later (stricter, never looser)."""
OVERFLOW: Final = "*"
REMEMBERED_REFUSALS: Final = 16
"""Refused signatures kept to tell a first refusal from a repeated one."""
ADMISSION_MS: Final = 600_000
"""How long an admission may stay unsettled where its tool declares no timeout."""
GRACE_MS: Final = 1_000
"""How much longer where the library itself runs the call: it settles it at the timeout, and that must come first."""
NEVER: Final = 1 << 62


@dataclass(slots=True)
class SessionState:
    """
    Totals, a bounded window of recent calls and bounded named counters.
    """

    started_ms: int = -1
    """Time of the first event; -1 before it."""
    behind_ms: int = field(default=0, compare=False)
    """How far the clock was set back since the session began; what it says is that much too little. Below 0: set ahead."""
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
    requests: int = 0  # model requests started
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
    """Calls refused in the present turn that an earlier turn was refused already."""
    turn_refused: int = 0
    """How many of the latest `refusals` are the present turn's."""
    refused_turns: int = 0
    """Turns in a row, up to the previous one, of nothing but refusals."""
    denied_turns: int = 0
    """Those of them that repeated a refused call."""
    implied: int = 0
    """Turns that were told apart by when their calls started, while nobody told any."""
    turn_n: int = 0  # `n` when the latest of them began
    turn_ms: int = 0
    """When the first of the calls began that came so soon after each other, up to the latest."""
    call_ms: int = 0  # when the latest call was decided, while nobody told turns

    streak_tool: str = ""
    streak: int = 0
    streak_failures: int = 0  # failures in a row at the end of the streak
    changed_seq: int = 0
    """`seq` of the latest call that was admitted before work ended of which the window does not tell."""
    work: int = field(default=0, compare=False)
    """Begins and ends of work in its family that it knows of, while there are children."""
    working: dict[str, int] = field(default_factory=dict, compare=False)
    """Until when work of others of its family may run, by session id; kept by the root, a child has it in a step."""

    window: list[Entry] = field(default_factory=list)
    trail: list[Settled] = field(default_factory=list)
    """The latest calls that are over, oldest first: what the features of a failure are taken from."""
    results: dict[int, int] = field(default_factory=dict)
    """`seq` of the latest call in the window that is over, by result hash."""
    dull_seq: int = 0
    """`seq` of the latest call that failed, was empty, or brought what another in the window had brought."""
    latest: dict[int | None, int] = field(default_factory=dict)
    """`seq` of the latest call in the window, by signature: to look here is all that most calls need."""
    failing: dict[str, Failing] = field(default_factory=dict)
    """The tools whose latest call failed, by name, as far as they are followed."""
    pending: dict[tuple[str, int | None], Pending] = field(default_factory=dict)
    meters: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    """Limits of this session that differ from its policy's: raised by `extend`, given to a child."""
    refusals: list[int] = field(default_factory=list)
    """Signatures of the latest refused calls as `low` gives them, the newest last."""
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
    def mark(self) -> int:
        """
        What the calls of the present turn are marked by, 1 to 255; 0 before there is a turn.
        """
        number = self.turn + self.implied
        return (number - 1) % 255 + 1 if number else 0

    @property
    def only_refused(self) -> bool:
        """
        Whether every call that was decided in the present turn was refused.
        """
        if self.turn:
            return self.turn_admitted == 0
        return not self.window or self.window[-1].turn != self.mark

    def refused_before(self, sig: int | None) -> bool:
        """
        Whether a call of signature *sig* was refused in an earlier turn.
        """
        return sig is not None and low(sig) in self.refusals[: len(self.refusals) - self.turn_refused]

    def refused_now(self, sig: int | None) -> bool:
        """
        Whether a call of signature *sig* was refused in the present turn.
        """
        return low(sig) in self.refusals[len(self.refusals) - self.turn_refused :]

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
    The session's time when the clock says *now_ms*: it never goes back, nor does it leap by a year.
    """
    return now_ms if state.started_ms < 0 else read(state.now_ms, state.behind_ms, now_ms)[0]


def touch(state: SessionState, now_ms: int) -> int:
    """
    Let time pass; the clamped time.
    """
    if state.started_ms < 0:
        state.started_ms = state.now_ms = now_ms
    else:
        state.now_ms, state.behind_ms = read(state.now_ms, state.behind_ms, now_ms)
    return state.now_ms


def number(state: SessionState) -> int:
    """
    Draw the number of the next event.
    """
    state.n += 1
    return state.n


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
        end(state, pending.entry)
        if pending.entry.changes:
            tell(state)
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
    state.denied_turns = state.refused_turns = 0
    if tool == state.streak_tool:
        state.streak += 1
    else:
        state.streak_tool, state.streak, state.streak_failures = tool, 1, 0
    state.held_cost += cost
    state.held_tokens += tokens
    entry = Entry(seq, tool, sig, now, changes)
    entry.turn = state.mark
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
    if changes:
        tell(state)
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
    if denial.strike:
        _remember_refusal(state, call.sig)
    if denial.ends_session and denial.scope is None:
        exhaust(state, denial)
    return number(state)


def _remember_refusal(state: SessionState, sig: int | None) -> None:
    if state.refused_now(sig):
        # Calls of one turn do not know of each other's refusals.
        return
    key, known = low(sig), state.refusals
    if state.refused_before(sig):
        state.turn_strikes += 1
        known.remove(key)
    known.append(key)
    del known[:-REMEMBERED_REFUSALS]
    state.turn_refused = min(state.turn_refused + 1, REMEMBERED_REFUSALS)


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
    if entry.seq != state.seq:
        end(state, entry)
    if entry.worked:
        tell(state)
    # A call from before the streak says nothing of it, though it be of the same tool.
    if pending.seq > state.seq - state.streak:
        state.streak_failures = state.streak_failures + 1 if failed else 0
    state.trail.append(Settled(entry.tool, entry.sig, entry.error_type, state.now_ms))
    del state.trail[:-MAX_LOOKBACK]


def end_turn(state: SessionState) -> None:
    """
    Close the present turn: one that only repeated refused calls is a strike.
    """
    count_refusals(state)
    state.turn_decided = state.turn_admitted = 0


def count_refusals(state: SessionState) -> None:
    """
    Count the present turn, which is over, if it had nothing but refusals.
    """
    if state.turn_refused and state.only_refused:
        state.refused_turns += 1
        state.denied_turns += state.turn_strikes > 0
    state.turn_strikes = state.turn_refused = 0


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
    state.exhausted = None
    state.denied_turns = state.refused_turns = state.turn_strikes = state.turn_refused = 0
    state.refusals.clear()
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
