"""
What `repeats: evidence` refuses, what a user's message frees, and that an empty text of an unknown tool acknowledges.
"""

from typing import Any

from guardrails import Policy, Tool
from tests.conftest import FakeClock
from tests.core.result.carriers import block
from tests.tables import table


def ran(values: list[Any], tool: Tool) -> str:
    clock, said = FakeClock(), ""
    session = Policy.load("default").session("s", clock=clock, tools=[tool])
    for value in values:
        if value is None:
            session.ledger.go_on()
            continue
        said += "." if session.call(tool.name, {"q": "z"}, lambda tool, arguments: value).ok else "R"  # noqa: B023
        clock.advance(10)
    return said


@table(("values", "tool", "said"), [
    (["ok", "ok"], Tool(name="pay", repeats="evidence"), ".R"), (["ok", "ok"], Tool(name="pay"), ".."),
    (["running"] * 4, Tool(name="get_job", repeats="evidence"), "...."), (["a", "a"], Tool(name="get_a", repeats="evidence"), ".R"),
    (["a", "a", None, "a", "a", "a"], Tool(name="get_a"), "....R"), (["a", "a", "a"], Tool(name="get_a"), "..R"),
])  # fmt: skip
def test_one_equal_answer_is_enough_if_declared_and_none_from_before_a_message_counts(
    values: list[Any], tool: Tool, said: str
) -> None:
    assert ran(values, tool) == said


@table(("tool", "value", "said"), [
    ("computer", "", "....."), ("xdotool", {"content": [block("")]}, "....."), ("bash", {"output": ""}, "....."), ("run_sql", "", "....."),
    ("get_note", "", "..RRR"), ("computer", "a menu with three entries, the second is chosen", "..RRR"),
])  # fmt: skip
def test_an_empty_text_is_no_evidence_unless_it_was_asked_for(tool: str, value: Any, said: str) -> None:
    assert ran([value] * 5, Tool(name=tool)) == said
