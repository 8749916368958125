"""
A recorded session as a policy case, with what a policy says of each of its calls.
"""

from collections.abc import Iterable

from ..errors import SessionError
from ..policy import Policy
from ..policy_cases.recorded import Decided, case_of
from ..readers import RecordedCall, Report, open_calls
from .inputs import Input
from .judgement import Judge


def session_case(policy: Policy, name: str, files: Iterable[Input], session_id: str) -> str:
    """
    The YAML of the session *session_id*, of the first source that has it, as *policy*, called *name*, decides it.

    Raises SessionError where no file has such a session.
    """
    calls: list[RecordedCall] = []
    for file in files:
        for call in open_calls(file.path, Report(), source=file.folder):
            if call.session_id == session_id and (not calls or call.source == calls[0].source):
                calls.append(call)
    if not calls:
        raise SessionError(f"no session `{session_id}` in these files")
    judge = Judge(policy)
    said = (judge.judge(call) for call in calls)
    decided = [Decided(each.decision, each.code, each.observed) for each in said]
    return case_of(calls, decided, policy=name, prices=policy.prices)
