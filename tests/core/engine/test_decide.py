"""
Whether a call may run, and its envelope.
"""

from typing import Any

from guardrails import MemoryStore, Policy, Rate, Retryable, Streak, Summary, Tool, ToolFilter, Truncate, Validation
from guardrails.core.chain import PLANS, Chain, Rule
from guardrails.core.envelope import Envelope
from guardrails.core.guards.approve import Approve
from guardrails.core.guards.base import Denial, Guard, guard
from guardrails.core.guards.budget import Budget
from guardrails.core.guards.duplicates import Duplicates
from guardrails.core.values.types import ERROR_TYPES, Nudge, Success
from guardrails.sinks.base import MemorySink
from tests.core.guards.calls import gives, make, ok
from tests.session.conftest import read, replays
from tests.tables import table


def _failing(hook: str) -> Any:
    def run(says: Any, *_: Any) -> None:
        if says.what == hook:
            raise RuntimeError("broken")

    return run


@guard
class Says(Guard):
    """
    Whatever a test wants a guard to say, at one of its hooks.
    """

    what: str = "nothing"
    events = ("request", "charge")

    def check(self, *_: Any) -> Any:
        match self.what:
            case "raises":
                raise RuntimeError("broken")
            case "denies":
                return Denial(code="says.no", message="No.", hint="Ask again.", retryable=True, strike=False)
            case "nudges":
                return Nudge(code="says.hint", hint="Narrow it.")
        return {"nonsense": {"deny": True}, "text": "deny", "false": False}.get(self.what)

    admit, spent, event, settle = map(_failing, ("admit", "spent", "event", "settle"))

    def shape(self, envelope: Envelope, *_: Any) -> Any:
        _failing("shape")(self)
        return {"shapes none": None, "shapes text": "ok", "shapes dict": {}}.get(self.what, envelope)


def used(session: Any) -> int:
    calls: int = session.ledger.progress["calls_used"]
    return calls


# Asked twice


def test_a_host_that_asks_twice_gets_one_decision_and_one_charge(clock: Any) -> None:
    session, ran = make(clock, Budget(max_calls=9), Says(what="nudges")), []
    first, again = (session.decide("t", {"n": 1}, id="call_1") for _ in range(2))
    assert (first.repeated, again.repeated) == (False, True)
    assert (first.n, first.seq, first.nudges) == (again.n, again.seq, again.nudges)
    # One id with other arguments is another call.
    assert not session.decide("t", {"n": 2}, id="call_1").repeated

    def execute(tool: str, arguments: Any) -> str:
        ran.append(session.call("t", {"n": 1}, ok, id="call_1"))
        return "done"

    assert session.call("t", {"n": 1}, execute, id="call_1").value == "done"
    assert [(one.code, one.status) for one in ran] == [("call.in_flight", "duplicate_call_blocked")]
    assert used(session) == 2
    assert session.complete(first, "late").value == "late"


def test_a_call_that_cannot_be_signed_is_never_the_same_call_nor_let_through_by_another(clock: Any) -> None:
    session = make(clock, ToolFilter(deny=("rm",)), Budget(max_calls=9))
    asked = [session.decide("t", {"o": object(), **more}, id="call_0") for more in ({}, {"danger": True})]
    assert [(decision.seq, decision.repeated) for decision in asked] == [(1, False), (2, False)]
    assert not session.decide("rm", {"o": object()}, id="call_0").allowed
    ran = session.call("t", {"o": object(), "danger": True}, gives("ran"), id="call_0")
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


@table(("repeats", "twin"), [("allow", None), *((one, "call.in_flight") for one in ("ask", "evidence", None))])
def test_two_equal_calls_run_at_once_where_repeats_are_allowed(repeats: Any, twin: str | None, clock: Any) -> None:
    session = make(clock, Duplicates(), tools=[Tool(name="press_key", repeats=repeats)])
    codes = [session.decide("press_key", {"key": "Tab"}, id=each, claim=True).code for each in "ab"]
    assert codes == [None, twin]


# What guards say


@table("how", ["raises", "nonsense", "text", "false", "admit"])
def test_a_guard_that_fails_denies_unless_the_policy_says_otherwise(how: str, clock: Any) -> None:
    def session(mode: Any = "enforce", **options: Any) -> Any:
        return make(clock, Rate(max_calls_per_second=1), Says(mode=mode, what=how), Budget(max_calls=5), **options)

    one = session()
    refused = [one.call("t", {}, ok) for _ in range(3)]
    assert [(each.status, each.code) for each in refused] == [("denied", "call.error")] * 3
    assert used(one) == 0
    assert all(each.call("t", {}, ok).ok for each in (session(on_error="allow"), session(mode="observe")))


@table("where", ["spent", "event"])
@table(("on_error", "mode"), [("deny", "enforce"), ("allow", "enforce"), ("deny", "observe")])
def test_a_guard_that_fails_at_ending_a_session_ends_it(where: str, on_error: Any, mode: Any, clock: Any) -> None:
    session = make(clock, Says(what=where, mode=mode), Budget(max_calls=9), on_error=on_error)
    under_way = session.decide("t", {})
    session.request()
    session.charge(model="m", usage={"prompt_tokens": 1})
    # A call that comes back lifts limits, and no failure.
    session.ledger.release(under_way)
    ends = (on_error, mode) == ("deny", "enforce")
    assert session.exhausted == ("call.error" if ends else None)
    assert [session.call("t", {"n": n}, ok).ok for n in range(2)] == [not ends] * 2
    assert used(session) == (0 if ends else 2)


@table("how", ["shape", "settle", "shapes none", "shapes text", "shapes dict"])
@table("on_error", ["deny", "allow"])
def test_a_guard_that_fails_after_the_call_never_loses_the_result(how: str, on_error: Any, clock: Any) -> None:
    # A guard that asks for each call makes no other failure worse.
    policy = Policy([Says(what=how), Summary(), Budget(max_calls=9), Approve(tools=("t",))], on_error=on_error)
    session = policy.session("s", clock=clock, approver=lambda _: True)
    # What it counts is not known any more, and the session is over.
    for number in range(1 if (how, on_error) == ("settle", "deny") else 2):
        shown = read(session.call("t", {"n": number}, gives([1, 2])))
        assert (shown["status"], shown["results"], shown["total_matches"]) == ("success", [1, 2], 2)
        assert shown["progress"] == {"calls_used": number + 1, "calls_left": 8 - number}
    assert session.exhausted == (None if number else "call.error")


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
        plain = make(clock, Says(what="nudges"), envelope=form).call("t", {}, gives({"a": 1}))
        assert (plain.ok, plain.next_action_hint, "Narrow it." in plain.to_json()) == (True, "Narrow it.", True)
    session = make(clock, Says(what="nudges"), Budget(max_calls=2), messages=messages)
    first, last, *refused = (session.call("t", {"n": n}, ok) for n in range(4))
    assert (first.next_action_hint, last.limit_message) == ("Be narrow.", "Stop at 2.")
    assert [(one.limit_message, one.next_action_hint) for one in refused] == [("Stop at 2.", "Bye.")] * 2
    # If it only observes it is recorded, and not said.
    sink, watching = MemorySink(), Policy([Says(what="nudges", mode="observe")])
    session = watching.session("s", clock=clock, records=sink)
    assert session.call("t", {}, ok).to_json() == make(clock).call("t", {}, ok).to_json()
    asked = sink.records[0]
    assert (asked["decision"], asked["nudges"], asked["observed"]) == ("allow", [], ["says.hint"])
    assert replays(watching, sink) == 1


# From an outcome to its envelope


def test_a_tools_own_envelope_keeps_what_it_says_and_its_error_is_one_of_the_session(clock: Any) -> None:
    told = {"total_matches": 90, "is_complete": False, "next_action_hint": "Ask for page 2."}
    own = Envelope.success([1, 2], **told)
    session = make(clock, Budget(max_calls=9), Summary(), Retryable(max_retries=5), Truncate(), Duplicates())
    progress = {"calls_used": 1, "calls_left": 8}
    ours = {"status": "success", "query_summary": {"q": "x"}, "results": [1, 2], "progress": progress}
    assert read(session.call("t", {"q": "x"}, gives(own))) == ours | told
    assert own.query_summary is None
    envelope = session.call("t", {}, gives(Envelope.error("rate_limit", "quota", retry_after_ms=700)))
    said = (envelope.status, envelope.error_type, envelope.retryable, envelope.retry_after_ms)
    assert said == ("error", "rate_limit", True, 700)
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
    assert used(session) == 1


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
    assert (session.ledger.cost_usd, used(session)) == (3.0, 2)


def test_a6_what_is_given_back_is_the_latest_end_of_this_life_and_nothing_while_it_runs(clock: Any) -> None:
    session = make(clock, Duplicates(rule="evidence", window=20))
    for value in ("old", FileNotFoundError("no such file"), FileNotFoundError("no such file")):
        session.call("read", {"path": "a"}, gives(value))
    blocked = read(session.call("read", {"path": "a"}, gives(1)))
    assert blocked["code"] == "duplicates.evidence"
    assert blocked["previous_result"] == {"error_type": "not_found", "error_message": "no such file"}
    session.call("t", {}, gives("old"))
    session.decide("t", {}, id="call_2")
    running = read(session.call("t", {}, gives(1)))
    assert (running["code"], "previous_result" in running) == ("call.in_flight", False)
    session.ledger.forget()
    assert "old" not in session.digest()
    session.call("t", {}, gives("new"))
    assert "old" not in session.digest()


def test_a_failure_that_may_pass_and_nobody_judges_is_repeated_a_few_times_and_then_each_minute(clock: Any) -> None:
    session, codes = make(clock, Duplicates()), []
    for _ in range(7):
        codes.append(session.call("t", {"q": 1}, gives(ConnectionError("reset"))).code)
        clock.advance(61 if codes[-1] else 0)
    assert codes == [*[None] * 4, "duplicates.window", None, "duplicates.window"]


# What applies to each tool


def rule(match: str, guards: dict[str, Any] | None = None, /, **more: Any) -> Rule:
    return Rule(**{"match": (match,), "declared": {}, "guards": guards or {}, **more})


def test_rules_add_guards_turn_them_on_or_off_and_let_calls_through_where_one_fails(clock: Any) -> None:
    rules = [
        rule("pay", {"duplicates": {"window": 3}, "streak": {"max_same": 2}, "truncate": {"max_bytes": 300}}),
        rule("a", {"duplicates": {"mode": "off"}}),
        rule("b", {"streak": {"mode": "enforce", "max_same": 1}, "duplicates": {"mode": "off"}}),
        rule("read", on_error="allow"),
        rule("poll_*", mode="observe"),
    ]
    added = make(clock, rules=rules)
    assert added.call("pay", {}, gives("x" * 1_000)).is_complete is False
    assert added.call("pay", {}, ok).code == "duplicates.window"
    assert [added.call("pay", {"n": n}, ok).code for n in range(2)] == [None, "streak.max_same"]
    session = make(clock, Duplicates(), Streak(max_same=1, mode="off"), rules=rules)
    called = [(tool, session.call(tool, {}, ok).ok) for tool in ("a", "a", "b", "b", "c", "c", "poll_x", "poll_x")]
    assert "".join(f"{tool[0]}{int(ran)}" for tool, ran in called) == "a1a1b1b0c1c0p1p1"
    broken = make(clock, Says(what="raises"), rules=rules)
    assert [broken.call(tool, {"n": 1}, ok).code for tool in ("read", "write")] == [None, "call.error"]


def test_made_up_names_do_not_fill_the_memory() -> None:
    chain = Chain([])
    for number in range(3 * PLANS):
        chain.plan(f"made_up_{number}")
    assert len(chain.plans) <= PLANS
