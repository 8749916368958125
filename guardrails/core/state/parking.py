"""
Calls that wait for a person: admitted and held, not run before a yes, and given back after a no. And calls that were begun
and wait to be made again: admitted and held, and never given back.
"""

from typing import Final

from guardrails.core.values.types import Denial, ToolCall

from .entries import Parked, Pending, pending_key
from .family import tell
from .holds import free_guess, guess_key, prolong
from .state import NEVER, SessionState
from .totals import number, time_of


ANSWERS: Final = 16
"""Answered questions that are kept, by signature: what a person refused is not asked again."""
SHOWN_BYTES: Final = 16_384
"""Of the arguments that are kept for a person."""
APPROVED_MS: Final = 86_400_000
"""How long an approval holds if nobody said, and a suspended call: one that is not made within a day is asked for again."""


def digest_of(call: ToolCall) -> str:
    """
    Returns a digest that tells the tool and arguments of *call* from all others. The signature is no cryptographic
    hash, so somebody could make up arguments with an equal one. Returns "" for a recorded call, whose arguments may be
    erased.
    """
    if call.canonical is None:
        return ""
    from hashlib import blake2b  # and with it OpenSSL: 5 ms

    return blake2b(b"\0".join((call.tool.encode(errors="surrogatepass"), call.canonical)), digest_size=16).hexdigest()


def park(state: SessionState, pending: Pending, call: ToolCall, denial: Denial) -> int:
    """
    Let a call that was just admitted wait for a person, for the reason of *denial*. Returns the number of the event.
    """
    lasts = denial.parks or 0
    pending.parked = Parked(
        at_ms=state.now_ms,
        lasts_ms=lasts,
        code=denial.code,
        message=denial.message,
        hint=denial.hint,
        reason=str(denial.values.get("reason", "")),
        digest=digest_of(call),
        shown=(call.canonical or b"")[:SHOWN_BYTES].decode(errors="ignore"),
    )
    pending.expires_ms = state.now_ms + lasts if lasts else NEVER
    state.parked += 1
    state.asking = False
    return number(state)


def parked(state: SessionState, seq: int) -> Pending | None:
    """
    Returns the call number *seq* that waits for a person, or to be made after a yes. Returns None if there is none, or
    its time is over.
    """
    for pending in state.pending.values():
        if pending.seq == seq and pending.parked is not None and not pending.parked.begun:
            return pending
    return None


def waits(state: SessionState, call: ToolCall, now_ms: int, *, claim: bool) -> Pending | None:
    """
    Returns the waiting call that *call* asks about again at *now_ms* of the clock. It waits for an answer, or is
    suspended and not to be run now (*claim*). Returns None if there is none.
    """
    pending = state.pending.get((call.id, call.sig))
    if pending is None or pending.parked is None:
        return None
    if pending.parked.approved and (claim or not pending.parked.begun or not fits(pending.parked, call)):
        return None
    return pending if pending.expires_ms > time_of(state, now_ms) else None


def approved(state: SessionState, call: ToolCall) -> Pending | None:
    """
    Returns the call that was approved, or suspended, and is the same as *call* but for its id. Returns None if there is
    none.
    """
    for pending in state.pending.values():
        waits = pending.parked
        if waits is not None and waits.approved and pending.sig == call.sig and fits(waits, call):
            return pending
    return None


def fits(waits: Parked, call: ToolCall) -> bool:
    """
    Returns whether *call* is the approved one, its arguments to the last letter.
    """
    return "" in (waits.digest, own := digest_of(call)) or waits.digest == own


def approve(pending: Pending, now_ms: int) -> None:
    """
    Let a parked call be run, once.
    """
    if pending.parked is not None:
        pending.parked.approved, pending.parked.at_ms, pending.parked.shown = True, now_ms, ""
        pending.expires_ms = now_ms + (pending.parked.lasts_ms or APPROVED_MS)


def unpark(state: SessionState, pending: Pending, call: ToolCall, *, changes: bool) -> None:
    """
    Let an approved or suspended call be that of *call*, which asks for it now: the approval is used up.
    """
    del state.pending[pending.id, pending.sig]
    state.parked -= 1
    pending.parked, pending.id, pending.entry.changes = None, call.id, changes
    state.pending[pending.id, pending.sig] = pending


def suspend(state: SessionState, pending: Pending, digest: str) -> None:
    """
    Let a call that was begun wait to be made again: its claim is given back, and its time does not run out soon. The
    *digest* is that of the call.
    """
    pending.claimed = False
    pending.parked = Parked(
        at_ms=state.now_ms,
        lasts_ms=0,
        code="",
        message="",
        hint="",
        reason="",
        digest=digest,
        approved=True,
        begun=True,
    )
    pending.expires_ms = state.now_ms + APPROVED_MS
    prolong(state, guess_key(pending), pending.expires_ms)
    state.parked += 1
    state.asking = False
    if pending.entry.changes:
        # What it did so far is done.
        tell(state)


def resume(state: SessionState, pending: Pending) -> bool:
    """
    Let a suspended call wait no more, since it ends. Returns whether it was one.
    """
    if pending.parked is None or not pending.parked.begun:
        return False
    pending.parked = None
    state.parked -= 1
    return True


def refuse(state: SessionState, pending: Pending, reason: str) -> None:
    """
    Take a parked call out, for what a person said; the same call is refused from now on.
    """
    drop(state, pending)
    _keep(state, pending, "refused", reason)


def lapse(state: SessionState, pending: Pending) -> None:
    """
    Take out a parked call that nobody answered, or ran, in time.
    """
    drop(state, pending)
    _keep(state, pending, "expired", "")


def drop(state: SessionState, pending: Pending) -> None:
    """
    Give back all that is held for a call that never ran.
    """
    del state.pending[pending_key(pending.id, pending.sig, pending.seq)]
    free_guess(state, pending)
    state.held_cost -= pending.cost
    state.held_tokens -= pending.tokens
    state.calls -= 1
    state.parked -= pending.parked is not None
    pending.entry.status = "expired"


def forget_expired(state: SessionState, sig: int | None) -> None:
    """
    Let the call of signature *sig* be asked for again, if nobody answered: that its time was over has been said.
    """
    if state.answers.get(sig, ("", ""))[0] == "expired":
        del state.answers[sig]


def _keep(state: SessionState, pending: Pending, answer: str, reason: str) -> None:
    if pending.sig is None:
        return
    state.answers.pop(pending.sig, None)
    state.answers[pending.sig] = (answer, reason)
    while len(state.answers) > ANSWERS:
        del state.answers[next(iter(state.answers))]
