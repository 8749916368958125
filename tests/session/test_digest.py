"""
A session in a few lines.
"""

from typing import Any

from guardrails import Budget, Duplicates, Policy, Tool
from guardrails.session.results import MAX_ARGUMENTS, MAX_RESULT


def make(clock: Any, *guards: Any, **settings: Any) -> Any:
    return Policy(guards, **settings).session("s", clock=clock)


def gives(value: Any) -> Any:
    def execute(tool: str, arguments: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return execute


def test_a8_a_digest_says_what_was_asked_what_came_back_and_what_is_left(clock: Any) -> None:
    session = make(clock, Budget(max_calls=3))
    session.call("search", {"q": "hotels"}, gives([{"id": 1}]))
    session.call("book", {"id": 1}, gives(TimeoutError("too slow")))
    session.decide("pay", {"id": 1}, id="call_3")
    assert session.digest().splitlines() == [
        "3 tool calls were made:",
        '- search {"q":"hotels"} done: [{"id":1}]',
        '- book {"id":1} failed (timeout): {"error_type":"timeout","error_message":"too slow"}',
        "- pay still running",
        "Progress: calls used: 3, calls left: 0.",
        "Tool call limit reached (3). Stopping tool loop. The user can resume or raise the limit.",
    ]


def test_a_call_that_expired_shows_no_result_of_another(clock: Any) -> None:
    session = make(clock, tools=[Tool(name="t", timeout=1)])
    session.call("t", {}, gives("old"))
    session.decide("t", {}, id="call_2")
    clock.advance(2)
    session.decide("u", {})
    assert session.digest().splitlines()[2] == "- t {} no result: it may have happened"


def test_only_the_last_20_are_shown_and_denied_calls_not_at_all(clock: Any) -> None:
    session = make(clock, Duplicates())
    for number in range(25):
        session.call("t", {"n": number}, gives(number))
        session.call("t", {"n": number}, gives(number))
    lines = session.digest().splitlines()
    assert lines[0] == "25 tool calls were made; the last 20:"
    assert lines[1] == '- t {"n":5} done: 5'
    assert len(lines) == 22


def test_long_arguments_and_results_are_cut_between_characters(clock: Any) -> None:
    session = make(clock)
    session.call("t", {"text": "é" * 1_000}, gives("ü" * 1_000))
    line = session.digest().splitlines()[1]
    assert len(line) < MAX_ARGUMENTS + MAX_RESULT + 30
    assert "�" not in line
    assert line.endswith("ü...")
