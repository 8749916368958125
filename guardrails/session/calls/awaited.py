"""
Calls that are awaited: as those of `calls`, but that the event loop waits for nothing.
"""

import inspect
import sys

from functools import partial
from logging import INFO
from types import CoroutineType
from typing import Any

from guardrails.core.engine.decision import Decision
from guardrails.core.engine.plan import Plan
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.values.logs import log
from guardrails.session.off_loop import later
from guardrails.session.retrying import aretried

from .adapters import Adapted
from .calls import PLAIN, Execute
from .running import CALLER, in_time, is_async, leave, limit_of, stops, within


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

    async def acall(self, tool: str, arguments: Any, execute: Execute, *, id: str | None = None) -> Envelope:  # noqa: C901  one call, step after step
        """
        Does the same as `call`, awaited. A synchronous *execute* runs in this task. If the tool declares a timeout, or
        the session has less than ten minutes left, it runs in a thread. A generator is read where its function ran: a
        slow one without a timeout blocks the loop.
        """
        blocks = self._blocks
        decision, plan = (
            await self._adecide(tool, arguments, id, execute) if blocks else self._decide(tool, arguments, id, execute)
        )
        if decision.envelope is not None:
            if await self._aasks(decision):
                decision, plan = await self._adecide(tool, arguments, decision.call.id, execute)
            if decision.envelope is not None:
                return decision.envelope
        if log.isEnabledFor(INFO):
            log.info("executing tool", extra={"tool": tool, "session": self.id})
        result: object
        before = CALLER.set(self)
        try:
            limit = None
            if plan.timeout_ms is not None or decision.left_ms is not None:
                threaded = plan.timeout_ms is None and not is_async(execute)
                limit = limit_of(plan.tool, plan.timeout_ms, decision.left_ms, threaded=threaded)
            if limit is None:
                result = execute(tool, decision.call.arguments)
                if type(result) is CoroutineType or inspect.isawaitable(result):
                    held = limit_of(plan.tool, None, decision.left_ms, threaded=False)
                    late = partial(self._late, decision, plan)
                    result = await (result if held is None else in_time(result, held, late))
                if type(result) not in PLAIN:
                    result = await self._reading(decision, plan).gathered(result)
            else:
                late, reading = partial(self._late, decision, plan), self._reading(decision, plan)
                result = await within(limit, execute, decision.call, late, reading)
        except Exception as error:
            if bool(self._passes) and await self.off_loop(self._passed, decision, error):
                raise
            envelope = await self._asettle(decision, plan, error) if blocks else self._settle(decision, plan, error)
        except BaseException as error:
            if blocks and _is_cancelled(error):
                await self._asettle(decision, plan, error)
            # Whatever else stops it ends the loop, or the coroutine: nothing is awaited any more.
            elif not self._passes or stops(error) or not await self.off_loop(self._passed, decision, error):
                self._settle(decision, plan, error)
            raise
        else:
            envelope = await self._asettle(decision, plan, result) if blocks else self._settle(decision, plan, result)
        finally:
            leave(before)
        if plan.auto_ms is None:
            return envelope
        return await aretried(self, decision, envelope, arguments, execute)

    # If the store may wait for a file

    async def _adecide(self, tool: str, arguments: Any, call_id: str | None, execute: Execute) -> tuple[Decision, Plan]:
        if not self._blocks:
            return self._decide(tool, arguments, call_id, execute)
        decide = partial(self._decide, tool, arguments, call_id, execute, tells=False)
        made = await self._away(decide, lambda made: self._let_go(made[0]))
        if self._on_decision is not None:
            self._tell(made[0])
        return made

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

    async def _asettle(self, decision: Decision, plan: Plan, result: object) -> Envelope:
        now, prepared = self._read_result(decision, plan, result)
        return await self._away(partial(self._close, decision, plan, now, prepared))

    def _late(self, decision: Decision, plan: Plan, result: object) -> None:
        """
        Settle a call that was answered already.
        """
        if self._blocks:
            later(self._store, partial(self._close, decision, plan, *self._read_result(decision, plan, result)))
        else:
            self._settle(decision, plan, result)


def _is_cancelled(error: BaseException) -> bool:
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)
