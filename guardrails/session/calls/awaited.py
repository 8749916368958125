"""
Calls that are awaited: as those of `calls`, but that the event loop waits for nothing.
"""

from functools import partial
from typing import Any

from guardrails.core.chain import Plan
from guardrails.core.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.session.off_loop import later

from .adapters import Adapted
from .steps import Execute, awaited, steps


class AwaitedCalls(Adapted):
    """
    The tool calls of one session, awaited too.
    """

    async def ask_approver(self, which: Decision | str, *, arguments: Any = None) -> bool:
        """
        Ask the approver of the session about a call that waits for a person. Returns whether there is an answer, which
        decides the call if it is decided again. The call *which* and its *arguments* are as for `complete`, and raise
        as there.
        """
        return self._approver is not None and await self._aasks(await self.off_loop(self._decided, which, arguments))

    async def acall(self, tool: str, arguments: Any, execute: Execute, *, id: str | None = None) -> Envelope:
        """
        Does the same as `call`, awaited. A synchronous *execute* runs in this task. If the tool declares a timeout, or
        the session has less than ten minutes left, it runs in a thread. A generator is read where its function ran: a
        slow one without a timeout blocks the loop.
        """
        return await awaited(steps(self, tool, arguments, execute, id, blocks=False))

    def _undecide(self, made: tuple[Decision, Plan]) -> None:
        self._let_go(made[0])

    def _let_go(self, made: object) -> None:
        """
        For a call that was claimed, and never ran. An earlier admission, for an interrupt or by a person, stays.
        """
        if not isinstance(made, Decision) or made.envelope is not None:
            return
        if made.claim_n or made.park_n:
            self._suspend(made)
        elif made.claimed and not made.repeated:
            self._release(made, None)

    def _late(self, decision: Decision, plan: Plan, result: object) -> None:
        """
        Settle a call that was answered already.
        """
        if self._blocks:
            later(self._store, partial(self._close, decision, plan, *self._read_result(decision, plan, result)))
        else:
            self._settle(decision, plan, result)
