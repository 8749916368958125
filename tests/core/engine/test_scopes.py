"""
Limits that sessions share. (More in `tests/session/scenes.yaml` and `test_stories.py`.)
"""

from typing import Any

import pytest

from guardrails import Budget, MemorySink, Policy
from guardrails.core.guards.base import Edge, Guard, guard
from guardrails.core.values.types import Denial, ToolCall
from guardrails.errors import SessionError
from tests.core.guards.calls import ok
from tests.tables import table


def shared(*guards: Guard, own: tuple[Guard, ...] = (), **options: Any) -> Policy:
    return Policy(own, scopes={"user": guards}, **options)


def test_a_scope_that_only_observes_denies_nothing_and_says_what_it_would_have(clock: Any) -> None:
    session = shared(Budget(max_calls=1, mode="observe")).session("s", scopes={"user": "u"}, clock=clock)
    assert session.decide("t", {"n": 1}).observed == ()
    watched = session.decide("t", {"n": 2})
    assert (watched.allowed, [said.code for said in watched.observed]) == (True, ["user.budget.max_calls"])
    assert not session.exhausted


TWO = {"user": "u1", "tenant": "t"}


@table(("given", "said"), [
    *((given, r'the policy are global, tenant, user: write .*scopes={"tenant": \.\.\., "user": \.\.\.}') for given in (
        None, {"user": "u1"}, {**TWO, "usr": "u"},
    )),
    ({**TWO, "user": ""}, "the id of the scope `user` must not be empty"),
    ({**TWO, "user": "../x"}, "the id of the scope `user` must not hold"),
    ({**TWO, "user": 7}, "the id of the scope `user` is text, not int"),
    ({**TWO, "user": "x" * 300}, "the id of the scope `user` must not be empty; it has at most 256 bytes, not 300"),
])  # fmt: skip
def test_a_session_must_say_whose_it_is_but_for_the_scope_of_everyone(given: Any, said: str, clock: Any) -> None:
    budget = [Budget(max_calls=1)]
    with pytest.raises(SessionError, match=said):
        Policy(scopes={"user": budget, "tenant": budget, "global": budget}).session("s", scopes=given)
    everyone = Policy(scopes={"global": budget})
    codes = [everyone.session(name, clock=clock).call("t", {}, ok).code for name in ("a", "b")]
    assert codes == [None, "global.budget.max_calls"]
    message = "Tool call limit reached (1). Stopping tool loop. The limit is shared by all sessions."
    assert everyone.session("c", clock=clock).ledger.limit_message == message
    with pytest.raises(SessionError):
        everyone.session("/user/u1")


# Guards of one's own


@guard
class Own(Guard):
    """
    Calls a tool by its name: `bad` and `odd` make it fail where it looks or shapes. It is used up by three calls, until it is extended.
    """

    scope_settings = ("mode",)
    events = ("extend",)

    def check(self, call: ToolCall, state: Any, mine: Any, facts: Any) -> Denial | None:
        if call.tool == "bad":
            raise ZeroDivisionError
        return Denial(code="own.limit", message="Too often.") if mine == 3 else None

    def admit(self, call: ToolCall, state: Any, mine: Any, facts: Any) -> int:
        return (mine or 0) + 1

    def event(self, *_: Any) -> None:
        return None

    def spent(self, state: Any, mine: Any, facts: Any) -> Denial | None:
        return Denial(code="own.used_up", message="Used up.", ends_session=True) if mine == 3 else None

    def shape(self, envelope: Any, call: ToolCall, *_: Any) -> Any:
        if call.tool == "odd":
            raise ZeroDivisionError
        envelope.is_complete = False
        return envelope

    def edges(self, *_: Any) -> list[Edge]:
        return [Edge((), 3)]


def test_a_guard_of_ones_own_can_be_a_scopes_looks_shapes_and_fails_as_any(clock: Any) -> None:
    records = MemorySink()
    policy = shared(Own(), own=(Budget(max_calls=9),), messages={"call.error": {"message": "$guard broke."}})
    one, two = (policy.session(name, scopes={"user": "u"}, clock=clock, records=records) for name in "ab")
    failed = one.call("bad", {}, ok)
    assert (failed.code, failed.message) == ("call.error", "user.own broke.")
    assert one.call("t", {}, ok).is_complete is False
    # What it cannot shape is settled all the same.
    odd = two.call("odd", {}, lambda *_: 1 / 0)
    assert (odd.status, odd.progress) == ("error", {"calls_used": 1, "calls_left": 8})
    [(name, said)] = records.records[-1]["guard_errors"]
    assert (name, said.startswith("ZeroDivisionError")) == ("user.own", True)
    assert [two.call("t", {"n": n}, ok).code for n in range(2)] == [None, "user.own.limit"]
    assert one.exhausted == "user.own.used_up"
    one.extend(scope="user")
    assert two.call("t", {"n": 9}, ok).ok
