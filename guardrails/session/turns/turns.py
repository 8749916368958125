"""
The requests of a model and its responses, as a session's account hears of them.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from types import TracebackType
from typing import Any, Self

from guardrails.core.guards import amounts as units
from guardrails.core.guards.budget import holds_request
from guardrails.core.state import ADMISSION_MS, KEY_BYTES
from guardrails.core.values.errors import SessionError
from guardrails.core.values.usage import read_usage, tells
from guardrails.session.children import grow
from guardrails.session.ledger import Ledger

from .prices import Priced, price_of, public


@dataclass(frozen=True, slots=True)
class Requested:
    """
    A model request that was told to a session. A context manager: the amounts that it holds come back if it is left
    uncharged.
    """

    ledger: Ledger
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
        Say that it came to nothing, and will not be charged. Nothing happens if it was.
        """
        if _holds(self.ledger, self.n):
            self.ledger.event("release", {"request": self.n})

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


def requested(
    ledger: Ledger, tokens: int | None, cost_usd: float | str | Decimal | None, timeout: float | None
) -> Requested:
    """
    Does what `Session.request` says.
    """
    values: dict[str, Any] = {}
    lasts_ms = ADMISSION_MS if timeout is None else units.amount("timeout", "max_elapsed", timeout)
    if tokens is not None or cost_usd is not None:
        cost = units.amount("cost_usd", "max_cost_usd", cost_usd)
        values["estimate"] = cost, units.amount("tokens", "max_tokens", tokens)
    if lasts_ms != ADMISSION_MS:
        values["lasts_ms"] = lasts_ms
    if ledger.share is not None:
        over = ledger.look(lambda state, now, _: ledger.cause(state, now, ()))
        grow(ledger, None if over is None else over[0])
    made = ledger.event("request", values)
    return Requested(ledger, 0) if made is None else Requested(ledger, made.n, *(made.refused or ()))


def begin_turn(ledger: Ledger, calls: int | None, key: str | None) -> None:
    """
    Does what `Session.begin_turn` says.
    """
    values: dict[str, Any] = {"calls": units.amount("calls", "calls", calls)}
    hashed = key_hash(key)
    if _holds(ledger, None):
        # Nobody will charge what came, so that what was guessed of it need not be held.
        values["uncharged"] = True
    ledger.event("turn", {**values, **_recorded(hashed)})


def charge(
    ledger: Ledger,
    model: str,
    usage: object,
    cost_usd: float | str | Decimal | None,
    calls: int | None,
    provider: str | None,
    request: Requested | None,
    key: str | None,
    *,
    whole: bool,
) -> Priced:
    """
    Does what `Session.charge` says.
    """
    if request is None:
        request = next((one for one in reversed(_within.get()) if one.ledger.id == ledger.id), None)
    used, count, hashed = read_usage(usage), units.amount("calls", "calls", calls), _recorded(key_hash(key))
    if cost_usd is not None:
        priced = Priced(units.amount("cost_usd", "max_cost_usd", cost_usd), "caller")
    else:
        known = used if tells(usage) else None
        priced = price_of(known, model, ledger.policy.prices, provider, ledger.time())
    ledger.event("turn", {"calls": count, **hashed})
    values = {"model": model, "provider": public(provider), **priced.recorded, **used.recorded}
    if whole and priced.untold:
        values["untold"] = True
    values |= hashed
    if request is not None:
        values["request"] = request.n
    made = ledger.event("charge", values)
    if made is not None and not made.n and request is not None:
        # The step that ran again has made this request; its response was charged before.
        request.release()
    return priced


def _holds(ledger: Ledger, n: int | None) -> bool:
    """
    Returns whether anything is held for the model request *n*, None: for any by an average.
    """
    engine = ledger.engine
    if not (engine.chain.reserves or any(chain.reserves for _, _, chain in engine.scopes)):
        return False
    return ledger.look(
        lambda state, _, scopes: (
            holds_request(state, n) or any(holds_request(one.state, n, ledger.id) for one in scopes)
        )
    )


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


def _recorded(key: bytes | None) -> dict[str, str]:
    return {} if key is None else {"key": key.hex()}
