"""
The calls that two policies decide differently, one by one, as far as the stops of both are known.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from guardrails.offline.judge.result import Judgement, Stop

from .figures import cut, verdict


ALLOW = "allow"
Key = tuple[str, str, str, int]
"""Source, session, life, call index."""


class Change(NamedTuple):
    """
    One call that the other policy decides differently.
    """

    before: str
    after: str
    stop: Stop
    """Of the policy that stops it; of the first, where both do."""

    @property
    def verdict(self) -> str:
        """
        The difference for better or worse, if that can be said.
        """
        if ALLOW not in {self.before, self.after}:
            return ""
        return verdict(self.stop)


def changes(judgement: Judgement, other: Judgement) -> list[Change]:
    """
    Returns the calls that are decided differently, wrong ones first.

    A call that is not in a list of stops that was cut may have been stopped all the same: it is left out.
    """
    mine, theirs = _by_call(judgement), _by_call(other)
    found = list(_changes(mine, theirs, whole=(not cut(judgement), not cut(other))))
    return sorted(found, key=lambda change: change.verdict != "wrong")


def _changes(mine: dict[Key, Stop], theirs: dict[Key, Stop], whole: tuple[bool, bool]) -> Iterator[Change]:
    for key, stop in mine.items():
        then = theirs.get(key)
        if then is None:
            if whole[1]:
                yield Change(_word(stop), ALLOW, stop)
        elif (then.decision, then.code) != (stop.decision, stop.code):
            yield Change(_word(stop), _word(then), stop)
    if whole[0]:
        for key, stop in theirs.items():
            if key not in mine:
                yield Change(ALLOW, _word(stop), stop)


def tally(found: list[Change]) -> list[tuple[str, str, int, int, int]]:
    """
    Returns (before, after, calls, wrong, pointless) of each kind of change, the most frequent first.
    """
    kinds: Counter[tuple[str, str]] = Counter()
    verdicts: Counter[tuple[str, str, str]] = Counter()
    for change in found:
        kinds[change.before, change.after] += 1
        verdicts[change.before, change.after, change.verdict] += 1
    return [
        (before, after, n, verdicts[before, after, "wrong"], verdicts[before, after, "pointless repeat"])
        for (before, after), n in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    ]


def _by_call(judgement: Judgement) -> dict[Key, Stop]:
    return {(stop.source, stop.session_id, stop.run, stop.call_index): stop for stop in judgement.stops}


def _word(stop: Stop) -> str:
    return stop.code if stop.decision == "deny" else f"{stop.decision} {stop.code}"
