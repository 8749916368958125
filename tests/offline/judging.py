"""
What the tests that judge share.
"""

from collections.abc import Iterable

from guardrails.offline.replay.judge import Judge, sessions_of
from guardrails.offline.replay.tally import Judgement
from guardrails.offline.transcripts import RecordedCall
from guardrails.policy.policy import Policy


def judged(policy: Policy, calls: Iterable[RecordedCall]) -> Judgement:
    """
    The judgement of *policy* on *calls*, session after session.
    """
    judge = Judge(policy)
    return judge.judgement([row for session in sessions_of(calls) for row in judge.judge(session)])
