"""
What each rule against repeats would have refused: held to what a judgement of that rule finds.
"""

from collections.abc import Callable
from typing import Any

from guardrails import Duplicates, Policy, Tool
from guardrails.core.retries.shrinkage import Count
from guardrails.offline.report.quality import Quality
from guardrails.offline.transcripts import RecordedCall
from tests.tables import table


Calls = Callable[..., list[RecordedCall]]
Counted = Callable[..., Quality]

TOOLS = [Tool(name="look", read_only=True)]
EVIDENCE = Policy([Duplicates(rule="evidence", window=20)], tools=TOOLS)


@table(
    "told, always",
    [
        (["a=1", "a=1"], {1: Count(1, 1)}),
        (["a=1", "a=2"], {1: Count(1, 0)}),
        (["a=1", "look=1", "a=1"], {2: Count(1, 1)}),
        (["a=1", "edit=1", "a=1"], {2: Count(1, 0)}),
        (["a!not_found", "a!not_found"], {1: Count(1, 1)}),
        (["a!timeout", "a=1"], {}),
        (["a!cancelled", "a=1"], {}),
        (["a!exec_nonzero", "a!exec_nonzero"], {1: Count(1, 1)}),
        (["a!exec_nonzero", "edit=1", "a=1"], {}),
        (["a=1", "a?"], {}),
    ],
)
def test_a_retry_is_no_repeat_and_one_after_work_is_no_evidence(
    calls: Calls, counted: Counted, told: list[Any], always: dict[int, Count]
) -> None:
    tally = counted(calls(*told), EVIDENCE).tallies["a"]
    assert tally.always == always
