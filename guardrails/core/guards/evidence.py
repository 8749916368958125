"""
The evidence that a repeat brings nothing: which calls count, which results are equal, and for how long they speak.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from typing import Any, ClassVar, Final

from guardrails.core.state import LITTLE, MANY, UNFINISHED, Entry, SessionState, low, shares
from guardrails.core.values.errors import TRANSIENT, WITHOUT_EFFECT

from .base import Event, Facts, Guard, Outcome, ToolCall, guard


EVIDENCE: Final = "evidence"
FAMILY: Final = "family"
"""What a session, and what its family, remembers of it."""
BURST_MS: Final = 30_000
"""How long two looks speak that were made at once. Half of the recorded calls come within 2 to 8 s of the one before."""
SHARE: Final = 5
"""
How many times the distance between two equal looks they speak, up to what a guard takes for settled.

Measured on recorded calls: of 24 looks after two equal ones none had changed; the latest came 3.1 times the distance later.
"""
OVER: Final = ("ok", "error")
"""The ways in which a call ended that tell something, if it was not cancelled."""
CANCELLED: Final = "cancelled"
NO_EVIDENCE: Final = (LITTLE, UNFINISHED)
UNJUDGED_RETRIES: Final = 3
"""Retries of a failure that may pass, where nobody judges it."""
UNJUDGED_WAIT_MS: Final = 60_000
"""From the last of them on until another."""
SLOW: Final = 2
"""How many times what is taken for settled a slow agent may need for a call; a later look begins anew."""


class Again:
    """
    The latest calls of the window that are the same as one that is to be decided, and what they still tell of it.
    """

    __slots__ = ("before", "known", "last", "moves", "old", "retry", "since")

    def __init__(self, state: SessionState, sig: int, *, polls: bool) -> None:
        calls, since, mine = same_calls(state, sig), changed_seq(state), state.own.get(EVIDENCE)
        last = next(calls)
        self.before, self.last, self.since = next(calls, None), last, since
        self.known = last.seq > since and last.status in OVER and last.error_type != CANCELLED
        """The latest is over in a way that tells something, and after all that a message of the user may have changed."""
        self.retry = may_retry(state, last)
        self.old = polls or last.seq <= since or outdated(state, last)
        """Work may have been done since."""
        self.moves = mine is not None and low(sig) in mine[1] and state.now_ms > last.at_ms
        """Its result was seen to change by itself, and time has passed since."""

    def times(self, state: SessionState, most: int) -> int:
        """
        Returns how many of them ended alike, one of each turn, counted up to *most*; other calls between them do not matter.
        """
        count, newer = 0, -1
        for one in same_calls(state, self.last.sig):
            if count and (count >= most or one.seq <= self.since or not ended_alike(one, self.last)):
                break
            count += not one.turn or one.turn != newer
            newer = one.turn
        return count


def again_of(call: ToolCall, state: SessionState, facts: Facts) -> Again | None:
    """
    Returns what the same calls before *call* tell, worked out once for all guards; None if there is none, or it cannot be signed.
    """
    if facts.again is None and call.sig is not None and call.sig in state.latest:
        facts.again = Again(state, call.sig, polls=facts.tool.repeats == "allow")
    return facts.again


def same_calls(state: SessionState, sig: int | None) -> Iterator[Entry]:
    """
    Returns the calls of signature *sig* that are remembered, newest first.
    """
    return (one for one in reversed(state.window) if one.sig == sig)


def past(state: SessionState, tool: str | None = None) -> Iterator[Entry]:
    """
    Returns the latest calls that are over, of a *tool* if it is named, newest first.

    A call is over that ended in a way that tells something: it was not given up and not cancelled. Those of the present turn do not know
    of each other's results. Those before a user's message, or before work of which the window does not tell, say nothing of what comes
    after it.
    """
    turn, since = state.present.mark or -1, changed_seq(state)
    for one in reversed(state.window):
        if one.seq <= since:
            break
        if one.turn == turn or (tool is not None and one.tool != tool):
            continue
        if one.status in OVER and one.error_type != CANCELLED:
            yield one


def is_evidence(one: Entry, other: Entry) -> bool:
    """
    Returns whether two calls ended alike, so that a third of their kind would: equal content, or equal words of a failure.

    An acknowledgement and a wait are none, however often they are equal.
    """
    alike = one.result_hash == other.result_hash or one.steady == other.steady != 0
    return alike and one.status == other.status and one.came not in NO_EVIDENCE and other.came not in NO_EVIDENCE


def ended_alike(one: Entry, other: Entry) -> bool:
    """
    Returns whether two calls ended alike, be it by an equal acknowledgement or wait.
    """
    waits = one.came in NO_EVIDENCE and (one.came, one.status) == (other.came, other.status)
    return one.result_hash == other.result_hash if waits else is_evidence(one, other)


def may_retry(state: SessionState, last: Entry) -> bool:
    """
    Returns whether the same call as *last* is a retry of its failure: as its envelope advised; else, if it may pass and nobody said
    anything of it, a few times, and after that each minute.
    """
    if last.retries_left > 0 or last.lasting or last.error_type not in TRANSIENT:
        return last.retries_left > 0
    return failures(state, last.sig) <= UNJUDGED_RETRIES or state.now_ms - last.at_ms >= UNJUDGED_WAIT_MS


def failures(state: SessionState, sig: int | None) -> int:
    """
    Returns how many of the latest calls of *sig* failed, one after the other.
    """
    return sum(takewhile(bool, (one.status == "error" for one in same_calls(state, sig))))


def speak(state: SessionState, last: Entry, before: Entry, limit_s: float | None) -> bool:
    """
    Returns whether the equal ends of two looks tell how the same look ends now, at most *limit_s* seconds later.

    A file, an inbox, a price may change while nobody here works: two looks speak for a few times their distance.
    """
    if limit_s is None:
        return True
    apart, most = last.at_ms - before.at_ms, 1_000 * limit_s
    return apart <= SLOW * most and state.now_ms - last.at_ms <= min(max(BURST_MS, SHARE * apart), most)


def moved(state: SessionState, entry: Entry | None) -> bool:
    """
    Returns whether *entry*, which is over, shows something else than the latest look before it, with no work in between.
    """
    if entry is None or entry.sig is None or entry.error_type not in (None, "not_found") or entry.came == UNFINISHED:
        return False
    others = (one for one in same_calls(state, entry.sig) if one.seq < entry.seq and one.status in OVER)
    other = next((one for one in others if one.error_type != CANCELLED), None)
    if other is None or other.status == "error" or other.came == UNFINISHED:
        # A failure that passes and a wait that is over are no look and a later one.
        return False
    alike = entry.result_hash == other.result_hash or entry.steady == other.steady != 0
    at_once = entry.turn and other.turn == entry.turn
    return not (alike or at_once) and other.seq > changed_seq(state) and not outdated(state, other, alone=True)


def outdated(state: SessionState, last: Entry, *, alone: bool = False) -> bool:
    """
    Returns whether work may have been done since the call *last* was admitted, so that its result is no evidence any more.

    Work is any call that may have changed something, from its admission until it is over. An earlier call equal to *last* is part
    of the evidence; *alone*: so is a later one.
    """
    if FAMILY in state.own and others_work(state):
        return True
    for one in chain(reversed(state.window), (each.entry for each in state.pending.values())):
        if one.changes and one is not last and one.error_type not in WITHOUT_EFFECT:
            same = one.sig == last.sig
            if not (alone and same) if one.seq > last.seq else not (same or _over_before(one, last)):
                return True
    return False


def _over_before(entry: Entry, last: Entry) -> bool:
    over = entry.status in OVER and entry.overlaps < MANY and entry.seq + entry.overlaps < last.seq
    return over and not (entry.turn and entry.turn == last.turn)


def brought_news(state: SessionState, entry: Entry) -> bool:
    """
    Returns whether the call of *entry*, which is over, worked and brought a result of no other call of its tool in the window.
    """
    if entry.status != "ok" or 1 <= entry.came <= UNFINISHED:
        return False
    return not any(is_evidence(one, entry) for one in state.window if one.tool == entry.tool and one is not entry)


MOVING: Final = 64
"""Calls that are remembered to change by themselves."""
NONE: Final[Sequence[Any]] = (0, [], 0)
"""(number of the call up to which all is outdated, calls that move, calls of the family that may have changed something)"""


@guard
class Work(Guard):
    """
    The work of a family: how many calls may have changed something, and until when calls of its members may do so.
    """

    name: ClassVar[str] = FAMILY
    family: ClassVar[bool] = True
    events: ClassVar[tuple[str, ...]] = ("extend",)

    in_families: ClassVar[tuple[str, ...]] = ("admit", "settle")

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        return _worked(state, mine, facts.expires_ms) if facts.tool.changes else mine

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts) -> Any:
        return _worked(state, mine, more=_did(facts))

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        return _worked(state, mine) if event.values.get("asked") and shares(state) else mine


@guard
class Evidence(Guard):
    """
    What earlier results still show: nothing after work that nobody can place, and calls whose answers change by themselves.

    It remembers what `NONE` names.
    """

    name: ClassVar[str] = EVIDENCE
    events: ClassVar[tuple[str, ...]] = ("extend",)
    in_families: ClassVar[tuple[str, ...]] = ("admit",)

    def companions(self) -> tuple[Guard, ...]:
        return (Work(mode=self.mode),)

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        return _known(state, mine, own=facts.tool.changes)

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts) -> Any:
        entry, window = facts.entry, state.window
        outside = (entry is None or entry.seq < window[0].seq) and _did(facts)
        # In most sessions no two calls of the window are the same.
        moves = len(state.latest) < len(window) and facts.tool.repeats != "allow" and moved(state, entry)
        if not (outside or moves or FAMILY in state.own):
            return mine
        since, known, work = _known(state, mine, own=_did(facts))
        if moves and low(call.sig) not in known:
            known = [*known, low(call.sig)][-MOVING:]
        if since == state.seq and not shares(state):
            # Those who did the work are gone.
            since -= 1
        return [state.seq if outside else since, known, work]

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        return [state.seq, *_known(state, mine, own=True)[1:]] if event.values.get("asked") else mine


def _did(facts: Facts) -> bool:
    """
    Returns whether a call that is over may have changed something.
    """
    return facts.tool.changes if facts.entry is None else facts.entry.worked


def _known(state: SessionState, mine: Any, *, own: bool) -> list[Any]:
    """
    Returns what a session remembers from now on, if the next work of the family is its *own*.
    """
    return [changed_seq(state), (mine or NONE)[1], work_of(state) + (own and shares(state))]


def work_of(state: SessionState) -> int:
    """
    Returns how many calls of the family may have changed something.
    """
    return int((state.own.get(FAMILY) or {}).get("n", 0))


def changed_seq(state: SessionState) -> int:
    """
    Returns the number of the call up to which every result is outdated.
    """
    since, _, work = state.own.get(EVIDENCE) or NONE
    return state.seq if FAMILY in state.own and work_of(state) != work else since


def others_work(state: SessionState) -> bool:
    """
    Returns whether a call of another member of the family may change something now; those above wait for this one.
    """
    who, own = (state.own.get(FAMILY) or {}).get("who", {}), f"{state.name}/"
    return any(until > state.now_ms and not own.startswith(f"{name}/") for name, until in who.items())


def _worked(state: SessionState, mine: Any, until: int = 0, *, more: int = 1) -> Any:
    """
    Returns the work of the family after one more call of this member; its own calls are open *until* then, or as its admissions say.
    """
    family = mine or {"n": 0, "who": {}}
    open_ = (one.expires_ms for one in state.pending.values() if one.entry.changes and one.question is None)
    who = {**family["who"], state.name: max([until, *open_])}
    return {"n": family["n"] + more, "who": {name: end for name, end in who.items() if name and end > state.now_ms}}
