"""
Models that repeat refused calls.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Denials, Duplicates, Loops, Policy, Rate, Retryable, ToolFilter, Validation
from guardrails.core.guards.base import Event, Facts
from guardrails.core.guards.denials import REMEMBERED
from guardrails.core.packing import pack, unpack
from guardrails.core.state import SessionState, end_turn
from guardrails.sinks import MemorySink
from tests.replaying import replay
from tests.tables import table


CAP = "denials.max_turns_in_a_row"


def ok(*_: Any) -> str:
    return "ok"


def missing(*_: Any) -> str:
    raise FileNotFoundError("404: no such page")


def make(clock: Any, *guards: Any, **settings: Any) -> Any:
    return Policy([ToolFilter(deny=("no",)), *guards], **settings).session("s", clock=clock)


def turn(session: Any, *calls: Any) -> list[Any]:
    session.begin_turn(calls=len(calls))
    return [session.call(tool, arguments, ok) for tool, arguments in calls]


REFUSED: Any = ("no", {})


def refused(number: int) -> Any:
    return "no", {"n": number}


# Turns that are told


def test_a4_three_turns_that_only_repeat_a_refused_call_end_the_session(clock: Any) -> None:
    session = make(clock, Denials())
    seen = [(turn(session, REFUSED), session.exhausted is not None)[1] for _ in range(4)]
    assert seen == [False, False, False, True]
    assert session.exhausted == CAP
    assert turn(session, ("t", {}))[0].code == CAP


def test_ten_turns_of_nothing_but_refusals_end_a_session_whatever_they_ask_for(clock: Any) -> None:
    session = make(clock, Denials())
    seen = [(turn(session, refused(number)), session.exhausted is not None)[1] for number in range(10)]
    assert seen == [False] * 9 + [True]
    assert session.ledger.limit_message == "Every tool call of 10 turns in a row was refused. Stopping tool loop."


def test_calls_that_cannot_be_signed_are_no_repeats_and_ten_turns_of_them_end_a_session(clock: Any) -> None:
    session = make(clock, Denials())
    seen = [(turn(session, ("no", {"a": object()})), session.exhausted is not None)[1] for _ in range(10)]
    assert seen == [False] * 9 + [True]


def test_refusals_with_work_in_between_do_not_pile_up(clock: Any) -> None:
    session = make(clock, Denials(max_turns_in_a_row=1))
    for number in range(30):
        turn(session, REFUSED, ("t", {"n": number}))
        turn(session, ("t", {"n": -number}), REFUSED)
    assert not session.exhausted


def test_five_denials_of_one_parallel_turn_are_one_strike(clock: Any) -> None:
    session = make(clock, Denials())
    for _ in range(3):
        turn(session, *[refused(n) for n in range(5)])
        assert not session.exhausted
    turn(session, *[refused(n) for n in range(5)])
    assert session.exhausted


def test_equal_calls_of_one_turn_do_not_know_of_each_others_refusal(clock: Any) -> None:
    session = make(clock, Denials(max_turns_in_a_row=1))
    turn(session, *[REFUSED] * 5)
    assert not session.exhausted
    turn(session, *[REFUSED] * 5)
    assert session.exhausted


def test_one_admitted_call_starts_the_count_again(clock: Any) -> None:
    session = make(clock, Denials())
    for _ in range(5):
        turn(session, REFUSED)
        turn(session, REFUSED)
        turn(session, REFUSED, ("t", {}))
    assert not session.exhausted


def test_turns_without_calls_neither_count_nor_reset(clock: Any) -> None:
    session = make(clock, Denials())
    for _ in range(4):
        turn(session, REFUSED)
        session.begin_turn()
        session.begin_turn()
    assert session.exhausted


def test_retryable_refusals_are_no_strikes(clock: Any) -> None:
    session = make(clock, Denials(max_turns_in_a_row=1), Rate(max_calls_per_minute=1))
    turn(session, ("t", {}))
    for number in range(15):
        assert turn(session, ("t", {"n": number % 2}))[0].retryable is True
    assert not session.exhausted


def test_the_first_validation_error_of_a_signature_is_no_strike_and_the_next_is(clock: Any) -> None:
    session = make(clock, Denials(max_turns_in_a_row=2), Validation())
    for text in ("{a", "{b", "{c", "{d"):
        assert turn(session, ("t", text))[0].status == "validation_error"
    assert not session.exhausted
    turn(session, ("t", "{a"))
    turn(session, ("t", "{d"))
    assert session.exhausted


def test_the_last_refusal_of_the_last_turn_tells_the_limit(clock: Any) -> None:
    session = make(clock, Denials(max_turns_in_a_row=2))
    turn(session, REFUSED)
    turn(session, REFUSED)
    first, last = turn(session, REFUSED, REFUSED)
    assert (first.limit_message, last.code) == (None, "tool_filter.deny")
    assert last.limit_message == "Every tool call of 2 turns in a row was refused. Stopping tool loop."


@table("guard", [Denials(max_turns_in_a_row=None), Denials(mode="off"), Denials(mode="observe")])
def test_without_the_cap_refusals_go_on_for_ever(guard: Any, clock: Any) -> None:
    session = make(clock, guard)
    for _ in range(12):
        turn(session, REFUSED)
    for _ in range(12):
        session.call("no", {}, ok)
    assert not session.exhausted


def test_duplicates_a_model_insists_on_end_its_session(clock: Any) -> None:
    session = make(clock, Denials(), Duplicates())
    turn(session, ("t", {}))
    for _ in range(4):
        assert turn(session, ("t", {}))[0].code == "duplicates.window"
    assert session.exhausted


def test_an_extended_session_is_forgiven_what_was_refused(clock: Any) -> None:
    session = make(clock, Denials())
    for _ in range(4):
        turn(session, REFUSED)
    session.extend()
    seen = [(turn(session, REFUSED), session.exhausted is not None)[1] for _ in range(4)]
    assert seen == [False, False, False, True]


@given(st.lists(st.integers(0, 40), max_size=80))
def test_what_is_remembered_of_refusals_is_bounded_and_kept(numbers: list[int]) -> None:
    guard, state, mine = Denials(), SessionState(), None
    for number in numbers:
        if number == 0:
            end_turn(state, 0)
        else:
            values = {"sig": None if number == 1 else number - 20, "strike": True}
            mine = guard.event(Event("refusal", values), state, mine, Facts(0))
            assert mine[4] <= mine[5] <= len(mine[6]) <= REMEMBERED
        state.own = {} if mine is None else {guard.key: mine}
        assert unpack(pack(state)) == state


# Turns that nobody tells


@table("seconds", [0, 0.001, 5, 120])
def test_where_no_turns_are_told_a_session_of_repeated_refusals_has_an_end_too(seconds: float, clock: Any) -> None:
    session = make(clock, Denials())
    seen = []
    for _ in range(5):
        seen.append(session.call("no", {}, ok).code)
        clock.advance(seconds)
    assert seen == [*["tool_filter.deny"] * 4, CAP]


def test_refusals_of_calls_that_were_made_together_are_one_turn(clock: Any) -> None:
    session = make(clock, Denials(max_turns_in_a_row=1))
    for number in range(30):
        session.call("no", {"n": number}, ok)
        clock.advance(0.001)
    assert not session.exhausted


def test_a_call_that_runs_between_refusals_starts_the_count_again_though_nobody_tells_turns(clock: Any) -> None:
    session = make(clock, Denials())
    for number in range(20):
        session.call("no", {}, ok)
        clock.advance(3)
        session.call("t", {"n": number}, ok)
        clock.advance(3)
    assert not session.exhausted


def test_whoever_asks_again_while_a_call_runs_is_not_ended(clock: Any) -> None:
    session = make(clock, Denials(max_turns_in_a_row=1), Duplicates())
    running = session.decide("t", {}, id="first")
    for number in range(20):
        assert session.decide("t", {}, id=f"again {number}").code == "call.in_flight"
        clock.advance(10)
    assert not session.exhausted
    assert session.complete(running, "found").ok


GUARDS = (Loops(), Duplicates(rule="evidence", window=20), Denials(), Retryable())


@table("workers", [1, 4, 30])
def test_a_fan_out_by_threads_is_refused_nothing_for_what_its_siblings_brought(workers: int) -> None:
    session = Policy(GUARDS).session("s")
    together = Barrier(workers)

    def fetch(page: int) -> str:
        if page < workers:
            together.wait()
        raise FileNotFoundError("404: no such page")

    guarded = session.wrap(fetch, returns="envelope")
    with ThreadPoolExecutor(workers) as pool:
        ends = list(pool.map(guarded, range(30)))
    assert [end.code for end in ends] == [None] * 30
    assert {end.error_type for end in ends} == {"not_found"}


@table("apart", [0, 0.002, 1, 30])
def test_calls_that_are_made_one_by_one_are_turns_of_their_own(apart: float, clock: Any) -> None:
    session = Policy(GUARDS).session("s", clock=clock)
    session.decide("watch", {}, id="never ends")
    clock.advance(61)
    seen = []
    for page in range(7):
        decision = session.decide("fetch", {"page": page})
        seen.append([code for code, _ in decision.nudges])
        session.complete(decision, FileNotFoundError("404: no such page"))
        clock.advance(apart)
    assert seen == [[]] * 3 + [["loops.same_error"]] * 4


calls_made = st.tuples(
    st.sampled_from(["no", "fetch", "list"]), st.integers(0, 2), st.sampled_from([0, 1, 7, 11, 900, 5_000, 70_000])
)


@given(st.lists(st.one_of(calls_made, st.just("turn")), max_size=60))
def test_records_decide_all_of_it_again(story: list[Any]) -> None:
    now = [1_800_000_000.0]
    policy, sink = Policy([ToolFilter(deny=("no",)), *GUARDS]), MemorySink()
    running: list[Any] = []
    with policy.session("s", clock=lambda: now[0], records=sink) as session:
        for step in story:
            if step == "turn":
                session.begin_turn()
                continue
            tool, number, ms = step
            decision = session.decide(tool, {"n": number})
            if decision.allowed:
                running.append(decision)
            now[0] += ms / 1_000
            if len(running) > 2 or (running and number):
                done = running.pop(0)
                session.complete(done, FileNotFoundError("404") if done.call.tool == "fetch" else [1])
    replayed = list(replay(policy.chain, sink.records))
    assert all(call.same for call in replayed)
