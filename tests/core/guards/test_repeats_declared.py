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


@table(("tool", "declared", "answers", "told"), [
    ("send_mail", {}, [{"id": "m1"}, {"id": "m2"}], [False, True]), ("create_post", {}, ["ok 1 sent", "ok 2 sent"], [False, True]),
    ("send_mail", {}, ["ok", "ok"], [False, False]), ("send_mail", {"repeats": "allow"}, [{"id": 1}, {"id": 2}], [False, False]),
    ("get_note", {}, [{"id": "m1"}, {"id": "m2"}], [False, False]),
])  # fmt: skip
def test_work_that_is_accepted_again_under_a_new_id_is_told_at_the_second(
    tool: str, declared: dict[str, Any], answers: list[Any], told: list[bool]
) -> None:
    session = Policy.load("default").session("s", clock=FakeClock(), tools=[Tool(name=tool, **declared)])
    hints = [session.call(tool, {"to": "ann"}, lambda *_, answer=answer: answer).next_action_hint for answer in answers]
    assert ["accepted again" in (hint or "") for hint in hints] == told


def test_older_words_of_repeats_still_work() -> None:
    assert Tool(name="a", polling=True).repeats == "allow"
    assert Tool(name="a", stable=True).repeats == "evidence"
    assert Tool(name="a", polling=True, repeats="ask").repeats == "ask"
