"""
Calls that a host runs by itself: its adapter decides, runs its own way, and tells the outcome.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from guardrails.core.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.events import lose
from guardrails.core.guards.denials import refused_turns
from guardrails.core.state import Pending, SessionState
from guardrails.core.tools.tool_call import asked, claiming, tool_call
from guardrails.core.values.errors import SessionError
from guardrails.core.values.tool_name import bounded_name
from guardrails.core.values.types import ToolCall

from .calls import Calls
from .running import Limit, limit_of


class Adapted(Calls):
    """
    The calls of a session as an adapter tells them.
    """

    def decide(self, tool: str, arguments: Any, *, id: str | None = None, claim: bool = False) -> Decision:
        """
        Ask whether a call may run, and reserve for it. If it may not, `decision.envelope` is the refusal.

        With *claim* the caller runs it now: a second claim of it is refused (`call.in_flight`), by `call` too.
        Idempotent on (*id*, signature) until the call is completed. Arguments that cannot be signed (an object that
        JSON has no form for) make a new call each time. Approve those calls by `complete`, not by a second `call`.
        """
        return self._decide(tool, arguments, id, claiming if claim else asked)[0]

    def complete(self, which: Decision | str, outcome: object, *, arguments: Any = None) -> Envelope:
        """
        Settle a decided call. Its *outcome* is a value, an exception, `Success(value, cost_usd=...)` or
        `Failed(message)`.

        The call *which* is the decision or the id, also in another process than the one that decided. For an id, the
        *arguments*, as they were decided, tell the call from others of that id. They are optional, but with them its
        result is kept for callers that ask again. A call that waits for a person is not settled: its refusal is given
        back.

        A second completion of a decision, or one after its admission expired, changes nothing and is only recorded.
        Raises SessionError if the decision is another session's, no open call has the id, or several have it.
        """
        decision = self._decided(which, arguments)
        if decision.envelope is not None:
            return decision.envelope
        return self._settle(decision, self._chain.plan(decision.call.tool), outcome)

    def limit(self, decision: Decision) -> Limit | None:
        """
        Returns the time limit of the admitted call of *decision*, for a caller that runs it elsewhere: `limit.error()`
        is then its outcome. Returns None if it may take any time.
        """
        plan = self._chain.plan(decision.call.tool)
        return limit_of(plan.tool, plan.timeout_ms, decision.left_ms, threaded=False)

    def _release(self, which: Decision | str, arguments: Any) -> None:
        """
        Let a call that never ran and will not be none.
        """
        decision = self._decided(which, arguments)
        call, seq = decision.call, decision.seq
        known = self._read(lambda state, _: any(one.seq == seq for one in state.pending.values()))
        if not known:
            return
        said = {"call_n": decision.n, "seq": seq, "id": call.id, "tool": call.tool, "sig": call.sig}
        self._event("release", said)

    def suspend(self, which: Decision | str, *, arguments: Any = None) -> None:
        """
        Say that an admitted call stopped in the control flow of the host, which makes it again (see `scoped`).

        *which* and *arguments* are as for `complete`. Nothing happens to one that is over. Raises as `complete` does.
        """
        self._suspend(self._decided(which, arguments))

    def opened(self, tool: str, arguments: Any) -> list[Pending]:
        """
        Returns the calls of *tool* with *arguments* that are open, oldest first, but those that wait for a person.
        """
        tool = bounded_name(tool)
        plan = self._chain.plan(tool)
        spec = plan.arguments or self._specs.get(tool)
        sig = tool_call(tool, arguments, "-", spec, plan.tool.labels).sig

        def look(state: SessionState, _: int) -> list[Pending]:
            return [
                one for one in state.pending.values() if one.sig == sig and one.tool == tool and one.question is None
            ]

        return self._read(look)

    def lose(self, *which: Pending) -> None:
        """
        Say of open calls that nobody will ever tell how they ended. The amounts that they hold stay charged, and the
        same call may be made again.
        """
        for one in which:
            now = self._time()
            step = partial(self._engine.apply, partial(lose, seq=one.seq, now_ms=now), now)
            self._store.update(self._keys, step)

    @property
    def refused_turns(self) -> int:
        """
        Turns in a row, the present one among them, of nothing but refusals.
        """
        return self._read(lambda state, _: refused_turns(state))

    def _decided(self, which: Decision | str, arguments: Any) -> Decision:
        """
        The decision of the open call *which*, an id that may be of several; a decision is itself.
        """
        if isinstance(which, Decision):
            if which.session != self.id:
                raise SessionError(f"the decision is of the session `{which.session}`, not of `{self.id}`")
            return which
        if not isinstance(which, str):
            raise TypeError(f"a call is told by its decision or its id, not by `{type(which).__name__}`")

        def look(state: SessionState, _: int) -> list[Decision]:
            return [
                Decision.again(_bare(one), one, session=self.id, run=state.run)
                for one in state.pending.values()
                if one.id == which
            ]

        found = self._read(look)
        if not found:
            raise SessionError(
                f"no call of the id `{which:.64}` is open in `{self.id}`: it was completed, released or given up, or never "
                "decided; `decide` it first"
            )
        if arguments is not None:
            found = [one for one in map(self._with(arguments), found) if one is not None]
        if len(found) != 1:
            raise SessionError(
                f"{len(found)} open calls of the id `{which:.64}` {'have these arguments' if arguments is not None else 'are there'}:"
                " say which by the `arguments` that were decided"
            )
        return found[0]

    def _with(self, arguments: Any) -> Any:
        def made(decision: Decision) -> Decision | None:
            own = decision.call
            plan = self._chain.plan(own.tool)
            spec = plan.arguments or self._specs.get(own.tool)
            call = tool_call(own.tool, arguments, own.id, spec, plan.tool.labels)
            return replace(decision, call=replace(call, sketch=own.sketch)) if call.sig == own.sig else None

        return made


def _bare(pending: Pending) -> ToolCall:
    """
    An open call without its arguments, which no state keeps.
    """
    return ToolCall(pending.tool, None, pending.id, None, pending.sig, sketch=pending.entry.sketch or None)
