"""
What the tests of judging share: recorded calls in few words.
"""

from collections.abc import Callable
from typing import Any

import pytest

from guardrails.offline.transcripts import RecordedCall


T0 = 1_800_000_000_000

Calls = Callable[..., list[RecordedCall]]


def recorded(*told: str | dict[str, Any], timed: bool = True, **common: Any) -> list[RecordedCall]:
    """
    The calls of one session. `"a=1"`: tool a gave 1; `"a!x"`: it failed with x; `"a?"`: no result is recorded.

    One second apart and at once done unless a mapping says otherwise (`call` is then the text).
    """
    calls = []
    for index, one in enumerate(told):
        said = {"call": one} if isinstance(one, str) else dict(one)
        text = said.pop("call")
        tool, sign, result = next(text.partition(sign) for sign in "=!?" if sign in text)
        call = RecordedCall("s", tool, {}, "data", index)
        call.result = result if sign in "=!" else None
        call.has_result = sign != "?"
        call.is_error = {"=": False, "!": True, "?": None}[sign]
        call.error_type = "timeout" if result == "timeout" else "other" if call.is_error else None
        call.ts_ms = T0 + 1000 * index if timed else None
        for name, value in {**common, **said}.items():
            setattr(call, name, value)
        calls.append(call)
    return calls


@pytest.fixture
def calls() -> Calls:
    return recorded
