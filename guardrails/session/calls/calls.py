"""
The shell around `decide` and `complete`: it reads the clock, locks by way of the store, waits for tools, writes records.

The synchronous and the asynchronous way differ only in how they wait.
"""

import os

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from logging import INFO
from typing import TYPE_CHECKING, Any, Final, TypeVar

from guardrails.core.chain import Plan
from guardrails.core.decision import Completion, Decision
from guardrails.core.engine import Engine
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.prepare import Prepared, prepare, told
from guardrails.core.records.digest import Earlier, failure
from guardrails.core.state import SessionState
from guardrails.core.text.path_text import within
from guardrails.core.tools.tool import Tool
from guardrails.core.tools.tool_call import asked, checked, tool_call
from guardrails.core.values.logs import log, warn_once
from guardrails.core.values.session_id import checked_id
from guardrails.core.values.tool_name import MAX_CHARS
from guardrails.core.values.types import NO_TIME, Outcome, ToolCall
from guardrails.session.approval import Approvals, Approver
from guardrails.session.growing import grow
from guardrails.session.ledger import undecided
from guardrails.session.recorder import log_refused, new_id
from guardrails.session.terms import Terms

from .running import Reading, stops
from .steps import Execute, at_once, steps


if TYPE_CHECKING:
    from guardrails.core.arguments import Arguments


Asks = Callable[[ToolCall, Tool], Iterable[tuple[str, Sequence[str]]]]


def places_of(asked: Iterable[tuple[str, Asks]], call: ToolCall, tool: Tool) -> dict[str, tuple[bool, ...]]:
    """
    Returns whether each path that a guard asks about is in one of the folders it names, by the guard's name. A path
    that cannot be looked up is not in any. A guard that fails to say what it asks gets no answers.
    """
    found: dict[str, tuple[bool, ...]] = {}
    for name, paths in asked:
        try:
            answers = tuple(is_in(path, folders) for path, folders in paths(call, tool))
            if answers:
                found[name] = answers
        except Exception as error:  # noqa: BLE001  a person's own guard may raise anything
            log.error("guard `%s` failed to name its paths: %r", name, error)
    return found


def is_in(path: str, folders: Iterable[str]) -> bool:
    """
    Returns whether *path* is one of *folders* or below one, by its text and by its real place. Some tools shorten
    `link/..` before they open a file, some do not. A path that does not exist yet is placed by its nearest folder that
    does.
    """
    try:
        real = os.path.realpath(path)
        for folder in folders:
            base = os.path.realpath(folder)
            if within(real, base) and (within(path, folder) or within(path, base)):
                return True
    except (OSError, ValueError, RecursionError) as error:  # the last for a thousand links in a row
        log.error("a path could not be looked up: %r", error)
    return False


T = TypeVar("T")
UNKNOWN_ENDS: Final = frozenset({"timeout", "cancelled"})
"""Failures that, if they are raised, do not say whether the work goes on."""


class Calls(Approvals):
    """
    The tool calls of one session.
    """

    _passes: tuple[type[BaseException], ...] = ()
    """Types of the control flow of a host: interrupts, deferrals, hand-offs."""

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
        self._approver = approver
        self._sleep = sleep
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
        return at_once(steps(self, tool, arguments, execute, id, blocks=True))

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
        claims, stop, now = execute is not asked, self.policy.stop, NO_TIME
        failed = "clock"
        try:
            now = self._now() if plan.deny_on_error else self._time()
            failed = "store"
            decision = self._store.update(self._all_keys, partial(engine.decide, call, plan, now, claims, stop))
        except Exception as error:  # noqa: BLE001  a store or a clock that fails is a guard that fails
            log.error("%s failed: %s", failed, error, extra={"session": self.id})
            decision = undecided(self.id, call, plan, now, stop, error, failed)
        else:
            if self._records is not None:
                self._records.decided(decision, plan)
        return self._answered(decision, plan, arguments, execute, tells=tells)

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
                envelope.give_back(earlier.payload)
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
            outcome = result if isinstance(result, Outcome) else told(result, plan, decision.call.arguments, known)
            made = prepare(outcome, plan.max_bytes, decision.call, look=not plan.changes)
            # What a tool says itself of a time limit is an end: what runs it ended the work.
            made.unknown = isinstance(result, BaseException) and made.outcome.error_type in UNKNOWN_ENDS
            return now, made
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
        step = partial(self._engine.complete, decision, prepared, plan, now, None)
        try:
            envelope, completion = self._store.update(self._all_keys, step)
        except Exception as error:  # noqa: BLE001  the tool has run: its result is never lost
            log.error("store failed: %s", error, extra={"session": self.id})
            envelope, completion = Engine(self._chain, self.id).complete(
                decision, prepared, plan, now, None, (SessionState(),)
            )
            # No event of the session, whose state does not know of it.
            completion = replace(completion, n=0)
        else:
            if self._records is not None:
                self._records.settled(decision, prepared, completion)
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
            kept = Earlier(call.tool, call.canonical, payload, outcome.error_type is None)
            self.policy.results.keep(self.id, call.sig, kept)
        for guard, raised in completion.errors:
            log.error("guard `%s` failed: %s", guard, raised, extra={"guard": guard, "session": self.id})

    def _passed(self, decision: Decision, error: BaseException) -> bool:
        """
        Whether *error* is the control flow of a host, which is raised on; the call of *decision* is suspended then.
        """
        if not isinstance(error, self._passes) or stops(error):
            return False
        self._suspend(decision)
        return True

    def _suspend(self, decision: Decision) -> None:
        if not decision.n:
            # The state knows nothing of it.
            return
        call = decision.call
        said = {"call_n": decision.n, "seq": decision.seq, "id": call.id, "tool": call.tool, "sig": call.sig}
        try:
            self._event("suspend", said, needed=True, call=call)
        except Exception as error:  # noqa: BLE001  the control flow of a host is never lost
            log.error("store failed: %s", error, extra={"session": self.id})

    def _tell(self, decision: Decision) -> None:
        try:
            self._on_decision(decision)  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001  a host's hook never decides over a call
            warn_once("on_decision", "`on_decision` raised: %r", error)
