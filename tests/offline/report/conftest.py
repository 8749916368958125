"""
What the tests of the report share: recorded calls in few words, and what is counted of them.
"""

from collections.abc import Callable
from typing import Any

import pytest

from guardrails import Policy
from guardrails.offline.report.quality import Quality, count
from guardrails.offline.transcripts import RecordedCall
from tests.offline.report.planted import planted


T0 = 1_800_000_000_000

Calls = Callable[..., list[RecordedCall]]
Counted = Callable[..., Quality]


def recorded(*told: str | dict[str, Any], session: str = "s", **common: Any) -> list[RecordedCall]:
    """
    The calls of one session, a minute apart, each as `planted` has it, or a dict of that (`call`) and of fields.
    """
    calls = []
    for index, one in enumerate(told):
        more = {"call": one} if isinstance(one, str) else dict(one)
        text = more.pop("call")
        own = planted(text)
        call = RecordedCall(session, own.tool, own.arguments, "data", index, result=own.result)
        call.has_result, call.ts_ms = own.result is not None, T0 + 60_000 * index
        call.is_error, call.error_type = own.error is not None, own.error  # type: ignore[assignment]
        for name, value in {**common, **more}.items():
            setattr(call, name, value)
        calls.append(call)
    return calls


@pytest.fixture
def calls() -> Calls:
    return recorded


@pytest.fixture
def counted() -> Counted:
    return lambda calls, policy=None: count(policy or Policy([]), calls)
