"""
The requests of a model and its responses, as a session's account hears of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from guardrails.core.guards.budget import holds_request
from guardrails.core.scopes import Scope
from guardrails.core.state import KEY_BYTES, SessionState
from guardrails.core.values.errors import SessionError

from .ledger import Ledger


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
        if holds(self.ledger, self.n):
            self.ledger.event("release", {"request": self.n})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()


def holds(ledger: Ledger, n: int | None) -> bool:
    """
    Returns whether anything is held for the model request *n*, in the session or a scope of it; None: for any by an
    average.
    """

    def look(state: SessionState, _: int, scopes: Sequence[Scope]) -> bool:
        return holds_request(state, n) or any(holds_request(one.state, n, ledger.id) for one in scopes)

    chains = (ledger.chain, *(chain for _, _, chain in ledger.engine.scopes))
    return any(chain.reserves for chain in chains) and ledger.look(look)


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


def key_of(key: object) -> dict[str, str]:
    """
    Returns the value by which an event names the response of that *key*. Raises as `key_hash` does.
    """
    hashed = key_hash(key)
    return {} if hashed is None else {"key": hashed.hex()}
