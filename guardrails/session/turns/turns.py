"""
The model's side of a session: its requests, its responses and their costs.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from types import TracebackType
from typing import Any, Self

from guardrails.core.decision import Decision
from guardrails.core.engine import exhausted_by
from guardrails.core.events import ITERATIONS
from guardrails.core.guards import amounts as units
from guardrails.core.guards.budget import holds_request
from guardrails.core.scopes import Scope
from guardrails.core.state import ADMISSION_MS, KEY_BYTES, SessionState
from guardrails.core.values.errors import SessionError
from guardrails.core.values.usage import read_usage, tells
from guardrails.session.calls.declaring import Declaring
from guardrails.session.growing import grow

from .prices import Priced, price_of, public


@dataclass(frozen=True, slots=True)
class Requested:
    """
    A model request that was told to a session. A context manager: the amounts that it holds come back if it is left
    uncharged.
    """

    session: "Turns"
    n: int
    """Number of its event in the session; 0: the store failed."""
    code: str | None = None
    """Why it is not to be made; None: it may be."""
    message: str | None = None

    @property
    def allowed(self) -> bool:
        """
        It may be made: its estimate fits, and is held.
        """
        return self.code is None

    def release(self) -> None:
        """
        Say that it came to nothing, and will not be charged.
        """
        self.session.release(self)

    def __enter__(self) -> Self:
        try:
            _within.set((*_within.get(), self))
        except BaseException:  # a signal's: the block does not begin
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _within.set(tuple(one for one in _within.get() if one is not self))
        self.release()


_within: ContextVar[tuple[Requested, ...]] = ContextVar("guardrails_requests", default=())
"""The requests whose `with` blocks this thread or task is in, the innermost last."""


class Turns(Declaring):
    """
    A session as a model uses it.
    """

    def request(
        self,
        *,
        tokens: int | None = None,
        cost_usd: float | str | Decimal | None = None,
        timeout: float | None = None,
    ) -> Requested:
        """
        Say that a model request starts, so that growth caps see requests that fail. It holds the most it may use until
        its `charge`: *tokens* and *cost_usd*. If neither is said, it holds as much as responses have used on average.

        An estimate that does not fit beside the amounts held is not `allowed`, and holds nothing. A request held by an
        average alone is always allowed. Call `release` if the request fails. After *timeout* seconds (600) nobody waits
        for it. An estimate that was said then stays charged, as it does for a call. Raises SessionError if an amount is
        not valid.
        """
        lasts_ms = ADMISSION_MS if timeout is None else units.amount("timeout", "max_elapsed", timeout)
        estimate = None
        if tokens is not None or cost_usd is not None:
            cost = units.amount("cost_usd", "max_cost_usd", cost_usd)
            estimate = cost, units.amount("tokens", "max_tokens", tokens)
        values: dict[str, Any] = {} if estimate is None else {"estimate": estimate}
        if lasts_ms != ADMISSION_MS:
            values["lasts_ms"] = lasts_ms
        if self._share is not None:
            over = self._look(lambda state, now, _: exhausted_by(self._chain, state, now, ()))
            grow(self, None if over is None else over[0])
        made = self._event("request", values)
        return Requested(self, 0) if made is None else Requested(self, made.n, *(made.refused or ()))

    def release(self, which: Decision | str | Requested, *, arguments: Any = None) -> None:
        """
        Let a call or a model request that never ran, and will not, hold nothing. A call is then not counted.

        The call *which* is a decision or the id of a call. Its *arguments* may tell it from others of that id, as for
        `complete`. A claimed call can be released too, so release only calls that did not begin. A question to a person
        is withdrawn. Nothing happens to a call that is over: refused, completed, charged, or released before.

        Raises SessionError if no open call has the id, or several have it, or the decision is another session's.
        """
        if not isinstance(which, Requested):
            self._release(which, arguments)
        elif self._reserves and self._holds(which.n):
            self._event("release", {"request": which.n})

    def _holds(self, n: int | None) -> bool:
        def look(state: SessionState, _: int, scopes: Sequence[Scope]) -> bool:
            return holds_request(state, n) or any(holds_request(one.state, n, self.id) for one in scopes)

        return self._look(look)

    @property
    def _reserves(self) -> bool:
        return self._chain.reserves or any(chain.reserves for _, _, chain in self._engine.scopes)

    @property
    def iterations_more(self) -> int:
        """
        The iterations that every loop may make beyond its own limit, as `extend` said.
        """
        return self._read(lambda state, _: state.limits.get(ITERATIONS, 0))

    def begin_turn(self, calls: int | None = None, *, key: str | None = None) -> None:
        """
        Say that a model response came, with *calls* tool calls, if `charge` is not used. Told again by the same *key*,
        of the latest 64, it changes nothing: see `charge`.

        Raises SessionError if *calls* is no whole number of at least 0, or *key* is no text or empty.
        """
        count, told = units.amount("calls", "calls", calls), key_hash(key)
        # Nobody will charge what came, so that what was guessed of it need not be held.
        guessed = self._reserves and self._holds(None)
        values: dict[str, Any] = {"calls": count, "uncharged": True} if guessed else {"calls": count}
        self._event("turn", {**values, **_recorded(told)})

    def charge(
        self,
        *,
        model: str,
        usage: object = None,
        cost_usd: float | str | Decimal | None = None,
        calls: int | None = None,
        provider: str | None = None,
        whole: bool = True,
        request: Requested | None = None,
        key: str | None = None,
    ) -> Priced:
        """
        Charge a model response, and begin its turn. Returns its cost, and the source of the price.

        The *usage* is in the form that the client or the framework returned (`read_usage` lists the forms). It is
        priced by the policy's `prices`, else as `genai-prices` lists *model* (of *provider*: an id, or the endpoint's
        URL). If *cost_usd* is given, that is the cost. A response without a known price is counted in `unpriced`, never
        as free. A response that is not *whole* broke off. The argument *request* is the result of `request` for it.
        Without it, the request is that of the `with` block around it, else the one among the open requests that it
        fits. Raises SessionError if *cost_usd*, *usage*, *calls* or *key* is not valid. Nothing is charged then.

        A response that is told again by the same *key*, its id, changes nothing: no charge, no turn, no event. A host
        that runs a step again after a restart, in another process too, may so tell it again. Amounts that the *request*
        of that step holds come back. The latest 64 keys of a session are remembered.
        """
        if request is None:
            request = next((one for one in reversed(_within.get()) if one.session.id == self.id), None)
        used, count, told = read_usage(usage), units.amount("calls", "calls", calls), key_hash(key)
        if cost_usd is not None:
            priced = Priced(units.amount("cost_usd", "max_cost_usd", cost_usd), "caller")
        else:
            known = used if tells(usage) else None
            priced = price_of(known, model, self.policy.prices, provider, self._time())
        self._event("turn", {"calls": count, **_recorded(told)})
        untold: dict[str, Any] = {"untold": True} if whole and priced.untold else {}
        values = {
            "model": model,
            "provider": public(provider),
            **priced.recorded,
            **used.recorded,
            **untold,
            **_recorded(told),
        }
        if request is not None:
            values["request"] = request.n
        made = self._event("charge", values)
        if made is not None and not made.n and request is not None:
            # The step that ran again has made this request; its response was charged before.
            self.release(request)
        return priced


def key_hash(key: object) -> bytes | None:
    """
    Returns the hash that is kept of the *key* of a response. Returns None if it has none. Raises SessionError if the
    key is empty or no text.
    """
    if key is None:
        return None
    if not isinstance(key, str) or not key:
        raise SessionError(f"`key` is the id of a response, text that is not empty, not `{key!r:.40}`")
    from hashlib import blake2b  # and with it OpenSSL: 5 ms

    digest = blake2b(key.encode(errors="surrogatepass"), digest_size=KEY_BYTES).digest()
    # The lowest bit says whether it was charged.
    return digest[:-1] + bytes((digest[-1] & 0xFE,))


def _recorded(told: bytes | None) -> dict[str, str]:
    return {} if told is None else {"key": told.hex()}
