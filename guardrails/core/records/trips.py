"""
Trips of leases as records tell them, made again.
"""

from collections.abc import Callable, Mapping

from guardrails.core.engine.chain import Chain
from guardrails.core.engine.engine import Engine
from guardrails.core.engine.events.lending import Borrow, Lend
from guardrails.core.state.entries import Amounts
from guardrails.core.state.leases import used_of
from guardrails.core.state.state import SessionState
from guardrails.core.values.errors import SessionError

from .recorded import Record


TRIP = "lend"
"""The event of a trip."""
Stream = tuple[str, ...]
"""A thing that orders some events: a life, a scope, a family."""


def streams_of(record: Record) -> dict[Stream, tuple[int, int]]:
    """
    Returns all that orders the trip of *record*, with its place in each: the lease, the shared state of its scope and
    its own.
    """
    name, own = record["scope"]
    places: dict[Stream, tuple[int, int]] = {("life", record["session_id"], record["run"]): (int(record["n"]), 0)}
    for which in ("shared", "own"):
        run, n, _ = record[which]
        places["scope", name, own, run] = int(n), 0
    return places


def travel(chains: Mapping[str, Chain], known: Callable[[str, str, str], SessionState], record: Record) -> None:
    """
    Let the trip of *record* happen again; *known* gives the state of a scope by its name, id and life.

    Raises SessionError if it was granted other amounts than the policy grants, or a number is missing.
    """
    name, own = record["scope"]
    lease = record["session_id"]
    if name not in chains:
        raise SessionError(f"`{lease}` is of a scope `{name}`, which the policy does not have")
    (_, n, shared_ms), (_, own_n, own_ms) = record["shared"], record["own"]
    shared, its = (known(name, own, record[which][0]) for which in ("shared", "own"))
    if n != shared.n + 1 or own_n != its.n + 1:
        gap = n if n != shared.n + 1 else own_n
        raise SessionError(
            f"the records of the scope `{name}` of `{own}` have a gap before event {gap}: those of all its workers are needed"
        )
    wants, amounts = record["wants"], record["amounts"]
    event = Lend(
        now_ms=shared_ms,
        holder=lease.partition(":")[2],
        used=_amounts(record["used"]),
        holds=_amounts(record["holds"]),
        wants=None if wants is None else _amounts(wants),
        told=_amounts(record["told"]),
        known=record["known"],
        lost=tuple((holder, trips) for holder, trips in record["lost"]),
        back=record["back"],
        over=record["over"],
        fuses=dict(record["fuses"]),
        amounts=None if amounts is None else dict(amounts),
    )
    engine = Engine(chains[name], own)
    lent = engine.apply(event, (shared,))
    granted = _amounts(record["granted"])
    if lent.granted != granted:
        raise SessionError(
            f"`{lease}` was granted {granted} of the scope `{name}` of `{own}` in its event {record['n']}; by the policy it "
            f"is {lent.granted} (calls, micro-dollars, tokens)"
        )
    engine.apply(Borrow(own_ms, lent), (its,))


def check_parts(states: Mapping[Stream, SessionState]) -> None:
    """
    Raise SessionError if more calls were admitted under a lease than it was granted.
    """
    for (_, name, own, run), state in states.items():
        part = state.part
        if part is not None and part.trips and used_of(state)[0] > part.granted[0] and "max_calls" in part.rest:
            raise SessionError(
                f"a lease of the scope `{name}` of `{own}` (life {run}) was granted {part.granted[0]} calls, and admitted "
                f"{used_of(state)[0]}"
            )


def _amounts(said: list[int]) -> Amounts:
    calls, cost, tokens = said
    return calls, cost, tokens
