"""
Whether a call may run.
"""

from typing import Any

from guardrails import Budget, Duplicates, MemorySink, Policy, Rate, Streak, Tool, ToolFilter, Validation
from guardrails.core.guards.base import Denial, Guard, guard
from guardrails.core.values.types import Nudge
from tests.core.guards.calls import make, ok
from tests.replaying import replay
from tests.tables import table


@guard
class Says(Guard):
    """
    Whatever a test wants a guard to say.
    """

    what: str = "nothing"

    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Any:
        match self.what:
            case "raises":
                raise RuntimeError("broken")
            case "denies":
                return Denial(code="says.no", message="No.", hint="Ask again.", retryable=True, strike=False)
            case "nudges":
                return Nudge(code="says.hint", hint="Narrow it.")
        return {"nothing": None, "nonsense": {"deny": True}, "text": "deny", "false": False}[self.what]


def used(session: Any) -> int:
    calls: int = session.ledger.progress["calls_used"]
    return calls


# Asked twice


def test_a_host_that_asks_twice_gets_one_decision_and_one_charge(clock: Any) -> None:
    session = make(clock, Budget(max_calls=9), Says(what="nudges"))
    first, again = (session.decide("t", {"n": 1}, id="call_1") for _ in range(2))
    assert (first.repeated, again.repeated) == (False, True)
    assert (first.n, first.seq, first.nudges) == (again.n, again.seq, again.nudges)
    # One id with other arguments is another call.
    assert not session.decide("t", {"n": 2}, id="call_1").repeated
    assert used(session) == 2


def test_an_admission_is_run_once_and_a_second_claim_is_in_flight(clock: Any) -> None:
    session, ran = make(clock, Budget(max_calls=9)), []
    decision = session.decide("t", {"n": 1}, id="call_1")

    def execute(tool: str, arguments: Any) -> str:
        ran.append(session.call("t", {"n": 1}, ok, id="call_1"))
        return "done"

    assert session.call("t", {"n": 1}, execute, id="call_1").value == "done"
    assert [(one.code, one.status) for one in ran] == [("call.in_flight", "duplicate_call_blocked")]
    assert used(session) == 1
    assert session.complete(decision, "late").value == "late"


def test_a_call_that_cannot_be_signed_is_never_the_same_call_nor_let_through_by_another(clock: Any) -> None:
    session = make(clock, ToolFilter(deny=("rm",)), Budget(max_calls=9))
    asked = [session.decide("t", {"o": object(), **more}, id="call_0") for more in ({}, {"danger": True})]
    assert [(decision.seq, decision.repeated) for decision in asked] == [(1, False), (2, False)]
    assert not session.decide("rm", {"o": object()}, id="call_0").allowed
    ran = session.call("t", {"o": object(), "danger": True}, lambda *_: "ran", id="call_0")
    assert (ran.value, used(session)) == ("ran", 3)
    # Each is settled as what it is.
    assert [session.complete(decision, "late").ok for decision in reversed(asked)] == [True, True]
    left = session.ledger.read(lambda state, _: ([entry.status for entry in state.window], state.pending))
    assert left == (["ok"] * 3, {})


def test_an_admission_expires_at_its_timeout_and_is_then_a_new_call(clock: Any) -> None:
    session = make(clock, Budget(max_calls=9), tools=[Tool(name="t", timeout=5), Tool(name="slow")])
    for name, seconds in (("t", 5), ("slow", 600)):
        session.decide(name, {}, id="call_1")
        clock.advance(seconds - 1)
        assert session.decide(name, {}, id="call_1").repeated
        clock.advance(1.01)
        again = session.decide(name, {}, id="call_1")
        assert (again.repeated, len(again.expired)) == (False, 1)


def test_a_call_that_times_out_has_failed_before_it_can_expire(clock: Any) -> None:
    session = make(clock, Streak(max_failures=1), tools=[Tool(name="t", timeout=5), Tool(name="other")])

    def execute(*_: Any) -> None:
        clock.advance(5.01)
        session.call("other", {}, ok)
        raise TimeoutError("no result within 5 s")

    # Without a timeout of the shell's own, which a fake clock does not move.
    session.call("t", {}, execute)
    assert [entry.status for entry in session.ledger.read(lambda state, _: state.window)] == ["error", "ok"]


# What guards say


@guard
class Counts(Guard):
    def admit(self, call: Any, state: Any, mine: Any, facts: Any) -> Any:
        raise RuntimeError("broken")


BROKEN = {**{what: {"what": what} for what in ("raises", "nonsense", "text", "false")}, "counts": {}}


@table("how", BROKEN)
def test_a_guard_that_fails_denies_unless_the_policy_says_otherwise(how: str, clock: Any) -> None:
    def session(mode: Any = "enforce", **options: Any) -> Any:
        broken = (Says if BROKEN[how] else Counts)(mode=mode, **BROKEN[how])
        return make(clock, Rate(max_calls_per_second=1), broken, Budget(max_calls=5), **options)

    one = session()
    refused = [one.call("t", {}, ok) for _ in range(3)]
    assert [(each.status, each.code) for each in refused] == [("denied", "call.error")] * 3
    assert used(one) == 0
    assert session(on_error="allow").call("t", {}, ok).ok
    assert session(mode="observe").call("t", {}, ok).ok


def test_all_guards_look_and_the_record_says_each_that_objected(clock: Any) -> None:
    sink = MemorySink()
    policy = Policy([ToolFilter(deny=("t",)), Says(what="denies"), Validation(), Budget(max_calls=0)])
    envelope = policy.session("s", records=sink, clock=clock).call("t", "{broken", ok)
    assert envelope.code == "budget.max_calls"
    codes = [code for code, *_ in sink.records[0]["denials"]]
    assert codes == ["budget.max_calls", "tool_filter.deny", "validation.arguments", "says.no"]


def test_a_nudge_lets_the_call_run_and_comes_with_its_result_in_the_policys_own_words(clock: Any) -> None:
    messages = {"says.hint": {"hint": "Be narrow."}, "budget.max_calls": {"message": "Stop at $limit.", "hint": "Bye."}}
    for form in ("nested", "merged"):
        plain = make(clock, Says(what="nudges"), envelope=form).call("t", {}, lambda *_: {"a": 1})
        assert (plain.ok, plain.next_action_hint, "Narrow it." in plain.to_json()) == (True, "Narrow it.", True)
    session = make(clock, Says(what="nudges"), Budget(max_calls=2), messages=messages)
    first, last, *refused = (session.call("t", {"n": n}, ok) for n in range(4))
    assert (first.next_action_hint, last.limit_message) == ("Be narrow.", "Stop at 2.")
    assert [(one.limit_message, one.next_action_hint) for one in refused] == [("Stop at 2.", "Bye.")] * 2


def test_a_nudge_of_a_guard_that_only_observes_is_recorded_and_not_said(clock: Any) -> None:
    sink = MemorySink()
    session = Policy([Says(what="nudges", mode="observe")]).session("s", clock=clock, records=sink)
    assert session.call("t", {}, ok).to_json() == make(clock).call("t", {}, ok).to_json()
    asked = sink.records[0]
    assert (asked["decision"], asked["nudges"], asked["observed"]) == ("allow", [], ["says.hint"])
    assert [again.same for again in replay(session.ledger.policy.chain, sink.records)] == [True]


def test_a_denied_call_neither_ages_the_window_nor_extends_or_breaks_a_streak(clock: Any) -> None:
    session = make(clock, ToolFilter(deny=("no",)), Duplicates(window=1), Streak(max_same=2))
    session.call("t", {"n": 1}, ok)
    for number in range(30):
        codes = [session.call(tool, {"n": n}, ok).code for tool, n in (("no", number), ("t", 1))]
        assert codes == ["tool_filter.deny", "duplicates.window"]
    assert [session.call("t", {"n": n}, ok).code for n in (2, 3)] == [None, "streak.max_same"]


@table("where", ["spent", "event"])
@table(("on_error", "mode"), [("deny", "enforce"), ("allow", "enforce"), ("deny", "observe")])
def test_a_guard_that_fails_at_ending_a_session_ends_it(where: str, on_error: Any, mode: Any, clock: Any) -> None:
    def fails(self: Any, *_: Any) -> Any:
        raise RuntimeError("broken")

    broken: Any = guard(
        type("Broken", (Guard,), {"__annotations__": {}, "events": ("request", "charge"), where: fails})
    )
    session = make(clock, broken(mode=mode), Budget(max_calls=9), on_error=on_error)
    under_way = session.decide("t", {})
    session.request()
    session.charge(model="m", usage={"prompt_tokens": 1})
    # A call that comes back lifts limits, and no failure.
    session.ledger.release(under_way)
    ends = (on_error, mode) == ("deny", "enforce")
    assert session.exhausted == ("call.error" if ends else None)
    assert [session.call("t", {"n": n}, ok).ok for n in range(2)] == [not ends] * 2
    assert used(session) == (0 if ends else 2)


@table(("repeats", "twin"), [("allow", None), *((one, "call.in_flight") for one in ("ask", "evidence", None))])
def test_two_equal_calls_run_at_once_where_repeats_are_allowed(repeats: Any, twin: str | None, clock: Any) -> None:
    session = make(clock, Duplicates(), tools=[Tool(name="press_key", repeats=repeats)])
    codes = [session.decide("press_key", {"key": "Tab"}, id=each, claim=True).code for each in "ab"]
    assert codes == [None, twin]
