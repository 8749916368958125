"""
From an outcome to its envelope.
"""

import json

from typing import Any

from guardrails import Budget, Duplicates, Envelope, MemoryStore, Policy, Retryable, Streak, Summary, Tool, Truncate
from guardrails.core.guards.base import Guard, guard
from guardrails.core.values.types import ERROR_TYPES, Success
from tests.core.guards.calls import gives, make
from tests.tables import table


def read(envelope: Envelope) -> dict[str, Any]:
    text: dict[str, Any] = json.loads(envelope.to_json())
    return text


def test_a_tools_own_envelope_keeps_what_it_says(clock: Any) -> None:
    told = {"total_matches": 90, "is_complete": False, "next_action_hint": "Ask for page 2."}
    own = Envelope.success([1, 2], **told)
    session = make(clock, Budget(max_calls=9), Summary(), Retryable(), Truncate())
    progress = {"calls_used": 1, "calls_left": 8}
    ours = {"status": "success", "query_summary": {"q": "x"}, "results": [1, 2], "progress": progress}
    assert read(session.call("t", {"q": "x"}, gives(own))) == ours | told
    assert own.query_summary is None


def test_a_tools_own_error_is_an_error_of_the_session_too(clock: Any) -> None:
    session = make(clock, Retryable(max_retries=5), Duplicates())
    envelope = session.call("t", {}, gives(Envelope.error("rate_limit", "quota", retry_after_ms=700)))
    assert (envelope.status, envelope.retryable, envelope.retry_after_ms) == ("error", True, 700)
    clock.advance(0.699)
    assert session.call("t", {}, gives(1)).code == "retryable.wait"
    clock.advance(0.002)
    assert session.call("t", {}, gives(1)).ok


@table("claims", [
    {"error_type": "quota"}, {"error_type": ["timeout"]}, {"retry_after_ms": "5"}, {"retry_after_ms": -1},
    {"retry_after_ms": 1.5, "max_retries_remaining": True}, {"max_retries_remaining": 10**40},
])  # fmt: skip
@table("guards", [[], [Retryable()]])
def test_claims_of_a_tool_in_no_known_form_break_nothing(claims: Any, guards: Any, clock: Any) -> None:
    policy, store = Policy(guards), MemoryStore(live=1)
    session = policy.session("s", store=store, clock=clock)
    own = Envelope.error("timeout", "slow", retryable=True)
    for name, claim in claims.items():
        setattr(own, name, claim)
    shown = read(session.call("t", {}, gives(own)))
    assert (shown["status"], shown["error_message"]) == ("error", "slow")
    assert shown["error_type"] in ERROR_TYPES
    assert policy.session("other", store=store, clock=clock).call("t", {}, gives(1)).ok
    assert session.ledger.progress["calls_used"] == 1


# Late and repeated outcomes


def test_an_outcome_after_the_timeout_changes_nothing_and_the_estimate_stays(clock: Any) -> None:
    tools = [Tool(name="t", cost_usd=0.25, timeout=5)]
    session = make(clock, Budget(max_cost_usd=1), Streak(max_failures=1), tools=tools)
    slow = session.decide("t", {"n": 1}, id="call_1")
    clock.advance(5.001)
    assert session.decide("t", {"n": 2}, id="call_2").allowed
    assert session.complete(slow, TimeoutError("slow")).status == "error"
    late = session.complete(slow, Success("late", cost_usd=0.01))
    assert (late.value, session.ledger.progress["cost_left_usd"]) == ("late", 0.5)
    assert session.call("t", {"n": 3}, gives(1)).ok


def test_a_second_outcome_changes_nothing_and_an_id_that_is_used_again_settles_its_own_call(clock: Any) -> None:
    """
    Some servers name the calls of every response `call_0`.
    """
    session = make(clock, Budget(max_cost_usd=9))
    first = session.decide("t", {"n": 1}, id="call_0")
    session.complete(first, Success(1, cost_usd=1))
    again = session.decide("t", {"n": 1}, id="call_0")
    assert session.complete(first, Success("b", cost_usd=5)).value == "b"
    session.complete(again, Success(1, cost_usd=2))
    assert (session.ledger.cost_usd, session.ledger.progress["calls_used"]) == (3.0, 2)


# What is given back


def test_a6_what_failed_since_is_given_back_as_the_failure_it_was(clock: Any) -> None:
    session = make(clock, Duplicates(rule="evidence", window=20))
    for value in ("text", FileNotFoundError("no such file"), FileNotFoundError("no such file")):
        session.call("read", {"path": "a"}, gives(value))
    blocked = read(session.call("read", {"path": "a"}, gives(1)))
    assert blocked["code"] == "duplicates.evidence"
    assert blocked["previous_result"] == {"error_type": "not_found", "error_message": "no such file"}


def test_a6_a_running_call_gives_no_older_result_and_a_forgotten_session_none_of_its_former_life(clock: Any) -> None:
    session = make(clock, Duplicates(rule="evidence"))
    session.call("t", {}, gives("old"))
    session.decide("t", {}, id="call_2")
    blocked = read(session.call("t", {}, gives(1)))
    assert (blocked["code"], "previous_result" in blocked) == ("call.in_flight", False)
    session.ledger.forget()
    assert "old" not in session.digest()
    session.call("t", {}, gives("new"))
    assert "old" not in session.digest()


# Guards


@guard
class Bad(Guard):
    how: str = ""

    def shape(self, envelope: Envelope, call: Any, outcome: Any, state: Any, mine: Any, facts: Any) -> Any:
        if self.how == "raises":
            raise RuntimeError("broken")
        return {"nonsense": None, "text": "ok", "dict": {}}[self.how]

    def settle(self, call: Any, outcome: Any, state: Any, mine: Any, facts: Any) -> dict[str, int]:
        raise RuntimeError("broken")


@table("how", ["raises", "nonsense", "text", "dict"])
@table("on_error", ["deny", "allow"])
def test_a_guard_that_fails_after_the_call_never_loses_the_result(how: str, on_error: Any, clock: Any) -> None:
    session = make(clock, Bad(how=how), Summary(), Budget(max_calls=9), on_error=on_error)
    for number in range(2):
        shown = read(session.call("t", {"n": number}, gives([1, 2])))
        assert (shown["status"], shown["results"], shown["total_matches"]) == ("success", [1, 2], 2)
        assert shown["progress"] == {"calls_used": number + 1, "calls_left": 8 - number}


def test_a_failure_that_may_pass_and_nobody_judges_is_repeated_a_few_times_and_then_each_minute(clock: Any) -> None:
    session, codes = make(clock, Duplicates()), []
    for _ in range(7):
        codes.append(session.call("t", {"q": 1}, gives(ConnectionError("reset"))).code)
        clock.advance(61 if codes[-1] else 0)
    assert codes == [*[None] * 4, "duplicates.window", None, "duplicates.window"]
