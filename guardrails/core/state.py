"""
The memory of a session, and every transition that is the session's own.

Promises, each with a test:

* A state is numbers, the calls of its window, its open admissions, and `own`: one value of each guard that is there. No
  field is a guard's.
* An admission has a life that can be printed, `LIFE`: nothing happens to one but what the table says.
* A call that was admitted counts, whatever becomes of it. One that never ran (a person refused it, or it was released) gives back
  what it held, and is no evidence.
* An end that nobody knows is kept in `uncertain` until somebody says how it was, if the call is not to be made twice.
* Time never goes back, and does not leap by a year. It stands still while every open call waits for a person.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self

from guardrails.core.values.errors import WITHOUT_EFFECT
from guardrails.core.values.types import Denial, ErrorType, Outcome, ToolCall


if TYPE_CHECKING:
    from guardrails.core.chain import Plan

NEVER: Final = 1 << 62
MANY: Final = 255
"""Calls admitted beside one that runs, from which on they are not counted."""
ADMISSION_MS: Final = 600_000
"""How long an admission may stay unsettled where its tool declares no timeout."""
GRACE_MS: Final = 1_000
"""How much longer where the library itself runs the call: it settles it at the timeout, and that must come first."""
APPROVED_MS: Final = 86_400_000
"""How long an approval holds where no time was given, and how long a host may take to go on with a call."""
OVERLAP_MS: Final = 60_000
"""How long calls that start while another of their turn runs are of that turn: what never ends must not hide a loop."""
TOGETHER_MS: Final = 100
"""How soon after the first another refused call is of its turn: a model takes longer to read a refusal and answer."""
REFUSED: Final = 16
STEP_BACK_MS: Final = 1_000
"""A clock that is further behind was set back; less is two threads that read it before they took the lock."""
MEND_MS: Final = 3_600_000
"""A clock that was set back by more, and has caught up with the session's time at once, was wrong while it was behind."""
LEAP_MS: Final = 366 * 86_400_000
"""A clock that says so much later from one event to the next was set ahead: nobody pauses for that long."""
UNCERTAIN: Final = 64
"""Calls of a session whose end is unknown; the oldest is forgotten first."""
SHOWN_BYTES: Final = 16_384
"""Of the arguments that a person is shown."""
KEYS: Final = 64
"""Responses whose keys are kept, as 6 bytes of a hash: the same may be named again after so many others, and counts again."""

Stage = Literal["open", "running", "parked", "approved", "suspended", "over"]
OPEN: Final[tuple[Stage, ...]] = ("open", "running", "suspended")
ASKED: Final[tuple[Stage, ...]] = ("parked", "approved")
LIFE: Final[Mapping[str, tuple[tuple[Stage, ...], Stage]]] = {
    "claim": (("open", "approved", "suspended"), "running"),
    "ask": (("approved", "suspended"), "open"),
    "park": (("open",), "parked"),
    "approve": (("parked",), "approved"),
    "suspend": (("open", "running"), "suspended"),
    "settle": (OPEN, "over"),
    "lapse": (ASKED, "over"),
    "refuse": ((*ASKED, "suspended"), "over"),
    "withdraw": ((*OPEN, *ASKED), "over"),
}
"""The life of an admission: by what happens, the stages in which it may, and the stage after it. It is admitted `open`, `parked` while it
waits for a person, `approved` until it is made, and `suspended` while its host goes on with it later."""

WAITING: Final = ("parked", "suspended")
"""Stages of a call that waits for a person or a host."""
EntryStatus = Literal["running", "ok", "error", "expired"]


CAME: Final = ("", "little", "empty", "unfinished", "brief")
"""Of a success that brought not much, by number: it only acknowledged what was done; nothing was found; what is waited for is not there
yet; one short line or value."""
LITTLE, EMPTY, UNFINISHED, BRIEF = range(1, len(CAME))


@dataclass
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
    turn: int = 0
    """Mark of its turn, see `Turn.mark`."""
    sketch: int = 0
    """Its arguments, where a guard looked at them."""
    status: EntryStatus = "running"
    error_type: ErrorType | None = None
    result_hash: int = 0
    """Evidence: of a success as it is, of an error with digits deleted."""
    lasting: bool = False
    """Its envelope said that the same call fails again."""
    retries_left: int = 0
    """How many more identical calls its envelope advised."""
    retry_at_ms: int = 0
    """From when on."""
    overlaps: int = 0
    """Calls that were admitted while it ran; `MANY` stands for that many or more."""
    steady: int = 0
    """32 bits of the news in its result, or of the family of its failure; 0: not taken."""
    came: int = 0
    """What its result brought, a place in `CAME`."""

    @property
    def worked(self) -> bool:
        """
        Whether it may have changed something, as far as its end tells.
        """
        return self.changes and self.error_type not in WITHOUT_EFFECT


@dataclass(frozen=True, slots=True)
class Question:
    """
    The question to a person about a call, and what binds the answer to its arguments.
    """

    at_ms: int
    """Since when it waits, or when it was approved."""
    lasts_ms: int = 0
    """How long it waits, and how long the approval holds; 0: without an end."""
    code: str = ""
    message: str = ""
    hint: str = ""
    reason: str = ""
    """Why a person is asked."""
    digest: str = field(default="", compare=False)
    """A hash of the tool and all of its arguments; `""` in a replay without them."""
    shown: str = field(default="", compare=False)
    """The arguments as JSON, cut, until the question is answered."""

    @classmethod
    def about(cls, call: ToolCall, denial: Denial, now_ms: int) -> Self:
        """
        Returns the question about *call* that a guard asks by its *denial*.
        """
        shown = (call.canonical or b"")[:SHOWN_BYTES].decode(errors="ignore")
        reason = str(denial.values.get("reason", ""))
        words = denial.code, denial.message, denial.hint, reason
        return cls(now_ms, denial.parks or 0, *words, digest_of(call), shown)

    def binds(self, call: ToolCall) -> bool:
        """
        Returns whether it was about the very arguments of *call*, as far as both are known.
        """
        return "" in (self.digest, own := digest_of(call)) or self.digest == own


def digest_of(call: ToolCall) -> str:
    """
    Returns a hash of the tool and all of the arguments of *call*; `""` if they are not known.
    """
    if call.canonical is None:
        return ""
    from hashlib import blake2b  # and with it OpenSSL: 5 ms

    return blake2b(b"\0".join((call.tool.encode(errors="surrogatepass"), call.canonical)), digest_size=16).hexdigest()


class Uncertain(NamedTuple):
    """
    A call that is not to be made twice, and whose end nobody knows.
    """

    id: str
    n: int
    """Number of its `call` event."""
    seq: int
    tool: str
    at_ms: int
    reason: str = ""
    """Why a person said that it is never to be made again; empty: nobody said anything."""
    came: bool = False
    """It came late that it worked, and the model does not know."""


@dataclass
class Pending:
    """
    An admission that is not settled yet.
    """

    entry: Entry
    id: str
    """The model's id of the call."""
    n: int
    """Number of its `call` event."""
    expires_ms: int
    cost: int = 0
    """Held, in micro-dollars."""
    tokens: int = 0
    turn: int = 0
    stage: Stage = "open"
    once: bool = False
    """If nobody knows how it ended, it is not made again."""
    hints: tuple[tuple[str, str], ...] = ()
    """(code, hint) of what guards said without refusing."""
    limit: tuple[str, str, str] | None = None
    """(code, message, hint) of the limit that this call used up."""
    question: Question | None = None

    @property
    def seq(self) -> int:
        return self.entry.seq

    @property
    def sig(self) -> int | None:
        return self.entry.sig

    @property
    def tool(self) -> str:
        return self.entry.tool

    @property
    def at_ms(self) -> int:
        return self.entry.at_ms


def low(sig: int | None) -> int:
    """
    Returns 32 bits of a signature, enough to tell the few that are kept from each other; -1 if there is none.
    """
    return -1 if sig is None else sig & 0xFFFFFFFF


@dataclass(slots=True)
class Turn:
    """
    The present turn of a session.
    """

    number: int = 0
    """Turns that its host announced."""
    expects: int = 0
    """Calls of it; 0: unknown."""
    decided: int = 0
    admitted: int = 0
    implied: int = 0
    """Turns that were told by the times of calls, as long as none is announced."""
    since_ms: int = 0
    """When the latest of them began."""
    refused: list[int] = field(default_factory=list)
    """32 bits of the signatures refused in it, of refusals that count."""

    @property
    def mark(self) -> int:
        """
        Its mark, from 1 to 255; 0: there was no turn.
        """
        number = self.number + self.implied
        return (number - 1) % 255 + 1 if number else 0

    @property
    def is_whole(self) -> bool:
        """
        Whether no call of it is to come, as far as is known.
        """
        return self.decided >= self.expects


class Family(NamedTuple):
    """
    The place of a child's event in its family.
    """

    name: str
    """The child's id."""
    run: str
    """The root's life."""
    n: int
    """Its latest number."""
    place: int
    """Of this event after it."""


@dataclass(slots=True)
class SessionState:
    """
    Everything that is remembered of a session, or of what several sessions share.
    """

    n: int = 0
    """Number of the latest event."""
    seq: int = 0
    """Number of the latest admitted call."""
    calls: int = 0
    turns: int = 0
    """Turns that had an admitted call."""
    cost: int = 0
    """Micro-dollars."""
    tokens: int = 0
    started_ms: int = -1
    now_ms: int = 0
    behind_ms: int = field(default=0, compare=False)
    """How far the clock is behind the session's time."""
    stood_ms: int = 0
    """Of its time, how long it stood still."""
    present: Turn = field(default_factory=Turn)
    keys: dict[str, bool] = field(default_factory=dict)
    """By a hash of its key the latest responses that were named by one: whether they were charged."""
    window: list[Entry] = field(default_factory=list)
    latest: dict[int | None, int] = field(default_factory=dict)
    """By signature, the number of the latest call of the window."""
    pending: dict[int, Pending] = field(default_factory=dict)
    """By number the admissions that are open."""
    uncertain: dict[int, Uncertain] = field(default_factory=dict)
    """By signature the calls that are not to be made twice and whose end is unknown."""
    limits: dict[str, int] = field(default_factory=dict)
    """Limits that were raised."""
    reserved: dict[str, dict[str, int]] = field(default_factory=dict)
    """By child what is held for it."""
    exhausted: tuple[str, str, str] | None = None
    """(code, message, hint) of what ended it."""
    closed: bool = False
    own: dict[str, Any] = field(default_factory=dict)
    """By guard what it remembers: plain data, which is never changed in place."""
    run: str = field(default="", compare=False)
    """The name of this life; `""`: nobody records."""
    shared: int = field(default=0, compare=False)
    """Events of its children."""
    family: Family | None = field(default=None, compare=False)
    """Of a child, for one step."""

    @property
    def held_cost(self) -> int:
        """
        Micro-dollars that are held for open calls.
        """
        return sum(one.cost for one in self.pending.values()) if self.pending else 0

    @property
    def held_tokens(self) -> int:
        """
        Tokens that are held for open calls.
        """
        return sum(one.tokens for one in self.pending.values()) if self.pending else 0

    @property
    def name(self) -> str:
        """
        The id of a child; `""`: it is none.
        """
        return "" if self.family is None else self.family.name

    def limit(self, name: str, default: int | None) -> int | None:
        """
        Returns the limit *name*, as it was raised.
        """
        return self.limits.get(name, default) if self.limits else default

    def reserved_by_children(self, name: str) -> int:
        """
        Returns how much of the limit *name* is held for children.
        """
        return sum(each.get(name, 0) for each in self.reserved.values()) if self.reserved else 0

    @property
    def only_refused(self) -> bool:
        """
        Whether the present turn has no admitted call.
        """
        if self.present.number:
            return self.present.admitted == 0
        return not self.window or self.window[-1].turn != self.present.mark

    def waited_ms(self, now_ms: int) -> int:
        """
        Returns the milliseconds up to *now_ms* in which every open call waited for a person or a host.
        """
        if self.reserved:
            return self.stood_ms
        until = now_ms
        for pending in self.pending.values():
            if pending.stage not in WAITING:
                return self.stood_ms
            until = min(until, pending.expires_ms)
        return self.stood_ms + max(0, until - self.now_ms)

    def spent_ms(self, now_ms: int) -> int:
        """
        Returns milliseconds from the first event to *now_ms*, without those in which its time stood still.
        """
        stood_ms = self.waited_ms(now_ms) if self.pending else self.stood_ms
        return 0 if self.started_ms < 0 else now_ms - self.started_ms - stood_ms

    def last(self, sig: int | None) -> Entry | None:
        """
        Returns the latest call of signature *sig* that is remembered.
        """
        seq = None if sig is None else self.latest.get(sig)
        # The window has one entry for each number, so that none needs to be looked for.
        return None if seq is None else self.window[seq - self.window[0].seq]


# Time


def read_clock(latest_ms: int, behind_ms: int, now_ms: int) -> tuple[int, int]:
    """
    Returns the session's time when the clock says *now_ms*, and how far the clock is then behind it.

    Both *latest_ms* and *behind_ms* are of the latest event. The time goes on from a clock that was set: standing still until it has
    caught up would make honest calls look like a rush, and a leap that is believed would end the session for good.
    """
    if behind_ms > MEND_MS and now_ms >= latest_ms:
        behind_ms = 0
    ahead = now_ms + behind_ms - latest_ms
    if -STEP_BACK_MS <= ahead <= LEAP_MS:
        return max(latest_ms, latest_ms + ahead), behind_ms
    return latest_ms, behind_ms - ahead


def time_of(state: SessionState, now_ms: int) -> int:
    """
    Returns the session's time when the clock says *now_ms*.
    """
    return now_ms if state.started_ms < 0 else read_clock(state.now_ms, state.behind_ms, now_ms)[0]


def touch(state: SessionState, now_ms: int) -> int:
    """
    Let time pass. Returns the session's time.
    """
    if state.started_ms < 0:
        state.started_ms = state.now_ms = now_ms
        return now_ms
    if state.behind_ms or not 0 <= now_ms - state.now_ms <= LEAP_MS:
        now_ms, state.behind_ms = read_clock(state.now_ms, state.behind_ms, now_ms)
    if state.pending and next(iter(state.pending.values())).stage in WAITING:
        state.stood_ms = state.waited_ms(now_ms)
    state.now_ms = now_ms
    return now_ms


# The life of an admission


def move(pending: Pending, event: str) -> bool:
    """
    Let *event* happen to an admission. Returns whether it may, by `LIFE`; nothing happens if not.
    """
    stages, after = LIFE[event]
    if pending.stage not in stages:
        return False
    pending.stage = after
    return True


def admit(state: SessionState, call: ToolCall, plan: "Plan", window: int, *, claims: bool) -> Pending:
    """
    Count a call, hold its estimate, and open its admission, which who *claims* it runs. *window* executed calls are remembered.
    """
    sig, now, turn, entries, latest = call.sig, state.now_ms, state.present, state.window, state.latest
    state.n = n = state.n + 1
    state.seq = seq = state.seq + 1
    state.calls += 1
    turn.decided += 1
    if turn.admitted == 0:
        state.turns += 1
    turn.admitted += 1
    entry = Entry(seq, call.tool, sig, now, plan.changes, turn.mark, call.sketch or 0)
    entries.append(entry)
    latest[sig] = seq
    if len(entries) > window:
        oldest = entries.pop(0)
        if latest.get(oldest.sig) == oldest.seq:
            del latest[oldest.sig]
    stage: Stage = "running" if claims else "open"
    until = now + plan.lasts_ms + GRACE_MS * claims
    pending = Pending(entry, call.id, n, until, plan.cost, plan.tokens, turn.number, stage, plan.once)
    state.pending[seq] = pending
    return pending


def take_up(pending: Pending, event: Literal["claim", "ask"], until_ms: int) -> None:
    """
    Let an admission be run, or one that was approved or suspended be open again: its time starts now, not when it was asked for.
    """
    move(pending, event)
    pending.question, pending.expires_ms = None, until_ms


def park(pending: Pending, question: Question) -> None:
    """
    Let an admission wait for a person.
    """
    move(pending, "park")
    pending.question = question
    pending.expires_ms = question.at_ms + question.lasts_ms if question.lasts_ms else NEVER
    pending.entry.changes = False


def approve(pending: Pending, now_ms: int) -> None:
    """
    Note that a person approved a call that waits for that, if it does.
    """
    if pending.question is None or not move(pending, "approve"):
        return
    pending.question = replace(pending.question, at_ms=now_ms, shown="")
    pending.expires_ms = now_ms + (pending.question.lasts_ms or APPROVED_MS)


def suspend(pending: Pending, now_ms: int, digest: str) -> bool:
    """
    Let a host go on with a call later: in minutes, in another process. Returns whether it can.
    """
    if not move(pending, "suspend"):
        return False
    pending.question = Question(now_ms, digest=digest)
    pending.expires_ms = now_ms + APPROVED_MS
    return True


def drop(state: SessionState, pending: Pending, event: str) -> bool:
    """
    Take out an admission whose call never ran: what it held comes back, and it is not counted. Returns whether that may be.
    """
    if not move(pending, event):
        return False
    del state.pending[pending.seq]
    state.calls -= 1
    entry = pending.entry
    entry.status, entry.changes = "expired", False
    return True


def latest_of(window: Iterable[Entry]) -> dict[int | None, int]:
    """
    Returns by signature the number of the latest call of a *window*.
    """
    return {entry.sig: entry.seq for entry in window}


def unsign(state: SessionState, entries: Iterable[Entry]) -> None:
    """
    Let *entries* of the window be evidence no more: what cannot be signed is never the same call as another.
    """
    for entry in entries:
        entry.sig = None
    state.latest = latest_of(state.window)


def withdraw(state: SessionState, pending: Pending) -> bool:
    """
    The same of one that its host says will never run: it is of no turn, and no evidence. A turn that is over still counts.
    """
    if not drop(state, pending, "withdraw"):
        return False
    entry, turn = pending.entry, state.present
    if pending.turn == turn.number:
        turn.decided -= 1
        turn.admitted -= 1
        state.turns -= turn.admitted == 0
    entry.turn = entry.sketch = 0
    if entry.seq >= state.window[0].seq:
        unsign(state, (entry,))
    return True


def overdue(state: SessionState, now_ms: int) -> list[Pending]:
    """
    Returns the admissions whose time is over.
    """
    return [pending for pending in state.pending.values() if pending.expires_ms <= now_ms]


def expire(state: SessionState, pending: Pending) -> bool:
    """
    Give up an admission: its estimate stays charged, and a late outcome changes nothing. Returns whether its call had begun, or may have;
    one that only waited for a person is dropped.
    """
    if drop(state, pending, "lapse"):
        return False
    settle(state, pending, Outcome(), "expired")
    return True


def settle(state: SessionState, pending: Pending, end: Outcome, status: EntryStatus) -> None:
    """
    Replace the estimate of an admission by its true cost, if that is known, and note how it ended.
    """
    entry = pending.entry
    move(pending, "settle")
    del state.pending[entry.seq]
    state.cost += pending.cost if end.cost is None else end.cost
    state.tokens += pending.tokens if end.tokens is None else end.tokens
    entry.status, entry.error_type = status, end.error_type
    if entry.seq != state.seq:
        entry.overlaps = min(state.seq - entry.seq, MANY)


def note_uncertain(state: SessionState, pending: Pending) -> None:
    """
    Keep that nobody knows how a call ended that is not to be made twice.
    """
    if pending.sig is not None:
        state.uncertain.pop(pending.sig, None)
        entry = pending.entry
        state.uncertain[pending.sig] = Uncertain(pending.id, pending.n, entry.seq, entry.tool, entry.at_ms)
        while len(state.uncertain) > UNCERTAIN:
            del state.uncertain[next(iter(state.uncertain))]


# Turns


def end_turn(state: SessionState, calls: int) -> None:
    """
    Close the present turn and open the next, of *calls* calls (0: unknown).
    """
    turn = state.present
    state.present = Turn(turn.number + 1, calls, implied=turn.implied, since_ms=turn.since_ms)


def goes_on(state: SessionState, sig: int | None) -> bool:
    """
    Returns whether another call of the present implied turn still runs, or this very call: calls that overlap are one turn, as a fan-out
    is. Refused calls do not run, so those of a fan-out are told by how soon they come.
    """
    turn = state.present
    if not turn.implied or not (turn.refused or state.pending):
        return False
    mark, age = turn.mark, state.now_ms - turn.since_ms
    if turn.refused and state.only_refused and low(sig) not in turn.refused:
        return age <= TOGETHER_MS
    open_ = (one for one in state.pending.values() if one.stage in ("open", "running"))
    return any(one.sig == sig or (one.entry.turn == mark and age <= OVERLAP_MS) for one in open_)


def note_refused(state: SessionState, sig: int | None) -> None:
    """
    Keep that a call of the present turn was refused.
    """
    state.present.refused = [*state.present.refused, low(sig)][-REFUSED:]


def note_key(state: SessionState, key: str | None, *, charged: bool = False) -> bool:
    """
    Remember that the response of *key*, if it has one, was named, or *charged*. Returns whether it was before.
    """
    if not key:
        return False
    before = state.keys.get(key)
    if before or (before is not None and not charged):
        return True
    state.keys[key] = charged
    if len(state.keys) > KEYS:
        del state.keys[next(iter(state.keys))]
    return False


# The end, and what is shared


def shares(state: SessionState) -> bool:
    """
    Returns whether a session has a family now.
    """
    return state.family is not None or bool(state.reserved)


def exhaust(state: SessionState, cause: Denial) -> None:
    """
    End the session by what *cause* says; the first one stays. One that may be over tomorrow is asked for each time.
    """
    if state.exhausted is None and cause.ends_session:
        state.exhausted = (cause.code, cause.message, cause.hint)


def release(state: SessionState, child: str, used: Mapping[str, int]) -> None:
    """
    Give back the amounts that the session *child* held, and charge those that it used.
    """
    if state.reserved.pop(child, None) is not None:
        state.calls += used.get("max_calls", 0)
        state.turns += used.get("max_turns", 0)
        state.cost += used.get("max_cost", 0)
        state.tokens += used.get("max_tokens", 0)


def join(child: SessionState, root: SessionState, names: Sequence[str], session_id: str) -> None:
    """
    Let a child share with its family, for one step, what the guards *names* remember.
    """
    child.family = Family(session_id, root.run, root.n, root.shared + 1)
    # A call that is not to be made twice is so for a parent and another child too.
    child.uncertain = root.uncertain = {**root.uncertain, **child.uncertain}
    for name in names:
        if name in root.own:
            child.own[name] = root.own[name]


def part(child: SessionState, root: SessionState, names: Sequence[str], *, event: bool) -> None:
    """
    Give it back to the root. *event*: something happened meanwhile.
    """
    child.family = None
    root.uncertain, child.uncertain = child.uncertain, {}
    root.shared += event
    for name in names:
        if name in child.own:
            root.own[name] = child.own.pop(name)
        else:
            root.own.pop(name, None)
