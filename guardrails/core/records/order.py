"""
The sessions that must be replayed together, and their order.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise

from guardrails.core.values.errors import SessionError

from .recorded import WRONG, Record, no_good


Stream = tuple[str, ...]
"""A thing that orders some events: a life, a scope, a family."""
LifeKey = tuple[str, str]
"""(session id, run)"""


def life_key(record: Record) -> LifeKey:
    return record["session_id"], record["run"]


def root_of(record: Record) -> str:
    return str(record["session_id"]).partition("/")[0]


def shares(record: Record) -> bool:
    """
    Returns whether the session of *record* shares something with others, as far as this record tells.
    """
    return "scopes" in record or "family" in record or record["event"] == "reserve"


def kin(lives: Iterable[Sequence[Record]]) -> Iterator[list[Record]]:
    """
    Returns the records of *lives* in groups that must be replayed together. Raises SessionError for what is no record.
    """
    try:
        yield from _kin(lives)
    except WRONG as error:
        raise no_good(error) from error


def _kin(lives: Iterable[Sequence[Record]]) -> Iterator[list[Record]]:
    group: dict[Hashable, Hashable] = {}

    def leader(of: Hashable) -> Hashable:
        while group.setdefault(of, of) != of:
            group[of] = of = group[group[of]]
        return of

    found: dict[Hashable, list[Record]] = {}
    kept = list(lives)
    for records in kept:
        for record in records:
            for stream in places_of(record):
                group[leader(stream)] = leader(("life", *life_key(record)))
    for records in kept:
        for record in records:
            found.setdefault(leader(("life", *life_key(record))), []).append(record)
    yield from found.values()


def places_of(record: Record) -> dict[Stream, tuple[int, int]]:
    """
    Returns all that orders the event of *record*, with its place in each.
    """
    session_id, run = life_key(record)
    places: dict[Stream, tuple[int, int]] = {("life", session_id, run): (int(record["n"]), 0)}
    for name, (own, life, n, _) in record.get("scopes", {}).items():
        places["scope", name, own, life] = n, 0
    if "family" in record:
        root_run, root_n, place = record["family"]
        places["family", root_of(record), root_run] = root_n, place
    elif "/" not in session_id:
        places["family", session_id, run] = int(record["n"]), 0
    return places


def in_order(records: list[Record]) -> Iterator[Record]:
    """
    Returns *records* in an order that all their streams agree with.
    """
    streams: dict[Stream, list[tuple[tuple[int, int], int]]] = {}
    waiting: list[int] = []
    for index, record in enumerate(records):
        places = places_of(record)
        waiting.append(len(places))
        for stream, place in places.items():
            streams.setdefault(stream, []).append((place, index))
    following: list[list[int]] = [[] for _ in records]
    ready: deque[int] = deque()

    def let_go(index: int) -> None:
        waiting[index] -= 1
        if not waiting[index]:
            ready.append(index)

    for unsorted in streams.values():
        events = sorted(unsorted)
        for (_, before), (_, after) in pairwise(events):
            following[before].append(after)
        let_go(events[0][1])
    for _ in records:
        if not ready:
            raise SessionError("the records contradict each other: no order of their events fits all their numbers")
        index = ready.popleft()
        yield records[index]
        for after in following[index]:
            let_go(after)
