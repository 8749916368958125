"""
The shell around a call: what surrounds it may fail, its result is not lost.
"""

import itertools

from typing import Any

import pytest

from guardrails import Budget, Guard, Policy, SessionError, guard
from tests.tables import table


def test_a_clock_that_fails_after_the_tool_ran_loses_no_result() -> None:
    times = itertools.chain([1_800_000_000.0], itertools.repeat(float("nan")))
    session = Policy([Budget(max_calls=5)]).session("s", clock=lambda: next(times))
    envelope = session.call("t", {}, lambda *_: "result")
    assert (envelope.value, envelope.progress) == ("result", {"calls_used": 1, "calls_left": 4})


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
    Counts what is no number.
    """

    counts: Any = None

    def charge(self, *_: Any) -> Any:
        return {"fine": 1, **self.counts}


@table("counts", [{"odd": "text"}, {"odd": 1.5}, {"odd": True}, {"odd": None}, {7: 1}])
def test_a_counter_that_is_no_int_is_its_guards_error(counts: Any, clock: Any) -> None:
    policy = Policy([Odd(counts=counts), Budget(max_calls=5)])
    session = policy.session("s", clock=clock)
    refused = session.call("t", {}, lambda *_: "ran")
    assert refused.code == "odd.error"
    assert session._read(lambda state, _: (state.meters, state.calls)) == ({}, 0)
