"""
The shell around a call: what surrounds it may fail, its result is not lost.
"""

import logging

from typing import Any

import pytest

from guardrails import Budget, Guard, Policy, SessionError, Tool, ToolFilter, Validation, guard
from tests.tables import table


def test_a_decision_is_completed_in_its_own_session_only(clock: Any) -> None:
    policy = Policy([Budget(max_calls=5)])
    one, two = (policy.session(name, clock=clock) for name in ("one", "two"))
    asked = [session.decide("t", {"n": 1}, id="1") for session in (one, two)]
    with pytest.raises(SessionError, match="the decision is of the session `two`, not of `one`"):
        one.complete(asked[1], "foreign")
    assert [one.complete(asked[0], "a").value, two.complete(asked[1], "b").value] == ["a", "b"]


@guard
class Odd(Guard):
    """
    Remembers what is no plain data.
    """

    counts: Any = None

    def admit(self, *_: Any) -> Any:
        return {"fine": 1, **self.counts}


@table("counts", [{"odd": object()}, {"odd": {1, 2}}, {"odd": b"1"}, {7: 1}])
def test_what_cannot_be_packed_is_the_error_of_the_guard_that_would_remember_it(counts: Any, clock: Any) -> None:
    policy = Policy([Odd(counts=counts), Budget(max_calls=5)])
    session = policy.session("s", clock=clock)
    refused = session.call("t", {}, lambda *_: "ran")
    assert refused.code == "odd.error"
    assert session.ledger.read(lambda state, _: (state.own.get("odd"), state.calls)) == (None, 0)


def test_d11_a_call_that_is_refused_is_logged_as_a_failure(clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    tool = Tool(name="look", parameters={"type": "object", "properties": {"n": {"type": "integer"}}})
    chain = [ToolFilter(deny=("rm",)), Validation(), Budget(max_calls=1)]
    session = Policy(chain, tools=[tool]).session("s", clock=clock)
    with caplog.at_level(logging.INFO, "guardrails"):
        for name, n in (("lok", 1), ("rm", 1), ("look", "one"), ("look", 1), ("look", 2)):
            session.call(name, {"n": n}, lambda *_: "ran")
    lines = [vars(line) for line in caplog.records if line.message == "tool execution failed"]
    assert [(line["tool"], line["error_type"], line["error"]) for line in lines] == [
        ("lok", "tool_missing", "There is no tool `lok`."),
        ("rm", "permission", "`rm` may not be used here."),
        ("look", "validation", "The arguments do not fit `look`. n: must be an integer, not a string"),
        ("look", "budget.max_calls", lines[-1]["error"]),
    ]
