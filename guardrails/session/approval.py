"""
The answers of a person about calls that wait for one: given in place, or later, by another process too.
"""

import inspect
import json

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from guardrails.core.decision import Decision
from guardrails.core.refusals import UNKNOWN
from guardrails.core.result.redaction import sanitise
from guardrails.core.state import Pending, SessionState, Uncertain
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import warn_once

from .calls.running import is_async
from .ledger import Ledger


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
    arguments: Any
    """As they would run; text that is cut if they are more than 16 KiB of JSON. None of a call that may have happened."""
    reason: str
    """Why a person is asked."""
    since: float
    """Seconds since 1970."""
    expires: float | None
    """When it is too late to answer; None: never."""
    cost_usd: float
    """The estimate that is held for it."""
    session: str
    n: int
    """Number of its `call` event: what tells it from all others of its session."""
    seq: int
    sig: int | None


Approver = Callable[[ParkedCall], Any]
"""Says True (run it), False or a text (do not, for this reason), None (nobody knows yet); it may be asynchronous."""


class Approvals(Ledger):
    """
    The calls of a session that wait for a person. A model never approves a call by its words.
    """

    _approver: Approver | None
    _over: set[str]
    """Children of the family that are closed."""
    _asked: dict[int, Decision]
    """Numbers of the calls that somebody is asked about at this moment."""

    def pending(self) -> list[ParkedCall]:
        """
        Returns the calls that wait for an answer, oldest first.
        """

        def look(state: SessionState, now: int) -> list[ParkedCall]:
            waiting = [one for one in state.pending.values() if one.waits and one.expires_ms > now]
            asked = {one.sig for one in state.pending.values()}
            unknown = [(sig, one) for sig, one in state.uncertain.items() if not one.reason and sig not in asked]
            return [*map(self._shown, waiting), *(self._uncertain(sig, one) for sig, one in unknown)]

        return self._read(look)

    def approve(self, which: str | ParkedCall, *, by: str = "") -> None:
        """
        Let the call *which*, an id or an item of `pending()`, run once: the next time that it is made, with the very
        same arguments. The name *by* is for the record.

        Raises SessionError if no such call waits, its time is over, or several have the id.
        """
        self._answer(which, approved=True, by=by, reason="")

    def refuse(self, which: str | ParkedCall, *, reason: str = "", by: str = "") -> None:
        """
        Never run the call *which*; the model is told the *reason* when it makes it again. The amounts that it held come
        back.

        Raises as `approve` does.
        """
        self._answer(which, approved=False, by=by, reason=" ".join(sanitise(str(reason)).split())[:REASON_CHARS])

    def forget(self) -> None:
        """
        Drop the session's state: the same name starts afresh. The amounts held for calls that wait for a person come
        back first. The states of its children that were closed in this process go too: no other call would ever drop
        them.
        """
        if len(self._all_keys) > 1:
            self._end_waiting()
        while self._parent is None and self._over:
            self._store.forget(self._over.pop())
        self._store.forget(self.id)

    def _end_waiting(self) -> None:
        """
        Give back what calls hold that wait, or were approved and not made: in the session, its scopes and its family.
        """
        for one in self._read(lambda state, _: [each for each in state.pending.values() if each.question is not None]):
            with suppress(SessionError):  # it was made meanwhile
                self._say(self._shown(one), approved=False, by="", reason="The session is over.")

    def _answer(self, which: str | ParkedCall, *, approved: bool, by: str, reason: str) -> None:
        if isinstance(which, ParkedCall):
            if which.session != self.id:
                raise SessionError(f"the call is of the session `{which.session}`, not of `{self.id}`")
            found = [one for one in self._answerable() if one.n == which.n]
        else:
            found = [one for one in self._answerable() if one.id == which]
        if not found:
            raise SessionError(f"no call `{getattr(which, 'id', which)}` waits for an answer")
        if len(found) > 1:
            raise SessionError(
                f"{len(found)} calls of the id `{which}` wait: give the item of `pending()` that is meant"
            )
        self._say(found[0], approved=approved, by=by, reason=reason)

    def _say(self, one: ParkedCall, *, approved: bool, by: str, reason: str) -> None:
        said = {"call_n": one.n, "seq": one.seq, "id": one.id, "tool": one.tool, "sig": one.sig}
        values = {**said, "approved": approved, "by": sanitise(str(by))[:REASON_CHARS], "reason": reason}
        self._event("unpark", values, needed=True)

    def _answerable(self) -> list[ParkedCall]:
        """
        Returns the calls that wait, and those that a person has refused since nobody knows how they ended.
        """
        refused = self._read(lambda state, _: [(sig, one) for sig, one in state.uncertain.items() if one.reason])
        return [*self.pending(), *(self._uncertain(sig, one) for sig, one in refused)]

    def _uncertain(self, sig: int, one: Uncertain) -> ParkedCall:
        return ParkedCall(
            id=one.id,
            tool=one.tool,
            arguments=None,
            reason=UNKNOWN,
            since=one.at_ms / 1000,
            expires=None,
            cost_usd=0.0,
            session=self.id,
            n=one.n,
            seq=one.seq,
            sig=sig,
        )

    def _shown(self, pending: Pending) -> ParkedCall:
        waits = pending.question
        if waits is None:
            raise ValueError("the call does not wait")
        try:
            arguments = json.loads(waits.shown)  # whole numbers to the last digit
        except ValueError:
            arguments = waits.shown
        return ParkedCall(
            id=pending.id,
            tool=pending.tool,
            arguments=arguments,
            reason=waits.reason,
            since=waits.at_ms / 1000,
            expires=(waits.at_ms + waits.lasts_ms) / 1000 if waits.lasts_ms else None,
            cost_usd=pending.cost / 1_000_000,
            session=self.id,
            n=pending.n,
            seq=pending.seq,
            sig=pending.sig,
        )

    # Asking in place

    def _question(self, decision: Decision) -> ParkedCall | None:
        """
        Returns the question to somebody about a refused call. Returns None if it does not wait, or they are asked
        already.
        """
        if self._approver is None or not decision.denials[0].running:
            return None
        one = next((one for one in self.pending() if one.sig == decision.call.sig), None)
        # In one step: of two threads one asks.
        return one if one is not None and self._asked.setdefault(one.n, decision) is decision else None

    def _asks(self, decision: Decision) -> bool:
        """
        Ask about a refused call, if it waits; whether there is an answer, by which it is to be decided again.
        """
        one = self._question(decision)
        if one is None or self._approver is None:
            return False
        try:
            answer = self._approver(one)
            if inspect.isawaitable(answer):
                if inspect.iscoroutine(answer):
                    answer.close()
                raise TypeError("it is asynchronous: use `acall`")
            return self._heard(one, answer)
        except Exception as error:  # noqa: BLE001  an approver that fails has approved nothing
            warn_once("approver", "the approver failed: %r; the call waits on", error)
            return False
        finally:
            self._asked.pop(one.n, None)

    async def _aasks(self, decision: Decision) -> bool:
        """
        The same, awaited; an approver that is not asynchronous is asked in a thread.
        """
        import asyncio

        one = await self._aquestion(decision)
        if one is None or self._approver is None:
            return False
        try:
            asks = self._approver
            answer = asks(one) if is_async(asks) else await asyncio.to_thread(asks, one)
            return await self.off_loop(self._heard, one, await answer if inspect.isawaitable(answer) else answer)
        except Exception as error:  # noqa: BLE001
            warn_once("approver", "the approver failed: %r; the call waits on", error)
            return False
        finally:
            self._asked.pop(one.n, None)

    async def _aquestion(self, decision: Decision) -> ParkedCall | None:
        def unasked(one: ParkedCall | None) -> None:
            if one is not None:
                self._asked.pop(one.n, None)

        if self._approver is None or not self._blocks:
            return self._question(decision)
        return await self._away(lambda: self._question(decision), unasked)

    def _heard(self, one: ParkedCall, answer: object) -> bool:
        if answer is None:
            return False
        if answer is not True and answer is not False and not isinstance(answer, str):
            raise TypeError(f"an approver says True, False, a reason or None, not `{type(answer).__name__}`")
        # If somebody else was quicker, or the answer comes too late, the call is decided by that.
        with suppress(SessionError):
            if answer is True:
                self.approve(one, by="approver")
            else:
                self.refuse(one, by="approver", reason=answer or "")
        return True
