"""
The traces of an interruption in records: an event told twice, a number that is missing, a word on where a session
stood.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from .life import Life, Replayed
from .recorded import Record


INTERRUPTED: Final = "interrupted"
"""The event that says where the states of a broken step stand."""


class Gap(NamedTuple):
    """
    Events of a session that could not be decided again: what a signal interrupted has no record, and what follows it hangs on it.
    """

    session_id: str
    first: int
    last: int


def distinct(records: Sequence[Record]) -> list[Record]:
    """
    Returns *records* without those that equal the one before: an event that is interrupted while it is recorded is
    recorded again.
    """
    return [record for index, record in enumerate(records) if not index or record != records[index - 1]]


def bridged(life: Life, records: Sequence[Record], gaps: list[Gap]) -> Iterator[Replayed]:
    """
    Returns the calls of *life*, which goes on after each gap that a record bridges.
    """
    stands = [index for index, record in enumerate(records) if record.get("event") == INTERRUPTED]
    resumes = -1
    for index, record in enumerate(records):
        if index < resumes:
            life.pass_by(record)
            continue
        later = next((at for at in stands if at >= index), None)
        if later is not None and life.misses(record):
            gaps.append(Gap(str(record["session_id"]), life.state.n + 1, records[later]["n"] - 1))
            resumes = later
            life.pass_by(record)
        if index == later:
            life.stand(record, record["states"][0])
        elif index >= resumes:
            made = life.live(record)
            if made is not None:
                yield made
