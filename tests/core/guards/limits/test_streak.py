"""
One tool again and again.
"""

from typing import Any

from guardrails import Policy, Streak, Tool


def ok(*_: Any) -> str:
    return "ok"


def fails(*_: Any) -> None:
    raise ValueError("no")


def make(clock: Any, *guards: Any, **settings: Any) -> Any:
    return Policy(guards, **settings).session("s", clock=clock)


def run(session: Any, story: str) -> str:
    """
    One call a letter, a capital one fails; what was admitted.
    """
    admitted = ""
    for number, letter in enumerate(story):
        envelope = session.call(letter.lower(), {"n": number}, fails if letter.isupper() else ok)
        admitted += letter if envelope.code is None else "."
    return admitted


def test_a4_consecutive_calls_of_one_tool_are_capped_and_another_tool_in_between_resets(clock: Any) -> None:
    session = make(clock, Streak(max_same=3))
    assert run(session, "aaaaabaaaab") == "aaa..baaa.b"
    assert not session.exhausted


def test_consecutive_failures_of_one_tool_are_capped_and_a_success_resets(clock: Any) -> None:
    assert run(make(clock, Streak(max_failures=2)), "AAAAbAaAAA") == "AA..bAaAA."


def test_a_refused_call_of_another_tool_does_not_reset_a_streak(clock: Any) -> None:
    from guardrails import ToolFilter

    session = make(clock, Streak(max_same=2), ToolFilter(deny=("x",)))
    assert run(session, "aaxxaxba") == "aa....ba"


def test_a_refusal_says_how_many_and_what_else_to_do(clock: Any) -> None:
    session = make(clock, Streak(max_same=1, max_failures=9))
    run(session, "a")
    envelope = session.call("a", {}, ok)
    assert (envelope.status, envelope.code) == ("denied", "streak.max_same")
    assert envelope.message == "`a` was called 1 times in a row (limit 1)."
    assert envelope.next_action_hint == "Use what you have, or call another tool."


def test_polling_tools_may_be_called_again_and_again(clock: Any) -> None:
    session = make(clock, Streak(max_same=1), tools=[Tool(name="p", repeats="allow"), Tool(name="a")])
    assert run(session, "ppppaap") == "ppppa.p"


def test_parallel_failures_from_before_the_streak_do_not_count_for_it(clock: Any) -> None:
    session = make(clock, Streak(max_failures=2))
    first, other, second = (session.decide(tool, {"n": n}, id=f"{n}") for n, tool in enumerate("aba"))
    session.complete(first, ValueError("no"))
    session.complete(other, "ok")
    session.complete(second, ValueError("no"))
    assert session.call("a", {"n": 9}, ok).ok


def test_parallel_calls_of_one_tool_are_capped_as_they_are_admitted(clock: Any) -> None:
    session = make(clock, Streak(max_same=2))
    assert [session.decide("a", {"n": n}, id=f"{n}").allowed for n in range(4)] == [True, True, False, False]


def test_per_tool_overrides_change_the_cap_of_their_tools(clock: Any) -> None:
    from guardrails import Rule

    rules = [Rule(match=("r*",), declared={}, guards={"streak": {"max_same": 4}})]
    session = make(clock, Streak(max_same=2), rules=rules)
    assert run(session, "rrrrrwww") == "rrrr.ww."
