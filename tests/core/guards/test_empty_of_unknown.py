"""
An empty text of a tool of which nothing is known acknowledges; of a look it is an answer.
"""

from typing import Any

from guardrails import Policy
from tests.conftest import FakeClock
from tests.core.result.carriers import block
from tests.tables import table


@table(("tool", "value", "refused"), [
    ("computer", "", False), ("xdotool", {"content": [block("")]}, False), ("bash", {"output": ""}, False), ("run_sql", "", False),
    ("get_note", "", True), ("computer", "a menu with three entries, the second is chosen", True),
])  # fmt: skip
def test_an_empty_text_is_no_evidence_unless_it_was_asked_for(tool: str, value: Any, refused: bool) -> None:
    clock = FakeClock()
    session = Policy.load("default").session("s", clock=clock)
    for _ in range(5):
        last = session.call(tool, {"action": "key"}, lambda tool, arguments: value)
        clock.advance(5)
    assert (last.status != "success") is refused
