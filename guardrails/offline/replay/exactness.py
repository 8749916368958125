"""
Decide the library's own records again, exactly: every decision must be the recorded one.

The events of a session may be spread over files, in any order.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from guardrails.core.record import newer_records, newer_version
from guardrails.core.values.errors import GuardrailsError, NothingFoundError, SessionError
from guardrails.offline.replay.exact import Record, Replay, Rules, in_order, life_key
from guardrails.offline.transcripts.fields import mapping
from guardrails.offline.transcripts.files import Input, content_of, values_of
from guardrails.offline.transcripts.own_records import is_record
from guardrails.policy.policy import Policy

from .lacking import guards_of, no_arguments


SHOWN: Final = 20
"""Differences that are told."""


class NoRecordsError(NothingFoundError):
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

    Files without records are named. Raises SessionError if no file holds records of this library, or these contradict each other;
    NoRecordsError if they hold no call.
    """
    found = Exactness(policy.name)
    known = {each.digest: Rules(each.chain, each.scopes) for each in (policy, *others) if each.digest is not None}
    # An event that is written twice happened once.
    events = list({repr(record): record for file in files for record in _records(file, found)}.values())
    found.events, found.sessions = len(events), len(set(map(life_key, events)))
    if not events:
        none = f"`{found.without[0]}` holds no records of this library" if found.without else "there are no files"
        more = f", nor do {len(found.without) - 1:,} more files" if len(found.without) > 1 else ""
        error = SessionError if found.without else NoRecordsError
        raise error(f"{none}{more}: `--exact` has nothing to decide again")
    again, broken = Replay(Rules(policy.chain, policy.scopes), known), set()
    for record in in_order(events):
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
    guards = guards_of(policy.chain, (record["tool"] for record in events if record["event"] == "call"))
    found.not_judged = no_arguments(guards, sum(map(_is_blind, events)))
    return found


def _records(file: Input, found: Exactness) -> list[Record]:
    """
    Returns the records in *file*.
    """
    try:
        values, broken = values_of(content_of(file.parts.values()))
    except OSError as error:
        told = f"`{file.path}` cannot be read: {error.strerror or error}"
        if not file.found:
            raise SessionError(told) from None
        found.notices.append(told)
        values, broken = [], []
    records = [value for _, value in values if is_record(value) and type(value.get("run")) is str]
    found.broken_lines += len(broken)
    found.without += () if records else (file.path,)
    newer = [version for _, value in values if (version := newer_version(mapping(value))) is not None]
    if newer:
        found.notices.append(f"`{file.path}`: lines left out: {len(newer):,}; records of {newer_records(max(newer))}")
    return records


def _is_blind(record: Record) -> bool:
    erased = record.get("erased") if record["event"] == "call" else None
    return type(erased) is list and any(str(path).startswith("arguments") for path in erased)
