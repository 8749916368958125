"""
The calls of a session: decided by the chain, and settled by how they ended, whoever runs them.
"""

import os

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import count
from logging import INFO
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final

from guardrails.core.chain import Plan
from guardrails.core.decision import Completion, Decision
from guardrails.core.engine import Engine
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.prepare import Prepared, prepare, told
from guardrails.core.records.digest import Earlier, failure
from guardrails.core.result import Reading
from guardrails.core.state import Pending, SessionState
from guardrails.core.text.path_text import within
from guardrails.core.tools.tool import Tool
from guardrails.core.tools.tool_call import asked, checked, tool_call
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import log, warn_once
from guardrails.core.values.names import bounded_name
from guardrails.core.values.types import NO_TIME, Outcome, Success, ToolCall
from guardrails.session.approval import Approvals
from guardrails.session.children import grow
from guardrails.session.ledger import Ledger
from guardrails.session.recorder import log_refused

from .running import Limit, limit_of, stops
from .steps import Execute, awaited
from .tools import Tools


if TYPE_CHECKING:
    from guardrails.core.arguments import Arguments

UNKNOWN_ENDS: Final = frozenset({"timeout", "cancelled"})
"""Failures that, if they are raised, do not say whether the work goes on."""


class Calls:
    """
    The tool calls of one session, as its host tells of them.
    """

    __slots__ = ("approvals", "ledger", "on_decision", "passes", "sleep", "tools")

    heard: ClassVar[bool] = False
    """Calls that are over are told to `settled`."""

    def __init__(
        self,
        ledger: Ledger,
        tools: Tools,
        approvals: Approvals,
        on_decision: Callable[[Decision], object] | None,
        sleep: Callable[[float], object] | None,
    ) -> None:
        self.ledger = ledger
        self.tools = tools
        self.approvals = approvals
        self.on_decision = on_decision
        self.sleep = sleep
        self.passes: tuple[type[BaseException], ...] = ()
        """Types of the control flow of a host: interrupts, deferrals, hand-offs."""

    def of(
        self, ledger: Ledger, specs: "Mapping[str, Arguments] | None" = None, passes: Iterable[type[BaseException]] = ()
    ) -> "Calls":
        """
        Returns the same of another *ledger*: a child's, or with *specs*, its own for one loop, with more exceptions that
        it *passes*.
        """
        own = copy(self)
        own.ledger, own.tools, own.approvals = ledger, self.tools.of(ledger, specs), copy(self.approvals)
        own.approvals.ledger, own.passes = ledger, (*self.passes, *passes)
        return own

    # Before it runs

    def decide(self, tool: str, arguments: Any, call_id: str | None, execute: Execute) -> Decision:
        """
        Returns the decision on a call. The caller is *execute*, which claims the call unless it is `asked`.
        """
        ledger = self.ledger
        policy = ledger.policy
        if policy.chain is not ledger.base or monotonic() >= policy.due_s:
            ledger.fresh()
        engine = ledger.engine
        plan = engine.chain.plans.get(tool) if type(tool) is str else None
        if plan is None or call_id is not None or not callable(execute):
            # Under a name that has a plan, a tool was called before.
            tool, call_id = checked(tool, call_id, execute)
            plan = ledger.plan(tool)
        spec = plan.arguments or self.tools.specs.get(tool)
        call = tool_call(tool, arguments, call_id or next(_ids), spec, plan.tool.labels)
        locates = plan.unfit_locates if call.problems else plan.locates
        if locates:
            call.places = places_of(locates, call, plan.tool)
        failed, now = "clock", NO_TIME
        try:
            now = ledger.time(needed=plan.deny_on_error)
            failed = "store"
            claims = execute is not asked
            decision = ledger.store.update(
                ledger.all_keys, partial(engine.decide, call, plan, now, claims, policy.stop)
            )
        except Exception as error:  # noqa: BLE001  a store or a clock that fails is a guard that fails
            decision = ledger.undecided(call, plan, now, failed, error)
        else:
            if ledger.records is not None:
                ledger.records.decided(decision, plan)
        if decision.errors:
            self._failed(decision)
        if decision.envelope is not None and self._refused(decision, decision.envelope):
            # A child got more of its parent.
            return self.decide(tool, arguments, call.id, execute)
        return decision

    def _made(self, tool: str, arguments: Any, call_id: str, plan: Plan) -> ToolCall:
        spec = plan.arguments or self.tools.specs.get(tool)
        return tool_call(tool, arguments, call_id, spec, plan.tool.labels)

    def _refused(self, decision: Decision, envelope: Envelope) -> bool:
        """
        Complete the *envelope* of a refusal. Returns whether the call is to be decided again.
        """
        ledger, call, first = self.ledger, decision.call, decision.denials[0]
        if envelope.status == "duplicate_call_blocked" and not first.running:
            earlier = ledger.policy.results.find(ledger.id, call.sig)
            if earlier is not None:
                envelope.give_back(earlier.payload)
        if (envelope.error_type or envelope.errors is not None) and log.isEnabledFor(INFO):
            log_refused(ledger.id, envelope, call.tool)
        return ledger.share is not None and not first.scope and grow(ledger, decision.code)

    def tell(self, decision: Decision) -> None:
        """
        Tell the host's hook of a decision.
        """
        if self.on_decision is None:
            return
        try:
            self.on_decision(decision)
        except Exception as error:  # noqa: BLE001  a host's hook never decides over a call
            warn_once("on_decision", "`on_decision` raised: %r", error)

    # After it ran

    def told(self, decision: Decision, plan: Plan, result: object) -> Reading:
        """
        Returns the outcome of a call that came to *result*, as it is read while its tool runs.
        """
        at_ms = self.ledger.time()
        known = decision.at_ms if at_ms == NO_TIME else at_ms
        return told(result, plan, decision.call.arguments, known, passes=self.passes)

    def drained(self, decision: Decision, plan: Plan, result: object) -> object:
        """
        Returns *result*, or its outcome if it is an iterator.
        """
        items = result.value if isinstance(result, Success) else result
        return self.told(decision, plan, result) if hasattr(type(items), "__next__") else result

    def settle(self, decision: Decision, plan: Plan, result: object) -> Envelope:
        """
        Returns the envelope of a call that came to *result*, a value or an exception, and is over. What ends the program
        while it is read is raised on, and the call is settled by it.
        """
        try:
            now, prepared = self.read(decision, plan, result)
        except BaseException as error:
            self.close(decision, plan, *self.read(decision, plan, error))
            raise
        return self.close(decision, plan, now, prepared)

    def late(self, decision: Decision, plan: Plan, result: object) -> None:
        """
        Settle a call that was answered already, without holding up the event loop.
        """
        ledger = self.ledger
        if not ledger.blocks:
            self.settle(decision, plan, result)
            return
        from guardrails.session.off_loop import later

        later(ledger.store, partial(self.close, decision, plan, *self.read(decision, plan, result)))

    def read(self, decision: Decision, plan: Plan, result: object) -> tuple[int, Prepared]:
        """
        Returns the time, and what came of a call; read where its tool ran, as a result may work nowhere else.
        """
        now = self.ledger.time()
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

    def close(self, decision: Decision, plan: Plan, now: int, prepared: Prepared) -> Envelope:
        """
        Settle a call whose result was read, in the session's state.
        """
        ledger, call, outcome, rendered = self.ledger, decision.call, prepared.outcome, prepared.rendered
        policy, failed = ledger.policy, outcome.error_type is not None
        if failed and policy.model_files is not None:
            policy.model_files.refresh(now)
        step = partial(ledger.engine.complete, decision, prepared, plan, now, None)
        try:
            envelope, completion = ledger.store.update(ledger.all_keys, step)
        except Exception as error:  # noqa: BLE001  the tool has run: its result is never lost
            ledger.failed("store", error)
            alone = Engine(ledger.chain, ledger.id)
            envelope, completion = alone.complete(decision, prepared, plan, now, None, (SessionState(),))
            # No event of the session, whose state does not know of it.
            completion.n = 0
        else:
            if ledger.records is not None:
                ledger.records.settled(decision, prepared, completion)
        if failed:
            fields = {"session": ledger.id, "tool": call.tool, "error": outcome.error_message}
            log.info("tool execution failed", extra={**fields, "error_type": outcome.error_type})
        if call.canonical is not None and call.sig is not None and not completion.late:
            payload = failure(outcome) if rendered is None else rendered.payload
            policy.results.keep(ledger.id, call.sig, Earlier(call.tool, call.canonical, payload, not failed))
        if completion.errors:
            self._failed(completion)
        if self.heard:
            self.settled(decision, prepared, completion, envelope)
        return envelope

    def settled(self, decision: Decision, prepared: Prepared, completion: Completion, envelope: Envelope) -> None:
        """
        Hear of a call that is over, where that is *heard*.
        """

    def _failed(self, made: Decision | Completion) -> None:
        for guard, raised in made.errors:
            log.error("guard `%s` failed: %s", guard, raised, extra={"guard": guard, "session": self.ledger.id})

    def passed(self, decision: Decision, error: BaseException) -> bool:
        """
        Returns whether *error* is the control flow of a host, which is raised on. The call of *decision* is suspended
        then.
        """
        if not isinstance(error, self.passes) or stops(error):
            return False
        self.ledger.suspend(decision)
        return True

    # Calls that run elsewhere

    def limit(self, decision: Decision) -> Limit | None:
        """
        Returns the time limit of the admitted call of *decision*, for a caller that runs it elsewhere: `limit.error()`
        is then its outcome. Returns None if it may take any time.
        """
        plan = self.ledger.plan(decision.call.tool)
        return limit_of(plan.tool, plan.timeout_ms, decision.left_ms, threaded=False)

    def release(self, which: Decision | str, *, arguments: Any = None) -> None:
        """
        Let a call that never ran, and will not, hold nothing. It is not counted then.

        The call *which* and its *arguments* are as for `complete`, and raise as there. A claimed call can be released
        too, so release only calls that did not begin. A question to a person is withdrawn. Nothing happens to a call
        that is over: refused, completed or released before.
        """
        self.ledger.release(self.open_call(which, arguments))

    def suspend(self, which: Decision | str, *, arguments: Any = None) -> None:
        """
        Say that an admitted call stopped in the control flow of the host, which makes it again (see `scoped`).

        The call *which* and its *arguments* are as for `complete`, and raise as there. Nothing happens to one that is
        over.
        """
        self.ledger.suspend(self.open_call(which, arguments))

    async def ask_approver(self, which: Decision | str, *, arguments: Any = None) -> bool:
        """
        Ask the approver of the session about a call that waits for a person. Returns whether there is an answer, which
        decides the call if it is decided again. The call *which* and its *arguments* are as for `complete`, and raise
        as there.
        """
        if self.approvals.approver is None:
            return False
        decision = await self.ledger.off_loop(self.open_call, which, arguments)
        return await awaited(self.approvals.asks(decision))

    def opened(self, tool: str, arguments: Any) -> list[Pending]:
        """
        Returns the calls of *tool* with *arguments* that are open, oldest first, but those that wait for a person.
        """
        tool = bounded_name(tool)
        sig = self._made(tool, arguments, "-", self.ledger.plan(tool)).sig

        def look(state: SessionState, _: int) -> list[Pending]:
            same = [one for one in state.pending.values() if one.sig == sig and one.tool == tool]
            return [one for one in same if one.question is None]

        return self.ledger.read(look)

    def open_call(self, which: Decision | str, arguments: Any = None) -> Decision:
        """
        Returns the decision of the open call *which*, an id that may be of several; a decision is itself. Raises as
        `complete` does.
        """
        ledger = self.ledger
        if isinstance(which, Decision):
            if which.session != ledger.id:
                raise SessionError(f"the decision is of the session `{which.session}`, not of `{ledger.id}`")
            return which
        if not isinstance(which, str):
            raise TypeError(f"a call is told by its decision or its id, not by `{type(which).__name__}`")

        def look(state: SessionState, _: int) -> list[Decision]:
            named = [one for one in state.pending.values() if one.id == which]
            return [Decision.again(_bare(one), one, session=ledger.id, run=state.run) for one in named]

        decisions = ledger.read(look)
        if not decisions:
            raise SessionError(
                f"no call of the id `{which:.64}` is open in `{ledger.id}`: it was completed, released or given up, or "
                "never decided; `decide` it first"
            )
        if arguments is not None:
            decisions = [one for one in (self._with(arguments, decision) for decision in decisions) if one is not None]
        if len(decisions) != 1:
            there = "are there" if arguments is None else "have these arguments"
            raise SessionError(
                f"{len(decisions)} open calls of the id `{which:.64}` {there}: say which by the `arguments` that were decided"
            )
        return decisions[0]

    def _with(self, arguments: Any, decision: Decision) -> Decision | None:
        own = decision.call
        call = self._made(own.tool, arguments, own.id, self.ledger.plan(own.tool))
        return decision.of(replace(call, sketch=own.sketch)) if call.sig == own.sig else None


def _bare(pending: Pending) -> ToolCall:
    """
    An open call without its arguments, which no state keeps.
    """
    return ToolCall(pending.tool, None, pending.id, None, pending.sig, sketch=pending.entry.sketch or None)


def _draw() -> None:
    # Every process has a beginning of its own, a forked one too.
    global _ids  # noqa: PLW0603
    _ids = map(f"{os.urandom(6).hex()}{{:04x}}".format, count(1))


_ids: Iterator[str]
"""Ids of calls that come without one: no other process draws the same."""
_draw()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_draw)


Asks = Callable[[ToolCall, Tool], Iterable[tuple[str, Sequence[str]]]]


def places_of(asked: Iterable[tuple[str, Asks]], call: ToolCall, tool: Tool) -> dict[str, tuple[bool, ...]]:
    """
    Returns whether each path that a guard asks about is in one of the folders it names, by the guard's name. A path
    that cannot be looked up is not in any. A guard that fails to say what it asks gets no answers.
    """
    places: dict[str, tuple[bool, ...]] = {}
    for name, paths_of in asked:
        try:
            answers = tuple(is_in(path, folders) for path, folders in paths_of(call, tool))
            if answers:
                places[name] = answers
        except Exception as error:  # noqa: BLE001  a person's own guard may raise anything
            log.error("guard `%s` failed to name its paths: %r", name, error)
    return places


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
