"""
Decide the library's own records again, exactly: every decision must be the recorded one.

The events of a session may be spread over files, in any order.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from guardrails.core.record import newer_records, newer_version
from guardrails.core.values.errors import GuardrailsError, SessionError
from guardrails.offline.replay.exact import Record, Replay, Rules, in_order, life_key
from guardrails.offline.transcripts import open_lines
from guardrails.offline.transcripts.inputs import Input
from guardrails.policy.policy import Policy
from guardrails.sinks.rotate import parsed

from .lacking import no_arguments


SHOWN: Final = 20
"""Differences that are told."""
MAX_NUMBER: Final = 2**63
_OWN: Final = frozenset({"schema_version", "event", "session_id", "run", "n", "ts_ms"})


class NoRecordsError(SessionError):
    """
    There are no calls in the records.
    """


@dataclass(slots=True)
class Difference:
    """
    A call that is not decided as recorded, or a session that cannot be replayed.
    """

    session_id: str
    n: int | None
    """Number of its event; None: of the session as a whole."""
    tool: str | None
    recorded: str
    replayed: str


@dataclass
class Exactness:
    """
    The outcome of deciding records again.
    """

    policy: str
    sessions: int = 0
    calls: int = 0
    differing: int = 0
    """Calls that are decided otherwise, and sessions that cannot be replayed."""
    broken_lines: int = 0
    notices: list[str] = field(default_factory=list)
    """What was met on the way: files that are cut off, lines that are too long."""
    not_judged: dict[str, str] = field(default_factory=dict)
    """Guard to reason: what the records lack for it."""
    without: list[str] = field(default_factory=list)
    """Files that hold no records of this library."""
    events: int = 0
    """Lines that are records."""
    first: list[Difference] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """
        Every decision is the recorded one.
        """
        return not self.differing

    def differs(self, *difference: Any) -> None:
        """
        Count a difference, and keep it while there is room.
        """
        self.differing += 1
        self.first += (Difference(*difference),) * (len(self.first) < SHOWN)

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the same for another program.
        """
        return {**asdict(self), "exact": self.same}


def replayed(policy: Policy, files: Iterable[Input], others: Iterable[Policy] = ()) -> Exactness:
    """
    Returns all sessions of *files*, decided again by *policy*, or by one of *others* once they went over to it.

    Files without records are named. Raises SessionError if no file holds records of this library, NoRecordsError if these
    hold no call.
    """
    found = Exactness(policy.name)
    known = {each.digest: Rules(each.chain, each.scopes) for each in (policy, *others) if each.digest is not None}
    records = _records(files, found)
    found.sessions = len(set(map(life_key, records)))
    again, broken = Replay(policy.chain, policy.scopes, known), set()
    try:
        ordered: Iterable[Record] = in_order(records)
    except SessionError as error:
        ordered = ()
        found.differs(records[0]["session_id"], None, None, str(error), "cannot be replayed")
    for record in ordered:
        try:
            one = None if life_key(record) in broken else again.live(record)
            if one is not None:
                found.calls += 1
                if not one.same:
                    found.differs(record["session_id"], record["n"], record["tool"], one.recorded, one.decided)
        except GuardrailsError as error:
            broken.add(life_key(record))
            found.differs(record["session_id"], None, None, str(error), "cannot be replayed")
    if not found.calls and found.same:
        raise NoRecordsError("the records hold no calls: `--exact` has nothing to decide again")
    found.not_judged = no_arguments(policy.chain, sum(map(_is_blind, records)))
    return found


def _records(files: Iterable[Input], found: Exactness) -> list[Record]:
    """
    Returns the records of all sessions. An event that is written twice counts once.
    """
    records: dict[bytes, Record] = {}
    for file in files:
        own = {line: record for record, line in _events(file, found)}
        found.events += len(own)
        found.without += () if own else (file.path,)
        records |= own
    if not records:
        named = f"`{found.without[0]}` holds no records of this library" if found.without else "there are no files"
        more = f", nor do {len(found.without) - 1:,} more files" if len(found.without) > 1 else ""
        error = SessionError if found.without else NoRecordsError
        raise error(f"{named}{more}: `--exact` has nothing to decide again")
    return [*records.values()]


def _events(file: Input, found: Exactness) -> Iterator[tuple[Record, bytes]]:
    """
    Yields each event in *file*, with its line.
    """
    newer = list[int]()
    try:
        for line in open_lines(file.path, rotated=file.rotated):
            record = parsed(line)
            found.broken_lines += record is None and bool(line.strip())
            if type(record) is dict and (version := newer_version(record)) is not None:
                newer.append(version)
            elif type(record) is dict and record.keys() >= _OWN and _is_placed(record):
                yield record, line
    except OSError as error:
        said = f"`{file.path}` cannot be read: {error.strerror or error}"
        if not file.found:
            raise SessionError(said) from None
        found.notices.append(said)
    if newer:
        found.notices.append(f"`{file.path}`: lines left out: {len(newer):,}; records of {newer_records(max(newer))}")


def _is_blind(record: Record) -> bool:
    erased = record.get("erased") if record["event"] == "call" else None
    return type(erased) is list and any(str(path).startswith("arguments") for path in erased)


def _is_placed(record: Record) -> bool:
    session_id, run, number = record["session_id"], record["run"], record["n"]
    return type(session_id) is type(run) is str and type(number) is int and 0 < number < MAX_NUMBER
