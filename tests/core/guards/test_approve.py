"""
The settings of `Approve`, and a guard of one's own that parks.
"""

from typing import Any

from guardrails import Approve, Denial, Guard, Policy, guard
from guardrails.core.guards.base import Facts, SessionState, ToolCall
from guardrails.core.state import Question
from tests.core.guards.calls import ok


@guard
class Large(Guard):
    codes = {"large.pending": ("reason",)}  # noqa: RUF012

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        if call.arguments["usd"] < 100:
            return None
        return Denial("large.pending", "too much to pay unseen", parks=0, values={"reason": "100 USD or more"})


def test_a_guard_of_ones_own_may_park_by_the_arguments() -> None:
    paid: list[Any] = []
    session = Policy([Large()]).session("s")
    for usd in (1, 500):
        session.call("pay", {"usd": usd}, lambda tool, arguments: paid.append(arguments), id=f"call_{usd}")
    assert paid == [{"usd": 1}]
    (waiting,) = session.pending()
    assert (waiting.id, waiting.reason) == ("call_500", "100 USD or more")
    session.approve(waiting)
    for _ in range(2):
        session.call("pay", {"usd": 500}, lambda tool, arguments: paid.append(arguments), id="call_500")
    assert paid == [{"usd": 1}, {"usd": 500}]


def test_what_cannot_be_shown_to_a_person_is_refused_and_asked_of_nobody() -> None:
    session = Policy([Approve(tools=("pay",))]).session("s")
    refused = session.call("pay", {"o": object()}, ok)
    assert (refused.code, session.pending()) == ("approve.refused", [])
    assert "cannot be shown" in (refused.message or "")


def test_a_question_is_about_the_very_arguments_also_under_an_equal_signature() -> None:
    calls = [ToolCall("pay", {}, "c", b"s", 1, (), written) for written in (b"1", b"2", None)]
    question = Question.about(calls[0], Denial("approve.pending", "wait"), 0)
    assert [question.binds(call) for call in calls] == [True, False, True]
