"""
What the tests of the report share: recorded calls in few words, and what is counted of them.
"""

from collections.abc import Callable
from typing import Any

import pytest

from guardrails import Policy
from guardrails.offline.report.quality import Quality, count
from guardrails.offline.transcripts import RecordedCall


T0 = 1_800_000_000_000

Calls = Callable[..., list[RecordedCall]]
Counted = Callable[..., Quality]


def recorded(*told: str | dict[str, Any], session: str = "s", **common: Any) -> list[RecordedCall]:
    """
    The calls of one session, a minute apart. `"a=1"`: tool a gave 1; `"a x=1"`: it was asked for x; `"a!timeout"`: it failed
    with that type, and its text; `"a?"`: no result is recorded.
    """
    calls = []
    for index, one in enumerate(told):
        said = {"call": one} if isinstance(one, str) else dict(one)
        text = said.pop("call")
        asked, sign, result = next(text.partition(sign) for sign in "=!?" if sign in text)
        tool, _, argument = asked.partition(" ")
        call = RecordedCall(session, tool, {"of": argument} if argument else {}, "data", index)
        call.result = result if sign in "=!" else None
        call.has_result = sign != "?"
        call.is_error = {"=": False, "!": True, "?": None}[sign]
        call.ts_ms = T0 + 60_000 * index
        kind = (result.partition(" ")[0] or "other") if sign == "!" else None
        for name, value in {"error_type": kind, **common, **said}.items():
            setattr(call, name, value)
        calls.append(call)
    return calls


@pytest.fixture
def calls() -> Calls:
    return recorded


@pytest.fixture
def counted() -> Counted:
    return lambda calls, policy=None: count(policy or Policy([]), calls)
