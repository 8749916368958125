"""
What a person sees while an agent works.
"""

import io
import json
import os
import sys

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from guardrails import Budget, Policy
from guardrails.agent.view import View, status_line
from guardrails.session.calls import ParkedCall
from tests.tables import table


def view() -> tuple[View, io.StringIO]:
    stream = io.StringIO()
    made = View(stream)
    made.status = lambda: "3 calls"
    return made, stream


def result(**envelope: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "a", "content": json.dumps(envelope)}


@table(
    ("progress", "told"),
    [
        ({}, "0 calls, $0.0012, 1 denied"),
        ({"calls_used": 1, "calls_left": 0}, "1 call (0 left), $0.0012, 1 denied"),
        (
            {
                "calls_used": 3,
                "calls_left": 17,
                "cost_left_usd": 0.99,
                "turns_left": 4,
                "tokens_left": 5,
                "seconds_left": 6,
            },
            "3 calls (17 left), $0.0012 ($0.9900 left), 4 turns left, 5 tokens left, 6 seconds left, 1 denied",
        ),
    ],
)
def test_the_status_says_what_is_used_and_left(progress: dict[str, Any], told: str) -> None:
    assert status_line(progress, 0.0012, 0, 1) == told


def test_responses_of_unknown_price_are_never_shown_as_free() -> None:
    assert status_line({}, 0.0, 2, 0) == "0 calls, $0.0000, 2 responses of unknown price, 0 denied"


def test_there_are_plain_lines_and_the_status_once_a_turn() -> None:
    shown, stream = view()
    shown.message({"role": "assistant", "content": "let me see", "tool_calls": [{}]})
    shown.message(result(status="success", result=1))
    shown.message({"role": "assistant", "content": "the answer"})
    shown.end()
    assert stream.getvalue().splitlines() == ["   [3 calls]", "   let me see", "   ok"]


@table(
    ("item", "told"),
    [
        (result(status="success", limit_message="Tool call limit reached (3)."), "   ok, Tool call limit reached (3)."),
        (result(status="error", error_type="timeout", error_message="too slow"), "   error, timeout: too slow"),
        # Told when it was decided.
        (result(status="denied", code="x"), None),
        ({"type": "function_call_output", "call_id": "a", "output": '{"status": "success"}'}, "   ok"),
        ({"role": "tool", "tool_call_id": "a", "content": "plain text"}, "   ok"),
        ({"role": "user", "content": "hi"}, None),
    ],
)
def test_a_result_is_a_line(item: dict[str, Any], told: str | None) -> None:
    shown, stream = view()
    shown.message(item)
    assert stream.getvalue().splitlines() == ([] if told is None else [told])


def test_calls_and_denials_are_lines_and_denials_are_counted() -> None:
    shown, stream = view()
    session = Policy([Budget(max_calls=1)]).session("s", on_decision=shown.decided)
    session.call("t", {"q": "x" * 500}, lambda *_: 1)
    session.call("t", {"q": "\x1b[2J\n"}, lambda *_: 1)
    first, second = stream.getvalue().splitlines()
    assert first.startswith('-> t {"q": "xxx')
    assert len(first) < 120
    assert "denied, budget.max_calls: Tool call limit reached (1)" in second
    assert shown.denied == 1
    assert "\x1b" not in stream.getvalue()


def test_a_view_never_ends_what_it_shows() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    View(Gone()).say("x")


ASKED = ParkedCall(
    id="a",
    tool="pay_rent",
    arguments={"usd": 900, "to": "\x1b[2J" + "x" * 300},
    reason="money leaves the house",
    since=0,
    expires=None,
    cost_usd=0,
    session="s",
    n=1,
    seq=1,
    sig=1,
)


def at_terminal(typed: str, before: str = "") -> tuple[object, str]:
    """
    The answer of a person who types *before* before the question is seen, and *typed* then; and what they saw.
    """
    other, own = os.openpty()
    with os.fdopen(own, "r+b", buffering=0) as end, io.TextIOWrapper(end, write_through=True) as terminal:
        os.write(other, before.encode())
        with ThreadPoolExecutor(1) as asked:
            answer = asked.submit(View(terminal, answers=terminal).approves, ASKED)
            shown = b""
            while not shown.endswith(b"why not: "):
                shown += os.read(other, 4_096)
            os.write(other, typed.encode())
            said = answer.result()
    os.close(other)
    return said, shown.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="no pty here")
def test_what_was_typed_before_the_question_answers_nothing() -> None:
    assert at_terminal("n\n", before="y\n")[0] is False


@table(
    ("typed", "answer"),
    [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("ask Ann first\n", "ask Ann first")],
)
def test_a_person_at_the_terminal_is_asked_with_all_of_the_arguments(typed: str, answer: object) -> None:
    said, shown = at_terminal(typed)
    assert said == answer
    assert "money leaves the house" in shown
    assert "x" * 300 in shown
    assert "\x1b[2J" not in shown


@table("answers", [io.StringIO("y\n"), None])
def test_nobody_is_asked_without_a_terminal(answers: io.StringIO | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    stream = io.StringIO()
    assert View(stream, answers=answers).approves(ASKED) is None
    assert "it waits: nobody can be asked here" in stream.getvalue()
