"""
What the tests that judge share.
"""

from collections.abc import Iterable

from guardrails.offline.replay.judge import Judge, sessions_of
from guardrails.offline.replay.tally import Row
from guardrails.offline.transcripts import RecordedCall


def judged(judge: Judge, calls: Iterable[RecordedCall]) -> list[Row]:
    """
    The words of *judge* on *calls*, session after session.
    """
    return [said for session in sessions_of(calls) for said in judge.judge(session)]
