"""
The shell around `decide` and `complete`: it reads the clock, locks by way of the store, waits for tools, writes records.

The synchronous and the asynchronous way differ only in how they wait.
"""

import inspect

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from logging import INFO
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from guardrails.core.engine.complete import Completion, Settle
from guardrails.core.engine.decide import Ask
from guardrails.core.engine.decision import Decision
from guardrails.core.engine.engine import Engine
from guardrails.core.engine.plan import Plan
from guardrails.core.engine.prepare import Prepared, prepare, told
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.records.digest import Earlier, failure
from guardrails.core.state.state import SessionState
from guardrails.core.tools.tool_call import asked, checked, claiming, tool_call
from guardrails.core.values.logs import log, warn_once
from guardrails.core.values.session_id import checked_id
from guardrails.core.values.tool_name import MAX_CHARS
from guardrails.core.values.types import NO_TIME, Outcome
from guardrails.session.approval import Approver
from guardrails.session.growing import grow
from guardrails.session.interrupts import Step, end, let_go, recovered
from guardrails.session.ledger import undecided
from guardrails.session.recorder import log_refused, new_id
from guardrails.session.retrying import bounded, retried, would_block
from guardrails.session.terms import Terms

from .passing import Passing
from .places import places_of
from .results import Kept
from .running import CALLER, Reading, limit_of, not_awaited, with_timeout


if TYPE_CHECKING:
    from guardrails.core.arguments import Arguments


T = TypeVar("T")
Execute = Callable[[str, Any], Any]

PLAIN: Final = frozenset({dict, list, tuple, str, bytes, int, float, bool, NoneType})
"""Types of results that nobody awaits."""


class Calls(Passing):
    """
    The tool calls of one session.
    """

    def __init__(
        self,
        policy: Terms,
        name: str,
        *,
        on_decision: Callable[[Decision], object] | None,
        parent: "Calls | None" = None,
        approver: Approver | None = None,
        sleep: Callable[[float], object] | None = None,
        **ledger: Any,
    ) -> None:
        own = checked_id(name)
        self.policy = policy
        super().__init__(own if parent is None else f"{parent.id}/{own}", **ledger)
        self._digest = None if policy.changed else policy.digest
        self._on_decision = on_decision
        self._parent = parent
        self._over = set() if parent is None else parent._over  # noqa: SLF001  of one family
        self._kept = Kept(policy.wholes, self._keys[-1])
        self._approver = approver
        self._sleep = sleep
        self._waits: set[Callable[[], object]] = set()
        self._attempts: dict[tuple[str, int | None], int] = {}
        """Which attempt at a call, by id and signature, is the next one."""
        self._asked = {}
        self._specs: dict[str, Arguments] = {}
        self._wrapped: dict[str, object] = {}

    def call(self, tool: str, arguments: Any, execute: Execute, *, id: str | None = None) -> Envelope:
        """
        Run `execute(tool, arguments)` if the chain lets it. The envelope says what happened.

        Its *arguments* are a mapping, or the JSON text of a model. The function *execute* gets them coerced. The
        model's id of the call is *id*; without it the call has an id of its own. Never raises the tool's exceptions,
        except for the control flow of a host, see `scoped`.

        Raises TypeError if *tool* or *id* is no text or *execute* cannot be called, SessionError for an empty *id*.
        """
        decision, plan = self._decide(tool, arguments, id, execute)
        result: object
        try:
            if decision.envelope is not None:
                if self._asks(decision):
                    decision, plan = self._decide(tool, arguments, decision.call.id, execute)
                if decision.envelope is not None:
                    return decision.envelope
            if plan.auto_ms is not None and would_block(self):
                decision.call.attempt = 0
            if log.isEnabledFor(INFO):
                log.info("executing tool", extra={"tool": tool, "session": self.id})
            # Read first: a signal may come between a `set` and the name for what it returns.
            before = CALLER.get()
            try:
                CALLER.set(self)
                limit = None
                if plan.timeout_ms is not None or decision.left_ms is not None:
                    limit = limit_of(plan.tool, plan.timeout_ms, decision.left_ms, threaded=True)
                if limit is None:
                    result = execute(tool, decision.call.arguments)
                else:
                    reading = self._reading(decision, plan)
                    run = lambda: reading.drained(execute(tool, decision.call.arguments))  # noqa: E731
                    result = with_timeout(run, limit, partial(self._settle, decision, plan))
                if type(result) not in PLAIN:
                    if inspect.isawaitable(result):
                        result = not_awaited(result)
                    elif self._passes:
                        result = self._reading(decision, plan).drained(result)
            except Exception as error:  # a tool may raise anything; the model reads it as data
                if self._passes and self._passed(decision, error):
                    raise
                # Not kept in a variable: it knows this frame, and together they would wait for the collector of garbage.
                envelope = self._settle(decision, plan, error)
            except BaseException as error:
                if not self._passes or not self._passed(decision, error):
                    self._settle(decision, plan, error)
                raise
            else:
                envelope = self._settle(decision, plan, result)
            finally:
                CALLER.set(before)
        except BaseException as error:
            # Ctrl-C may come between any two lines: what was admitted is not left open.
            end(self, decision, plan, error)
            raise
        return envelope if plan.auto_ms is None else retried(self, decision, envelope, arguments, execute)

    # The shell itself

    def _decide(
        self, tool: str, arguments: Any, call_id: str | None, execute: Execute, *, tells: bool = True
    ) -> tuple[Decision, Plan]:
        if (
            type(tool) is not str
            or len(tool) > MAX_CHARS
            or not (call_id is None or (type(call_id) is str and call_id))
            or not callable(execute)
        ):
            tool, call_id = checked(tool, call_id, execute)
        self._fresh()
        engine = self._engine
        chain = engine.chain
        plan = chain.plans.get(tool) or chain.plan(tool)
        spec = plan.arguments or self._specs.get(tool)
        call = tool_call(tool, arguments, new_id() if call_id is None else call_id, spec, plan.tool.labels)
        locates = plan.unfit_locates if call.problems else plan.locates
        if locates:
            call.places = places_of(locates, call, plan.tool)
        if plan.auto_ms is not None and execute is not asked and execute is not claiming:
            call.note_attempt(self._attempts.get((call.id, call.sig), 1), arguments)
        decision, ask = None, Ask(NO_TIME, call, plan, execute is not asked, stop=self.policy.stop)
        failed = "clock"
        try:
            ask.now_ms = self._now() if plan.deny_on_error else self._time()
            failed = "store"
            decision = self._store.update(self._all_keys, partial(engine.apply, ask))
            if self._records is not None:
                self._records.decided(decision, plan)
        except BaseException as error:
            # A store or a clock that fails is a guard that fails; what a signal raises is raised on.
            step, hand = Step(engine, self._all_keys, ask), lambda records, made: records.decided(made, plan)
            kept = recovered(self, step, error, hand, decision)
            if kept:
                let_go(self, decision or ask.made)
            if kept or not isinstance(error, Exception):
                raise
            log.error("%s failed: %s", failed, error, extra={"session": self.id})
            decision = undecided(self.id, ask, error, failed)
        try:
            return self._answered(decision, plan, arguments, execute, tells=tells)
        except BaseException:
            let_go(self, decision)
            raise

    def _answered(
        self, decision: Decision, plan: Plan, arguments: Any, execute: Execute, *, tells: bool
    ) -> tuple[Decision, Plan]:
        """
        Returns the answer to a decision that was made, and made again if a child gets more for it.
        """
        call, envelope = decision.call, decision.envelope
        if envelope is not None and envelope.status == "duplicate_call_blocked" and not decision.denials[0].running:
            earlier = self.policy.results.find(self.id, call.sig)
            if earlier is not None:
                envelope.give_back(earlier.payload, self._kept.still(earlier.cut))
        if envelope is not None and (envelope.error_type or envelope.errors is not None) and log.isEnabledFor(INFO):
            log_refused(self.id, envelope, call.tool)
        for guard, raised in decision.errors:
            log.error("guard `%s` failed: %s", guard, raised, extra={"guard": guard, "session": self.id})
        spent = envelope is not None and self._share is not None and not decision.denials[0].scope
        if spent and grow(self, decision.code):
            return self._decide(call.tool, arguments, call.id, execute, tells=tells)
        if tells and self._on_decision is not None:
            self._tell(decision)
        return decision, plan

    def _reading(self, decision: Decision, plan: Plan) -> Reading:
        def now() -> int:
            at_ms = self._time()
            return decision.at_ms if at_ms == NO_TIME else at_ms

        return Reading(plan, decision.call.arguments, now, self._passes)

    def _settle(self, decision: Decision, plan: Plan, result: object) -> Envelope:
        return self._close(decision, plan, *self._read_result(decision, plan, result))

    def _read_result(self, decision: Decision, plan: Plan, result: object) -> tuple[int, Prepared]:
        """
        The time, and what came of a call: where its tool ran, as a result may work nowhere else.
        """
        now = self._time()
        known = decision.at_ms if now == NO_TIME else now
        try:
            # What was read while its tool ran is an outcome already.
            if type(result) is Outcome:
                outcome = result
            else:
                limit = self._kept.room(result, plan) if self._kept.offered else plan.max_bytes
                outcome = told(result, plan, decision.call.arguments, known, limit)
            return now, prepare(outcome, plan.max_bytes, decision.call, look=not plan.changes)
        except Exception as error:  # noqa: BLE001  the tool has run: whatever it gave back must not fail now
            log.error("a result of `%s` could not be read: %r", decision.call.tool, error)
            unshown = Outcome(f"a {type(result).__name__} that cannot be shown", complete=False)
            return now, prepare(unshown, plan.max_bytes)
        except BaseException as error:  # Ctrl-C while a generator is read: the call is over all the same
            self._settle(decision, plan, error)
            raise

    def _close(self, decision: Decision, plan: Plan, now: int, prepared: Prepared) -> Envelope:
        if prepared.outcome.error_type is not None and self.policy.model_files is not None:
            self.policy.model_files.refresh(now)

        over, completion = Settle(now, decision, prepared, plan), None
        if decision.call.attempt and prepared.outcome.error_type is not None:
            bounded(self, over)
        try:
            envelope, completion = self._store.update(self._all_keys, partial(self._engine.apply, over))
            if self._records is not None:
                self._records.settled(decision, prepared, completion)
        except BaseException as error:
            step, done = Step(self._engine, self._all_keys, over), None if completion is None else (None, completion)
            hand = lambda records, made: records.settled(decision, prepared, made[1])  # noqa: E731
            if recovered(self, step, error, hand, done) or not isinstance(error, Exception):
                raise
            # The tool has run: its result is never lost.
            log.error("store failed: %s", error, extra={"session": self.id})
            envelope, completion = Engine(self._chain, self.id).apply(over, (SessionState(),))
            # No event of the session, whose state does not know of it.
            completion = replace(completion, n=0)
        if envelope.cut is not None and self._kept.reads(self._chain):
            self._kept.tell(envelope, plan)
        self._settled(decision, prepared, completion, envelope)
        return envelope

    def _settled(self, decision: Decision, prepared: Prepared, completion: Completion, envelope: Envelope) -> None:
        call, outcome, rendered = decision.call, prepared.outcome, prepared.rendered
        if outcome.error_type is not None:
            log.info(
                "tool execution failed",
                extra={
                    "session": self.id,
                    "tool": call.tool,
                    "error": outcome.error_message,
                    "error_type": outcome.error_type,
                },
            )
        if call.sig is not None and call.canonical is not None and not completion.late:
            payload = failure(outcome) if rendered is None else rendered.payload
            kept = Earlier(call.tool, call.canonical, payload, outcome.error_type is None, envelope.cut)
            self.policy.results.keep(self.id, call.sig, kept)
        for guard, raised in completion.errors:
            log.error("guard `%s` failed: %s", guard, raised, extra={"guard": guard, "session": self.id})

    def _tell(self, decision: Decision) -> None:
        try:
            self._on_decision(decision)  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001  a host's hook never decides over a call
            warn_once("on_decision", "`on_decision` raised: %r", error)
