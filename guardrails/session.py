"""
The front door: a session runs tools for an agent, behind the chain.

This is the shell around `decide` and `complete`: it reads the clock, locks by way of the store, waits for tools, and
writes records. The synchronous and the asynchronous way differ only in how they wait.
"""

import inspect
import itertools
import os

from collections.abc import Callable
from functools import partial
from logging import INFO
from types import AsyncGeneratorType, CoroutineType, NoneType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

import orjson

from . import transitions
from .chain import Chain, Plan
from .decide import Completion, Decision, Prepared, complete, decide, exhaustion, prepare, progress
from .digest import digest
from .envelope import Envelope
from .errors import SessionError
from .logs import log, warn_once
from .outcome import collect_async, outcome_of
from .record import call_record, event_record, expire_record, settle_record
from .results import Earlier
from .running import in_thread, with_timeout
from .session_id import checked_id
from .signature import low64, parse_arguments, sign
from .state import SessionState
from .turns import Strategy, ToolChoice, next_tool_choice
from .types import Denial, Outcome, Problem, ToolCall
from .usage import cost_of, read_usage


if TYPE_CHECKING:
    from .arguments import Arguments
    from .policy import Policy
    from .sinks import Sink
    from .stores.base import Store


T = TypeVar("T")
Execute = Callable[[str, Any], Any]

_PLAIN: Final = frozenset({dict, list, tuple, str, bytes, int, float, bool, NoneType})
"""Types of results that nobody awaits."""
_numbers = itertools.count(1)
_prefix = os.urandom(4).hex()


def _renew_prefix() -> None:
    global _prefix  # noqa: PLW0603  a forked child must not draw its parent's ids
    _prefix = os.urandom(4).hex()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_prefix)


class Session:
    """
    The calls that share a budget. Made by `Policy.session`; safe in any number of threads and tasks at once.

    A context manager (`with`, `async with`); leaving it flushes the records.
    """

    def __init__(
        self,
        policy: "Policy",
        name: str,
        *,
        chain: Chain,
        store: "Store",
        sink: "Sink | None",
        clock: Callable[[], float],
        on_decision: Callable[[Decision], object] | None,
        parent: "Session | None" = None,
    ) -> None:
        checked = checked_id(name)
        self.id: str = checked if parent is None else f"{parent.id}/{checked}"
        self.policy = policy
        self._chain = chain
        self._keys = (self.id,)
        self._store = store
        self._sink = sink
        self._clock = clock
        self._on_decision = on_decision
        self._parent = parent
        self._specs: dict[str, Arguments] = {}

    # Calls

    def call(self, tool: str, arguments: Any, execute: Execute, *, id: str | None = None) -> Envelope:
        """
        Run `execute(tool, arguments)` if the chain lets it; the envelope says what happened.

        *arguments* are a mapping, or the JSON text of a model; *execute* gets them coerced. *id* is the model's id of
        the call; without one the call has an id of its own. Never raises for what the tool does.
        """
        decision, plan = self._decide(tool, arguments, id, claim=True)
        if decision.envelope is not None:
            return decision.envelope
        if log.isEnabledFor(INFO):
            log.info("executing tool", extra={"tool": tool, "session": self.id})
        result: object
        try:
            if plan.timeout_ms is None:
                result = execute(tool, decision.call.arguments)
            else:
                run = partial(execute, tool, decision.call.arguments)
                result = with_timeout(run, plan.timeout_ms / 1000, partial(self._late, decision, plan))
            if type(result) not in _PLAIN and inspect.isawaitable(result):
                result = _not_awaited(result)
        except Exception as error:  # noqa: BLE001  a tool may raise anything; the model reads it as data
            result = error
        except BaseException as error:
            self._settle(decision, plan, error)
            raise
        return self._settle(decision, plan, result)

    async def acall(self, tool: str, arguments: Any, execute: Execute, *, id: str | None = None) -> Envelope:
        """
        The same, awaited. *execute* may be synchronous too: it then runs in this task, or, where the tool declares a
        timeout, in a thread.
        """
        decision, plan = self._decide(tool, arguments, id, claim=True)
        if decision.envelope is not None:
            return decision.envelope
        if log.isEnabledFor(INFO):
            log.info("executing tool", extra={"tool": tool, "session": self.id})
        result: object
        try:
            if plan.timeout_ms is None:
                result = execute(tool, decision.call.arguments)
                if type(result) is CoroutineType or inspect.isawaitable(result):
                    result = await result
            else:
                result = await self._within(plan.timeout_ms / 1000, decision, plan, execute)
            if type(result) is AsyncGeneratorType:
                result = (await collect_async(result, plan.max_bytes))[0]
        except Exception as error:  # noqa: BLE001
            result = error
        except BaseException as error:
            self._settle(decision, plan, error)
            raise
        return self._settle(decision, plan, result)

    async def _within(self, seconds: float, decision: Decision, plan: Plan, execute: Execute) -> object:
        import asyncio

        call = decision.call
        target = execute if inspect.iscoroutinefunction(execute) else getattr(execute, "__call__", None)  # noqa: B004
        try:
            async with asyncio.timeout(seconds):
                if inspect.iscoroutinefunction(target):
                    return await execute(call.tool, call.arguments)
                run = partial(execute, call.tool, call.arguments)
                future, abandon = in_thread(run, partial(self._late, decision, plan))
                try:
                    result = await asyncio.shield(asyncio.wrap_future(future))
                except asyncio.CancelledError:
                    abandon()
                    raise
                return await result if inspect.isawaitable(result) else result
        except TimeoutError as error:
            raise (TimeoutError(f"no result within {seconds:g} s") if not str(error) else error) from None

    def wrap(
        self,
        function: Callable[..., Any],
        *,
        returns: Literal["json", "envelope", "value"] = "json",
        name: str | None = None,
    ) -> Callable[..., Any]:
        """
        *function* behind the chain: same signature, same kind (sync or async).

        It returns JSON text for a model, the `Envelope`, or the tool's own value; then a refused call raises
        `CallDenied`, and what the tool raised is raised again.
        """
        from .wrapping import wrapped

        return wrapped(self, function, returns, name or str(getattr(function, "__name__", "tool")))

    def define(self, tool: str, arguments: "Arguments") -> None:
        """
        Check the arguments of *tool* against *arguments* in this session.
        """
        self._specs[tool] = arguments

    def defines(self, tool: str) -> bool:
        """
        Whether the arguments of *tool* are checked already, by the policy or by `define`.
        """
        return tool in self._specs or self._chain.plan(tool).arguments is not None

    # For adapters: decide, run it yourself, complete

    def decide(self, tool: str, arguments: Any, *, id: str | None = None) -> Decision:
        """
        Ask whether a call may run, and reserve for it; `decision.envelope` is the refusal where it may not.

        Idempotent on (*id*, signature) until the call is completed.
        """
        return self._decide(tool, arguments, id, claim=False)[0]

    def complete(self, decision: Decision, outcome: object) -> Envelope:
        """
        Settle a decided call; *outcome* is a value, an exception, or `Success(value, cost_usd=...)`.

        A second completion, or one after the admission expired, changes nothing and is only recorded.
        """
        if decision.envelope is not None:
            return decision.envelope
        return self._settle(decision, self._chain.plan(decision.call.tool), outcome)

    # Model turns

    def request(self) -> None:
        """
        Say that a model request starts, so that growth caps see the ones that fail.
        """
        self._event("request", transitions.start_request)

    def begin_turn(self, calls: int | None = None) -> None:
        """
        Say that a model response came, with *calls* tool calls, where `charge` is not used.
        """
        self._event("turn", partial(transitions.open_turn, calls=calls or 0), {"calls": calls or 0})

    def charge(
        self, *, model: str, usage: object = None, cost_usd: float | None = None, calls: int | None = None
    ) -> None:
        """
        Charge a model response, and begin its turn.

        *usage* is what the client returned (chat.completions or Responses form); it is priced by the policy's `prices`
        unless *cost_usd* says what it cost. A response without usage, or of a model without a price, is counted in
        `unpriced`, never as free.
        """
        from .types import micro_dollars

        used = read_usage(usage)
        if cost_usd is not None:
            cost: int | None = micro_dollars(cost_usd)
        else:
            cost = None if usage is None else cost_of(used, model, self.policy.prices)
        self.begin_turn(calls)
        values = {
            "model": model,
            "cost": cost,
            "tokens": used.total,
            "input_tokens": used.input,
            "output_tokens": used.output,
            "cached_tokens": used.cached,
        }
        self._event("charge", partial(transitions.charge_response, cost=cost, tokens=used.total), values)

    def tool_choice(
        self, requested: ToolChoice = None, *, first: bool | None = None, strategy: Strategy | None = None
    ) -> ToolChoice:
        """
        What to send as `tool_choice`; None: leave the key out.

        `none` once the session is exhausted. A choice that forces a tool holds for the *first* request of a loop
        (unless said, the session's first). *strategy* `(call_count, turn_count) -> tool_choice` decides turn by turn.
        """
        exhausted, calls, turns, turn = self._read(
            lambda state, now: (exhaustion(self._chain, state, now), state.calls, state.turns, state.turn)
        )
        return next_tool_choice(
            requested,
            first=turn == 0 if first is None else first,
            exhausted=exhausted is not None,
            strategy=strategy,
            call_count=calls,
            turn_count=turns,
        )

    @property
    def exhausted(self) -> bool:
        """
        A limit of the session is used up: tools are off, the model is to write its final answer.
        """
        return self.exhausted_by is not None

    @property
    def exhausted_by(self) -> str | None:
        """
        The code of what exhausted the session first; None while it goes on.
        """
        cause = self._read(lambda state, now: exhaustion(self._chain, state, now))
        return None if cause is None else cause[0]

    @property
    def limit_message(self) -> str | None:
        """
        What the model is told of it.
        """
        cause = self._read(lambda state, now: exhaustion(self._chain, state, now))
        return None if cause is None else cause[1]

    @property
    def progress(self) -> dict[str, Any]:
        """
        What is used and what is left; USD and seconds.
        """
        return self._read(lambda state, now: progress(self._chain, state))

    @property
    def cost_usd(self) -> float:
        """
        What the session has cost so far, open estimates left out.
        """
        return self._read(lambda state, now: state.cost) / 1_000_000

    @property
    def unpriced(self) -> int:
        """
        Model responses whose price nobody knows.
        """
        return self._read(lambda state, now: state.unpriced)

    def digest(self) -> str:
        """
        What was called and what came back, in a few lines: the answer where the model gives none, and what to put back
        into a conversation that was cut.
        """
        find = self.policy.results.find

        def told(state: SessionState, now: int) -> str:
            cause = exhaustion(self._chain, state, now)
            return digest(state, lambda entry: find(self.id, entry.sig), progress(self._chain, state), cause)

        return self._read(told)

    def extend(self, **amounts: Any) -> None:
        """
        Let the session use *amounts* more (`max_calls=20`, `max_cost_usd=0.5`, ...) than its limits so far; it goes on.

        Without amounts it forgives refused turns and blown growth caps. Raises SessionError for a limit that the policy
        does not set.
        """
        wanted = transitions.internal(amounts)

        def step(chain: Chain, state: SessionState, now: int) -> tuple[int, dict[str, int]]:
            return transitions.raise_limits(chain, state, now, wanted)

        self._event("extend", step, {"amounts": wanted})

    # Children

    def child(self, name: str, **amounts: Any) -> "Session":
        """
        A session that reserves from this one: *amounts* of its limits, and all that is left of those not named.

        What it does not use comes back when it is closed (use `with`). Raises SessionError where more is asked for than
        is left.
        """
        wanted = transitions.internal(amounts)
        child = Session(
            self.policy,
            name,
            chain=self._chain,
            store=self._store,
            sink=self._sink,
            clock=self._clock,
            on_decision=self._on_decision,
            parent=self,
        )

        def step(chain: Chain, state: SessionState, now: int) -> tuple[int, dict[str, int]]:
            return transitions.reserve_for_child(chain, state, now, child.id, wanted)

        held = self._event("reserve", step, {"child": child.id, "amounts": wanted})
        child._chain = self._chain.with_budget(**transitions.settings_of(held))
        return child

    def close(self) -> None:
        """
        Flush the records; a child gives back what it did not use and is over.
        """
        if self._parent is not None:
            used = self._event("close", lambda _, state, now: transitions.close(state, now))
            self._parent._event(  # noqa: SLF001  a child is a session too
                "release",
                lambda _, state, now: transitions.release_child(state, now, self.id, used),
                {"child": self.id, "used": used},
            )
        if self._sink is not None:
            self._sink.flush(10)

    def forget(self) -> None:
        """
        Drop the session's state: the same name starts afresh.
        """
        self._store.forget(self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    # The shell itself

    def _now(self) -> int:
        return int(self._clock() * 1000)

    def _read(self, look: Callable[[SessionState, int], T]) -> T:
        now = self._now()
        return self._store.update(self._keys, lambda states: look(states[0], max(now, states[0].now_ms)))

    def _decide(self, tool: str, arguments: Any, call_id: str | None, *, claim: bool) -> tuple[Decision, Plan]:
        plan = self._chain.plan(tool)
        problems: tuple[Problem, ...] = ()
        spec = self._specs.get(tool) or plan.arguments
        if type(arguments) is str:
            arguments, problems = _read_text(arguments, required=spec is not None)
        elif arguments is None:
            arguments = {}
        if spec is not None and not problems:
            arguments, problems = spec.check(arguments)
        digest_, canonical = sign(tool, arguments)
        call = ToolCall(
            tool,
            arguments,
            call_id if call_id is not None else f"{_prefix}-{next(_numbers)}",
            digest_,
            None if digest_ is None else low64(digest_),
            problems,
            canonical,
        )
        now, chain = self._now(), self._chain
        try:
            decision = self._store.update(
                self._keys, lambda states: decide(chain, call, states[0], now, claim=claim, plan=plan)
            )
        except Exception as error:  # noqa: BLE001  a store that fails is a guard that fails
            decision = self._undecided(call, plan, now, error)
        envelope = decision.envelope
        if envelope is not None and envelope.status == "duplicate_call_blocked":
            earlier = self.policy.results.find(self.id, call.sig)
            if earlier is not None:
                envelope.previous_result = orjson.Fragment(earlier.payload)
        if self._sink is not None:
            self._record_call(decision, plan)
        for guard, raised in decision.errors:
            log.error("guard `%s` failed: %s", guard, raised, extra={"guard": guard, "session": self.id})
        if self._on_decision is not None:
            self._tell(decision)
        return decision, plan

    def _undecided(self, call: ToolCall, plan: Plan, now: int, error: Exception) -> Decision:
        log.error("store failed: %s", error, extra={"session": self.id})
        decision = Decision(call, 0, now, 0, errors=(("store", f"{type(error).__name__}: {error}"),))
        if plan.deny_on_error:
            denial = Denial(
                code="store.error",
                message="The session's state cannot be reached, so the call was not made.",
                hint="Try again later, or tell the user.",
                strike=False,
            )
            decision.denials = (denial,)
            decision.envelope = Envelope.refusal(denial)
        return decision

    def _settle(self, decision: Decision, plan: Plan, result: object) -> Envelope:
        now, chain = self._now(), self._chain
        try:
            outcome = outcome_of(result, classifier=plan.tool.result, limit=plan.max_bytes, now_ms=now)
            prepared = prepare(outcome, plan.max_bytes)
        except Exception as error:  # noqa: BLE001  the tool has run: whatever it gave back must not fail now
            log.error("a result of `%s` could not be read: %r", decision.call.tool, error)
            prepared = prepare(
                Outcome(f"a {type(result).__name__} that cannot be shown", complete=False), plan.max_bytes
            )
        try:
            completion = self._store.update(
                self._keys, lambda states: complete(chain, decision, prepared, states[0], now, plan)
            )
        except Exception as error:  # noqa: BLE001  the tool has run: its result is never lost
            log.error("store failed: %s", error, extra={"session": self.id})
            completion = complete(chain, decision, prepared, SessionState(), now, plan)
        self._settled(decision, prepared, completion)
        return completion.envelope

    def _settled(self, decision: Decision, prepared: Prepared, completion: Completion) -> None:
        call, outcome, rendered = decision.call, prepared.outcome, prepared.rendered
        if self._sink is not None:
            size = 500 + (len(rendered.payload) if rendered is not None else 0)
            self._sink.put(partial(settle_record, self.id, decision, prepared, completion), size)
        if outcome.error_type is not None:
            log.info(
                "tool execution failed",
                extra={"tool": call.tool, "error": outcome.error_message, "error_type": outcome.error_type},
            )
        if call.sig is not None and rendered is not None and call.canonical is not None:
            kept = Earlier(call.tool, call.canonical, rendered.payload, outcome.error_type is None)
            self.policy.results.keep(self.id, call.sig, kept)
        for guard, raised in completion.errors:
            log.error("guard `%s` failed: %s", guard, raised, extra={"guard": guard, "session": self.id})

    def _late(self, decision: Decision, plan: Plan, result: object) -> None:
        self._settle(decision, plan, result)

    def _record_call(self, decision: Decision, plan: Plan) -> None:
        if self._sink is None:
            return
        for n, pending in decision.expired:
            self._sink.put(partial(expire_record, self.id, n, decision.at_ms, pending), 300)
        if decision.claim_n:
            self._sink.put(
                event_record("claim", self.id, decision.claim_n, decision.at_ms, {"call_n": decision.n}), 200
            )
        if not decision.repeated and decision.n:
            canonical = decision.call.canonical
            size = 700 + (len(canonical) if canonical is not None else 1_000)
            self._sink.put(partial(call_record, self.id, decision, plan), size)

    def _tell(self, decision: Decision) -> None:
        try:
            self._on_decision(decision)  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001  a host's hook never decides over a call
            warn_once("on_decision", "`on_decision` raised: %r", error)

    def _event(
        self,
        event: str,
        step: Callable[[Chain, SessionState, int], Any],
        values: dict[str, Any] | None = None,
    ) -> Any:
        now, chain = self._now(), self._chain

        def run(states: list[SessionState]) -> tuple[Any, int]:
            made = step(chain, states[0], now)
            return made, states[0].now_ms

        made, at_ms = self._store.update(self._keys, run)
        n, extra = made if isinstance(made, tuple) else (made, None)
        if self._sink is not None:
            shown = dict(values or {})
            if extra is not None:
                shown.setdefault("limits", extra)
            self._sink.put(event_record(event, self.id, n, at_ms, shown), 300)
        return extra


def _read_text(text: str, *, required: bool) -> tuple[Any, tuple[Problem, ...]]:
    value, problem = parse_arguments(text)
    if problem is None and (required or isinstance(value, dict)):
        return value, ()
    if required or text.lstrip().startswith("{"):
        return text, (Problem("", problem or "the arguments are no object", "json"),)
    # A free-form tool: its whole input is one text.
    return text, ()


def _not_awaited(result: object) -> Exception:
    if inspect.iscoroutine(result):
        result.close()
    return SessionError("the tool is asynchronous: use `acall`, or wrap it as an async function")
