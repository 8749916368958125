"""
One tool again and again.
"""

from typing import Any

from guardrails import Rule, Streak, Tool, ToolFilter
from tests.core.guards.calls import gives, make, ok
from tests.tables import table


POLLED = [Tool(name="p", repeats="allow"), Tool(name="a"), Tool(name="x"), Tool(name="b")]


@table(("guards", "settings", "story", "admitted"), [
    ([Streak(max_same=3)], {}, "aaaaabaaaab", "aaa..baaa.b"),
    ([Streak(max_failures=2)], {}, "AAAAbAaAAA", "AA..bAaAA."),
    # A refused call of another tool resets nothing.
    ([Streak(max_same=2), ToolFilter(deny=("x",))], {}, "aaxxaxba", "aa....ba"),
    ([Streak(max_same=1)], {"tools": POLLED}, "ppppaap", "ppppa.p"),
    ([Streak(max_same=2)], {"rules": [Rule(match="r*", guards={"streak": {"max_same": 4}})]}, "rrrrrwww", "rrrr.ww."),
])  # fmt: skip
def test_a4_what_one_tool_does_in_a_row_is_capped_and_another_tool_in_between_resets(
    guards: Any, settings: Any, story: str, admitted: str, clock: Any
) -> None:
    """
    One call a letter, a capital one fails.
    """
    session, ran = make(clock, *guards, **settings), ""
    for number, letter in enumerate(story):
        execute = gives(ValueError("no")) if letter.isupper() else ok
        ran += letter if session.call(letter.lower(), {"n": number}, execute).code is None else "."
    assert (ran, session.exhausted) == (admitted, None)


def test_a_refusal_says_how_many_and_what_else_to_do(clock: Any) -> None:
    session = make(clock, Streak(max_same=1, max_failures=9))
    session.call("a", {"n": 0}, ok)
    envelope = session.call("a", {}, ok)
    assert (envelope.status, envelope.code) == ("denied", "streak.max_same")
    assert envelope.message == "`a` was called 1 times in a row (limit 1)."
    assert envelope.next_action_hint == "Use what you have, or call another tool."


def test_parallel_calls_are_capped_as_they_are_admitted_and_failures_from_before_do_not_count(clock: Any) -> None:
    same = make(clock, Streak(max_same=2))
    assert [same.decide("a", {"n": n}, id=f"{n}").allowed for n in range(4)] == [True, True, False, False]
    failing = make(clock, Streak(max_failures=2))
    first, other, second = (failing.decide(tool, {"n": n}, id=f"{n}") for n, tool in enumerate("aba"))
    for decision, outcome in ((first, ValueError("no")), (other, "ok"), (second, ValueError("no"))):
        failing.complete(decision, outcome)
    assert failing.call("a", {"n": 9}, ok).ok
