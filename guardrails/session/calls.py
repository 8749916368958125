"""
The calls of a session: its tools as a host declares them; decided by the chain, answered by a person if they wait for one, and settled by how
they ended, whoever runs them.
"""

import json
import os

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import count
from logging import INFO
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final

from guardrails.core.arguments import foreign_arguments
from guardrails.core.chain import Chain, Plan
from guardrails.core.decision import Completion, Decision
from guardrails.core.engine import Engine
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.prepare import Prepared, prepare, told
from guardrails.core.record import identity
from guardrails.core.refusals import UNKNOWN
from guardrails.core.scopes import Scope
from guardrails.core.state import Pending, SessionState, Uncertain
from guardrails.core.text.control import sanitise
from guardrails.core.text.path_text import within
from guardrails.core.text.redaction import redact
from guardrails.core.tools.tool import Tool
from guardrails.core.tools.tool_call import asked, checked, tool_call
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import log, warn_once
from guardrails.core.values.names import bounded_name
from guardrails.core.values.types import NO_TIME, Outcome, ToolCall
from guardrails.session.results import Earlier, failure

from .ledger import Ledger, grow, later
from .steps import Execute, Limit, Steps, Store, Wait, awaited, limit_of, stops


if TYPE_CHECKING:
    from guardrails.core.arguments import Arguments

UNKNOWN_ENDS: Final = frozenset({"timeout", "cancelled"})
"""Failures that, if they are raised, do not say whether the work goes on."""
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
    """As they would run; text that is cut if they are more than 16 KiB of JSON. None of a call that may have happened and whose end
    another process read."""
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

    @classmethod
    def of(cls, one: Pending | Uncertain, session: str, sig: int | None, known: Earlier | None = None) -> "ParkedCall":
        """
        Returns the form in which a person reads *one*, of the signature *sig*; *known* is what is kept of its end.
        """
        names: dict[str, Any] = {"id": one.id, "tool": one.tool, "n": one.n, "seq": one.seq, "sig": sig}
        if isinstance(one, Uncertain) or (asks := one.question) is None:
            arguments = None if known is None else json.loads(known.arguments)
            return cls(**names, arguments=arguments, session=session, since=one.at_ms / 1000)
        try:
            arguments = json.loads(asks.shown)  # whole numbers to the last digit
        except ValueError:
            arguments = asks.shown
        expires = (asks.at_ms + asks.lasts_ms) / 1000 if asks.lasts_ms else None
        names |= {"arguments": arguments, "reason": asks.reason, "expires": expires, "cost_usd": one.cost / 1_000_000}
        return cls(**names, session=session, since=asks.at_ms / 1000)


Approver = Callable[[ParkedCall], Any]
"""Says True (run it), False or a text (do not, for this reason), None (nobody knows yet); it may be asynchronous."""


class Tools:
    """
    The tools of a session as its host declares them, while it is used too.
    """

    __slots__ = ("_declared", "_given", "_wrapped", "ledger", "specs")

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.specs: dict[str, Arguments] = {}
        """The checks of arguments, where the policy declares none."""
        self._given = ledger.chain.tools
        """The declarations of the policy, and of whoever made the session."""
        self._declared: dict[str, Tool] = {}
        self._wrapped: dict[str, object] = {}
        """The code of functions behind the session, which check by their own signatures."""

    def of(self, ledger: Ledger, specs: "Mapping[str, Arguments]") -> "Tools":
        """
        Returns the same of another *ledger*, with *specs* as well: a child's, or its own for one loop.
        """
        own = copy(self)
        own.ledger, own.specs = ledger, {**self.specs, **specs}
        return own

    def declare(self, *tools: Tool | Callable[..., Any]) -> None:
        """
        Know *tools*, those of a host or its functions, from now on: their arguments are checked, their hints count.

        The policy's declarations stand above those of a tool, field by field. A declared tool makes no other tool
        unknown. To say the same again costs next to nothing. A JSON Schema that is not valid is one warning, and its tool
        unchecked. Raises PolicyError if a function or model is not valid.
        """
        given = [tool if isinstance(tool, Tool) else Tool.of(tool) for tool in tools]
        new = {tool.name: tool for tool in given if self._declared.get(tool.name) != tool}
        specs = {name: spec for name, tool in new.items() if (spec := _arguments_of(tool)) is not None}
        if not new:
            return
        with self.ledger.lock:
            for name in new.keys() & self._declared.keys() - self._wrapped.keys():
                # Another tool of the name, whose arguments may be those that nobody can check.
                self.specs.pop(name, None)
            self.specs.update(specs)
            # A new one, as a copy for one loop may have this one.
            self._declared = {**self._declared, **new}
            chain, names = self.ledger.chain, frozenset(new)
            hinted = [_below(replace(tool, parameters=None), self._given.get(name)) for name, tool in new.items()]
            hinted = [tool for tool in hinted if tool != chain.tools.get(tool.name, Tool(name=tool.name))]
            if hinted or (chain.known is not None and not names <= chain.known):
                self.ledger.lay(partial(_knowing, tools=hinted, names=names))

    def wrap(self, name: str, code: object, spec: "Arguments") -> bool:
        """
        Let the function of *code* have *name*, whose arguments *spec* checks, for callers that name it too. Returns
        whether something else checks them already. Raises SessionError if another function has it.
        """
        if self._wrapped.get(name, code) != code:
            raise SessionError(
                f"`{name}` is another function in this session already; give this one a `name` of its own"
            )
        if self.defines(name):
            return True
        self._wrapped = {**self._wrapped, name: code}
        self.declare(Tool(name=name, parameters=spec))
        return False

    def defines(self, tool: str) -> bool:
        """
        Returns whether the arguments of *tool* are checked already, by the policy or as it was declared.
        """
        return (tool in self.specs and tool not in self._wrapped) or self.ledger.plan(tool).arguments is not None


def _knowing(chain: Chain, tools: Iterable[Tool], names: frozenset[str]) -> Chain:
    """
    *chain* with *tools*, and with *names* known as well.
    """
    return chain.with_tools(tools).knowing(None if chain.known is None else chain.known | names)


def _arguments_of(tool: Tool) -> "Arguments | None":
    # A schema may be that of a server, which nobody here can mend.
    foreign = isinstance(tool.parameters, Mapping)
    return foreign_arguments(tool.name, tool.parameters) if foreign else tool.arguments()


def _below(tool: Tool, own: Tool | None) -> Tool:
    """
    *tool* with what its *own* declaration says on top.
    """
    if own is None:
        return tool
    declared = {field.name: value for field in fields(Tool) if (value := getattr(own, field.name)) != field.default}
    return replace(tool, **declared)


class Calls:
    """
    The tool calls of one session, as its host tells of them. A model never approves a call by its words.
    """

    __slots__ = ("_asked", "approver", "ledger", "on_decision", "passes", "sleep", "tools")

    heard: ClassVar[bool] = False
    """Calls that are over are told to `settled`."""

    def __init__(
        self,
        ledger: Ledger,
        approver: Approver | None,
        on_decision: Callable[[Decision], object] | None,
        sleep: Callable[[float], object] | None,
    ) -> None:
        self.ledger = ledger
        self.tools = Tools(ledger)
        self.approver = approver
        self.on_decision = on_decision
        self.sleep = sleep
        self.passes: tuple[type[BaseException], ...] = ()
        """Types of the control flow of a host: interrupts, deferrals, hand-offs."""
        self._asked: dict[tuple[str, int], Decision] = {}
        """The calls that somebody is asked about at this moment, by session and number."""

    def of(
        self, ledger: Ledger, specs: "Mapping[str, Arguments] | None" = None, passes: Iterable[type[BaseException]] = ()
    ) -> "Calls":
        """
        Returns the same of another *ledger*: a child's, or with *specs*, its own for one loop, with more exceptions that
        it *passes*.
        """
        own = copy(self)
        own.ledger, own.tools, own.passes = ledger, self.tools.of(ledger, specs or {}), (*self.passes, *passes)
        return own

    # Before it runs

    def decide(self, tool: str, arguments: Any, call_id: str | None, execute: Execute) -> tuple[Decision, Plan]:
        """
        Returns the decision on a call, and what was known of its tool. The caller is *execute*, which claims the call
        unless it is `asked`.
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
        call = self._made(tool, arguments, call_id or next(_ids), plan)
        locates = plan.unfit_locates if call.problems else plan.locates
        if locates:
            call.places = places_of(locates, call, plan.tool)
        now = NO_TIME
        try:
            now = ledger.time(plan.deny_on_error)
            step = partial(engine.decide, call, plan, now, execute is not asked, policy.stop)
            decision = ledger.store.update(ledger.all_keys, step)
        except Exception as error:  # noqa: BLE001  a store or a clock that fails is a guard that fails
            decision = ledger.undecided(call, plan, now, error)
        else:
            if ledger.records is not None:
                ledger.records.decided(decision, plan)
        if decision.errors:
            self._failed(decision)
        if decision.envelope is not None and self._refused(decision, decision.envelope):
            # A child got more of its parent.
            return self.decide(tool, arguments, call.id, execute)
        return decision, plan

    def _made(self, tool: str, arguments: Any, call_id: str, plan: Plan) -> ToolCall:
        return tool_call(tool, arguments, call_id, plan.arguments or self.tools.specs.get(tool), plan.tool.labels)

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
            # Its arguments do not fit, there is no such tool, or it may not be used.
            faults = [f"{one['field']}: {one['message']}" for one in envelope.errors or ()]
            said = redact(" ".join([envelope.message or envelope.status, *faults]))
            self._log_failed(call, said, envelope.error_type or "validation")
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

    def settle(self, decision: Decision, plan: Plan, result: object, *, unread: bool = False) -> Envelope:
        """
        Returns the envelope of a call that came to *result*, a value or an exception, and is over; *unread*: it was answered
        already. What ends the program while it is read is raised on, and the call is settled by it.
        """
        try:
            prepared = self.read(decision, plan, result)
        except BaseException as error:
            self.close(decision, plan, self.read(decision, plan, error))
            raise
        prepared.unread = unread
        return self.close(decision, plan, prepared)

    def late(self, decision: Decision, plan: Plan, result: object) -> None:
        """
        Settle a call that was answered already, without holding up the event loop.
        """
        settle = partial(self.settle, decision, plan, self.read(decision, plan, result), unread=True)
        if self.ledger.blocks:
            later(self.ledger.store, settle)
        else:
            settle()

    def read(self, decision: Decision, plan: Plan, result: object) -> Prepared:
        """
        Returns the reading of what a call came to, made where its tool ran, as a result may work nowhere else.
        """
        if type(result) is Prepared:
            return result
        now, call = self.ledger.time(), decision.call
        try:
            if isinstance(result, Outcome):
                made = prepare(result, plan.max_bytes, call, look=not plan.changes)
            else:
                known = decision.at_ms if now == NO_TIME else now
                reading = told(result, plan, call.arguments, known, passes=self.passes)
                made = prepare(reading, plan.max_bytes, call, look=not plan.changes)
                # What a tool says itself of a time limit is an end: what runs it ended the work.
                made.unknown = reading.raised and reading.error_type in UNKNOWN_ENDS
        except self.passes:
            raise
        except Exception as error:  # noqa: BLE001  the tool has run: whatever it gave back must not fail now
            log.error("a result of `%s` could not be read: %r", call.tool, error)
            unshown = Outcome(f"a {type(result).__name__} that cannot be shown", complete=False)
            made = prepare(unshown, plan.max_bytes)
        made.at_ms = now
        return made

    def close(self, decision: Decision, plan: Plan, prepared: Prepared) -> Envelope:
        """
        Settle a call whose result was read, in the session's state.
        """
        ledger, call, outcome, rendered = self.ledger, decision.call, prepared.outcome, prepared.rendered
        policy, failed = ledger.policy, outcome.error_type is not None
        if failed and policy.model_files is not None:
            policy.model_files.refresh(prepared.at_ms)
        try:
            step = partial(ledger.engine.complete, decision, prepared, plan, prepared.at_ms, None)
            envelope, completion = ledger.store.update(ledger.all_keys, step)
        except Exception as error:  # noqa: BLE001  the tool has run: its result is never lost
            ledger.failed("store", error)
            alone = Engine(ledger.chain, ledger.id)
            envelope, completion = alone.complete(decision, prepared, plan, prepared.at_ms, None, (SessionState(),))
            # No event of the session, whose state does not know of it.
            completion.n = 0
        else:
            if ledger.records is not None:
                ledger.records.settled(decision, prepared, completion)
        if failed:
            self._log_failed(call, outcome.error_message, outcome.error_type)
        if call.canonical is not None and call.sig is not None and (prepared.unread or not completion.late):
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

    def _log_failed(self, call: ToolCall, error: str, kind: str | None) -> None:
        fields = {"session": self.ledger.id, "tool": call.tool, "error": error, "error_type": kind}
        log.info("tool execution failed", extra=fields)

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
        return limit_of(self.ledger.plan(decision.call.tool), decision.left_ms)

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

    def opened(self, tool: str, arguments: Any) -> list[Pending]:
        """
        Returns the calls of *tool* with *arguments* that are open, oldest first, but those that wait for a person.
        """
        tool = bounded_name(tool)
        asked_for = tool, self._made(tool, arguments, "-", self.ledger.plan(tool)).sig, None
        pending = self.ledger.read(lambda state, _: [*state.pending.values()])
        return [one for one in pending if (one.tool, one.sig, one.question) == asked_for]

    def open_call(self, which: Decision | str, arguments: Any = None, *, ends: bool = False) -> Decision:
        """
        Returns the decision of the open call *which*, an id that may be of several; a decision is itself. Where it *ends*,
        a call whose end is unknown is open too. Raises as `complete` does.
        """
        ledger = self.ledger
        if isinstance(which, Decision):
            if which.session != ledger.id:
                raise SessionError(f"the decision is of the session `{which.session}`, not of `{ledger.id}`")
            return which
        if not isinstance(which, str):
            raise TypeError(f"a call is told by its decision or its id, not by `{type(which).__name__}`")

        def look(state: SessionState, _: int, __: Sequence[Scope]) -> list[Decision]:
            same = [one for one in state.pending.values() if one.id == which]
            found = [Decision.again(_bare(one), one, session=ledger.id, run=state.run) for one in same]
            for sig, one in state.uncertain.items() if ends else ():
                if one.id == which and not one.came:
                    call = ToolCall(one.tool, None, one.id, None, sig)
                    found.append(Decision(call, one.n, one.at_ms, 0, ledger.id, state.run, claimed=True, seq=one.seq))
            return found

        decisions = given = ledger.look(look)
        if arguments is not None:
            given = [made for one in decisions if (made := self._with(arguments, one)) is not None]
        if len(given) == 1:
            return given[0]
        if decisions:
            there = "are there" if arguments is None else "have these arguments"
            why = f"{len(given)} open calls of the id `{which:.64}` {there}: say which by the `arguments` that were decided"
        else:
            why = f"no call of the id `{which:.64}` is open in `{ledger.id}`, any more or yet: `decide` it first"
        raise SessionError(why)

    def _with(self, arguments: Any, decision: Decision) -> Decision | None:
        own = decision.call
        call = self._made(own.tool, arguments, own.id, self.ledger.plan(own.tool))
        return decision.of(replace(call, sketch=own.sketch)) if call.sig == own.sig else None

    # Calls that wait for a person

    def pending(self, *, refused: bool = False) -> list[ParkedCall]:
        """
        Returns the calls that wait for an answer, oldest first; with *refused* also those that a person has refused
        since nobody knows how they ended.
        """
        session, find = self.ledger.id, self.ledger.policy.results.find

        def look(state: SessionState, now: int, _: Sequence[Scope]) -> list[ParkedCall]:
            waiting = [one for one in state.pending.values() if one.stage == "parked" and one.expires_ms > now]
            parked = [ParkedCall.of(one, session, one.sig) for one in waiting]
            open_sigs = {one.sig for one in state.pending.values()}
            for sig, one in state.uncertain.items():
                if not one.came and (refused if one.reason else sig not in open_sigs):
                    parked.append(ParkedCall.of(one, session, sig, find(session, sig)))
            return parked

        return self.ledger.look(look)

    def answer(self, which: str | ParkedCall, *, approved: bool, by: str, reason: str = "") -> None:
        """
        Let the call *which* run once, or never. Raises as `Session.approve` does.
        """
        id_ = which.id if isinstance(which, ParkedCall) else which
        if isinstance(which, ParkedCall) and which.session != self.ledger.id:
            raise SessionError(f"the call is of the session `{which.session}`, not of `{self.ledger.id}`")
        meant = [one for one in self.pending(refused=True) if one.id == id_]
        if isinstance(which, ParkedCall):
            meant = [one for one in meant if one.n == which.n]
        if not meant:
            raise SessionError(f"no call `{id_}` waits for an answer")
        if len(meant) > 1:
            raise SessionError(f"{len(meant)} calls of the id `{id_}` wait: give the item of `pending()` that is meant")
        words = " ".join(sanitise(str(reason)).split())[:REASON_CHARS]
        answer = {"approved": approved, "by": sanitise(str(by))[:REASON_CHARS], "reason": words}
        self.ledger.event("unpark", {**identity(meant[0]), **answer}, needed=True)

    async def ask_approver(self, which: Decision | str, *, arguments: Any = None) -> bool:
        """
        Ask the approver of the session about a call that waits for a person. Returns whether there is an answer, which
        decides the call if it is decided again. The call *which* and its *arguments* are as for `complete`, and raise
        as there.
        """
        if self.approver is None:
            return False
        return await awaited(self.asks(await self.ledger.off_loop(self.open_call, which, arguments)))

    def asks(self, decision: Decision) -> Steps[bool]:
        """
        Ask about a refused call, if it waits. Its value is whether there is an answer, by which the call is to be
        decided again.
        """
        if not decision.denials[0].running:
            return False
        waiting = yield Store(self.ledger, self.pending)
        one = next((one for one in waiting if one.sig == decision.call.sig), None)
        # In one step: of two threads one asks.
        if one is None or self._asked.setdefault((one.session, one.n), decision) is not decision:
            return False
        try:
            answer = yield Wait(self.approver, one)
            if answer is None:
                return False
            reason = answer if isinstance(answer, str) else ""
            if not isinstance(answer, (bool, str)):
                raise TypeError(f"an approver says True, False, a reason or None, not `{type(answer).__name__}`")
            # If somebody else was quicker, or the answer comes too late, the call is decided by that.
            with suppress(SessionError):
                answered = partial(self.answer, one, approved=answer is True, by="approver", reason=reason)
                yield Store(self.ledger, answered)
            return True
        except Exception as error:  # noqa: BLE001  an approver that fails has approved nothing
            warn_once("approver", "the approver failed: %r; the call waits on", error)
            return False
        finally:
            self._asked.pop((one.session, one.n), None)


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


def places_of(asked: Iterable[tuple[str, Any]], call: ToolCall, tool: Tool) -> dict[str, tuple[bool, ...]]:
    """
    Returns whether each path that a guard asks about is in one of the folders it names, by the guard's name. A path
    that cannot be looked up is not in any. A guard that fails to say what it asks gets no answers.
    """
    places: dict[str, tuple[bool, ...]] = {}
    for name, paths_of in asked:
        try:
            if answers := tuple(is_in(path, folders) for path, folders in paths_of(call, tool)):
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
