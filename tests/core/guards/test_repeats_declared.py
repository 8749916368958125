"""
What `repeats` refuses and frees, what a user's message frees, and that an empty text of an unknown tool acknowledges.
"""

from typing import Any

from guardrails import Loops, Policy, Tool
from tests.conftest import FakeClock
from tests.core.guards.calls import gives
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


@table(("declared", "told", "noted"), [
    ({"repeats": "allow"}, "The last 3 times, this exact find call gave the same answer.", False),
    ({"read_only": False}, "The last 2 times, this exact find call ended the same.", True),
])  # fmt: skip
def test_same_calls_are_counted_as_far_as_it_matters_and_changes_are_noted_unless_they_are_declared(
    declared: Any, told: str, noted: bool, clock: Any
) -> None:
    rows, hints, kept = [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}], [], []
    for answers in ([0] * 7, range(3)):
        with Policy([Loops()], tools=[Tool(name="find", **declared)]).session("s", clock=clock) as session:
            for page in answers:
                clock.advance(5)
                envelope = session.call("find", {"n": 1}, gives({"rows": rows, "page": page, "name": f"Ann {page}"}))
                hints.append(envelope.next_action_hint)
            kept.append(bool(session.ledger.read(lambda state, now: state.own.get("evidence"))))
    assert (hints[6] or "").startswith(told)
    assert kept == [False, noted]


@table(("words", "repeats"), [
    ({"polling": True}, "allow"), ({"stable": True}, "evidence"), ({"polling": True, "repeats": "ask"}, "ask"),
])  # fmt: skip
def test_older_words_of_repeats_still_work(words: Any, repeats: str) -> None:
    assert Tool(name="a", **words).repeats == repeats
