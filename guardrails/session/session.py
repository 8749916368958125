"""
The front door: one budget for the calls of an agent, its model turns and its sub-agents.
"""

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

from guardrails.core.engine import exhausted_by
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.events import ITERATIONS, LIMITS
from guardrails.core.guards import amounts as units
from guardrails.core.guards.amounts import Amounts
from guardrails.core.guards.budget import NO_LIMITS, Limits
from guardrails.core.guards.evidence import changed_seq
from guardrails.core.records.digest import digest
from guardrails.core.scopes import Scope, progress
from guardrails.core.state import SessionState
from guardrails.core.tools.tool_choice import Strategy, ToolChoice, next_tool_choice
from guardrails.core.values.errors import SessionError

from .growing import take
from .turns.final_answer import FinalAnswer
from .turns.turns import Turns


if TYPE_CHECKING:
    from guardrails.core.arguments import Arguments
    from guardrails.core.tools.tool import Tool


P = ParamSpec("P")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
Returns = Literal["json", "envelope", "value"]
A = TypeVar("A", bound=Awaitable[Any] | AsyncIterator[Any])
"""
What an asynchronous function, or an asynchronous generator function, is seen to return. All overloads are generic in it, or
mypy would take each function whose result has an `Any` for one that fits several.
"""


class Reader(Protocol[P, R_co]):
    """
    A wrapped generator function, which reads it whole. (A `Callable` like the others, mypy would take one of a `Generator` of
    things with an `Any` for an untyped function.)
    """

    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class _Nothing:
    """
    Returned by no function, so that only one which may return anything, or never returns, is seen to return it.
    """


class Functions(Turns):
    """
    A session as the functions of a program use it.
    """

    @overload
    def wrap(
        self,
        function: Callable[P, _Nothing],
        *,
        returns: Returns = "json",
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Any: ...

    @overload
    def wrap(  # type: ignore[overload-overlap]  # an asynchronous one is the first that fits
        self,
        function: Callable[P, A],
        *,
        returns: Literal["json"] = "json",
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Callable[P, Coroutine[Any, Any, str]]: ...

    @overload
    def wrap(
        self,
        function: Callable[P, T],
        *,
        returns: Literal["json"] = "json",
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Callable[P, str]: ...

    @overload
    def wrap(  # type: ignore[overload-overlap]  # an asynchronous one is the first that fits
        self,
        function: Callable[P, A],
        *,
        returns: Literal["envelope"],
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Callable[P, Coroutine[Any, Any, Envelope]]: ...

    @overload
    def wrap(
        self,
        function: Callable[P, T],
        *,
        returns: Literal["envelope"],
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Callable[P, Envelope]: ...

    @overload
    def wrap(
        self,
        function: Callable[P, AsyncIterator[T]],
        *,
        returns: Literal["value"],
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Reader[P, Coroutine[Any, Any, list[T]]]: ...

    @overload
    def wrap(
        self,
        function: Callable[P, Iterator[T]],
        *,
        returns: Literal["value"],
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Reader[P, list[T]]: ...

    @overload
    def wrap(
        self,
        function: Callable[P, T],
        *,
        returns: Literal["value"],
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Callable[P, T]: ...

    def wrap(
        self,
        function: Callable[..., Any],
        *,
        returns: Returns = "json",
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Callable[..., Any]:
        """
        Returns *function* behind the chain: same parameters, same kind (sync or async).

        It returns JSON text for a model, the `Envelope`, or the tool's own value (a generator's items as a list). With
        the tool's own value, a refused call raises `CallDenied`, and a call out of time raises TimeoutError. A call
        whose result says it failed raises `CallFailed`, and the tool's own exceptions are raised again. The signature
        says so, for frameworks that read it.

        Its arguments are checked by its signature, or by the policy's parameters if there are any. Parameters *hidden*
        are the caller's: passed by keyword, never checked, signed or recorded, and absent from the signature.

        Raises PolicyError if the signature cannot be read, SessionError if another function has the *name*.
        """
        from .calls.wrapping import wrapped

        return wrapped(self, function, returns, name, tuple(hidden))


class Session(Functions):
    """
    The calls that share a budget. Made by `Policy.session`; safe in any number of threads and tasks at once.

    A context manager (`with`, `async with`); leaving it flushes the records.
    """

    def scoped(
        self,
        specs: "Mapping[str, Arguments]",
        tools: "Iterable[Tool] | None" = None,
        *,
        passes: Iterable[type[BaseException]] = (),
    ) -> "Session":
        """
        Returns this very session as one function or one loop calls it. The *specs* check the arguments of tools whose
        parameters the policy does not declare. If *tools* are given, no others exist.

        Exceptions of the types *passes* are the control flow of a host: interrupts, deferrals, hand-offs. If a tool
        raises one, `call`, `acall` and `wrap` raise it on. The call stays admitted and keeps its amounts. It is taken
        up if the same call is made again: charged once, within a day, by any process. Cancellation and Ctrl-C are never
        control flow of a host. Raises TypeError if an item is no type of exceptions.
        """
        from .calls.wrapping import scoped

        return scoped(self, specs, tools, passes)

    def tool_choice(
        self, requested: ToolChoice = None, *, first: bool | None = None, strategy: Strategy | None = None
    ) -> ToolChoice:
        """
        Returns the value to send as `tool_choice`. Returns None if the key is to be left out.

        It is `none` once the session is exhausted. A choice that forces a tool holds for the *first* request of a loop
        (unless said, the session's first). The function *strategy* `(call_count, turn_count) -> tool_choice` decides
        turn by turn.
        """
        exhausted, calls, turns, turn = self._look(
            lambda state, now, scopes: (self._cause(state, now, scopes), state.calls, state.turns, state.turn)
        )
        return next_tool_choice(
            requested,
            first=turn == 0 if first is None else first,
            exhausted=exhausted is not None,
            strategy=strategy,
            call_count=calls,
            turn_count=turns,
        )

    def final_answer(self) -> FinalAnswer:
        """
        Returns the end of one loop as a part of it. It says when tools are to be off, what a response means then, and
        what to answer with if the model does not.
        """
        return FinalAnswer(self)

    @property
    def exhausted(self) -> bool:
        """
        A limit of the session is used up: tools are off, the model is to write its final answer.
        """
        return self.exhausted_by is not None

    @property
    def exhausted_by(self) -> str | None:
        """
        The code of the limit that exhausted the session first. None while it goes on.
        """
        cause = self._look(self._cause)
        return None if cause is None else cause[0]

    @property
    def limit_message(self) -> str | None:
        """
        The message about it that the model is told.
        """
        cause = self._look(self._cause)
        return None if cause is None else cause[1]

    @property
    def progress(self) -> dict[str, Any]:
        """
        The used and the remaining amounts, in USD and seconds.
        """
        return self._look(partial(progress, self._chain))

    def digest(self) -> str:
        """
        Returns a few lines about the calls and their results. They are the answer if the model gives none, and can be
        put back into a conversation that was cut.
        """
        find = self.policy.results.find

        def told(state: SessionState, now: int, scopes: Sequence[Scope]) -> str:
            shown = progress(self._chain, state, now, scopes)
            return digest(state, lambda entry: find(self.id, entry.sig), shown, self._cause(state, now, scopes))

        return self._look(told)

    def _cause(self, state: SessionState, now: int, scopes: Sequence[Scope]) -> tuple[str, str] | None:
        stop = self.policy.stop
        return exhausted_by(self._chain, state, now, scopes) if stop is None else (stop.code, stop.message)

    def extend(self, *, scope: str | None = None, **amounts: Unpack[Amounts]) -> None:
        """
        Let the session use *amounts* more (`max_calls=20`, `max_cost_usd=0.5`, ...) than its limits so far. It goes on.

        Without amounts it forgives refused turns and blown growth caps. A child takes the amounts from its parent. With
        the name of a *scope* the limits of that scope are raised, for all of its sessions. `max_tool_iterations`
        raises the limit of every loop, also of one under way. It raises `max_turns` too, if the policy sets that. Raises SessionError for a limit that the policy does not set, or if the parent has less left.
        """
        wanted = units.internal(amounts)
        if scope is not None:
            self._extend_scope(scope, wanted)
            return
        if ITERATIONS in wanted and self._limits.limit(SessionState(), "max_turns") is not None:
            wanted.setdefault("max_turns", wanted[ITERATIONS])
        shared = {name: amount for name, amount in wanted.items() if name in LIMITS}
        if shared:
            take(self, shared)
        self._event("extend", {"amounts": wanted}, needed=True)

    def go_on(self) -> bool:
        """
        Say that the user has sent a further message. Returns whether a session that had ended goes on.

        If calls or turns have ended it, as many of them are left now as `go_on` of the policy's `budget` says. If
        refusals have, they are forgiven. Earlier calls are no evidence any more, since a user does things too. No other
        limit is raised, and nothing of a child.
        """
        if self._parent is not None:
            return False
        freed, ended = self._look(lambda state, now, scopes: (_frees(state), self._cause(state, now, scopes)))
        if not freed:
            return False
        limits, fresh = self._limits, SessionState()
        opens = units.internal(
            {name: more for name, more in limits.go_on.items() if limits.limit(fresh, name) is not None}
        )
        cause = None if ended is None else ended[0]
        if cause is None or cause.removeprefix("budget.") not in opens:
            opens = {}
        self._event("extend", {"amounts": opens, "asked": True}, needed=True)
        return cause is not None and not self.exhausted

    @property
    def _limits(self) -> Limits:
        return self._chain.limits or NO_LIMITS

    # Children

    def child(self, name: str, *, share: float = 1, again: bool = False, **amounts: Unpack[Amounts]) -> "Session":
        """
        Returns a session that reserves *amounts* of this one's limits. For limits that are not named it reserves a
        *share* of what is left: all, or a part above 0. It reserves again when that is used up. Time is for all of them
        at once.

        Per-tool budgets, rates and growth caps hold for the whole family together; streaks, duplicates and refused
        turns are each session's own.

        Unused amounts come back when the child is closed (use `with`); its name is then used up. Raises SessionError if
        more is asked for than is left. With *again* a child that runs already, perhaps in another process, is taken up
        without an event.
        """
        wanted = units.internal(amounts)
        if not 0 < share <= 1:
            raise SessionError(f"`share` is above 0 and at most 1, not {share}")
        if ITERATIONS in wanted:
            wanted["max_turns"] = wanted.pop(ITERATIONS)
        child: Session = self._another(
            self.policy,
            name,
            chain=self._base or self.policy.chain,
            laid=self._laid,
            store=self._store,
            root=self._keys[-1],
            sink=None if self._records is None else self._records.sink,
            clock=self._clock,
            on_decision=self._on_decision,
            parent=self,
            approver=self._approver,
            sleep=self._sleep,
            scopes=self._engine.scopes,
        )

        if child._read(lambda state, now: state.closed):
            raise SessionError(f"`{child.id}` was closed: give the next child another name")

        child._specs.update(self._specs)
        child._wrapped.update(self._wrapped)
        child._passes = self._passes
        child._share = share if share < 1 else None
        running = self._read(lambda state, _: state.reserved.get(child.id)) if again else None
        if running is not None and child._read(lambda state, _: state.n > 0):
            settings = units.settings_of(running)
            child._lay(lambda chain: chain.with_budget(**settings))
            return child
        values = {"child": child.id, "amounts": wanted, **({} if share == 1 else {"share": share})}
        made = self._event("reserve", values, needed=True)
        held = made.limits or {} if made is not None else {}
        settings = units.settings_of(held)
        child._lay(lambda chain: chain.with_budget(**settings))
        child._event("open", {"limits": held})
        return child

    def _another(self, *policy: Any, **options: Any) -> "Session":
        return Session(*policy, **options)

    def close(self) -> None:
        """
        Flush the records. A child gives back its unused amounts and is over. Retries of its own that wait are not made.

        The state of a session that is no child stays, so that the same name goes on, until `forget` drops it. A service
        that names each of its sessions anew calls `forget` after `close`, or its store grows by each.
        """
        if self._parent is not None:
            self._end_waiting()
            closed = self._event("close")
            if closed is not None:
                used = closed.limits or {}
                self._parent._event("release", {"child": self.id, "used": used})  # noqa: SLF001
            self._over.add(self.id)
        self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

    def __repr__(self) -> str:
        return f"Session({self.id!r})"


def _frees(state: SessionState) -> bool:
    """
    Returns whether a further message of the user would free anything: calls that ran, refusals, or an end.
    """
    came = state.seq > changed_seq(state) or bool(state.reserved) or bool(state.own.get("denials"))
    return not state.closed and (came or state.exhausted is not None)
