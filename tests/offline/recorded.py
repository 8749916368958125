"""
Recorded calls in few words: `"a=1"`: tool a gave 1; `"a x=1"`: it was asked for x; `"a!timeout"`: it failed so; `"a?"`: no result is
recorded.
"""

import itertools
import json

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from guardrails import Policy
from guardrails.core.values.types import ERROR_TYPES
from guardrails.offline.replay.judge import Judge, sessions_of
from guardrails.offline.replay.tally import Judgement
from guardrails.offline.transcripts import RecordedCall


Sessions = list[list[str]]

T0_MS: Final = 1_800_000_000_000
SAID: Final = {
    "timeout": "Error: request timed out after 30 seconds",
    "not_found": "Error: 404 not found: no such record",
    "validation": "Error: validation failed: `n` must be an integer",
    "permission": "Error: permission denied",
}
"""What tools say of a failure of some types."""


def planted(step: str) -> RecordedCall:
    """
    Returns the call that *step* tells.
    """
    call_text, sign, result = next(step.partition(sign) for sign in step if sign in "=!?")
    tool, _, argument = call_text.partition(" ")
    call = RecordedCall("s", tool, {"of": argument} if argument else {}, "data")
    call.result, call.has_result = None if sign == "?" else SAID.get(result, result), sign != "?"
    call.is_error = None if sign == "?" else sign == "!"
    if call.is_error:
        kind: Any = result.partition(" ")[0]
        call.error_type = kind if kind in ERROR_TYPES else "other"
    return call


def recorded(
    *steps: str | dict[str, Any], every_ms: int = 1_000, timed: bool = True, **common: Any
) -> list[RecordedCall]:
    """
    The calls of one session, *every_ms* apart and at once done. A mapping has the text as its `call`, and other fields.
    """
    calls = []
    for index, one in enumerate(steps):
        fields = {"call": one} if isinstance(one, str) else dict(one)
        call = planted(fields.pop("call"))
        call.call_index, call.ts_ms = index, T0_MS + every_ms * index if timed else None
        for name, value in {**common, **fields}.items():
            setattr(call, name, value)
        calls.append(call)
    return calls


def lines(sessions: Sessions) -> str:
    """
    Returns JSON lines of one call each, a minute apart.
    """
    numbers = itertools.count(T0_MS // 1000, 60)
    calls = [(f"s{place}", planted(step), next(numbers)) for place, steps in enumerate(sessions) for step in steps]
    names = ("tool", "arguments", "result", "is_error", "error_type")
    rows = [{"session_id": own, "ts": ts, **{name: getattr(call, name) for name in names}} for own, call, ts in calls]
    return "".join(json.dumps(row) + "\n" for row in rows)


def played(path: Path, policy: Policy, sessions: Sessions) -> None:
    """
    Write records of sessions that really ran under *policy*; each reading of the clock is five seconds later.
    """
    numbers = itertools.count(T0_MS // 1000, 5)
    path.unlink(missing_ok=True)
    for place, steps in enumerate(sessions):
        with policy.session(f"s{place}", records=path, clock=lambda: next(numbers)) as session:
            for call in map(planted, steps):

                def execute(tool: str, arguments: Any, call: RecordedCall = call) -> Any:
                    if call.is_error:
                        raise RuntimeError(call.result)
                    return call.result

                session.begin_turn()
                session.call(call.tool, call.arguments, execute)


def judged(policy: Policy, calls: Iterable[RecordedCall]) -> Judgement:
    """
    The judgement of *policy* on *calls*, session after session.
    """
    judge = Judge(policy)
    return judge.judgement([row for session in sessions_of(calls) for row in judge.judge(session)])
