"""
What a person sees while an agent works.
"""

import io
import json
import os
import sys

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy
from guardrails.agent.view import View, status_line
from guardrails.session.calls import ParkedCall
from tests.tables import table


ALL = {"calls_used": 3, "calls_left": 17, "cost_left_usd": 0.99, "turns_left": 4, "tokens_left": 5, "seconds_left": 6}


def test_the_status_says_what_is_used_and_left() -> None:
    assert status_line({"calls_used": 1, "calls_left": 0}, 0.0012, 0, 1) == "1 call (0 left), $0.0012, 1 denied"
    left = "3 calls (17 left), $0.0012 ($0.9900 left), 4 turns left, 5 tokens left, 6 seconds left, 1 denied"
    assert status_line(ALL, 0.0012, 0, 1) == left
    # Never shown as free.
    assert status_line({}, 0.0012, 2, 1) == "0 calls, $0.0012, 2 responses of unknown price, 1 denied"


@table("item, told", json.loads(Path(__file__).with_name("messages.json").read_text()))
def test_a_message_is_plain_lines(item: dict[str, Any], told: str) -> None:
    shown = View(stream := io.StringIO())
    shown.status = lambda: "3 calls"
    shown.message(item)
    assert stream.getvalue() == told


def test_calls_and_denials_are_lines_and_denials_are_counted() -> None:
    shown = View(stream := io.StringIO())
    session = Policy([Budget(max_calls=1)]).session("s", on_decision=shown.decided)
    session.call("t", {"q": "x" * 500}, lambda *_: 1)
    session.call("t", {"q": "\x1b[2J\n"}, lambda *_: 1)
    first, second = stream.getvalue().splitlines()
    assert (first.startswith('-> t {"q": "xxx'), len(first) < 120, shown.denied) == (True, True, 1)
    assert "denied, budget.max_calls: Tool call limit reached (1)" in second
    assert "\x1b" not in stream.getvalue()


NUMBERS: dict[str, Any] = dict.fromkeys(("since", "n", "seq", "sig"), 1)
PAY = {"usd": 900, "to": "\x1b[2J" + "x" * 300}
ASKED = ParkedCall(id="a", tool="pay_rent", arguments=PAY, reason="money leaves the house", session="s", **NUMBERS)


# What was typed before the question answers nothing.
TYPED = {"y": True, "YES": True, "n": False, "": False, "ask Ann first": "ask Ann first"}


@table("before, typed, answer", [("y\n", "n", False), *(("", *one) for one in TYPED.items())])
def test_a_person_at_the_terminal_is_asked(before: str, typed: str, answer: object, monkeypatch: Any) -> None:
    other, own = os.openpty()
    with os.fdopen(own, "r+b", buffering=0) as end, io.TextIOWrapper(end, write_through=True) as terminal:
        os.write(other, before.encode())
        monkeypatch.setattr(sys, "stdin", terminal)
        with ThreadPoolExecutor(1) as asked:
            said = asked.submit(View(terminal).approves, ASKED)
            seen = b""
            while not seen.endswith(b"why not: "):
                seen += os.read(other, 4_096)
            os.write(other, f"{typed}\n".encode())
            assert said.result() == answer
    os.close(other)
    assert [part in seen for part in (b"money leaves the house", b"x" * 300, b"\x1b[2J")] == [True, True, False]


@table("stdin", [io.StringIO("y\n"), None])
def test_nobody_is_asked_without_a_terminal(stdin: io.StringIO | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    stream = io.StringIO()
    assert View(stream).approves(ASKED) is None
    assert "it waits: nobody can be asked here" in stream.getvalue()
