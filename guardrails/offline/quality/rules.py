"""
Tells which recorded calls each rule against repeats would have refused, and whether rightly.

The conditions are those of the guard `duplicates`, so that a figure here is what a replay of the setting finds.
"""

from collections.abc import Sequence
from typing import Final

from guardrails.core.guards.duplicates import REPAIRABLE
from guardrails.core.guards.evidence import shown_to_change
from guardrails.core.retries.decision import TRANSIENT
from guardrails.offline.judge.evidence import Worth

from .tally import MAX_ATTEMPT, Odds, Tally
from .trail import Done, Trail


PAIR: Final = 2
"""Equal results that are evidence against a third call."""


def count_rules(tally: Tally, latest: Done, since: Sequence[Done], worth: Worth) -> None:
    """
    Note for the rules that go by the latest equal call whether refusing this one was right: whether it was pointless.

    The calls that ran after *latest* are *since*.
    """
    if worth == "unknown" or latest.result_hash is None or latest.error in TRANSIENT:
        return
    same = worth in ("second", "later")
    if not _worth_again(latest, since):
        # A check after an edit is honest though it says what it said before.
        tally.always.setdefault(len(since) + 1, Odds()).add(same and not any(done.worked for done in since))
    if latest.error is None and not _changed(since, latest.tool):
        tally.stable.add(same)


def refused_by_evidence(tally: Tally, trail: Trail, sig: int | None, worth: Worth) -> bool:
    """
    Returns whether the rule `evidence` would refuse the call of *sig*; if so, note whether that was right.

    It goes by the calls it let run before: a guard never sees results of calls that it refused.
    """
    if sig is None or trail.kept_sigs.count(sig) < PAIR:
        return False
    kept = trail.kept
    before, last = [place for place, done in enumerate(kept) if done.sig == sig][-PAIR:]
    latest, earlier = kept[last], kept[before]
    if latest.result_hash is None or latest.result_hash != earlier.result_hash or latest.error in TRANSIENT:
        return False
    since, between = kept[last + 1 :], kept[before + 1 : last]
    if latest.changes and shown_to_change(since, between):
        return False
    if any(done.worked for done in since):
        return False
    if worth != "unknown":
        tally.evidence.setdefault(len(kept) - before, Odds()).add(worth in ("second", "later"))
    return True


def count_retry(tally: Tally, latest: Done, since: Sequence[Done], *, worked: bool) -> None:
    """
    Note whether the same call after *latest*, which failed, *worked*: it is known to have ended so or otherwise.
    """
    tally.retries.add(worked)
    if latest.error in TRANSIENT and not changed(since):
        tally.by_attempt.setdefault(min(latest.attempt, MAX_ATTEMPT), Odds()).add(worked)


def changed(since: Sequence[Done]) -> bool:
    """
    Returns whether one of the calls may have changed something.
    """
    return any(done.changes for done in since)


def _changed(since: Sequence[Done], tool: str) -> bool:
    # A tool that is declared stable changes nothing itself.
    return any(done.changes and done.tool != tool for done in since)


def _worth_again(latest: Done, since: Sequence[Done]) -> bool:
    return latest.error == "cancelled" or (latest.error in REPAIRABLE and len(since) > 0)
