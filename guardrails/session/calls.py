"""
The calls of a session: its tools as a host declares them; decided by the chain, answered by a person if they wait for one, and settled by how
they ended, whoever runs them.
"""

import json

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import partial
from os import path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.chain import Chain, Plan
from guardrails.core.decision import Completion, Decision
from guardrails.core.engine import Engine, complete, decide
from guardrails.core.envelope import Envelope
from guardrails.core.prepare import prepare
from guardrails.core.record import identity
from guardrails.core.refusals import UNKNOWN
from guardrails.core.result import Reading, Terms, reading_of
from guardrails.core.state import Pending, SessionState, Uncertain
from guardrails.core.text.control import sanitise
from guardrails.core.tool import Tool, checked, host_arguments, tool_call
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import log, wants_info, warn_once
from guardrails.core.values.names import bounded_name
from guardrails.core.values.types import MICRO, Outcome, ToolCall
from guardrails.session.results import Earlier, failure

from .ledger import Ledger, grow, new_id
from .steps import Steps, Store, Wait, drive, is_cancellation


if TYPE_CHECKING:
    from guardrails.core.arguments import Arguments

Passes = Iterable[type[BaseException]]
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
    def of(cls, one: Pending | Uncertain, session: str, sig: int | None, end: Earlier | None = None) -> "ParkedCall":
        """
        Returns the form in which a person reads *one*, of the signature *sig*; *end* is what is kept of its end.
        """
        names: dict[str, Any] = {"id": one.id, "tool": one.tool, "n": one.n, "seq": one.seq, "sig": sig}
        if isinstance(one, Uncertain) or (question := one.question) is None:
            arguments = None if end is None else json.loads(end.arguments)
            return cls(**names, arguments=arguments, session=session, since=one.at_ms / 1000)
        names |= {"session": session, "since": question.at_ms / 1000, "arguments": question.shown}
        with suppress(ValueError):  # text that was cut
            names["arguments"] = json.loads(question.shown)  # whole numbers to the last digit
        names["expires"] = (question.at_ms + question.lasts_ms) / 1000 if question.lasts_ms else None
        return cls(**names, reason=question.reason, cost_usd=one.cost / MICRO)


Approver = Callable[[ParkedCall], Any]
"""Says True (run it), another value (do not; a text is the reason), None (nobody knows yet); it may be asynchronous."""


@dataclass
class Calls:
    """
    The tool calls of one session, as its host tells of them, and the tools that the host declares. A model never
    approves a call by its words.
    """

    ledger: Ledger
    approver: Approver | None = None
    on_decision: Callable[[Decision], object] | None = None
    on_warning: Callable[[str, str], object] | None = None
    sleep: Callable[[float], object] | None = None
    passes: tuple[type[BaseException], ...] = ()
    """Types of the control flow of a host: interrupts, deferrals, hand-offs."""
    specs: "Mapping[str, Arguments]" = field(default_factory=dict)
    """The checks of arguments, where the policy declares none."""
    _host_tools: Mapping[str, Tool] = field(default_factory=dict)
    _functions: Mapping[str, object] = field(default_factory=dict)
    """The code of functions behind the session, which check by their own signatures."""
    _questions: dict[tuple[str, int], Decision] = field(default_factory=dict)
    """The calls that somebody is asked about at this moment, by session and number."""

    def __post_init__(self) -> None:
        self._policy_tools = self.ledger.chain.tools
        """The declarations of the policy, and of whoever made the session."""

    def of(self, ledger: Ledger, specs: "Mapping[str, Arguments]", passes: Passes = ()) -> "Calls":
        """
        Returns the same of another *ledger*: a child's, or with *specs*, its own for one loop, with more exceptions that
        it *passes*.
        """
        own = copy(self)
        own.ledger, own.specs, own.passes = ledger, {**self.specs, **specs}, (*self.passes, *passes)
        return own

    # Tools

    def declare(self, *tools: Tool | Callable[..., Any], listed: bool = True) -> None:
        """
        Know *tools*, those of a host or its functions, from now on: their arguments are checked, their hints count.

        The policy's declarations stand above those of a tool, field by field. A declared tool makes no other tool
        unknown. Unless they are *listed*, there may be others that cost less. To say the same again costs next to
        nothing. A JSON Schema that is not valid is one warning, and its tool unchecked. Raises PolicyError if a function
        or model is not valid.
        """
        every = [tool if isinstance(tool, Tool) else Tool.of(tool) for tool in tools]
        new = {tool.name: tool for tool in every if self._host_tools.get(tool.name) != tool}
        specs = {name: host_arguments(tool) for name, tool in new.items()}
        if not new:
            return
        with self.ledger.lock:
            # Another tool of a known name has other arguments, maybe such as nobody can check.
            gone = new.keys() & self._host_tools.keys() - self._functions.keys()
            others = {name: spec for name, spec in self.specs.items() if name not in gone}
            # New ones, as a copy for one loop may have these.
            self.specs = others | {name: spec for name, spec in specs.items() if spec is not None}
            self._host_tools = {**self._host_tools, **new}
            self.offer(*new.values(), listed=listed)

    def offer(self, *tools: Tool, listed: bool = True) -> None:
        """
        Know that a model has *tools*, and what is declared of them but their parameters; the rest as for `declare`.
        """
        with self.ledger.lock:
            chain, names = self.ledger.chain, frozenset(tool.name for tool in tools)
            hints = [_below(tool, self._policy_tools.get(tool.name, Tool(name=tool.name))) for tool in tools]
            hints = [tool for tool in hints if tool != chain.tools.get(tool.name, Tool(name=tool.name))]
            offered = names if listed else frozenset[str]()
            if hints or not (offered <= chain.offered and (chain.known is None or names <= chain.known)):
                self.ledger.lay(partial(_knowing, tools=hints, names=names, offered=offered))

    def declare_function(self, name: str, code: object, spec: "Arguments") -> bool:
        """
        Let the function of *code* have *name*, whose arguments *spec* checks, for callers that name it too. Returns
        whether something else checks them already. Raises SessionError if another function has it.
        """
        if self._functions.get(name, code) != code:
            raise SessionError(f"`{name}` is another function in this session already: give this one a `name`")
        if self.defines(name):
            self.offer(Tool(name=name))
            return True
        self._functions = {**self._functions, name: code}
        self.declare(Tool(name=name, parameters=spec))
        return False

    def defines(self, tool: str) -> bool:
        """
        Returns whether the arguments of *tool* are checked already, by the policy or as it was declared.
        """
        return (tool in self.specs and tool not in self._functions) or self.ledger.plan(tool).arguments is not None

    # Before it runs

    def decide(self, tool: str, arguments: Any, call_id: str | None, *, claims: bool) -> tuple[Decision, Plan]:
        """
        Returns the decision on a call, and what was known of its tool. The caller *claims* the call, or only asks.
        """
        ledger = self.ledger
        policy = ledger.policy
        if policy.chain is not ledger.base or monotonic() >= policy.due_s:
            ledger.refresh()
        engine = ledger.engine
        plan = engine.chain.plans.get(tool) if type(tool) is str else None
        if plan is None or call_id is not None:
            # Under a name that has a plan, a tool was called before.
            tool, call_id = checked(tool, call_id)
            plan = ledger.plan(tool)
        spec, labels = plan.arguments or self.specs.get(tool), plan.tool.labels
        call = tool_call(tool, arguments, call_id or new_id(), spec, labels)
        if plan.locates:
            call.places = places_of(plan.locates, call, plan.tool)
        now = ledger.time()
        try:
            step = partial(engine.apply, decide, (call, plan, now, claims, policy.stop), now)
            decision = ledger.store.update(ledger.all_keys, step)
        except Exception as error:  # a store that fails is a guard that fails
            decision = ledger.unknown(call, plan, now, error)
        else:
            if ledger.records is not None:
                ledger.records.decision(decision, plan)
        if decision.errors:
            self._log_errors(decision)
        if decision.envelope is not None and self._grows(decision, decision.envelope):
            return self.decide(tool, arguments, call.id, claims=claims)
        return decision, plan

    def _grows(self, decision: Decision, envelope: Envelope) -> bool:
        """
        Complete the *envelope* of a refusal. Returns whether a child got more of its parent, so that the call is to be
        decided again.
        """
        ledger, first = self.ledger, decision.denials[0]
        if envelope.status == "duplicate_call_blocked" and not first.running:
            earlier = ledger.policy.results.find(ledger.id, decision.call.sig)
            if earlier is not None:
                envelope.previous_payload = earlier.payload
        if wants_info():
            from guardrails.core.text.redaction import redact

            faults = [f"{one['field']}: {one['message']}" for one in envelope.errors or ()]
            message = redact(" ".join([first.message, *faults]))
            self._log_failure(decision.call, message, envelope.error_type or ("validation" if faults else first.code))
        return ledger.share is not None and not first.scope and grow(ledger, decision.code)

    def tell(self, hook: str, *values: object) -> None:
        """
        Tell a *hook* of the host.
        """
        try:
            if (listener := getattr(self, hook)) is not None:
                listener(*values)
        except Exception as error:  # a host's hook never decides over a call
            warn_once(hook, f"`{hook}` raised: %r", error)

    # After it ran

    def settle(self, decision: Decision, plan: Plan, result: object, *, unread: bool = False) -> Envelope:
        """
        Returns the envelope of a call that came to *result*, a value or an exception, and is over; *unread*: it was answered
        already.
        """
        reading = self.read(decision, plan, result)
        reading.unread = unread
        return self.close(decision, plan, reading)

    def read(self, decision: Decision, plan: Plan, result: object) -> Reading:
        """
        Returns the reading of what a call came to, made where its tool ran, as a result may work nowhere else.
        """
        if type(result) is Reading:
            return result
        now, call = self.ledger.time(), decision.call
        try:
            outcome = Envelope.spoken(result) if plan.tool.returns_envelope else result
            if not isinstance(outcome, Outcome):
                terms = Terms(now, plan.max_bytes, self.passes)
                outcome = reading_of(outcome, plan.source, call.arguments, terms)
            reading = prepare(outcome, plan.max_bytes, call, look=not plan.changes)
            # What a tool says itself of a time limit is an end: what runs it ended the work.
            if reading.raised is not None:
                from guardrails.core.result.exceptions import ends_unknown

                reading.unknown = ends_unknown(reading.raised, reading.error_type)
        except self.passes:
            raise
        except Exception as error:  # the tool has run: whatever it gave back must not fail now
            log.error("a result of `%s` could not be read: %r", call.tool, error)
            unshown = Outcome(f"a {type(result).__name__} that cannot be shown", complete=False)
            reading = prepare(unshown, plan.max_bytes)
        reading.at_ms = now
        return reading

    def close(self, decision: Decision, plan: Plan, reading: Reading) -> Envelope:
        """
        Settle a call whose result was read, in the session's state.
        """
        ledger, call, policy = self.ledger, decision.call, self.ledger.policy
        failed = reading.error_type is not None
        if failed and policy.model_files is not None:
            policy.model_files.refresh(reading.at_ms)
        values = decision, reading, plan, reading.at_ms, None
        try:
            step = partial(ledger.engine.apply, complete, values, reading.at_ms)
            envelope, completion = ledger.store.update(ledger.all_keys, step)
        except Exception as error:  # the tool has run: its result is never lost
            ledger.log_fault(error)
            alone = Engine(ledger.chain, ledger.id)
            envelope, completion = alone.apply(complete, values, reading.at_ms, (SessionState(),))
            # No event of the session, whose state does not know of it.
            completion.n = 0
        else:
            if ledger.records is not None:
                ledger.records.end(decision, reading, completion)
        if failed:
            # No record holds it, and what it holds.
            envelope.raised, reading.raised = reading.raised, None
            self._log_failure(call, reading.error_message, reading.error_type)
        if call.canonical is not None and call.sig is not None and (reading.unread or not completion.late):
            payload = failure(reading) if reading.rendered is None else reading.rendered.payload
            policy.results.keep(ledger.id, call.sig, call.canonical, payload)
        self._log_errors(completion)
        for code, text in completion.warnings:
            self.tell("on_warning", code, text)
        return envelope

    def end_by(self, decision: Decision, plan: Plan, error: BaseException) -> Callable[[], object]:
        """
        Returns the step that is due as *error* ends the run of a call, and is raised on: a call that stopped in the
        control flow of its host is suspended, any other is settled.
        """
        ends = isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)) or is_cancellation(error)
        passes = isinstance(error, self.passes) and not ends
        return partial(self.ledger.suspend, decision) if passes else partial(self.settle, decision, plan, error)

    def _log_failure(self, call: ToolCall, error: str | None, error_type: str | None) -> None:
        values = {"tool": call.tool, "error": error, "error_type": error_type}
        log.info("tool execution failed", extra={"session": self.ledger.id, **values})

    def _log_errors(self, made: Decision | Completion) -> None:
        for guard, error in made.errors:
            log.error("guard `%s` failed: %s", guard, error, extra={"guard": guard, "session": self.ledger.id})

    # Calls that run elsewhere

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

    def open_calls(self, tool: str, arguments: Any) -> list[Pending]:
        """
        Returns the calls of *tool* with *arguments* that are open, oldest first, but those that wait for a person.
        """
        sig = self._signed(tool := bounded_name(tool), arguments, "-").sig
        pending = self.ledger.read(lambda state, _: [*state.pending.values()])
        return [one for one in pending if (one.tool, one.sig, one.question) == (tool, sig, None)]

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

        def look(state: SessionState, _: int) -> list[Decision]:
            same = [one for one in state.pending.values() if one.id == which]
            # Without its arguments, which no state keeps.
            bare = [ToolCall(one.tool, None, one.id, None, one.sig, sketch=one.entry.sketch or None) for one in same]
            matches = [Decision.again(call, one, ledger.id, state.run) for call, one in zip(bare, same, strict=True)]
            for sig, one in state.uncertain.items() if ends else ():
                if one.id == which and not one.came:
                    call = ToolCall(one.tool, None, one.id, None, sig)
                    matches.append(Decision(call, one.n, one.at_ms, 0, ledger.id, state.run, claimed=True, seq=one.seq))
            return matches

        decisions = ledger.read(look)
        if arguments is not None:
            calls = [(one, self._signed(one.call.tool, arguments, one.call.id)) for one in decisions]
            same = [(one, call) for one, call in calls if call.sig == one.call.sig]
            decisions = [one.of(replace(call, sketch=one.call.sketch)) for one, call in same]
        if len(decisions) != 1:
            such = "" if arguments is None else " with these arguments"
            matches = f"{len(decisions) or 'no'} open calls have the id `{which!s:.64}`{such} in `{ledger.id}`"
            raise SessionError(f"{matches}: `decide` it first, or say which by the `arguments`")
        return decisions[0]

    def _signed(self, tool: str, arguments: Any, call_id: str) -> ToolCall:
        plan = self.ledger.plan(tool)
        return tool_call(tool, arguments, call_id, plan.arguments or self.specs.get(tool), plan.tool.labels)

    # Calls that wait for a person

    def pending(self, *, refused: bool = False) -> list[ParkedCall]:
        """
        Returns the calls that wait for an answer, oldest first; with *refused* also those that a person has refused
        since nobody knows how they ended.
        """
        session, find = self.ledger.id, self.ledger.policy.results.find

        def look(state: SessionState, now: int) -> list[ParkedCall]:
            waiting = [one for one in state.pending.values() if one.stage == "parked" and one.expires_ms > now]
            parked = [ParkedCall.of(one, session, one.sig) for one in waiting]
            open_sigs = {one.sig for one in state.pending.values()}
            for sig, one in state.uncertain.items():
                if not one.came and (refused if one.reason else sig not in open_sigs):
                    parked.append(ParkedCall.of(one, session, sig, find(session, sig)))
            return parked

        self.ledger.refresh()
        return self.ledger.read(look)

    def answer(self, which: str | ParkedCall, *, approved: bool, by: str, reason: str = "") -> None:
        """
        Let the call *which* run once, or never. Raises as `Session.approve` does.
        """
        same, own = ((which.session, which.n), which.id) if isinstance(which, ParkedCall) else (which, which)
        waiting = [one for one in self.pending(refused=True) if same in (one.id, (one.session, one.n))]
        if len(waiting) != 1:
            many = f"{len(waiting)} calls of the id `{own}` wait: give the item of `pending()` that is meant"
            raise SessionError(many if waiting else f"no call `{own}` waits for an answer")
        words = " ".join(sanitise(str(reason)).split())[:REASON_CHARS]
        values = {"approved": approved, "by": sanitise(str(by))[:REASON_CHARS], "reason": words}
        self.ledger.event("unpark", {**identity(waiting[0]), **values}, needed=True)

    async def ask_approver(self, which: Decision | str, *, arguments: Any = None) -> bool:
        """
        Ask the approver of the session about a call that waits for a person. Returns whether there is an answer, which
        decides the call if it is decided again. The call *which* and its *arguments* are as for `complete`, and raise
        as there.
        """
        return await drive(self.ask(await self.ledger.off_loop(self.open_call, which, arguments)))

    def ask(self, decision: Decision) -> Steps[bool]:
        """
        Ask about a refused call, if it waits. Its value is whether there is an answer, by which the call is to be
        decided again.
        """
        if self.approver is None or not decision.denials[0].running:
            return False
        waiting = yield Store(self.ledger, self.pending)
        one = next((one for one in waiting if one.sig == decision.call.sig), None)
        # In one step: of two threads one asks.
        if one is None or self._questions.setdefault((one.session, one.n), decision) is not decision:
            return False
        try:
            answer = yield Wait(self.approver, one)
            if answer is None:
                return False
            reason = answer if isinstance(answer, str) else ""
            step = partial(self.answer, one, approved=answer is True, by="approver", reason=reason)
            # If somebody else was quicker, or the answer comes too late, the call is decided by that.
            with suppress(SessionError):
                yield Store(self.ledger, step)
            return True
        except Exception as error:  # an approver that fails has approved nothing
            warn_once("approver", "the approver failed: %r; the call waits on", error)
            return False
        finally:
            self._questions.pop((one.session, one.n), None)


def _knowing(chain: Chain, tools: Sequence[Tool], names: frozenset[str], offered: frozenset[str]) -> Chain:
    """
    *chain* with *tools*, with *names* known as well, and with those *offered*.
    """
    made = chain.with_tools(tools) if tools else chain
    return made.knowing(None if chain.known is None else chain.known | names, offered)


def _below(tool: Tool, own: Tool) -> Tool:
    """
    *tool* but for its parameters, with what its *own* declaration says on top.
    """
    declared = {each.name: value for each in fields(Tool) if (value := getattr(own, each.name)) != each.default}
    return replace(tool, **{"parameters": None, **declared})


def places_of(questions: Iterable[tuple[str, Any]], call: ToolCall, tool: Tool) -> dict[str, tuple[bool, ...]]:
    """
    Returns whether each path that a guard asks about is in one of the folders it names, by the guard's name. A path
    that cannot be looked up is not in any. A guard that fails to say what it asks gets no answers.
    """
    places: dict[str, tuple[bool, ...]] = {}
    for name, paths_of in questions:
        try:
            if answers := tuple(is_in(one, folders) for one, folders in paths_of(call, tool)):
                places[name] = answers
        except Exception as error:  # a person's own guard may raise anything
            log.error("guard `%s` failed to name its paths: %r", name, error)
    return places


def is_in(place: str, folders: Iterable[str]) -> bool:
    """
    Returns whether the path *place* is one of *folders* or below one, by its text and by its real place. Some tools
    shorten `link/..` before they open a file, some do not. A path that does not exist yet is placed by its nearest
    folder that does.
    """
    from guardrails.core.text.path_text import within

    try:
        real, bases = path.realpath(place), [(folder, path.realpath(folder)) for folder in folders]
        return any(within(real, base) and (within(place, folder) or within(place, base)) for folder, base in bases)
    except (OSError, ValueError, RecursionError) as error:  # the last for a thousand links in a row
        log.error("a path could not be looked up: %r", error)
    return False
