"""
The answers of a person about calls that wait for one: given in place, or later, by another process too.
"""

import json

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from guardrails.core.decision import Decision
from guardrails.core.refusals import UNKNOWN
from guardrails.core.state import Pending, Question, SessionState, Uncertain
from guardrails.core.text.redaction import sanitise
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import warn_once

from .calls.steps import Ask, Steps, Store
from .ledger import Ledger, named


REASON_CHARS: Final = 1_000
"""Of what a person says about a refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedCall:
    """
    A call that waits until a person has approved it.
    """

    id: str
    """The model's id of the call; servers use ids again."""
    tool: str
    arguments: Any = None
    """As they would run; text that is cut if they are more than 16 KiB of JSON. None of a call that may have happened."""
    reason: str = UNKNOWN
    """Why a person is asked."""
    since: float
    """Seconds since 1970."""
    expires: float | None = None
    """When it is too late to answer; None: never."""
    cost_usd: float = 0.0
    """The estimate that is held for it."""
    session: str
    n: int
    """Number of its `call` event: what tells it from all others of its session."""
    seq: int
    sig: int | None


Approver = Callable[[ParkedCall], Any]
"""Says True (run it), False or a text (do not, for this reason), None (nobody knows yet); it may be asynchronous."""


class Approvals:
    """
    The calls of a session that wait for a person. A model never approves a call by its words.
    """

    __slots__ = ("_asked", "approver", "ledger")

    def __init__(self, ledger: Ledger, approver: Approver | None) -> None:
        self.ledger = ledger
        self.approver = approver
        self._asked: dict[tuple[str, int], Decision] = {}
        """The calls that somebody is asked about at this moment, by session and number."""

    def pending(self, *, refused: bool = False) -> list[ParkedCall]:
        """
        Returns the calls that wait for an answer, oldest first; with *refused* also those that a person has refused
        since nobody knows how they ended.
        """
        session = self.ledger.id

        def look(state: SessionState, now: int) -> list[ParkedCall]:
            waiting = [
                _shown(one, one.question, session)
                for one in state.pending.values()
                if one.stage == "parked" and one.question is not None and one.expires_ms > now
            ]
            open_sigs = {one.sig for one in state.pending.values()}
            for sig, one in state.uncertain.items():
                if refused if one.reason else sig not in open_sigs:
                    since = one.at_ms / 1000
                    waiting.append(ParkedCall(**_names(one), sig=sig, since=since, session=session))
            return waiting

        return self.ledger.read(look)

    def answer(self, which: str | ParkedCall, *, approved: bool, by: str, reason: str = "") -> None:
        """
        Let the call *which* run once, or never. Raises as `Session.approve` does.
        """
        answerable = self.pending(refused=True)
        if isinstance(which, ParkedCall):
            if which.session != self.ledger.id:
                raise SessionError(f"the call is of the session `{which.session}`, not of `{self.ledger.id}`")
            meant = [one for one in answerable if one.n == which.n]
        else:
            meant = [one for one in answerable if one.id == which]
        if not meant:
            raise SessionError(f"no call `{getattr(which, 'id', which)}` waits for an answer")
        if len(meant) > 1:
            raise SessionError(
                f"{len(meant)} calls of the id `{which}` wait: give the item of `pending()` that is meant"
            )
        words = " ".join(sanitise(str(reason)).split())[:REASON_CHARS]
        answer = {"approved": approved, "by": sanitise(str(by))[:REASON_CHARS], "reason": words}
        self.ledger.event("unpark", {**named(meant[0]), **answer}, needed=True)

    # Asking in place

    def asks(self, decision: Decision) -> Steps[bool]:
        """
        Ask about a refused call, if it waits. Its value is whether there is an answer, by which the call is to be
        decided again.
        """
        one = yield Store(self.ledger, partial(self._question, decision))
        # In one step: of two threads one asks.
        if one is None or self._asked.setdefault((one.session, one.n), decision) is not decision:
            return False
        try:
            answer = yield Ask(self.approver, one)
            return bool((yield Store(self.ledger, partial(self._take, one, answer))))
        except Exception as error:  # noqa: BLE001  an approver that fails has approved nothing
            warn_once("approver", "the approver failed: %r; the call waits on", error)
            return False
        finally:
            self._asked.pop((one.session, one.n), None)

    def _question(self, decision: Decision) -> ParkedCall | None:
        """
        Returns the question to somebody about a refused call. Returns None if it does not wait.
        """
        if not decision.denials[0].running:
            return None
        return next((one for one in self.pending() if one.sig == decision.call.sig), None)

    def _take(self, one: ParkedCall, answer: object) -> bool:
        if answer is None:
            return False
        if answer is not True and answer is not False and not isinstance(answer, str):
            raise TypeError(f"an approver says True, False, a reason or None, not `{type(answer).__name__}`")
        # If somebody else was quicker, or the answer comes too late, the call is decided by that.
        with suppress(SessionError):
            self.answer(one, approved=answer is True, by="approver", reason=answer if isinstance(answer, str) else "")
        return True


def _names(one: Pending | Uncertain) -> dict[str, Any]:
    return {"id": one.id, "tool": one.tool, "n": one.n, "seq": one.seq}


def _shown(one: Pending, waits: Question, session: str) -> ParkedCall:
    try:
        arguments = json.loads(waits.shown)  # whole numbers to the last digit
    except ValueError:
        arguments = waits.shown
    return ParkedCall(
        **_names(one),
        sig=one.sig,
        session=session,
        arguments=arguments,
        reason=waits.reason,
        since=waits.at_ms / 1000,
        expires=(waits.at_ms + waits.lasts_ms) / 1000 if waits.lasts_ms else None,
        cost_usd=one.cost / 1_000_000,
    )
