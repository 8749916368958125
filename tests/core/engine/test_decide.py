"""
Whether a call may run.
"""

from dataclasses import replace
from typing import Any

from guardrails import (
    Budget,
    Denial,
    Duplicates,
    Guard,
    MemorySink,
    Nudge,
    Policy,
    Rate,
    SessionState,
    Streak,
    Tool,
    ToolCall,
    ToolFilter,
    Validation,
    guard,
)
from guardrails.core.chain import Chain
from guardrails.core.engine import Engine
from guardrails.core.state import digest_of, suspend
from tests.replaying import replay
from tests.tables import table


def ok(*_: Any) -> str:
    return "ok"


def make(clock: Any, *guards: Any, **settings: Any) -> Any:
    return Policy(guards, **settings).session("s", clock=clock)


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


# Asked twice


def test_a_host_that_asks_twice_gets_one_decision_and_one_charge(clock: Any) -> None:
    session = make(clock, Budget(max_calls=9), Says(what="nudges"))
    first, again = (session.decide("t", {"n": 1}, id="call_1") for _ in range(2))
    assert (first.repeated, again.repeated) == (False, True)
    assert (first.n, first.seq, first.nudges) == (again.n, again.seq, again.nudges)
    assert session.ledger.progress["calls_used"] == 1


def test_an_admission_is_run_once_and_a_second_claim_is_in_flight(clock: Any) -> None:
    session = make(clock, Budget(max_calls=9))
    decision = session.decide("t", {"n": 1}, id="call_1")
    session.decide("t", {"n": 1}, id="call_1")
    ran = []

    def execute(tool: str, arguments: Any) -> str:
        ran.append(session.call("t", {"n": 1}, ok, id="call_1"))
        return "done"

    assert session.call("t", {"n": 1}, execute, id="call_1").value == "done"
    assert [envelope.code for envelope in ran] == ["call.in_flight"]
    assert ran[0].status == "duplicate_call_blocked"
    assert session.ledger.progress["calls_used"] == 1
    assert session.complete(decision, "late").value == "late"


def test_one_id_with_other_arguments_is_another_call(clock: Any) -> None:
    session = make(clock, Budget(max_calls=9))
    assert not session.decide("t", {"n": 1}, id="call_0").repeated
    assert not session.decide("t", {"n": 2}, id="call_0").repeated
    assert session.ledger.progress["calls_used"] == 2


def test_a_call_that_cannot_be_signed_is_never_let_through_by_another_tools_admission(clock: Any) -> None:
    endless: list[Any] = []
    endless.append(endless)
    session = make(clock, ToolFilter(deny=("rm",)), Budget(max_calls=9))
    assert session.decide("ls", {"a": endless}, id="call_0").allowed
    assert not session.decide("rm", {"a": endless}, id="call_0").allowed
    assert not session.decide("ls", {"a": endless}, id="call_0").repeated


def test_a_call_that_cannot_be_signed_is_never_the_same_call(clock: Any) -> None:
    session = make(clock, Budget(max_calls=9))
    asked = [session.decide("t", {"o": object(), **more}, id="call_0") for more in ({}, {"danger": True})]
    assert [(decision.seq, decision.repeated) for decision in asked] == [(1, False), (2, False)]
    ran = session.call("t", {"o": object(), "danger": True}, lambda *_: "ran", id="call_0")
    assert (ran.value, session.ledger.progress["calls_used"]) == ("ran", 3)
    # Each is settled as what it is.
    assert [session.complete(decision, "late").ok for decision in reversed(asked)] == [True, True]
    assert session.ledger.read(lambda state, _: ([entry.status for entry in state.window], state.pending)) == (
        ["ok"] * 3,
        {},
    )


def test_an_admission_expires_at_its_timeout_and_is_then_a_new_call(clock: Any) -> None:
    session = make(clock, Budget(max_calls=9), tools=[Tool(name="t", timeout=5), Tool(name="slow")])
    for name, seconds in (("t", 5), ("slow", 600)):
        session.decide(name, {}, id="call_1")
        clock.advance(seconds - 1)
        assert session.decide(name, {}, id="call_1").repeated
        clock.advance(1.01)
        again = session.decide(name, {}, id="call_1")
        assert (again.repeated, len(again.expired)) == (False, 1)


def test_the_time_of_an_approved_call_runs_from_when_it_is_run(clock: Any) -> None:
    """
    A person may take minutes to approve what then takes seconds.
    """
    sink = MemorySink()
    policy = Policy([Budget(max_calls=9)], tools=[Tool(name="t", timeout=60)])
    session = policy.session("s", records=sink, clock=clock)
    session.decide("t", {}, id="call_1")
    clock.advance(50)

    def execute(*_: Any) -> str:
        clock.advance(40)
        return "done" if session.decide("other", {}).allowed else "?"

    assert session.call("t", {}, execute, id="call_1").ok
    settled = next(record for record in sink.records if record["event"] == "settle")
    assert (settled["late"], settled["duration_ms"]) == (False, 40_000)
    assert session.ledger.progress["calls_used"] == 2
    again = SessionState()
    assert all(replayed.same for replayed in replay(session.ledger.chain, sink.records, again))
    assert again == session.ledger.read(lambda state, _: state)


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


@table("what", ["raises", "nonsense", "text", "false"])
def test_a_guard_that_fails_denies_unless_the_policy_says_otherwise(what: str, clock: Any) -> None:
    session = make(clock, Says(what=what), Budget(max_calls=5))
    envelope = session.call("t", {}, ok)
    assert (envelope.status, envelope.code) == ("denied", "call.error")
    assert session.ledger.progress["calls_used"] == 0
    assert make(clock, Says(what=what), on_error="allow").call("t", {}, ok).ok
    assert make(clock, Says(what=what, mode="observe")).call("t", {}, ok).ok


def test_a_guard_whose_counter_fails_charges_nothing(clock: Any) -> None:
    @guard
    class Counts(Guard):
        def admit(self, call: Any, state: Any, mine: Any, facts: Any) -> Any:
            raise RuntimeError("broken")

    guards = [Rate(max_calls_per_second=1), Counts(), Budget(max_calls=5)]
    session = make(clock, *guards)
    assert [session.call("t", {}, ok).code for _ in range(3)] == ["call.error"] * 3
    assert session.ledger.progress["calls_used"] == 0
    assert make(clock, *guards, on_error="allow").call("t", {}, ok).ok


def test_all_guards_look_and_the_record_says_each_that_objected(clock: Any) -> None:
    sink = MemorySink()
    policy = Policy([ToolFilter(deny=("t",)), Says(what="denies"), Validation(), Budget(max_calls=0)])
    envelope = policy.session("s", records=sink, clock=clock).call("t", "{broken", ok)
    assert envelope.code == "budget.max_calls"
    [record] = sink.records
    codes = [code for code, *_ in record["denials"]]
    assert codes == ["budget.max_calls", "tool_filter.deny", "validation.arguments", "says.no"]


def test_a_nudge_lets_the_call_run_and_comes_with_its_result(clock: Any) -> None:
    for form in ("nested", "merged"):
        envelope = make(clock, Says(what="nudges"), envelope=form).call("t", {}, lambda *_: {"a": 1})
        assert (envelope.ok, envelope.next_action_hint) == (True, "Narrow it.")
        assert "Narrow it." in envelope.to_json()


def test_a_denied_call_neither_ages_the_window_nor_extends_or_breaks_a_streak(clock: Any) -> None:
    session = make(clock, ToolFilter(deny=("no",)), Duplicates(window=1), Streak(max_same=2))
    session.call("t", {"n": 1}, ok)
    for number in range(30):
        assert session.call("no", {"n": number}, ok).code == "tool_filter.deny"
        assert session.call("t", {"n": 1}, ok).code == "duplicates.window"
    assert session.call("t", {"n": 2}, ok).ok
    assert session.call("t", {"n": 3}, ok).code == "streak.max_same"


# Words and forms


def test_a_policys_own_words_hold_for_every_refusal_of_a_cause(clock: Any) -> None:
    messages = {"budget.max_calls": {"message": "Stop at $limit.", "hint": "Say goodbye."}}
    session = make(clock, Budget(max_calls=1), messages=messages)
    last, *refused = (session.call("t", {"n": n}, ok) for n in range(3))
    assert last.limit_message == "Stop at 1."
    assert [(e.limit_message, e.next_action_hint) for e in refused] == [("Stop at 1.", "Say goodbye.")] * 2


def test_the_hint_of_a_nudge_can_be_worded_too(clock: Any) -> None:
    session = make(clock, Says(what="nudges"), messages={"says.hint": {"hint": "Be narrow."}})
    assert session.call("t", {}, ok).next_action_hint == "Be narrow."


def test_b1_without_a_number_of_calls_a_refusal_in_the_last_turn_says_the_limit_too(clock: Any) -> None:
    session = make(clock, Budget(max_turns=1), Duplicates())
    session.begin_turn()
    envelopes = [session.call("t", {}, ok) for _ in range(2)]
    assert [envelope.status for envelope in envelopes] == ["success", "duplicate_call_blocked"]
    assert {envelope.limit_message for envelope in envelopes} == {"Tool call limit reached (1). Stopping tool loop."}


# Guards that fail where no single call is judged


@table("where", ["spent", "event"])
@table(("on_error", "mode"), [("deny", "enforce"), ("allow", "enforce"), ("deny", "observe")])
def test_a_guard_that_fails_at_ending_a_session_ends_it_unless_the_policy_says_otherwise(
    where: str, on_error: Any, mode: Any, clock: Any
) -> None:
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
    assert [session.call("t", {"n": n}, ok).ok for n in range(2)] == ([False] * 2 if ends else [True] * 2)
    assert session.ledger.progress["calls_used"] == (0 if ends else 2)


def test_a_nudge_of_a_guard_that_only_observes_is_recorded_and_not_said(clock: Any) -> None:
    sink = MemorySink()
    session = Policy([Says(what="nudges", mode="observe")]).session("s", clock=clock, records=sink)
    plain = Policy().session("s", clock=clock)
    assert session.call("t", {}, ok).to_json() == plain.call("t", {}, ok).to_json()
    asked = sink.records[0]
    assert (asked["decision"], asked["nudges"], asked["observed"]) == ("allow", [], ["says.hint"])
    assert [again.same for again in replay(session.ledger.policy.chain, sink.records)] == [True]


@table(
    "repeats, twin",
    [("allow", None), ("ask", "call.in_flight"), ("evidence", "call.in_flight"), (None, "call.in_flight")],
)
def test_two_equal_calls_run_at_once_where_repeats_are_allowed(repeats: Any, twin: str | None, clock: Any) -> None:
    session = Policy([Duplicates()], tools=[Tool(name="press_key", repeats=repeats)]).session("s", clock=clock)
    codes = [session.decide("press_key", {"key": "Tab"}, id=each, claim=True).code for each in "ab"]
    assert codes == [None, twin]


def test_an_approval_of_other_arguments_does_not_hide_the_one_that_binds() -> None:
    state = SessionState()
    engine, plan = Engine(Chain([])), Chain([]).plan("pay")
    asked = [ToolCall("pay", {"usd": usd}, f"c{usd}", b"7", 7, canonical=b"%d" % usd) for usd in (1, 2)]
    for call in asked:
        made = engine.decide(call, plan, 0, False, None, [state])
        assert made.allowed
        suspend(state.pending[made.seq or 0], 0, digest_of(call))
    again = replace(asked[1], id="later")
    assert engine.decide(again, plan, 0, True, None, [state]).n == 2
